#pragma once

// Turns on deliberate bugs (bugs.py, places.py) by their names. Part of the preset mutations alone.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace zkrecipes::internal {

/// Which bugs a run comes by: with ZKRECIPES_MUTATIONS_REACHED=file a line for each name, once for each test. Allocates
/// nothing, since there are tests in which allocations fail.
class ReachedMutations {
public:
    static bool recorded() noexcept { return file() >= 0; }
    static void record(std::string_view name) noexcept {
        const char* const literal = name.data();
        for (std::size_t i = reinterpret_cast<std::uintptr_t>(literal) % kMost;; i = (i + 1) % kMost) {
            const char* seen = nullptr;
            if (table()[i].compare_exchange_strong(seen, literal)) return write(name);
            if (seen == literal) return;
        }
    }
    /// A test begins: all names are new again.
    static void begin(std::string_view test) noexcept {
        for (auto& each : table()) each.store(nullptr);
        write(test);
    }

private:
    static constexpr std::size_t kMost = 1 << 14;  // uses of names in a program
    static int file() noexcept {
        static const int file = [] {
            const char* const path = std::getenv("ZKRECIPES_MUTATIONS_REACHED");
            return path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        }();
        return file;
    }
    static std::array<std::atomic<const char*>, kMost>& table() noexcept {
        static std::array<std::atomic<const char*>, kMost> names{};
        return names;
    }
    static void write(std::string_view text) noexcept {
        std::array<char, 512> line;
        const std::size_t size = text.copy(line.data(), line.size() - 1);
        line[size] = '\n';
        if (::write(file(), line.data(), size + 1) < 0) std::abort();
    }
};

struct Mutations {
    /// Empty: the library as it is. Set before anything runs.
    static std::string_view& active() noexcept {
        static std::string_view name = [] {
            const char* const chosen = std::getenv("ZKRECIPES_MUTATION");
            return std::string_view(chosen != nullptr ? chosen : "");
        }();
        return name;
    }
    /// Whether the run came by the switch at all: a bug that nothing passes proves nothing.
    static bool& reached() noexcept {
        static bool flag = false;
        return flag;
    }
    /// Several at once are joined by '+': defences that stand behind each other have to be taken out together.
    static bool on(std::string_view name) noexcept {
        if (ReachedMutations::recorded()) ReachedMutations::record(name);
        for (std::string_view rest = active(); !rest.empty();) {
            const std::size_t end = rest.find('+');
            if (rest.substr(0, end) == name) return reached() = true;
            rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        }
        return false;
    }
};

}  // namespace zkrecipes::internal
