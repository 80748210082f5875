#pragma once

#include <cstdint>

namespace zkrecipes::internal {

using OwnerId = std::uint64_t;  // 0: nobody

/// Who is calling: the running Boost fiber; or where no fibers run, the lane of a session, or else the thread. Never
/// the same for two of them, not even one after the other: the ids of threads and fibers are reused at once, and the
/// next fiber would inherit the locks of a dead one. Follows a fiber that moves to another thread.
OwnerId this_owner();

}  // namespace zkrecipes::internal
