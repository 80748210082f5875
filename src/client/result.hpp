#pragma once

namespace zkrecipes::internal {

/// How the servers, or the client on their behalf, answered one request. Values are ZooKeeper's own, all those of
/// servers up to 3.9; those below -1000 are ours. Other values may come from later servers: outcome unknown.
enum class Rc : int {
    ok = 0,
    system_error = -1,
    runtime_inconsistency = -2,  ///< the reply did not fit the request: outcome unknown
    data_inconsistency = -3,
    connection_loss = -4,  ///< outcome unknown
    marshalling_error = -5,
    unimplemented = -6,
    operation_timeout = -7,  ///< outcome unknown
    bad_arguments = -8,
    invalid_state = -9,
    unknown_session = -12,
    new_config_no_quorum = -13,
    reconfig_in_progress = -14,
    tls_failed = -15,  ///< outcome unknown
    api_error = -100,  ///< outcome unknown
    no_node = -101,
    no_auth = -102,
    bad_version = -103,
    no_children_for_ephemerals = -108,
    node_exists = -110,
    not_empty = -111,
    session_expired = -112,
    invalid_callback = -113,
    invalid_acl = -114,
    auth_failed = -115,
    closing = -116,
    nothing = -117,
    session_moved = -118,  ///< not executed
    not_read_only = -119,
    local_session = -120,  ///< the servers let a local session create no ephemeral node
    no_watcher = -121,
    request_timeout = -122,  ///< outcome unknown
    reconfig_disabled = -123,
    credentials_demanded = -124,  ///< not executed: the servers serve no session without credentials
    quota_exceeded = -125,
    throttled = -127,       ///< not executed
    not_connected = -1001,  ///< never sent
    closed = -1002,         ///< the handle was closed before an answer came: outcome unknown
    too_large = -1003,      ///< larger than the servers accept; never sent: they answer by cutting the connection
    no_lease = -1004        ///< the session timeout is too short for the servers' tick: no hold could ever be sure
};

/// What an answer means for the request. A lost connection is never "did not happen".
enum class Meaning {
    done,          ///< executed
    refused,       ///< executed, with a definite "no" of the data tree (no node, exists, bad version, not empty …)
    not_done,      ///< certainly not executed: may be sent again as it is
    unknown,       ///< executed or not
    session_over,  ///< this handle will never answer again; what it did before is unknown
    failed         ///< a definite failure that trying again does not mend (no auth, bad arguments, quota …)
};
Meaning meaning(Rc rc) noexcept;
/// A code that is not known counts as `failed`: for requests that do no harm when they are repeated, and where an
/// operation is not to go on, since such a code may come each time.
Meaning meaning_or_failed(Rc rc) noexcept;
/// Surely a server's word about a request, and no one that the client makes up: a sign of life of the connection.
bool said_by_server(Rc rc) noexcept;
/// Whether this version knows the code.
bool is_known(Rc rc) noexcept;
/// In words. For a code that is not known, the caller adds its number.
const char* to_string(Rc rc) noexcept;

}  // namespace zkrecipes::internal
