#include "session/connection/server_settings.hpp"

#include <charconv>
#include <cstdint>

#include "base/session_timeout.hpp"

namespace zkrecipes::internal {
namespace {

using std::chrono::milliseconds;

/// The number of the line "key=number".
std::optional<std::int64_t> number_of(std::string_view answer, std::string_view key) {
    for (std::size_t begin = 0; begin < answer.size();) {
        const std::size_t end = std::min(answer.find('\n', begin), answer.size());
        const std::string_view line = answer.substr(begin, end - begin);
        begin = end + 1;
        if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
        const std::string_view digits = line.substr(key.size() + 1);
        std::int64_t number = 0;
        const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error != std::errc() || (rest != digits.data() + digits.size() && *rest != '\r')) return std::nullopt;
        return number;
    }
    return std::nullopt;
}

std::string ms(milliseconds time) { return std::to_string(time.count()) + " ms"; }

}  // namespace

std::optional<ServerSettings> read_settings(std::string_view answer) {
    // A line that was cut off may have lost digits.
    answer = answer.substr(0, answer.rfind('\n') + 1);
    const auto tick = number_of(answer, "tickTime");
    if (!tick || *tick <= 0 || milliseconds(*tick) > kLongestSessionTimeout) return std::nullopt;
    return ServerSettings{milliseconds(*tick), number_of(answer, "peerType") == 1};
}

TickVerdict judge_tick(const ServerSettings& told, const std::string& server, milliseconds stated,
                       milliseconds timeout) {
    // A touch that takes two hops waits for two pings.
    const milliseconds needed = told.observer ? 2 * told.tick : told.tick;
    const bool is_stated = stated > milliseconds::zero();
    if (is_stated ? stated >= needed : timeout >= 2 * needed) return {};
    // With a longer tick, no lease of T/3 is left (LeaseClock::attainable).
    const bool helps = needed * 100 < timeout * 114;
    const std::string longer = "SessionOptions::timeout to " + ms(2 * needed) + " or more";
    TickVerdict verdict;
    verdict.warning = server + " has a tickTime of " + ms(told.tick);
    if (told.observer) verdict.warning += ", and is an observer, perhaps of an observer master (observerMasterPort)";
    verdict.warning += ": ";
    if (is_stated) {
        if (stated < told.tick) verdict.assume = told.tick;  // what the server tells is no guess
        verdict.warning += "SessionOptions::server_tick is only " + ms(stated) +
                           ", so clients that cannot ask a server may hold a lock at once. Set it to " + ms(needed);
        if (!helps) verdict.warning += ", and " + longer;
        return verdict;
    }
    verdict.assume = needed;
    verdict.warning += "a session timeout of " + ms(timeout) + " is less than " +
                       (told.observer ? "four ticks" : "two ticks") + ". This session assumes " + ms(needed) +
                       " now; one that cannot ask a server may hold a lock together with another client. Set " +
                       (helps ? "SessionOptions::server_tick to " + ms(needed) + ", or " : "") + longer;
    return verdict;
}

}  // namespace zkrecipes::internal
