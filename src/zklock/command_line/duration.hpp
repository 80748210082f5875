#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace zkrecipes::zklock {

/// Parses "10", "1.5", "250ms", "2s", "5m", "1h", "1d", and "1h30m" as format_duration() writes it; the default unit is
/// seconds. Empty: not a duration, negative, or longer than ten years.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// For people: "250ms", "3.4s", "3m12s", "2h05m", "4d03h".
std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace zkrecipes::zklock
