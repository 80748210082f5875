#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace zkrecipes::internal {

/// The settings of a server on which the lease rests, as the server told them.
struct ServerSettings {
    std::chrono::milliseconds tick{0};  // its tickTime
    bool observer = false;              // so it may get its data from an observer master
    bool operator==(const ServerSettings&) const = default;
};

/// Reads the answer to the four-letter word "conf". Empty: the server may not tell, or this is no such answer.
std::optional<ServerSettings> read_settings(std::string_view answer);

/// What follows from such settings. Pure.
struct TickVerdict {
    /// The lease must assume a tick that is at least this long. Zero: what it assumes is long enough, or it is only a
    /// guess that an observer is two hops away, and the program has stated that it is not.
    std::chrono::milliseconds assume{0};
    std::string warning;  // with its remedy; empty: none
};

/// `stated`: SessionOptions::server_tick, or zero. `timeout`: the one that the servers granted.
TickVerdict judge_tick(const ServerSettings& told, const std::string& server, std::chrono::milliseconds stated,
                       std::chrono::milliseconds timeout);

}  // namespace zkrecipes::internal
