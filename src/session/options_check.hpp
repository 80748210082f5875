#pragma once

#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

namespace zkrecipes::internal {

struct CheckedOptions {
    std::vector<std::string> hosts;   // "host:port"
    std::string prefix;               // chroot and namespace; empty or "/…"
    std::optional<TlsOptions> tls;    // with absolute names of the files
    std::optional<SaslOptions> sasl;  // with the password, instead of its file
};

/// Throws Error (bad_connect_string, bad_option, bad_path) that names the option, its value and what to do.
CheckedOptions check_options(const SessionOptions& options);

/// The part of check_options about TLS and SASL, in encryption_check.cpp.
void check_encryption(const SessionOptions& options, CheckedOptions& out);

}  // namespace zkrecipes::internal
