#include <zookeeper/zookeeper_version.h>

#include <zkrecipes/version.hpp>

// What the C client that runs exports beyond the version we need. Older ones, and those that were built without these
// features (Debian's), do not: the address is null then. The header declares them only for its own build's features.
extern "C" {
[[gnu::weak]] const char* zoo_version_str();
[[gnu::weak]] void zookeeper_init_ssl();
[[gnu::weak]] void zookeeper_init_sasl();
}

namespace zkrecipes {

std::string client_version() {
    // The client says which version it is only since it has this function; before, the header's version is the best
    // guess.
    return zoo_version_str != nullptr ? zoo_version_str() : ZOO_VERSION;
}

std::vector<std::string> features() {
    std::vector<std::string> found;
    if (zookeeper_init_ssl != nullptr) found.emplace_back("tls");
    if (zookeeper_init_sasl != nullptr) found.emplace_back("sasl");
    return found;
}

}  // namespace zkrecipes
