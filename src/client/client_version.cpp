#include <zookeeper/zookeeper_version.h>

#include <zkrecipes/version.hpp>

#include "client/zk_secure.hpp"

// Older C clients do not have it: the address is null then.
extern "C" {
[[gnu::weak]] const char* zoo_version_str();
}

namespace zkrecipes {

std::string client_version() {
    // The client says which version it is only since it has this function; before, the header's version is the best
    // guess.
    return zoo_version_str != nullptr ? zoo_version_str() : ZOO_VERSION;
}

std::vector<std::string> features() {
    std::vector<std::string> found;
    if (internal::client_has_tls()) found.emplace_back("tls");
    if (internal::client_has_sasl()) found.emplace_back("sasl");
    return found;
}

}  // namespace zkrecipes
