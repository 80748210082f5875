#pragma once

#include <cstddef>
#include <string>

namespace zkrecipes::zklock {

// Text from other clients must neither move the cursor of a terminal nor change the direction of its text.

/// Replaces control characters (C0, DEL, C1, and those that change the text direction) and bytes that are not UTF-8 by
/// '?'.
std::string printable(const std::string& text);
/// The same for JSON text without changing its meaning: writes \uXXXX, and U+FFFD for bytes that are not UTF-8.
std::string printable_json(const std::string& json);
/// The longest beginning of `text` that fits into so many columns, without cutting a character. May overestimate the
/// width of a character, never underestimate it.
std::string fit(const std::string& text, std::size_t columns);

/// Replaces the names of the library's options by those of zklock. `origin_of_tick`: the setting that states the tick.
std::string with_names_of_options(std::string text, const std::string& origin_of_tick = "--server-tick");

}  // namespace zkrecipes::zklock
