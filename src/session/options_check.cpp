#include "session/options_check.hpp"

#include <chrono>

#include <zkrecipes/error.hpp>

#include "base/connect_string.hpp"
#include "base/paths.hpp"
#include "base/session_timeout.hpp"

namespace zkrecipes::internal {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void refuse(const std::string& detail) { throw Error(Errc::bad_option, "session", {}, detail); }

void check_time(const char* name, milliseconds value, milliseconds smallest) {
    if (value >= smallest && value <= kLongestSessionTimeout) return;
    refuse(std::string("SessionOptions::") + name + " is " + std::to_string(value.count()) + " ms; choose from " +
           std::to_string(smallest.count()) + " ms to " + std::to_string(kLongestSessionTimeout.count()) + " h");
}

void check_acl(const SessionOptions& options) {
    if (options.acl.empty()) {
        refuse("SessionOptions::acl is empty, which the servers refuse; use Acl::open() or Acl::creator_all()");
    }
    for (const auto& entry : options.acl) {
        if (entry.scheme.empty())
            refuse("an entry of SessionOptions::acl has no scheme; use world, auth, digest or ip");
        if (entry.permissions < 1 || entry.permissions > Acl::all) {
            refuse("an entry of SessionOptions::acl has the permissions " + std::to_string(entry.permissions) +
                   "; combine Acl::read, write, create, remove and admin");
        }
        if (entry.scheme == "world" && entry.id != "anyone") {
            refuse("an entry of SessionOptions::acl has the scheme world with the id '" + entry.id +
                   "'; the only id of that scheme is anyone");
        }
        if (entry.scheme == "auth" && options.auth.empty() && !options.sasl && !options.tls) {
            refuse(
                "SessionOptions::acl says 'the authenticated user', but SessionOptions::auth has no credentials; add "
                "some");
        }
    }
}

void check_auth(const SessionOptions& options) {
    for (const auto& auth : options.auth) {
        if (auth.scheme.empty()) refuse("an entry of SessionOptions::auth has no scheme; use digest");
        if (auth.scheme == "digest" && auth.credential.find(':') == std::string::npos) {
            refuse("a digest credential in SessionOptions::auth has no colon; write user:password");
        }
    }
}

}  // namespace

CheckedOptions check_options(const SessionOptions& options) {
    const ConnectString connect = parse_connect_string(options.hosts);
    check_time("timeout", options.timeout, kShortestSessionTimeout);
    check_time("auth_timeout", options.auth_timeout, milliseconds(1));
    check_time("server_tick", options.server_tick, milliseconds(0));
    check_time("close_timeout", options.close_timeout, milliseconds(0));
    check_acl(options);
    check_auth(options);
    if (options.logger && options.log) {
        refuse("SessionOptions::logger and SessionOptions::log are both set; set one of them");
    }
    CheckedOptions out;
    check_encryption(options, out);
    out.hosts = connect.hosts();
    std::string prefix = connect.chroot;
    if (!options.path_prefix.empty()) {
        check_path(options.path_prefix, "session namespace");
        prefix = join_path(prefix, options.path_prefix);
    }
    if (!prefix.empty() && prefix != "/") {
        check_lock_path(prefix, "session namespace");
        out.prefix = std::move(prefix);
    }
    return out;
}

}  // namespace zkrecipes::internal
