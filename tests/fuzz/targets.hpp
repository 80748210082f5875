#pragma once

#include <span>
#include <string_view>

namespace zkrecipes::fuzz {

/// One reader of what others wrote, and what must be true of it whatever they wrote. Ends the process when it is not.
struct Target {
    std::string_view name;  // also of its folder in the corpus
    void (*run)(std::string_view input);
};
std::span<const Target> targets();
/// Null: there is none of that name.
const Target* find_target(std::string_view name);

}  // namespace zkrecipes::fuzz
