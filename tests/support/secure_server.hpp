#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <zkrecipes/session_options.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

namespace zkrecipes::test {

inline constexpr std::uint16_t kTlsPort = 2281;

inline TlsOptions tls_options(const std::string& directory, const std::string& client = "client") {
    return {directory + "/ca.pem", directory + "/" + client + ".pem", directory + "/" + client + "-key.pem", ""};
}

/// A server with a TLS port, and the certificates that tests/tls/make_certificates has made.
inline testenv::ServerOptions tls_server(const std::string& directory, const std::string& certificate = "server") {
    testenv::ServerOptions options;
    options.name = "tls";
    options.tls_port = kTlsPort;
    options.config_lines = {"ssl.keyStore.type=PEM",
                            "ssl.keyStore.location=" + directory + "/" + certificate + "-all.pem",
                            "ssl.trustStore.type=PEM", "ssl.trustStore.location=" + directory + "/ca.pem"};
    return options;
}

/// A server that knows the user "job" with the password "secret word" by SASL.
inline testenv::ServerOptions sasl_server(const std::string& directory) {
    const std::string jaas = directory + "/jaas.conf";
    std::ofstream(jaas) << "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n"
                           "  user_job=\"secret word\";\n};\n";
    testenv::ServerOptions options;
    options.name = "sasl";
    options.java_properties["java.security.auth.login.config"] = jaas;
    options.config_lines = {"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"};
    return options;
}

inline SaslOptions sasl_options(const std::string& password = "secret word") {
    SaslOptions options;
    options.user = "job";
    options.password = password;
    return options;
}

/// What scripts/tls sets, so that other tests run over TLS or with SASL: a directory for the files; empty: not set.
inline std::string tests_use(const char* variable) {
    const char* const directory = std::getenv(variable);
    return directory == nullptr ? "" : directory;
}
inline std::string tests_use_tls() { return tests_use("ZKRECIPES_TEST_TLS"); }
inline std::string tests_use_sasl() { return tests_use("ZKRECIPES_TEST_SASL"); }

inline void secure(SessionOptions& options) {
    if (const std::string directory = tests_use_tls(); !directory.empty()) options.tls = tls_options(directory);
    if (!tests_use_sasl().empty()) options.sasl = sasl_options();
}

}  // namespace zkrecipes::test
