#include "zklock/command_line/encryption.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>
#include <zkrecipes/version.hpp>

namespace zkrecipes::zklock {
namespace {

[[noreturn]] void refuse_setting(const Found& found, const std::string& problem) {
    const std::string text = found.origin + ": " + problem;
    if (found.exit_code == kUsage) usage(text);
    throw Failure(found.exit_code, text);
}

/// The values of settings that belong together: all of them, or none. `of`: what they are for.
template <std::size_t Count>
std::optional<std::array<std::string, Count>> together(const Settings& settings,
                                                       const std::array<const char*, Count>& keys, const char* of) {
    std::array<std::string, Count> values;
    std::optional<Found> first;
    std::string missing;
    for (std::size_t i = 0; i < Count; ++i) {
        const auto found = settings.find(keys[i]);
        if (found && !first) first = found;
        if (found) values[i] = found->value;
        if (values[i].empty()) missing += (missing.empty() ? "--" : " and --") + std::string(keys[i]);
    }
    if (!first) return std::nullopt;
    if (!missing.empty()) refuse_setting(*first, std::string(of) + " also needs " + missing);
    return values;
}

void require_feature(const Settings& settings, const char* key, const char* feature, const char* name,
                     const char* remedy) {
    const auto available = features();
    if (std::find(available.begin(), available.end(), feature) != available.end()) return;
    throw Failure(kConfig, settings.find(key)->origin + ": the ZooKeeper client of this zklock (" + client_version() +
                               ") has no " + name + ", and zklock does not connect without it: " + remedy);
}

}  // namespace

void hide_memory() {
#if !defined(__SANITIZE_ADDRESS__)  // it traces the process when it looks for leaks
    ::prctl(PR_SET_DUMPABLE, 0);
#endif
}

void read_encryption(const Settings& settings, Options& options) {
    const auto tls = together<3>(settings, {"tls-ca", "tls-cert", "tls-key"}, "TLS");
    const auto sasl = together<2>(settings, {"sasl-user", "sasl-password-file"}, "SASL");
    if (tls && sasl) {
        refuse_setting(*settings.find("sasl-user"),
                       "the ZooKeeper client cannot use TLS and SASL at the same time: use one of them");
    }
    if (tls) {
        require_feature(settings, "tls-ca", "tls", "TLS",
                        "use a client that was built with OpenSSL, or run a TLS proxy such as stunnel and connect to "
                        "it without the options --tls-...");
        options.tls = TlsOptions{(*tls)[0], (*tls)[1], (*tls)[2], ""};
    }
    if (const auto name = settings.find("tls-server-name")) {
        if (!tls) refuse_setting(*name, "TLS also needs --tls-ca and --tls-cert and --tls-key");
        if (name->value.empty()) refuse_setting(*name, "the name is empty");
        options.tls->server_name = name->value;
    }
    if (sasl) {
        require_feature(settings, "sasl-user", "sasl", "SASL",
                        "use a client that was built with Cyrus SASL, or --auth-file");
        options.sasl.emplace();
        options.sasl->user = (*sasl)[0];
        options.sasl->password_file = (*sasl)[1];
    }
    if (tls || sasl) hide_memory();
}

}  // namespace zkrecipes::zklock
