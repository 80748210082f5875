#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zkrecipes::internal {

/// The longest path that we take, namespace included. The servers' own limit is the size of one request (1 MB); this
/// one leaves room for the identity and sequence number that a lock node adds (at most kNodeNameRoom), for the node's
/// data, and for two dozen such paths in one transaction.
inline constexpr std::size_t kMaxPathBytes = 32 * 1024;
inline constexpr std::size_t kNodeNameRoom = 256;

/// Why `path` is not a znode path by ZooKeeper's rules, and what to do about it; empty: it is one.
std::string path_problem(std::string_view path);
/// Throws Error bad_path naming `operation`, the path and the remedy.
void check_path(std::string_view path, std::string_view operation);
/// As check_path, and not ZooKeeper's own tree /zookeeper, where a lock node would disturb quotas and the
/// configuration. Takes the complete path as the servers see it.
void check_lock_path(std::string_view server_path, std::string_view operation);

/// `/a` + `b/c` or `/b/c`: `/a/b/c`. Either side may be `/` or empty; the result is never empty.
std::string join_path(std::string_view directory, std::string_view rest);
/// `/a/b`: `/a`; `/a` and `/`: `/`.
std::string_view parent_path(std::string_view path);
/// `/a/b`: `b`; `/`: empty.
std::string_view base_name(std::string_view path);
/// `/a/b/c`: `/a`, `/a/b`. Without the root and the path itself, in the order in which they must be made.
std::vector<std::string> ancestors(std::string_view path);
/// Whether `path` is `directory` or lies below it.
bool is_at_or_below(std::string_view path, std::string_view directory);

}  // namespace zkrecipes::internal
