#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <zkrecipes/lock_options.hpp>

namespace zkrecipes::internal {

// The data of a lock node describe its owner: one JSON object, for people and for other programs.
//   {"v":1,"id":"web1:4711","host":"web1","pid":4711,"user":"ops","uid":1000,"name":"deploy",
//    "since":"2026-01-02T03:04:05Z","meta":{}}

inline constexpr std::size_t kMaxPayload = 512;

/// Never longer than kMaxPayload, never empty. A `name` that is too long is cut, with "…" at its end; labels and id are
/// not cut: throws Error bad_option.
std::string write_payload(const LockOptions& options, std::chrono::system_clock::time_point since,
                          std::string_view operation, std::string_view path);

/// Fills in the members of `data`. Anything that is not such an object (Curator writes an address, kazoo an identifier)
/// fills in only `raw`.
void read_payload(std::string data, Participant& participant);

/// The same if the data are the owner's id and nothing else.
void read_id(std::string data, Participant& participant);

/// "host:pid", for a contender without an id of its own.
std::string default_id();

}  // namespace zkrecipes::internal
