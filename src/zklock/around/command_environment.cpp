#include "zklock/around/command_environment.hpp"

#include <unistd.h>

#include <string_view>

#include "zklock/command_line/connection.hpp"
#include "zklock/report/describe.hpp"

namespace zkrecipes::zklock {
namespace {

bool stripped(std::string_view variable) {
    for (const std::string_view name :
         {"ZKLOCK_AUTH_FILE=", "ZKLOCK_TLS_KEY=", "ZKLOCK_SASL_PASSWORD_FILE=", "ZKLOCK_HELD=", "ZKLOCK_PATH=",
          "ZKLOCK_NODE=", "ZKLOCK_MODE=", "ZKLOCK_FENCING_TOKEN=", "ZKLOCK_SESSION_ID=", "ZKLOCK_SESSION_TIMEOUT_MS=",
          "ZKLOCK_PID=", "ZKLOCK_ONCE_PERIOD=", "ZKLOCK_LOST_", "ZKLOCK_SETTINGS="}) {
        if (variable.starts_with(name)) return true;
    }
    return false;
}

bool of_service_manager(std::string_view variable) {
    for (const std::string_view name : {"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID="}) {
        if (variable.starts_with(name)) return true;
    }
    return false;
}

/// An access list that an option replaced, and that ZKLOCK_SETTINGS cannot name because it may be secret: a nested
/// zklock would take it for its own.
bool replaced_acl(const Options& options, std::string_view variable) {
    constexpr std::string_view kAcl = "ZKLOCK_ACL=";
    if (!variable.starts_with(kAcl) || may_be_handed("acl", std::string(variable.substr(kAcl.size())))) return false;
    const auto origin = options.origins.find("acl");
    return origin == options.origins.end() || origin->second != "ZKLOCK_ACL";
}

}  // namespace

std::vector<std::string> bare_environment(const Options& options) {
    std::vector<std::string> result;
    for (char** variable = environ; *variable; ++variable) {
        const bool withheld = stripped(*variable) || replaced_acl(options, *variable);
        if (!withheld && !(options.notify && of_service_manager(*variable))) result.emplace_back(*variable);
    }
    return result;
}

std::vector<std::string> command_environment(const Options& options, const Grant& grant,
                                             std::chrono::milliseconds session_timeout) {
    std::vector<std::string> result = bare_environment(options);
    // One line for each lock, in the same order in all three variables. No path contains a line break.
    std::string paths, modes, nodes;
    for (const LockSpec& spec : options.locks) {
        const char* const separator = paths.empty() ? "" : "\n";
        paths += separator + spec.path;
        modes += std::string(separator) + mode_name(spec.mode);
    }
    for (const std::string& node : grant.nodes()) nodes += (nodes.empty() ? "" : "\n") + node;
    result.push_back("ZKLOCK_HELD=1");
    result.push_back("ZKLOCK_PATH=" + paths);
    result.push_back("ZKLOCK_NODE=" + nodes);
    result.push_back("ZKLOCK_MODE=" + modes);
    result.push_back("ZKLOCK_FENCING_TOKEN=" + std::to_string(grant.token()));
    result.push_back("ZKLOCK_SESSION_ID=" + hex(grant.session_id()));
    result.push_back("ZKLOCK_SESSION_TIMEOUT_MS=" + std::to_string(session_timeout.count()));
    result.push_back("ZKLOCK_PID=" + std::to_string(::getpid()));
    HandedSettings handed = options.handed;
    for (HeldLock& lock : locks_of(options)) handed.held.push_back(std::move(lock));
    result.push_back(std::string(kSettingsVariable) + "=" + to_text(handed));
    return result;
}

}  // namespace zkrecipes::zklock
