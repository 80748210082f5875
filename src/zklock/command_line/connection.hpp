#pragma once

#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/command_line/settings.hpp"

namespace zkrecipes::zklock {

/// Reads the servers and the credentials. Throws Failure 64 for the command line, and 78 with the place for the
/// environment or a file.
void read_connection(const Settings& settings, Options& options);
/// The prefix of every path on the servers: the path of the connect string and --prefix; "": none.
std::string server_prefix(const Options& options);
/// The path of a node as all clients of the servers know it. A message that sends somebody to a node names this path.
std::string server_path(const Options& options, const std::string& path);

/// Parses a duration. Throws a Failure with this exit code that names `origin`.
Nanoseconds duration_of(const std::string& origin, const std::string& text, int exit_code = kUsage);
/// Parses "open", "creator", or "SCHEME:ID:PERMISSIONS" with letters of "rwcda". Throws Failure.
std::vector<Acl> parse_acl(const Found& acl);
/// The access list without what may be a secret: the hashes of passwords in ids of the scheme digest, and ids of
/// schemes that zklock does not know.
std::string acl_without_secrets(const std::string& acl);

/// The locks that this zklock holds, or wants to hold.
std::vector<HeldLock> locks_of(const Options& options);
/// Whether a zklock that wants `wanted` has to wait until `held` is released.
bool excludes(const HeldLock& held, const HeldLock& wanted);

}  // namespace zkrecipes::zklock
