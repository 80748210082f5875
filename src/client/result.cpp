#include "client/result.hpp"

namespace zkrecipes::internal {
namespace {

constexpr const char* kUnknownCode = "a code that this version does not know";

}  // namespace

Meaning meaning(Rc rc) noexcept {
    switch (rc) {
        case Rc::ok: return Meaning::done;
        case Rc::no_node:
        case Rc::node_exists:
        case Rc::bad_version:
        case Rc::not_empty:
        case Rc::no_children_for_ephemerals:
        case Rc::no_watcher: return Meaning::refused;
        case Rc::session_moved:
        case Rc::throttled:
        case Rc::not_connected: return Meaning::not_done;
        // -2 is what the C client makes of a reply with the wrong xid, -7 of a reply that came too late, and after a
        // close has begun it says -5 for what it no longer reads: all three may have been executed.
        case Rc::connection_loss:
        case Rc::operation_timeout:
        case Rc::runtime_inconsistency:
        case Rc::data_inconsistency:
        case Rc::system_error:
        case Rc::marshalling_error:
        case Rc::tls_failed:
        case Rc::request_timeout:
        case Rc::api_error:
        case Rc::nothing: return Meaning::unknown;
        case Rc::session_expired:
        case Rc::auth_failed:
        case Rc::closing:
        case Rc::closed:
        case Rc::unknown_session:
        case Rc::credentials_demanded:
        case Rc::invalid_state: return Meaning::session_over;
        case Rc::unimplemented:
        case Rc::bad_arguments:
        case Rc::new_config_no_quorum:
        case Rc::reconfig_in_progress:
        case Rc::no_auth:
        case Rc::invalid_callback:
        case Rc::invalid_acl:
        case Rc::not_read_only:
        case Rc::local_session:
        case Rc::reconfig_disabled:
        case Rc::quota_exceeded:
        case Rc::too_large:
        case Rc::no_lease: return Meaning::failed;
    }
    return Meaning::unknown;  // a code of a later server
}

Meaning meaning_or_failed(Rc rc) noexcept { return is_known(rc) ? meaning(rc) : Meaning::failed; }

bool said_by_server(Rc rc) noexcept {
    // Above -100 are the client's own words, below -1000 ours; "no watcher" the C client knows without asking.
    if (rc == Rc::ok) return true;
    const bool of_server = rc <= Rc::no_node && rc > Rc::not_connected && rc != Rc::no_watcher;
    const Meaning what = meaning(rc);
    return of_server && (what == Meaning::refused || what == Meaning::failed);
}

const char* to_string(Rc rc) noexcept {
    switch (rc) {
        case Rc::ok: return "ok";
        case Rc::system_error: return "system error";
        case Rc::runtime_inconsistency: return "reply does not fit the request";
        case Rc::data_inconsistency: return "data inconsistency";
        case Rc::connection_loss: return "connection lost";
        case Rc::marshalling_error: return "marshalling error";
        case Rc::unimplemented: return "not implemented by the server";
        case Rc::operation_timeout: return "operation timed out";
        case Rc::bad_arguments: return "bad arguments";
        case Rc::invalid_state: return "handle cannot be used";
        case Rc::unknown_session: return "session unknown";
        case Rc::new_config_no_quorum: return "no quorum of the new configuration";
        case Rc::reconfig_in_progress: return "another reconfiguration is in progress";
        case Rc::tls_failed: return "TLS failed";
        case Rc::api_error: return "API error";
        case Rc::no_node: return "no node";
        case Rc::no_auth: return "not permitted";
        case Rc::bad_version: return "bad version";
        case Rc::no_children_for_ephemerals: return "ephemeral nodes have no children";
        case Rc::node_exists: return "node exists";
        case Rc::not_empty: return "not empty";
        case Rc::session_expired: return "session expired";
        case Rc::invalid_callback: return "invalid callback";
        case Rc::invalid_acl: return "invalid access list";
        case Rc::auth_failed: return "authentication failed";
        case Rc::closing: return "closing";
        case Rc::nothing: return "nothing";
        case Rc::session_moved: return "session moved";
        case Rc::not_read_only: return "server is read-only";
        case Rc::local_session:
            return "this session is local and may create no ephemeral node: set localSessionsUpgradingEnabled=true on "
                   "all servers, or localSessionsEnabled=false";
        case Rc::no_watcher: return "no watcher";
        case Rc::request_timeout: return "request timed out";
        case Rc::reconfig_disabled: return "reconfiguration is disabled";
        case Rc::credentials_demanded: return "the servers demand credentials";
        case Rc::quota_exceeded: return "quota exceeded";
        case Rc::throttled: return "throttled";
        case Rc::not_connected: return "not connected";
        case Rc::closed: return "closed";
        case Rc::too_large: return "request too large";
        case Rc::no_lease:
            return "the session timeout is too short for the servers' tickTime, or for SessionOptions::server_tick if "
                   "that is longer: ask for a longer one";
    }
    return kUnknownCode;
}

bool is_known(Rc rc) noexcept { return to_string(rc) != kUnknownCode; }

}  // namespace zkrecipes::internal
