#pragma once

#include <string>
#include <vector>

#include <zkrecipes/export.hpp>

#define ZKRECIPES_VERSION_MAJOR 0
#define ZKRECIPES_VERSION_MINOR 2
#define ZKRECIPES_VERSION_PATCH 0
#define ZKRECIPES_VERSION "0.2.0"

namespace zkrecipes {

/// The version of the library that runs, which may be newer than the headers.
ZKRECIPES_API const char* version() noexcept;
/// The version of the ZooKeeper C client that runs, for example "3.8.0".
ZKRECIPES_API std::string client_version();
/// What the C client that runs can do beyond the plain protocol: "tls", "sasl".
ZKRECIPES_API std::vector<std::string> features();

}  // namespace zkrecipes
