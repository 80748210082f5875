#pragma once

#include <memory>

#include "core/acquire/acquire.hpp"

namespace zkrecipes::internal {

/// Acquires in `queue`. If the last holder has vanished without a release, it waits for delay_after_loss of the queue's
/// options before it answers. See LockDelayFsm.
MakeAcquisition make_delayed(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue,
                             const char* operation);

}  // namespace zkrecipes::internal
