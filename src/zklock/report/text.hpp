#pragma once

#include <cstddef>
#include <string>

namespace zkrecipes::zklock {

// What others wrote must neither move the cursor of a terminal nor change the order of what stands there.

/// Replaces control characters (C0, DEL, C1, and those that change the direction of writing) and what is not UTF-8
/// by '?'.
std::string printable(const std::string& text);
/// The same for a JSON text, which means the same afterwards: they are written as \uXXXX.
std::string printable_json(const std::string& json);
/// As much of the beginning as has room in so many columns; no character is cut. Takes some characters for wider than
/// they are, none for narrower.
std::string fit(const std::string& text, std::size_t columns);

}  // namespace zkrecipes::zklock
