#include "zklock/command_line/exit_codes.hpp"

namespace zkrecipes::zklock {

ExitCode exit_code_for(Errc code) noexcept {
    switch (code) {
        case Errc::bad_path: return kUsage;
        case Errc::bad_connect_string:
        case Errc::bad_option:
        case Errc::unsupported: return kConfig;
        case Errc::unreachable:
        case Errc::connection_lost:
        case Errc::session_lost:
        case Errc::outcome_unknown: return kUnavailable;
        case Errc::auth_failed:
        case Errc::no_permission: return kNoPermission;
        case Errc::node_exists:
        case Errc::no_node:
        case Errc::bad_version:
        case Errc::not_empty:
        case Errc::bad_data:
        case Errc::too_large: return kBadData;
        case Errc::no_parent:
        case Errc::quota_exceeded:
        case Errc::sequence_exhausted: return kCannotCreate;
        case Errc::lock_lost: return kLost;
        case Errc::out_of_resources: return kOsError;
        case Errc::closed:
        case Errc::not_owner:
        case Errc::would_deadlock:
        case Errc::budget_exceeded:
        case Errc::protocol: return kInternal;
    }
    return kInternal;
}

}  // namespace zkrecipes::zklock
