#include "zklock/command_line/duration.hpp"

#include <charconv>
#include <cstdio>

namespace zkrecipes::zklock {

namespace {

/// "1h30m", "2d12h", "3m12s": whole numbers, the larger unit first.
std::optional<std::chrono::nanoseconds> parse_two_units(std::string_view text) {
    const std::size_t first = text.find_first_not_of("0123456789");
    if (first == 0 || first >= text.size() || first + 2 >= text.size()) return std::nullopt;
    const std::string_view pair(text.data() + first, 1);
    const char smaller = pair == "d" ? 'h' : pair == "h" ? 'm' : pair == "m" ? 's' : '\0';
    const std::string_view rest = text.substr(first + 1);
    const bool whole = rest.find_first_not_of("0123456789") == rest.size() - 1;
    if (!whole || rest.back() != smaller) return std::nullopt;
    const auto large = parse_duration(text.substr(0, first + 1));
    const auto small = parse_duration(rest);
    return large && small ? std::optional(*large + *small) : std::nullopt;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    if (const auto two = parse_two_units(text)) return two;
    double number = 0;
    const char* const end = text.data() + text.size();
    // from_chars would take "inf", "nan" and "-0" too.
    if (text.empty() || !((text.front() >= '0' && text.front() <= '9') || text.front() == '.')) return std::nullopt;
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
    double seconds = 0;
    if (suffix.empty() || suffix == "s") {
        seconds = 1;
    } else if (suffix == "ms") {
        seconds = 1e-3;
    } else if (suffix == "m") {
        seconds = 60;
    } else if (suffix == "h") {
        seconds = 3600;
    } else if (suffix == "d") {
        seconds = 86400;
    } else {
        return std::nullopt;
    }
    constexpr double kTenYears = 10 * 366 * 86400.0;
    if (number * seconds > kTenYears) return std::nullopt;
    return std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double>(number * seconds));
}

std::string format_duration(std::chrono::nanoseconds duration) {
    using namespace std::chrono;
    if (duration < nanoseconds::zero()) duration = nanoseconds::zero();
    char text[64];
    const long long total = duration_cast<seconds>(duration).count();
    if (duration < seconds(1)) {
        std::snprintf(text, sizeof text, "%lldms",
                      static_cast<long long>(duration_cast<milliseconds>(duration).count()));
    } else if (total < 10) {
        const long long tenths = duration_cast<milliseconds>(duration).count() / 100;
        std::snprintf(text, sizeof text, "%lld.%llds", tenths / 10, tenths % 10);
    } else if (total < 60) {
        std::snprintf(text, sizeof text, "%llds", total);
    } else if (total < 3600) {
        std::snprintf(text, sizeof text, "%lldm%02llds", total / 60, total % 60);
    } else if (total < 86400) {
        std::snprintf(text, sizeof text, "%lldh%02lldm", total / 3600, total / 60 % 60);
    } else {
        std::snprintf(text, sizeof text, "%lldd%02lldh", total / 86400, total / 3600 % 24);
    }
    return text;
}

}  // namespace zkrecipes::zklock
