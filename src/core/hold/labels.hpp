#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/result.hpp>

#include "core/hold/hold_ref.hpp"

namespace zkrecipes::internal {

using Labels = std::map<std::string, std::string>;

/// Writes other labels into the nodes of a hold, if nobody has written a request to release into one of them. `share`:
/// may be null. See Grant::set_labels.
bool set_labels(const std::shared_ptr<HoldRef>& share, Labels labels, Deadline deadline, std::stop_token stop);
void set_labels_async(const std::shared_ptr<HoldRef>& share, Labels labels, Deadline deadline, std::stop_token stop,
                      std::function<void(Result<bool>)> done);

}  // namespace zkrecipes::internal
