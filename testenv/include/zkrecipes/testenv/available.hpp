#pragma once

#include <string>

namespace zkrecipes::testenv {

/// Why no server can start on this machine, and what to install; empty: a server can start.
[[nodiscard]] std::string why_unavailable();

}  // namespace zkrecipes::testenv
