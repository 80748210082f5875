#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

#include "zklock/command_line/config_file.hpp"
#include "zklock/command_line/exit_codes.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {

/// A setting that the environment or a configuration file can provide instead of the command line.
struct Setting {
    const char* key;                        ///< the name in a file; "--key" as an option
    const char* variable;                   ///< the name in the environment
    const char* type;                       ///< in the help
    const char* text;                       ///< in the help
    std::array<const char*, 2> other = {};  ///< variables of other tools; they come after all files
};
inline constexpr Setting kSettings[] = {
    {"connect", "ZKLOCK_CONNECT", "HOSTS", "Servers: host:port,host:port[/path]", {"ZK_HOSTS", "ZKHOSTS"}},
    {"prefix", "ZKLOCK_PREFIX", "PATH", "Prefix of every path"},
    {"session-timeout", "ZKLOCK_SESSION_TIMEOUT", "DURATION",
     "The servers free the lock after this time without contact (15s)"},
    {"server-tick", "ZKLOCK_SERVER_TICK", "DURATION",
     "The servers' tickTime, if over half of the timeout; twice that behind an observer master"},
    {"connect-timeout", "ZKLOCK_CONNECT_TIMEOUT", "DURATION", "Time limit for the first connection (10s); 0: none"},
    {"auth-file", "ZKLOCK_AUTH_FILE", "FILE", "Credentials, one scheme:credential per line; or fd:N"},
    {"acl", "ZKLOCK_ACL", "ACL", "Access list of new nodes: open, creator, SCHEME:ID:rwcda[,...]"},
    {"config", "ZKLOCK_CONFIG", "FILE", "Configuration file"},
    {"tls-ca", "ZKLOCK_TLS_CA", "FILE",
     "TLS: certificates of the authorities that the servers' certificates come from"},
    {"tls-cert", "ZKLOCK_TLS_CERT", "FILE", "TLS: certificate of this client"},
    {"tls-key", "ZKLOCK_TLS_KEY", "FILE", "TLS: its key"},
    {"tls-server-name", "ZKLOCK_TLS_SERVER_NAME", "NAME",
     "TLS: host name that the certificate of each server must be for"},
    {"sasl-user", "ZKLOCK_SASL_USER", "USER", "SASL with DIGEST-MD5: the user"},
    {"sasl-password-file", "ZKLOCK_SASL_PASSWORD_FILE", "FILE", "SASL: its first line is the password"},
};

/// What a setting contains.
enum class SettingKind {
    text,        ///< no secret
    file,        ///< the name of a file, which may contain a secret
    access_list  ///< may contain hashes of passwords
};
/// Empty for a setting that no rule knows: its value must not be shown.
std::optional<SettingKind> kind_of_setting(const std::string& key);
/// The absolute path of a file that a setting names; "fd:N" stays as it is.
std::string absolute_file(const std::string& name);

/// A value and its origin, for error messages: "--key", a variable, or "FILE, line N: key".
struct Found {
    std::string value;
    std::string origin;
    int exit_code = kConfig;  ///< if the value is wrong; kUsage for the command line
    std::string file = {};    ///< if it comes from a file: its path as given, and the line
    int line = 0;
};

/// The variable by which a zklock hands its settings to the zklocks that its command starts. It contains no secrets and
/// no name of a file with credentials.
inline constexpr const char* kSettingsVariable = "ZKLOCK_SETTINGS";

/// A lock that a zklock holds while its command runs.
struct HeldLock {
    std::string servers;      ///< the connect string without its path
    std::string path;         ///< on these servers, with all prefixes
    std::string mode;         ///< "exclusive", "shared", "semaphore" or "leader"
    std::string names;        ///< the form of the node names: only equal ones exclude each other
    std::int32_t leases = 0;  ///< of a semaphore
    ProcessIdentity zklock;   ///< that holds it
};

struct HandedSettings {
    std::map<std::string, std::string> values{};  ///< by key; an empty one is not set, whatever a file says
    std::map<std::string, std::string>
        overridden{};                             ///< variables that the outer zklock did not use, with their values
    std::vector<HeldLock> held{};                 ///< by the outer zklocks, the outermost first
    bool acl_withheld = false;                    ///< the access list may contain secrets, so it is not in `values`
    std::map<std::string, std::string> former{};  ///< values that do not count: all outer zklocks have ended
};

/// Reads the variable. Nothing of it counts if all outer zklocks have ended, as in a daemon that one of them started.
/// Throws Failure 78 if no zklock has written it.
HandedSettings handed_settings();
/// The text of the variable.
std::string to_text(const HandedSettings& handed);
/// Whether the value of this setting may be handed to the command.
bool may_be_handed(const std::string& key, const std::string& value);

/// Finds settings in the order: options, environment, ZKLOCK_SETTINGS, --config, user's file, system's file, variables
/// of other tools. A file
/// that this zklock has chosen itself precedes ZKLOCK_SETTINGS. Each setting is looked up separately: for example a
/// file names the servers, and the environment provides the rest. But a zklock that names its own servers takes nothing
/// from ZKLOCK_SETTINGS: with the prefix of other servers, its locks would exclude nobody.
class Settings {
public:
    /// `options`: the settings of the command line, by key. Throws Failure 78 if an existing file cannot be read: if it
    /// were ignored, the next file would choose the servers.
    explicit Settings(std::map<std::string, std::string> options);
    std::optional<Found> find(const std::string& key) const;
    /// A server-tick that find() leaves out, because its source names other servers than those that are used.
    std::optional<Found> tick_of_other_servers() const;
    /// What the zklocks that the command starts are given.
    HandedSettings to_hand_on() const;

    struct File {
        std::string path;
        bool read = false;  ///< false: it is missing
    };
    /// The configuration files in the order of precedence.
    const std::vector<File>& files() const noexcept { return looked_for_; }

private:
    struct Source {
        std::size_t rank;  // smaller: of higher precedence
        Found found;
    };

    std::vector<Source> sources_of(const std::string& key) const;
    void read_file(const std::string& path, bool must_exist);
    std::optional<Found> find_in_files(const std::string& key, std::size_t begin, std::size_t end) const;
    std::optional<Found> find_in_environment(const std::string& key) const;
    bool names_own_servers() const;
    void forget_handed_settings();

    std::map<std::string, std::string> options_;
    HandedSettings handed_;
    std::vector<std::pair<std::string, std::map<std::string, ConfigValue>>> files_;
    std::size_t own_files_ = 0;  // how many of them precede handed_
    std::vector<File> looked_for_;
};

/// Reads "scheme:credential" lines from a file that only its owner may read, or from "fd:N". Throws Failure.
std::vector<Auth> read_auth_file(const std::string& where);

}  // namespace zkrecipes::zklock
