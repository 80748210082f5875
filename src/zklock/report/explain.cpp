#include "zklock/report/explain.hpp"

#include <algorithm>
#include <string_view>

#include "zklock/command_line/command_table.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

/// The part of Error::what() after operation, path and kind.
std::string detail_of(const Error& error) {
    const std::string_view what = error.what();
    const std::size_t path = error.path().empty() ? 0 : error.path().size() + 1;
    const std::size_t begin =
        error.operation().size() + path + std::string_view(": : ").size() + error.code().message().size();
    return begin < what.size() ? printable(std::string(what.substr(begin))) : "";
}

bool mentions(const Error& error, const char* text) {
    return std::string_view(error.what()).find(text) != std::string_view::npos;
}

std::string path_of(const Error& error, const Options& options) {
    return printable(error.path().empty() ? options.lock : error.path());
}

/// The path of the node on the servers, for a message that sends somebody to it.
std::string node_of(const Error& error, const Options& options) {
    return printable(server_path(options, error.path().empty() ? options.lock : error.path()));
}

/// Which access list refuses what to whom. The library says it behind the refused request and before the remedy.
std::string forbidden(const Error& error) {
    const std::string detail = detail_of(error);
    const std::size_t begin = detail.find("the access list of ");
    if (begin == std::string::npos) return "the access list forbids it";
    return detail.substr(begin, detail.rfind("; change the list") - begin);
}

std::string remedy_of_refusal(const Options& options) {
    const auto is_digest = [](const Auth& auth) { return auth.scheme == "digest"; };
    const bool digest = std::any_of(options.auth.begin(), options.auth.end(), is_digest);
    return std::string(digest                 ? "check the password in the auth file, which no server checks"
                       : options.auth.empty() ? "use --auth-file"
                                              : "check --auth-file") +
           ", or ask the owner of the nodes for access";
}

/// The options of TLS and SASL: the name in the library and the setting.
struct SecureOption {
    const char* option;
    const char* setting;
};
constexpr SecureOption kSecureOptions[] = {{"SessionOptions::tls::ca_file: ", "tls-ca"},
                                           {"SessionOptions::tls::certificate_file: ", "tls-cert"},
                                           {"SessionOptions::tls::key_file: ", "tls-key"},
                                           {"SessionOptions::sasl::user: ", "sasl-user"},
                                           {"SessionOptions::sasl::password_file: ", "sasl-password-file"}};

/// The one that an error is about; null: none.
const SecureOption* secure_option(const Error& error) {
    for (const SecureOption& candidate : kSecureOptions) {
        if (mentions(error, candidate.option)) return &candidate;
    }
    return nullptr;
}

std::string why_bad_option(const Error& error, const Options& options) {
    const bool about_acl = mentions(error, "::acl") || mentions(error, "invalid access list");
    if (const SecureOption* const secure = secure_option(error)) {
        const std::string_view what = error.what();
        return printable(std::string(what.substr(what.find(secure->option) + std::string_view(secure->option).size())));
    }
    if (mentions(error, "the authenticated user")) {
        return "creator needs credentials: use --auth-file, or --acl open";
    }
    if (mentions(error, "the only id of that scheme is anyone")) {
        return "the scheme world has only one id: write world:anyone:PERMISSIONS";
    }
    if (about_acl) {
        return "the servers refuse this access list: write open, creator or SCHEME:ID:PERMISSIONS, with a scheme and "
               "an "
               "id that the servers know";
    }
    if (mentions(error, "tickTime") && options.server_tick >= options.session_timeout) {
        return "the tick that " + origin_of_tick(options) +
               " states is too long for this session timeout: use a longer --session-timeout, or correct the tick";
    }
    if (mentions(error, "tickTime")) {
        return "the tickTime of the servers is too long for this session timeout: use a longer --session-timeout";
    }
    if (mentions(error, "labels take more")) return "--meta is too long for a lock node: use fewer or shorter values";
    if (mentions(error, "the id takes more")) return "--id is too long for a node: use a shorter one";
    if (mentions(error, "this id means")) return "--id \"" + printable(options.id) + "\" is reserved: use another one";
    if (mentions(error, "the set has more than")) return "too many locks at once: use fewer -L";
    if (!options.locks.empty() && options.locks.front().mode == Mode::semaphore) {
        return path_of(error, options) + " has another number of leases than -j " + std::to_string(options.leases) +
               ": use the number that zklock status shows";
    }
    return path_of(error, options) + ": an option has an invalid value: see zklock help";
}

