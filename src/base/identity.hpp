#pragma once

#include <string>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// A random UUID in the form that Curator's node names have: 36 characters, lower case, version 4.
std::string random_uuid(Runtime& runtime);

}  // namespace zkrecipes::internal
