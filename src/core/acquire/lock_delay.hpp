#pragma once

#include <memory>

#include "core/acquire/acquire.hpp"

namespace zkrecipes::internal {

/// What acquires in `queue` and, if whoever held last has vanished without giving back, waits for delay_after_loss of
/// the queue's options before it answers. See LockDelayFsm.
MakeAcquisition make_delayed(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue,
                             const char* operation);

}  // namespace zkrecipes::internal
