#pragma once

#include <cstdint>
#include <string>

namespace zkrecipes::testenv {

/// An IPv4 address and a port. Each server and gate has its own loopback address (127.a.b.c).
struct Endpoint {
    std::string address;     ///< without the port
    std::uint16_t port = 0;  ///< of TCP

    /// "127.1.2.3:2181", as in a connect string.
    [[nodiscard]] std::string str() const { return address + ":" + std::to_string(port); }
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace zkrecipes::testenv
