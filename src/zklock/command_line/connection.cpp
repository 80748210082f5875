#include "zklock/command_line/connection.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/encryption.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {
namespace {

[[noreturn]] void refuse(const Found& found, const std::string& problem) {
    const std::string text = found.origin + ": " + problem;
    if (found.exit_code == kUsage) usage(text);
    throw Failure(found.exit_code, text);
}

void read_times(const Settings& settings, Options& options) {
    if (const auto timeout = settings.find("session-timeout")) {
        const Nanoseconds value = duration_of(timeout->origin, timeout->value, timeout->exit_code);
        if (value < std::chrono::milliseconds(100) || value > std::chrono::hours(24)) {
            refuse(*timeout, "must be between 100ms and 24h");
        }
        options.session_timeout = std::chrono::ceil<std::chrono::milliseconds>(value);
    }
    if (const auto tick = settings.find("server-tick")) {
        const Nanoseconds value = duration_of(tick->origin, tick->value, tick->exit_code);
        if (value > std::chrono::hours(24)) refuse(*tick, "must be at most 24h");
        options.server_tick = std::chrono::ceil<std::chrono::milliseconds>(value);
    }
    if (const auto tick = settings.tick_of_other_servers(); tick && takes_a_lock(options.command)) {
        const Nanoseconds value = duration_of(tick->origin, tick->value, tick->exit_code);
        if (2 * value > options.session_timeout) {  // a shorter one is assumed anyway
            refuse(*tick, "it is stated for other servers than those of " + settings.find("connect")->origin +
                              ", and zklock does not know the tick of these: state it by --server-tick");
        }
    }
    if (const auto timeout = settings.find("connect-timeout")) {
        options.connect_timeout = duration_of(timeout->origin, timeout->value, timeout->exit_code);
        if (options.connect_timeout == Nanoseconds(0)) options.connect_timeout.reset();
    }
}

std::string read_prefix(const Found& prefix) {
    if (!prefix.value.empty() && !prefix.value.starts_with('/')) {
        refuse(prefix, "\"" + prefix.value + "\" is not an absolute path");
    }
    return prefix.value;
}

std::vector<Auth> read_credentials(const Found& where) {
    hide_memory();
    try {
        return read_auth_file(where.value);
    } catch (const Failure& failure) {
        if (where.exit_code == kUsage) throw;
        throw Failure(failure.code, where.origin + ": " + failure.what());
    }
}

/// An entry of an access list as it may be shown.
std::string entry_without_secret(const std::string& entry) {
    static constexpr const char* kHidden = "(not shown)";
    static const std::set<std::string> kNoSecrets = {"world", "ip", "sasl", "x509", "host"};
    const std::size_t scheme = entry.find(':');
    if (scheme == std::string::npos) return entry == "open" || entry == "creator" ? entry : kHidden;
    if (kNoSecrets.contains(entry.substr(0, scheme))) return entry;
    const std::size_t user = entry.find(':', scheme + 1);
    const std::size_t permissions = entry.rfind(':');
    // Some tutorials write auth:USER:PASSWORD, although the servers ignore what follows the scheme.
    if (entry.starts_with("auth::") && permissions == scheme + 1) return entry;
    const bool digest = entry.starts_with("digest:") && user != std::string::npos && user < permissions;
    if (!digest) return entry.substr(0, scheme + 1) + kHidden;
    return entry.substr(0, user + 1) + kHidden + entry.substr(permissions);
}

/// For messages: a mistyped word is shown, a mistyped hash is not.
std::string quoted_entry(const std::string& entry) {
    return "\"" + (entry.find(':') == std::string::npos ? entry : entry_without_secret(entry)) + "\"";
}

std::vector<std::string> entries_of(const std::string& acl) {
    std::vector<std::string> entries;
    for (std::size_t begin = 0; begin <= acl.size();) {
        const std::size_t end = std::min(acl.find(',', begin), acl.size());
        entries.push_back(acl.substr(begin, end - begin));
        begin = end + 1;
    }
    return entries;
}

/// USER:HASH in base64. The servers choose the algorithm (DigestAuthenticationProvider.digestAlg): MD5, SHA-1 (the
/// default), SHA-224, -256, -384, -512, or SHA3 of the same sizes.
bool has_hash(const std::string& id) {
    constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t begin = id.rfind(':') + 1;  // 0: no colon
    if (begin <= 1) return false;
    const std::size_t end = std::min(id.find_first_not_of(kBase64, begin), id.size());
    for (const std::size_t bytes : {16U, 20U, 28U, 32U, 48U, 64U}) {
        const std::size_t padding = (3 - bytes % 3) % 3;
        const std::size_t chars = (bytes + padding) / 3 * 4;
        if (id.size() - begin == chars && id.substr(end) == std::string(padding, '=')) return true;
    }
    return false;
}

Acl parse_entry(const Found& acl, const std::string& entry) {
    const std::size_t first = entry.find(':');
    const std::size_t last = entry.rfind(':');
    if (first == std::string::npos || first == last || first == 0 || last + 1 == entry.size()) {
        refuse(acl, quoted_entry(entry) + " is not open, creator or SCHEME:ID:rwcda");
    }
    Acl result{0, entry.substr(0, first), entry.substr(first + 1, last - first - 1)};
    // The servers take any text for a hash, and then nobody has a password for it.
    if (result.scheme == "digest" && !has_hash(result.id)) {
        refuse(acl,
               quoted_entry(entry) +
                   ": an id of the scheme digest is USER:X, where X is the hash that the servers compute; prefer "
                   "creator, for which the servers do it. By default this prints X: printf %s USER:PASSWORD | openssl "
                   "dgst -sha1 -binary | base64. If the servers set DigestAuthenticationProvider.digestAlg, use that "
                   "algorithm instead of sha1");
    }
    // The servers would take the rest of a list for a part of an id.
    const std::size_t separator = result.id.find_first_of("; ");
    if (result.scheme != "digest" && separator != std::string::npos &&
        result.id.find(':', separator) != std::string::npos) {
        refuse(acl, quoted_entry(entry) + ": write a comma between the entries of an access list");
    }
    for (const char letter : entry.substr(last + 1)) {
        static const std::map<char, int> kLetters = {
            {'r', Acl::read}, {'w', Acl::write}, {'c', Acl::create}, {'d', Acl::remove}, {'a', Acl::admin}};
        const auto permission = kLetters.find(letter);
        if (permission == kLetters.end()) refuse(acl, quoted_entry(entry) + ": permissions are letters of rwcda");
        result.permissions |= permission->second;
    }
    return result;
}

const char* names_of(const Options& options, Mode mode) {
    if (mode != Mode::leader) return options.dialect == Dialect::kazoo ? "kazoo" : "curator";
    switch (options.layout) {
        case ElectionLayout::latch: return "latch";
        case ElectionLayout::selector: return "selector";
        case ElectionLayout::kazoo: return "kazoo-election";
    }
    return "";
}

}  // namespace

