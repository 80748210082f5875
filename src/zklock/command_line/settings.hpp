#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/session_options.hpp>

#include "zklock/command_line/config_file.hpp"
#include "zklock/command_line/exit_codes.hpp"

namespace zkrecipes::zklock {

/// What may stand in the environment or in a configuration file instead of on the command line.
struct Setting {
    const char* key;                       ///< in a file, and "--key" as an option
    std::vector<const char*> environment;  ///< first come, first served
};
extern const std::vector<Setting> kSettings;

/// A value, and where it comes from, for error messages: "--key", a variable, or "FILE, line N: key".
struct Found {
    std::string value;
    std::string origin;
    int exit_code = kConfig;  ///< of a refusal; kUsage when the command line says it
};

/// Finds settings in the order: options, environment, --config, the user's file, the system's file. Each setting is
/// looked up by itself, so that a file may give the servers and the environment the rest.
class Settings {
public:
    /// `options`: what the command line said, by key. Throws Failure 78 when a file is there and cannot be read: taken
    /// for an empty one, it would let the next file choose the servers.
    explicit Settings(std::map<std::string, std::string> options);
    std::optional<Found> find(const std::string& key) const;

private:
    void read_file(const std::string& path, bool must_exist);

    std::map<std::string, std::string> options_;
    std::vector<std::pair<std::string, std::map<std::string, ConfigValue>>> files_;
};

/// Reads "scheme:credential" lines from a file that only its owner may read, or from "fd:N". Throws Failure.
std::vector<Auth> read_auth_file(const std::string& where);

}  // namespace zkrecipes::zklock
