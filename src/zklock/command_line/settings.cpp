#include "zklock/command_line/settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "zklock/command_line/options.hpp"
#include "zklock/system/unique_fd.hpp"

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
    {"tls-server-name", {"ZKLOCK_TLS_SERVER_NAME"}},
    {"sasl-user", {"ZKLOCK_SASL_USER"}},
    {"sasl-password-file", {"ZKLOCK_SASL_PASSWORD_FILE"}},
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

/// A file also counts as missing if its directory cannot be searched, such as the home of another user.
bool is_missing(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES);
}

/// Reads up to the end. False: an error; errno says why.
bool read_all(int file, std::string& text) {
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(file, buffer, sizeof buffer)) != 0;) {
        if (size > 0) text.append(buffer, static_cast<std::size_t>(size));
        if (size < 0 && errno != EINTR) return false;
    }
    return true;
}

/// Takes a descriptor away from the command. /dev/null replaces stdin, stdout or stderr; otherwise the next file that
/// is opened would get the number.
UniqueFd take_over(int fd) {
    if (fd > STDERR_FILENO) return UniqueFd(fd);
    UniqueFd taken(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!taken || !null || ::dup2(null.get(), fd) < 0) {
        throw Failure(kOsError, "--auth-file fd:" + std::to_string(fd) + ": " + std::strerror(errno));
    }
    return taken;
}

}  // namespace

Settings::Settings(std::map<std::string, std::string> options) : options_(std::move(options)) {
    if (const auto config = find("config")) read_file(config->value, true);
    if (const std::string user = user_file(); !user.empty()) read_file(user, false);
    read_file("/etc/zklock.conf", false);
}

void Settings::read_file(const std::string& path, bool must_exist) {
    if (!must_exist && is_missing(path)) return;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    if (!file || !read_all(file.get(), text)) {
        throw Failure(kConfig,
                      "cannot read the configuration file " + path + ": " + std::strerror(errno) +
                          "; zklock does not go on without it: another file could name another ensemble, and the "
                          "lock would protect nothing");
    }
    files_.emplace_back(path, read_config(text, path));
}

std::optional<Found> Settings::find(const std::string& key) const {
    if (const auto option = options_.find(key); option != options_.end())
        return Found{option->second, "--" + key, kUsage};
    if (const Setting* known = setting(key)) {
        for (const char* name : known->environment) {
            if (const std::string value = environment(name); !value.empty()) return Found{value, name};
        }
    }
    for (const auto& [path, values] : files_) {
        if (const auto found = values.find(key); found != values.end()) {
            return Found{found->second.text, at_line(path, found->second.line) + ": " + key};
        }
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
            throw Failure(kConfig, "the auth file " + where + ": no such descriptor");
        }
        file = take_over(fd);
    } else {
        file = UniqueFd(::open(where.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) throw Failure(kConfig, "cannot read the auth file " + where + ": " + std::strerror(errno));
        struct stat status {};
        if (::fstat(file.get(), &status) != 0 || (S_ISREG(status.st_mode) && (status.st_mode & 077) != 0)) {
            throw Failure(kConfig, "the auth file " + where + " can be read or written by others: chmod 600 " + where);
        }
    }
    std::string text;
    if (!read_all(file.get(), text)) {
        throw Failure(kConfig, "cannot read the auth file " + where + ": " + std::strerror(errno));
    }
    std::vector<Auth> result;
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        const std::size_t colon = line.find(':');
        // The line is a secret: the message does not repeat it.
        const auto refuse = [&](const char* problem) {
            throw Failure(kConfig, "the auth file " + at_line(where, number) + ": " + problem);
        };
        if (colon == 0 || colon == std::string::npos || colon + 1 == line.size()) {
            refuse("expected scheme:credential, for example digest:user:password");
        }
        if (line.starts_with("digest:") && line.find(':', colon + 1) == std::string::npos) {
            refuse("a digest credential is digest:user:password");
        }
        result.push_back({line.substr(0, colon), line.substr(colon + 1)});
    }
    if (result.empty()) throw Failure(kConfig, "the auth file " + where + " holds no credentials");
    return result;
}

}  // namespace zkrecipes::zklock
