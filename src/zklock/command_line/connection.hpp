#pragma once

#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/command_line/settings.hpp"

namespace zkrecipes::zklock {

/// Where ZooKeeper is, and who we are there. Throws Failure: 64 if the command line is wrong, 78 with the place if the
/// environment or a file is.
void read_connection(const Settings& settings, Options& options);
/// What the servers see before every path of ours: the path behind the servers' names, and the prefix; "": nothing.
std::string server_prefix(const Options& options);

/// Throws Failure with this exit code that names `origin`.
Nanoseconds duration_of(const std::string& origin, const std::string& text, int exit_code = kUsage);
/// "open", "creator", or "SCHEME:ID:PERMISSIONS" with letters of "rwcda". Throws Failure.
std::vector<Acl> parse_acl(const Found& acl);

}  // namespace zkrecipes::zklock
