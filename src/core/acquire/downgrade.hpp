#pragma once

#include <memory>

#include "core/acquire/acquire.hpp"
#include "core/hold/hold_ref.hpp"

namespace zkrecipes::internal {

/// What takes a share in `shared`, the readers' queue, besides `alone`, a hold in the writers' queue of the same
/// directory. Whoever starts it keeps `alone` entered until the answer. See DowngradeFsm.
MakeAcquisition make_downgrade(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> shared,
                               std::shared_ptr<HoldRef> alone, const char* operation);

}  // namespace zkrecipes::internal
