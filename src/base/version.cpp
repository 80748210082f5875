#include <zkrecipes/version.hpp>

namespace zkrecipes {

const char* version() noexcept { return ZKRECIPES_VERSION; }

}  // namespace zkrecipes
