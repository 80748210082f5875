#pragma once

#include <cstdint>

#include <zkrecipes/error.hpp>

#include "client/result.hpp"

namespace zkrecipes::internal {

/// Tells the answers of one request from those of earlier ones.
using Ticket = std::uint64_t;

/// How an operation ended.
enum class Ended { granted, timed_out, stopped, failed };

enum class Patience {
    wait,     // until done, stopped or the deadline
    try_once  // the deadline has passed already: one attempt, which waits for nobody
};

/// What the caller is told when the servers definitely refuse.
Errc error_of(Rc rc) noexcept;

/// A container is reaped only when it has been empty for a while, so a directory that vanishes again and again between
/// being made and being used is not bad luck any more.
inline constexpr std::uint16_t kDirectoryAttempts = 20;

// What budget_exceeded says.
inline constexpr const char* kTooManyNodes =
    "this session owns as many lock nodes as ZooKeeper survives; use another Session for more";
inline constexpr const char* kTooManyWatches =
    "this session watches as many nodes as ZooKeeper survives; use another Session for more";

}  // namespace zkrecipes::internal
