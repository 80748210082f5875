#pragma once

#include <string>

namespace zkrecipes::testenv {

/// Why no server can be started here, with what to install; empty when one can.
[[nodiscard]] std::string why_unavailable();

}  // namespace zkrecipes::testenv
