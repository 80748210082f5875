#pragma once

#include <string>

#include "sim/plan.hpp"

namespace zkrecipes::sim {

/// Takes away faults, processes, fibers, paths and time from a run that fails, as long as the same check goes on
/// failing, and prints the smallest run and its trace. Each attempt runs in a process of its own.
void shrink(const Plan& failing, const std::string& check);

}  // namespace zkrecipes::sim