void read_connection(const Settings& settings, Options& options) {
    for (const Setting& setting : kSettings) {
        const auto found = settings.find(setting.key);
        if (found && found->exit_code != kUsage) options.origins[setting.key] = found->origin;
    }
    options.handed = settings.to_hand_on();
    read_times(settings, options);
    if (const auto prefix = settings.find("prefix")) options.prefix = read_prefix(*prefix);
    if (const auto acl = settings.find("acl")) options.acl = parse_acl(*acl);
    const auto connect = settings.find("connect");
    if (!connect || connect->value.empty()) {
        std::string files;
        for (const Settings::File& file : settings.files()) files += (files.empty() ? "" : " or ") + file.path;
        throw Failure(kConfig,
                      "no ZooKeeper servers are configured: use --connect host:port, ZKLOCK_CONNECT, or a line "
                      "\"connect = host:port\" in " +
                          files);
    }
    options.connect = connect->value;
    read_encryption(settings, options);
    if (const auto auth = settings.find("auth-file")) options.auth = read_credentials(*auth);
}

std::string server_prefix(const Options& options) {
    std::string result;
    for (std::string part :
         {options.connect.substr(std::min(options.connect.find('/'), options.connect.size())), options.prefix}) {
        while (part.ends_with('/')) part.pop_back();
        result += part;
    }
    return result;
}

std::string server_path(const Options& options, const std::string& path) {
    const std::string prefix = server_prefix(options);
    return path == "/" && !prefix.empty() ? prefix : prefix + path;
}

Nanoseconds duration_of(const std::string& origin, const std::string& text, int exit_code) {
    if (const auto value = parse_duration(text)) return *value;
    throw Failure(exit_code,
                  origin + ": \"" + text +
                      "\" is not a duration (for example 10, 1.5, 250ms, 2m, 1h, 1d, 1h30m; at most ten years)");
}

std::vector<Acl> parse_acl(const Found& acl) {
    const std::string& text = acl.value;
    if (text == "open") return Acl::open();
    if (text == "creator") return Acl::creator_all();
    std::vector<Acl> result;
    for (const std::string& entry : entries_of(text)) result.push_back(parse_entry(acl, entry));
    return result;
}

std::string acl_without_secrets(const std::string& acl) {
    std::string text;
    for (const std::string& entry : entries_of(acl)) text += (text.empty() ? "" : ",") + entry_without_secret(entry);
    return text;
}

std::vector<HeldLock> locks_of(const Options& options) {
    const std::string servers = options.connect.substr(0, options.connect.find('/'));
    std::vector<HeldLock> locks;
    for (const LockSpec& lock : options.locks) {
        locks.push_back({servers, server_prefix(options) + lock.path, mode_name(lock.mode),
                         names_of(options, lock.mode), options.leases, this_process()});
    }
    return locks;
}

bool excludes(const HeldLock& held, const HeldLock& wanted) {
    if (held.servers != wanted.servers || held.path != wanted.path || held.names != wanted.names) return false;
    const bool semaphore = held.mode == "semaphore";
    if (semaphore != (wanted.mode == "semaphore")) return false;
    if (semaphore) return held.leases == 1;
    return held.mode != "shared" || wanted.mode != "shared";
}

}  // namespace zkrecipes::zklock
