#pragma once

#include <string>

namespace zkrecipes::test {

/// Forks again and again while the session is busy. 0: each child was refused everything that belongs to the parent,
/// and the parent did not notice any of them.
int fork_while_holding(const std::string& connect, const std::string& path);

}  // namespace zkrecipes::test
