#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/lock_options.hpp>

#include "core/acquire/acquire.hpp"
#include "core/acquire/semaphore_fsm.hpp"
#include "core/queue/lock_layout.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// So many leases at once at most: their creates, and the checks of the heartbeat, must fit one request.
inline constexpr std::int32_t kMostLeasesAtOnce = 1000;

/// What all calls of one semaphore object have in common; outlives the object while calls are open.
struct SemaphorePlace {
    std::shared_ptr<const Queue> queue;     // <path>/locks; its user_path is <path>
    std::string leases;                     // server path of <path>/leases
    std::shared_ptr<SemaphoreTerms> terms;  // under the session lock
};

/// Checks path, options and number. Throws Error bad_path or bad_option. `follows`: the number may be changed at run
/// time.
std::shared_ptr<const SemaphorePlace> make_semaphore(const SessionCore& core, const std::string& path,
                                                     LockOptions options, std::int32_t limit, bool follows,
                                                     const char* operation);

/// For acquire_blocking and acquire_async: `wanted` leases at once. Throws Error bad_option.
MakeAcquisition lease_acquisition(const std::shared_ptr<SessionCore>& core,
                                  const std::shared_ptr<const SemaphorePlace>& place, const char* operation,
                                  std::int32_t wanted);

/// The number agreed on; that of the object while there is none.
Steps<std::int32_t> read_terms(const std::shared_ptr<SessionCore>& core,
                               const std::shared_ptr<const SemaphorePlace>& place, const char* operation);
/// Writes it, and wakes who waits for a lease. True. Throws Error bad_option.
Steps<bool> write_terms(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const SemaphorePlace>& place,
                        std::int32_t limit, const char* operation);

/// The leases, oldest first, then those who wait, in the order of the queue.
Steps<std::vector<Participant>> read_semaphore(std::shared_ptr<SessionCore> core,
                                               std::shared_ptr<const SemaphorePlace> place, const char* operation);

}  // namespace zkrecipes::internal
