#pragma once

#include <string>

#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {

/// Why none of these servers answers, of each one: `zk1:2181: the name does not resolve (...); zk2:2181: connection
/// refused`. Tries them all at once, and takes no longer than `limit`. `connect`: as a session has accepted it. Throws
/// std::system_error when this process may open no further file: then no server is to blame.
std::string why_no_answer(const std::string& connect, Nanoseconds limit = std::chrono::seconds(1));

}  // namespace zkrecipes::zklock
