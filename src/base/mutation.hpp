#pragma once

// Deliberate bugs. In a build with the CMake option ZKRECIPES_MUTATIONS one of them can be turned on by its name, to
// see that the tests find it: docs/mutations.md. In every other build the switches are the constant false and leave
// nothing behind.
#ifdef ZKRECIPES_MUTATIONS

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
    static bool on(std::string_view name) noexcept {
        if (name != active()) return false;
        reached() = true;
        return true;
    }
};

}  // namespace zkrecipes::internal

#define ZKRECIPES_MUTATION(name) (::zkrecipes::internal::Mutations::on(name))
#else
#define ZKRECIPES_MUTATION(name) false
#endif
