#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <zkrecipes/lock_options.hpp>

namespace zkrecipes::internal {

// The data of a lock node describe its owner: one JSON object, for people and for other programs.
//   {"v":1,"id":"web1:4711","host":"web1","pid":4711,"user":"ops","uid":1000,"name":"deploy",
//    "since":"2026-01-02T03:04:05Z","waiting":12,"meta":{}}
// "waiting" is how many more of the same session waited when the node was made; it is left out if there were none.

inline constexpr std::size_t kMaxPayload = 512;

/// Composed once for all nodes of a recipe object. Never longer than kMaxPayload, never empty.
class Payload {
public:
    /// A `name` that is too long is cut, with "…" at its end; labels and id are not cut: throws Error bad_option.
    Payload(const LockOptions& options, std::string_view operation, std::string_view path);
    /// `waiting` is left out if it does not fit.
    std::string at(std::chrono::system_clock::time_point since, std::size_t waiting = 0) const;

private:
    std::string before_since_, after_since_;
};

/// Fills in the members of `data`. Anything that is not such an object (Curator writes an address, kazoo an identifier)
/// fills in only `raw`.
void read_payload(std::string data, Participant& participant);

/// The same if the data are the owner's id and nothing else.
void read_id(std::string data, Participant& participant);

/// "host:pid", for a contender without an id of its own.
std::string default_id();

}  // namespace zkrecipes::internal
