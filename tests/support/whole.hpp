#pragma once

#include <cstdlib>

namespace zkrecipes::test {

/// How often something is done: a share of it, as in CI, or the whole where $ZKRECIPES_TEST_WHOLE is set.
inline int share_of(int whole, int share) { return std::getenv("ZKRECIPES_TEST_WHOLE") == nullptr ? share : whole; }

}  // namespace zkrecipes::test
