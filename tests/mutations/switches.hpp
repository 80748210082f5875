#pragma once

// Turns on deliberate bugs (bugs.py) by their names. Part of the preset mutations alone.

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace zkrecipes::internal {

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
        for (std::string_view rest = active(); !rest.empty();) {
            const std::size_t end = rest.find('+');
            if (rest.substr(0, end) == name) return reached() = true;
            rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        }
        return false;
    }
};

}  // namespace zkrecipes::internal