std::string why_bad_data(const Error& error, const Options& options) {
    const std::string node = node_of(error, options);
    if (mentions(error, "has changed since")) {
        return node + " has changed since it was shown and was not removed: look at zklock status, then try again";
    }
    if (mentions(error, "of the leases holds")) {
        return node +
               "/leases does not hold the number of leases of a semaphore: use another path, or delete the node "
               "while zklock status shows no holder";
    }
    return node + " contains data that zklock cannot use: use another path, or look at its nodes";
}

std::string why_no_parent(const Error& error, const Options& options) {
    if (!options.create_parents) {
        return node_of(error, options) + " does not exist, and --no-create forbids creating it";
    }
    return "another program deletes " + node_of(error, options) + " each time zklock creates it: find that program";
}

/// Why the servers do not accept the session.
std::string why_refused(const Error& error, const Options& options) {
    if (mentions(error, "demand credentials")) {
        const std::string file = options.auth.empty() ? "use --auth-file" : "check --auth-file";
        const std::string user = options.sasl ? "check --sasl-user" : "use --sasl-user";
        return "the servers demand credentials that zklock has not presented: " + file + ", or " + user +
               "; the servers' settings enforce.auth.schemes and sessionRequireClientSASLAuth say which";
    }
    if (options.sasl) {
        return "the servers refused the credentials: check --sasl-user, --sasl-password-file and --auth-file; zklock "
               "also needs the Debian package libsasl2-modules";
    }
    const auto uncommon = std::find_if(options.auth.begin(), options.auth.end(),
                                       [](const Auth& auth) { return auth.scheme != "digest"; });
    return "the servers refused the credentials: check --auth-file" +
           (uncommon == options.auth.end() ? ""
                                           : "; these servers may not know the scheme " + printable(uncommon->scheme));
}

/// The errors with a specific remedy; empty: another error.
std::string of_setting_or_path(const Error& error, const Options& options) {
    const std::string path = path_of(error, options);
    switch (error.errc()) {
        case Errc::bad_path: return "\"" + path + "\" cannot be used as a path: " + detail_of(error);
        case Errc::bad_connect_string: return with_names_of_options(detail_of(error));
        case Errc::bad_option: return why_bad_option(error, options);
        case Errc::bad_data: return why_bad_data(error, options);
        case Errc::no_parent: return why_no_parent(error, options);
        case Errc::too_large:
            return path + ": the request is larger than the servers accept: use a shorter --acl or --meta, or fewer -L";
        case Errc::quota_exceeded:
            return node_of(error, options) +
                   ": the ZooKeeper quota allows no further node: raise the quota, or use another path";
        case Errc::sequence_exhausted:
            return path + " has used up its sequence numbers: delete " + node_of(error, options) +
                   " while zklock status shows no holder, or use another path";
        case Errc::no_permission: return path + ": " + forbidden(error) + ": " + remedy_of_refusal(options);
        case Errc::auth_failed: return why_refused(error, options);
        case Errc::unsupported:
            if (const std::string detail = detail_of(error); detail.find("localSessions") != std::string::npos) {
                return path + ": " + detail;
            }
            return path + ": the servers do not know a request that zklock needs: upgrade the servers";
        default: return {};
    }
}

std::string of_servers_or_system(const Error& error, const Options& options) {
    const std::string path = path_of(error, options);
    switch (error.errc()) {
        case Errc::unreachable: return path + ": no ZooKeeper server answered in time: try zklock ping";
        case Errc::connection_lost:
            return path + ": the connection to the ZooKeeper servers broke and did not come back: try zklock ping";
        case Errc::session_lost: return path + ": the ZooKeeper session ended: try again";
        case Errc::outcome_unknown:
            return path +
                   ": the connection broke before the servers answered, and the change may have been made: look at "
                   "zklock status";
        case Errc::lock_lost: return path + ": the lock was lost";
        case Errc::out_of_resources: return "the operating system refused a resource: " + detail_of(error);
        case Errc::node_exists: return node_of(error, options) + " already exists";
        case Errc::no_node: return node_of(error, options) + " does not exist";
        case Errc::bad_version: return "another program changed " + node_of(error, options) + ": try again";
        case Errc::not_empty:
            return path +
                   " has nodes below it, so it is no lock node of a client, and zklock does not remove it: if nobody "
                   "needs these nodes, remove them all with zkCli.sh deleteall " +
                   node_of(error, options);
        case Errc::budget_exceeded:
            return path + ": ZooKeeper does not allow one client so many nodes or watches: use fewer -L";
        case Errc::protocol: {
            const std::string detail = detail_of(error);
            return path + ": unexpected answer from the servers" + (detail.empty() ? "" : " (" + detail + ")") +
                   ": look at their log; -vv shows each step";
        }
        case Errc::closed: return "the ZooKeeper session was closed";
        default: return path + ": an internal error of zklock; please report it (" + error.code().message() + ")";
    }
}

