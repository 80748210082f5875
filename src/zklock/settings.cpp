#include "zklock/settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "zklock/config_file.hpp"
#include "zklock/options.hpp"
#include "zklock/unique_fd.hpp"

namespace zkrecipes::zklock {

const std::vector<Setting> kSettings = {
    {"connect", {"ZKLOCK_CONNECT", "ZK_HOSTS", "ZKHOSTS"}},
    {"prefix", {"ZKLOCK_PREFIX"}},
    {"session-timeout", {"ZKLOCK_SESSION_TIMEOUT"}},
    {"connect-timeout", {}},
    {"auth-file", {"ZKLOCK_AUTH_FILE"}},
    {"acl", {}},
    {"config", {"ZKLOCK_CONFIG"}},
    {"tls-ca", {"ZKLOCK_TLS_CA"}},
    {"tls-cert", {"ZKLOCK_TLS_CERT"}},
    {"tls-key", {"ZKLOCK_TLS_KEY"}},
};

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

const Setting* setting(const std::string& key) {
    for (const Setting& candidate : kSettings) {
        if (key == candidate.key) return &candidate;
    }
    return nullptr;
}

std::string user_file() {
    if (const std::string config = environment("XDG_CONFIG_HOME"); !config.empty()) return config + "/zklock.conf";
    if (const std::string home = environment("HOME"); !home.empty()) return home + "/.config/zklock.conf";
    return {};
}

}  // namespace

Settings::Settings(std::map<std::string, std::string> options) : options_(std::move(options)) {
    if (const auto config = find("config")) read_file(config->value, true);
    if (const std::string user = user_file(); !user.empty()) read_file(user, false);
    read_file("/etc/zklock.conf", false);
}

void Settings::read_file(const std::string& path, bool must_exist) {
    std::ifstream stream(path);
    if (!stream) {
        if (!must_exist && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return;
        throw Failure(kConfig, "cannot read the configuration file " + path + ": " + std::strerror(errno));
    }
    std::map<std::string, std::string> values = read_config(stream, path);
    for (const auto& [key, value] : values) {
        if (!setting(key) || key == "config") throw Failure(kConfig, path + ": unknown setting \"" + key + "\"");
    }
    files_.emplace_back(path, std::move(values));
}

std::optional<Found> Settings::find(const std::string& key) const {
    if (const auto option = options_.find(key); option != options_.end()) return Found{option->second, "--" + key};
    if (const Setting* known = setting(key)) {
        for (const char* name : known->environment) {
            if (const std::string value = environment(name); !value.empty()) return Found{value, name};
        }
    }
    for (const auto& [path, values] : files_) {
        if (const auto value = values.find(key); value != values.end()) return Found{value->second, path + ": " + key};
    }
    return std::nullopt;
}

std::vector<Auth> read_auth_file(const std::string& where) {
    UniqueFd file;
    if (where.starts_with("fd:")) {
        int fd = -1;
        const char* const end = where.data() + where.size();
        const auto [rest, error] = std::from_chars(where.data() + 3, end, fd);
        if (error != std::errc() || rest != end || fd < 0 || ::fcntl(fd, F_GETFD) < 0) {
            throw Failure(kConfig, "--auth-file " + where + ": no such descriptor");
        }
        file = UniqueFd(fd);  // and so not the command's
    } else {
        file = UniqueFd(::open(where.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) throw Failure(kConfig, "cannot read the auth file " + where + ": " + std::strerror(errno));
        struct stat status {};
        if (::fstat(file.get(), &status) != 0 || (S_ISREG(status.st_mode) && (status.st_mode & 077) != 0)) {
            throw Failure(kConfig, "the auth file " + where + " can be read or written by others: chmod 600 " + where);
        }
    }
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(file.get(), buffer, sizeof buffer)) != 0;) {
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) throw Failure(kConfig, "cannot read the auth file " + where + ": " + std::strerror(errno));
        text.append(buffer, static_cast<std::size_t>(size));
    }
    std::vector<Auth> result;
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        const std::size_t colon = line.find(':');
        // The line itself is a secret: it is not repeated.
        if (colon == 0 || colon == std::string::npos || colon + 1 == line.size()) {
            throw Failure(kConfig, "the auth file " + where + ", line " + std::to_string(number) +
                                       ": expected scheme:credential, for example digest:user:password");
        }
        result.push_back({line.substr(0, colon), line.substr(colon + 1)});
    }
    if (result.empty()) throw Failure(kConfig, "the auth file " + where + " holds no credentials");
    return result;
}

}  // namespace zkrecipes::zklock
