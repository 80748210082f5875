#pragma once

#include <memory>

#include "core/acquire/acquire.hpp"
#include "core/hold/hold_ref.hpp"

namespace zkrecipes::internal {

/// Takes a hold in `shared`, the readers' queue, beside `exclusive`, a hold in the writers' queue of the same
/// directory. The caller keeps `exclusive` entered until the answer. See DowngradeFsm.
MakeAcquisition make_downgrade(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> shared,
                               std::shared_ptr<HoldRef> exclusive, const char* operation);

}  // namespace zkrecipes::internal
