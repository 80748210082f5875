#include "zklock/command_line/settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "zklock/command_line/options.hpp"
#include "zklock/system/process_table.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

namespace {

constexpr const char* kServerTick = "server-tick";

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

using boost::json::object;

std::string text_of(const object& from, const char* member) {
    return std::string(from.at(member).as_string());  // throws if it is missing
}

ProcessIdentity process(const object& from) {
    ProcessIdentity found{from.at("pid").to_number<pid_t>()};
    // An older zklock says the number only.
    if (const auto* started = from.if_contains("started")) found.started = started->to_number<std::uint64_t>();
    if (const auto* where = from.if_contains("where")) found.where = where->as_string();
    return found;
}

HeldLock held_lock(const object& from) {
    return {text_of(from, "servers"),
            text_of(from, "path"),
            text_of(from, "mode"),
            text_of(from, "names"),
            from.at("leases").to_number<std::int32_t>(),
            process(from)};
}

HandedSettings parse(const std::string& text) {
    const boost::json::value value = boost::json::parse(text);
    const object& all = value.as_object();
    if (all.at("v") != 1) throw std::invalid_argument("version");
    HandedSettings handed;
    for (const auto& [key, setting] : all.at("settings").as_object()) {
        std::string content(setting.as_string());
        if (!may_be_handed(key, content)) throw std::invalid_argument("setting");
        handed.values[key] = std::move(content);
    }
    if (const auto* overridden = all.if_contains("overridden")) {
        for (const auto& [name, ignored] : overridden->as_object()) handed.overridden[name] = ignored.as_string();
    }
    for (const boost::json::value& one : all.at("held").as_array()) handed.held.push_back(held_lock(one.as_object()));
    if (const auto* withheld = all.if_contains("acl_withheld")) handed.acl_withheld = withheld->as_bool();
    return handed;
}

/// Only lists that everybody may know, and that need no credentials: those are not handed on.
bool is_public(const std::string& acl) {
    std::istringstream entries(acl);
    for (std::string entry; std::getline(entries, entry, ',');) {
        if (entry != "open" && !entry.starts_with("world:") && !entry.starts_with("ip:")) return false;
    }
    return true;
}

/// A descriptor, as in --config <(...), is not the same file in another process.
bool is_lasting(const std::string& file) {
    struct stat status {};
    for (const char* const descriptors : {"/dev/fd/", "/dev/stdin", "/proc/"}) {
        if (file.starts_with(descriptors)) return false;
    }
    return file.starts_with('/') && ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

std::optional<SettingKind> kind_of_setting(const std::string& key) {
    static const std::map<std::string, SettingKind> kKinds = {
        {"connect", SettingKind::text},         {"prefix", SettingKind::text},
        {"session-timeout", SettingKind::text}, {"server-tick", SettingKind::text},
        {"connect-timeout", SettingKind::text}, {"auth-file", SettingKind::file},
        {"acl", SettingKind::access_list},      {"config", SettingKind::file},
        {"tls-ca", SettingKind::file},          {"tls-cert", SettingKind::file},
        {"tls-key", SettingKind::file},         {"tls-server-name", SettingKind::text},
        {"sasl-user", SettingKind::text},       {"sasl-password-file", SettingKind::file}};
    const auto kind = kKinds.find(key);
    return kind == kKinds.end() ? std::nullopt : std::optional(kind->second);
}

std::string absolute_file(const std::string& name) {
    if (name.empty() || name.starts_with("fd:")) return name;
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(name, error);
    return error ? name : path.lexically_normal().string();
}

HandedSettings handed_settings() {
    const char* const text = std::getenv(kSettingsVariable);
    if (!text || !*text) return {};
    try {
        HandedSettings handed = parse(text);
        const bool over = !handed.held.empty() &&
                          std::ranges::all_of(handed.held, [](const HeldLock& lock) { return has_ended(lock.zklock); });
        return over ? HandedSettings{.former = std::move(handed.values)} : handed;
    } catch (const std::exception&) {
        throw Failure(kConfig, std::string(kSettingsVariable) +
                                   ": this zklock cannot read it: only zklock sets this variable, for its command. If "
                                   "another version did so, unset the variable and use options");
    }
}

std::string to_text(const HandedSettings& handed) {
    object settings;
    for (const auto& [key, value] : handed.values) settings[key] = value;
    object overridden;
    for (const auto& [name, value] : handed.overridden) overridden[name] = value;
    boost::json::array held;
    for (const HeldLock& lock : handed.held) {
        held.push_back(object{{"servers", lock.servers},
                              {"path", lock.path},
                              {"mode", lock.mode},
                              {"names", lock.names},
                              {"leases", lock.leases},
                              {"pid", lock.zklock.pid},
                              {"started", lock.zklock.started},
                              {"where", lock.zklock.where}});
    }
    return boost::json::serialize(object{{"v", 1},
                                         {"settings", std::move(settings)},
                                         {"overridden", std::move(overridden)},
                                         {"acl_withheld", handed.acl_withheld},
                                         {"held", std::move(held)}});
}

bool may_be_handed(const std::string& key, const std::string& value) {
    // Without the key or the password, a nested zklock refuses to connect: it does not connect in clear text.
    static const std::vector<std::string> kKeys = {"connect",     "prefix",          "session-timeout",
                                                   "server-tick", "connect-timeout", "tls-ca",
                                                   "tls-cert",    "tls-server-name", "sasl-user"};
    if (key == "acl") return is_public(value);
    if (key == "config") return is_lasting(value);
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

Settings::Settings(std::map<std::string, std::string> options)
    : options_(std::move(options)), handed_(handed_settings()) {
    if (names_own_servers()) forget_handed_settings();
    if (const auto config = find("config")) {
        read_file(config->value, true);
        const auto handed = handed_.values.find("config");
        const bool same = handed != handed_.values.end() && handed->second == absolute_file(config->value);
        // Otherwise the outer zklock would choose the servers for a zklock that names a file with others.
        if (config->exit_code == kUsage || !same) own_files_ = files_.size();
        if (find_in_files("connect", 0, own_files_)) forget_handed_settings();
    }
    if (const std::string user = user_file(); !user.empty()) read_file(user, false);
    read_file("/etc/zklock.conf", false);
}

void Settings::read_file(const std::string& path, bool must_exist) {
    looked_for_.push_back({path});
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
    looked_for_.back().read = true;
}

/// The variable of the outer zklock's environment reaches the command, too, so one with the same servers says nothing
/// new.
bool Settings::names_own_servers() const {
    if (options_.contains("connect")) return true;
    const auto own = find_in_environment("connect");
    const auto handed = handed_.values.find("connect");
    return own && (handed == handed_.values.end() || handed->second != own->value);
}

void Settings::forget_handed_settings() {
    handed_.values.clear();
    handed_.acl_withheld = false;
}

std::optional<Found> Settings::find_in_environment(const std::string& key) const {
    const Setting* const known = setting(key);
    if (!known) return std::nullopt;
    const std::string value = environment(known->variable);
    const auto overridden = handed_.overridden.find(known->variable);
    const bool used = overridden == handed_.overridden.end() || overridden->second != value;
    return !value.empty() && used ? std::optional(Found{value, known->variable}) : std::nullopt;
}

/// In the order of precedence.
std::vector<Settings::Source> Settings::sources_of(const std::string& key) const {
    std::vector<Source> out;
    std::size_t rank = 0;
    const auto add = [&](std::optional<Found> found) {
        if (found) out.push_back({rank, *std::move(found)});
        ++rank;
    };
    const auto option = options_.find(key);
    add(option == options_.end() ? std::nullopt : std::optional(Found{option->second, "--" + key, kUsage}));
    add(find_in_environment(key));
    for (std::size_t i = 0; i < own_files_; ++i) add(find_in_files(key, i, i + 1));
    const auto handed = handed_.values.find(key);
    if (handed == handed_.values.end()) {
        add(std::nullopt);
    } else if (handed->second.empty()) {
        return out;
    } else {
        add(Found{handed->second, std::string(kSettingsVariable) + ": " + key});
    }
    for (std::size_t i = own_files_; i < files_.size(); ++i) add(find_in_files(key, i, i + 1));
    if (const Setting* const known = setting(key)) {
        for (const char* name : known->other) {
            const std::string value = name ? environment(name) : "";
            add(value.empty() ? std::nullopt : std::optional(Found{value, name}));
        }
    }
    return out;
}

std::optional<Found> Settings::find(const std::string& key) const {
    const auto sources = sources_of(key);
    if (sources.empty() || (key == kServerTick && tick_of_other_servers())) return std::nullopt;
    return sources.front().found;
}

/// A tick is a fact about servers. It counts if its source would use the servers that are used.
std::optional<Found> Settings::tick_of_other_servers() const {
    const auto ticks = sources_of(kServerTick), servers = sources_of("connect");
    if (ticks.empty() || servers.empty()) return std::nullopt;
    const Source& tick = ticks.front();
    const auto its_servers =
        std::ranges::find_if(servers, [&tick](const Source& each) { return each.rank >= tick.rank; });
    const bool same = tick.rank <= servers.front().rank ||
                      (its_servers != servers.end() && its_servers->found.value == servers.front().found.value);
    return same ? std::nullopt : std::optional(tick.found);
}

std::optional<Found> Settings::find_in_files(const std::string& key, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
        const auto& [path, values] = files_[i];
        if (const auto found = values.find(key); found != values.end()) {
            const int line = found->second.line;
            return Found{found->second.text, at_line(path, line) + ": " + key, kConfig, path, line};
        }
    }
    return std::nullopt;
}

HandedSettings Settings::to_hand_on() const {
    HandedSettings result;
    result.held = handed_.held;
    result.overridden = handed_.overridden;
    result.former = handed_.former;
    result.values["prefix"] = "";  // if nothing sets it: a file of another user must not
    for (const Setting& setting : kSettings) {
        const auto found = find(setting.key);
        if (!found) continue;
        const std::string set = environment(setting.variable);
        if (!set.empty() && found->origin != setting.variable && may_be_handed(setting.key, set)) {
            result.overridden[setting.variable] = set;
        }
        const bool file = kind_of_setting(setting.key) == SettingKind::file;
        std::string value = file ? absolute_file(found->value) : found->value;
        if (may_be_handed(setting.key, value)) result.values[setting.key] = std::move(value);
    }
    result.acl_withheld = find("acl") ? !result.values.contains("acl") : handed_.acl_withheld;
    return result;
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
