#pragma once

#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

namespace zkrecipes::internal {

struct CheckedOptions {
    std::vector<std::string> hosts;  // "host:port"
    std::string prefix;              // chroot and namespace; empty or "/…"
};

/// Throws Error (bad_connect_string, bad_option, bad_path) that names the option, its value and what to do.
CheckedOptions check_options(const SessionOptions& options);

}  // namespace zkrecipes::internal