/// The setting that caused the servers or the library to refuse a session; empty: none.
const char* setting_of(const Error& error) {
    const bool session = error.operation() == "session" || error.operation() == "session namespace";
    switch (error.errc()) {
        case Errc::bad_connect_string: return "connect";
        case Errc::bad_path: return error.operation() == "connect" ? "connect" : session ? "prefix" : "";
        case Errc::bad_option:
            if (const SecureOption* const secure = secure_option(error)) return secure->setting;
            return mentions(error, "::acl") || mentions(error, "invalid access list") ? "acl"
                   : mentions(error, "tickTime")                                      ? "session-timeout"
                                                                                      : "";
        default: return "";
    }
}

const char* outcome_of(int code) noexcept {
    switch (code) {
        case kUnavailable: return "unavailable";
        case kNoPermission: return "no_permission";
        case kCannotCreate: return "cannot_create";
        case kLost: return "lost";
        default: return "error";
    }
}

}  // namespace

std::string in_words(const Error& error, const Options& options) {
    const std::string text = of_setting_or_path(error, options);
    return text.empty() ? of_servers_or_system(error, options) : text;
}

std::string forbids_reading(const std::vector<std::string>& paths, const Options& options, std::size_t named) {
    std::vector<std::string> first;
    for (std::size_t i = 0; i < std::min(named, paths.size()); ++i) first.push_back(server_path(options, paths[i]));
    const std::size_t rest = paths.size() - first.size();
    return "an access list forbids reading " + printable(joined(first)) +
           (rest > 0 ? " and " + std::to_string(rest) + " more" : "") + ": " + remedy_of_refusal(options);
}

std::string origin_of_tick(const Options& options) {
    const auto origin = options.origins.find("server-tick");
    return origin == options.origins.end() ? "--server-tick" : origin->second;
}

std::string in_words(const std::string& line, const std::string& origin_of_tick) {
    const std::size_t session = line.starts_with("session ") ? line.find(": ") + 2 : 0;
    return with_names_of_options(line.substr(session), origin_of_tick);
}

std::string why_unconfirmed(const std::string& line, const std::string& origin_of_tick) {
    constexpr std::string_view kRefused = " was refused: ";
    const std::size_t refused = line.find(kRefused);
    if (refused != std::string::npos && line.find("the heartbeat of ") < refused) {
        const std::size_t begin = refused + kRefused.size();
        return "the servers refuse its checks (" + line.substr(begin, line.find(". ", begin) - begin) +
               "): give zklock READ on its own lock nodes by --acl";
    }
    if (line.find("too short for ") == std::string::npos || line.find("tickTime") == std::string::npos) return {};
    return in_words(line, origin_of_tick);
}

Failure failure_of(const Error& error, const Options& options) {
    const std::string setting = setting_of(error);
    std::string text = in_words(error, options);
    if (!setting.empty()) {
        const auto origin = options.origins.find(setting);
        const bool command_line = origin == options.origins.end();
        text = (command_line ? "--" + setting : origin->second) + ": " + text;
        return {command_line ? kUsage : kConfig, text};
    }
    // The other bad options come from the command line, but a semaphore of another size does not.
    const bool semaphore = !options.locks.empty() && options.locks.front().mode == Mode::semaphore;
    if (error.errc() == Errc::bad_option) return {semaphore ? kBadData : kUsage, text};
    const int code = exit_code_for(error.errc());
    return {code, text, outcome_of(code)};
}

}  // namespace zkrecipes::zklock
