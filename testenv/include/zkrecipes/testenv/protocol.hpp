#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zkrecipes::testenv {

/// The type of a request, with ZooKeeper's names and numbers. `connect` is the handshake; servers call the same thing
/// "create session".
enum class Opcode : std::int32_t {
    connect = -10,
    close_session = -11,
    notification = 0,
    create = 1,
    remove = 2,
    exists = 3,
    get_data = 4,
    set_data = 5,
    get_acl = 6,
    set_acl = 7,
    get_children = 8,
    sync = 9,
    ping = 11,
    get_children2 = 12,
    check = 13,
    multi = 14,
    create2 = 15,
    reconfig = 16,
    check_watches = 17,
    remove_watches = 18,
    create_container = 19,
    delete_container = 20,
    create_ttl = 21,
    multi_read = 22,
    auth = 100,
    set_watches = 101,
    sasl = 102,
    get_ephemerals = 103,
    get_all_children_number = 104,
    set_watches2 = 105,
    add_watch = 106,
    who_am_i = 107,
};

/// "create", "get_data" … or "opcode 77".
[[nodiscard]] std::string to_string(Opcode opcode);
/// Whether the request changes the tree. A multi always counts.
[[nodiscard]] bool is_write(Opcode opcode);

/// One operation inside a multi.
struct SubRequest {
    Opcode opcode{};   ///< its type
    std::string path;  ///< of its node
};

/// The stat of a node.
struct Stat {
    /// As in ZooKeeper's own Stat: zxids, times in milliseconds, versions, owner and sizes.
    std::int64_t czxid = 0;
    std::int64_t mzxid = 0;
    std::int64_t ctime = 0;
    std::int64_t mtime = 0;
    std::int32_t version = 0;
    std::int32_t cversion = 0;
    std::int32_t aversion = 0;
    std::int64_t ephemeral_owner = 0;
    std::int32_t data_length = 0;
    std::int32_t num_children = 0;
    std::int64_t pzxid = 0;
};

/// The ZooKeeper error numbers that tests use.
namespace zk_error {
/// ZooKeeper's own number.
inline constexpr int ok = 0;
inline constexpr int connection_loss = -4;
inline constexpr int no_node = -101;
inline constexpr int no_auth = -102;
inline constexpr int bad_version = -103;
inline constexpr int node_exists = -110;
inline constexpr int not_empty = -111;
inline constexpr int session_expired = -112;
}  // namespace zk_error

}  // namespace zkrecipes::testenv
