#pragma once

#include <cstdint>
#include <string>

#include "chaos/round.hpp"

namespace zkrecipes::chaos {

/// Writes a round as JSON lines: what it was, each fault, each hold, each excuse, the registers, each finding. Times
/// are milliseconds since the first grant. Throws std::runtime_error.
void write_history(const std::string& file, const RoundOptions& options, const RoundResult& result);

}  // namespace zkrecipes::chaos
