#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <zkrecipes/encryption.hpp>

namespace zkrecipes::internal {

/// Why the C client could not use these files; empty: it can, or this program has no OpenSSL that could be asked.
std::string why_unusable(const TlsOptions& tls);

/// Why a TLS handshake with this server fails that the C client has ended; empty: it succeeds. "host:port", where host
/// is an address. Makes a handshake of its own, and sends nothing else. Blocks until the limit.
std::string why_no_handshake(const std::string& server, const TlsOptions& tls, std::chrono::milliseconds limit);

/// Which certificates of servers the C client accepts. By itself, it also accepts those of all authorities that the
/// system trusts, for any host. So OpenSSL is asked to tell of each SSL_CTX that it makes; for those that
/// the thread of a driver makes, the certificate is checked here.
class TlsTrust {
public:
    /// Throws Error unsupported if this program's OpenSSL cannot be asked.
    explicit TlsTrust(const TlsOptions& tls);
    /// After the driver has ended.
    ~TlsTrust();
    TlsTrust(const TlsTrust&) = delete;
    TlsTrust& operator=(const TlsTrust&) = delete;

    /// Whether this has checked a certificate. A connection without that must not be used.
    bool has_checked() const noexcept { return checked_; }

    /// What the thread that drives the C client has to be called.
    const std::string& thread_name() const noexcept { return thread_name_; }

    /// For OpenSSL's functions.
    bool accepts(void* original);

private:
    const TlsOptions tls_;
    std::string thread_name_;
    std::atomic<bool> checked_{false};
};

}  // namespace zkrecipes::internal
