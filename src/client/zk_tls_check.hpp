#pragma once

#include <chrono>
#include <string>

#include <zkrecipes/encryption.hpp>

namespace zkrecipes::internal {

/// Why the C client could not use these files; empty: it can, or this program has no OpenSSL that could be asked.
std::string why_unusable(const TlsOptions& tls);

/// Why a TLS handshake with this server fails that the C client has ended; empty: it succeeds. "host:port", where host
/// is an address. Makes a handshake of its own, and sends nothing else. Blocks until the limit.
std::string why_no_handshake(const std::string& server, const TlsOptions& tls, std::chrono::milliseconds limit);

}  // namespace zkrecipes::internal
