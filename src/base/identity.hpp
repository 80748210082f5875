#pragma once

#include <string>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// A random UUID in the form that Curator's node names have: 36 characters, lower case. Its version is 8, "custom",
/// where Curator and kazoo write 4: so a node's name tells which program made it.
std::string random_uuid(Runtime& runtime);

}  // namespace zkrecipes::internal
