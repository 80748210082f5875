#pragma once

#include <cstdint>
#include <string>

#include <zkrecipes/error.hpp>

#include "client/result.hpp"

namespace zkrecipes::internal {

/// Tells the answers of one request from those of earlier ones.
using Ticket = std::uint64_t;

/// How an operation ended. Its time was over in two of them:
enum class Ended {
    granted,
    busy,         // the servers answered, and it was waiting for others
    unreachable,  // answers of the servers were missing
    stopped,
    failed
};
inline bool timed_out(Ended how) noexcept { return how == Ended::busy || how == Ended::unreachable; }

enum class Patience {
    wait,     // until done, stopped or the deadline
    try_once  // the deadline has passed already: one attempt, which waits for nobody
};

/// What the caller is told when the servers definitely refuse.
Errc error_of(Rc rc) noexcept;

/// "create was answered: quota exceeded". Of an access list only that it refuses: SessionCore::explained says the rest.
std::string answer_in_words(const std::string& what, Rc rc);

/// A container is reaped only when it has been empty for a while, so a directory that vanishes again and again between
/// being made and being used is not bad luck any more.
inline constexpr std::uint16_t kDirectoryAttempts = 20;

// What budget_exceeded says.
inline constexpr const char* kTooManyNodes =
    "this session owns as many lock nodes as ZooKeeper survives; use another Session for more";
inline constexpr const char* kTooManyWatches =
    "this session watches as many nodes as ZooKeeper survives; use another Session for more";

}  // namespace zkrecipes::internal
