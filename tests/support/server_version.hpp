#pragma once

#include <array>
#include <cstdio>
#include <stdexcept>

#include <zkrecipes/testenv/zk_server.hpp>

namespace zkrecipes::test {

using Version = std::array<int, 3>;

/// Of the ZooKeeper that runs there: {3, 9, 3}.
inline Version version_of(const testenv::ZkServer& server) {
    const std::string answer = server.four_letter("srvr");
    Version version{};
    if (std::sscanf(answer.c_str(), "Zookeeper version: %d.%d.%d", &version[0], &version[1], &version[2]) != 3) {
        throw std::runtime_error("no version in the server's answer: " + answer);
    }
    return version;
}

/// ZOOKEEPER-2590, since 3.8.4 and 3.9.2: the server answers `exists` only to who may read the node.
inline bool exists_needs_read(const testenv::ZkServer& server) {
    const Version version = version_of(server);
    return version >= Version{3, 9, 2} || (version >= Version{3, 8, 4} && version < Version{3, 9, 0});
}

}  // namespace zkrecipes::test
