#include "support/zk_server_test.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <zkrecipes/testenv/available.hpp>

#include "support/secure_server.hpp"

namespace zkrecipes::test {

namespace {

std::unique_ptr<testenv::ZkServer>& shared_server() {
    static std::unique_ptr<testenv::ZkServer> server;
    return server;
}

std::string outside_ensemble() {
    const char* text = std::getenv("ZKRECIPES_TEST_CONNECT");
    return text == nullptr ? "" : text;
}

// Also unique against earlier runs on an outside ensemble, and against earlier rounds of --gtest_repeat on one server.
std::string unique_root(const testing::TestInfo& test) {
    static const unsigned run = std::random_device{}();
    static int tests = 0;
    std::string root = "/test-" + std::to_string(::getpid()) + "-" + std::to_string(run) + "-" +
                       std::to_string(++tests) + "-" + test.test_suite_name() + "-" + test.name();
    std::replace(root.begin() + 1, root.end(), '/', '-');
    return root;
}

// Destroyed while main still runs: the server is gone before the program's last words.
class StopSharedServer : public testing::Environment {
public:
    void TearDown() override { shared_server().reset(); }
};
[[maybe_unused]] const auto* const stop_shared_server = testing::AddGlobalTestEnvironment(new StopSharedServer);

}  // namespace

std::string why_no_zookeeper() { return testenv::why_unavailable(); }

testenv::ServerOptions ZkServerTest::shared_server_options() {
    const std::string tls = tests_use_tls(), sasl = tests_use_sasl();
    testenv::ServerOptions options = !tls.empty()    ? tls_server(tls)
                                     : !sasl.empty() ? sasl_server(sasl)
                                                     : testenv::ServerOptions();
    options.name = "shared";
    options.max_session_timeout = kNoHeartbeat;
    // Else it deletes empty lock directories each minute: between two uses of a lock, in the middle of a test.
    options.java_properties["znode.container.checkIntervalMs"] = "3600000";
    return options;
}

std::string ZkServerTest::session_string() const {
    if (tests_use_tls().empty()) return connect_string();
    return testenv::Endpoint{server().endpoint().address, kTlsPort}.str();
}

void ZkServerTest::SetUp() {
    root_ = unique_root(*testing::UnitTest::GetInstance()->current_test_info());
    connect_string_ = outside_ensemble();
    if (!connect_string_.empty()) {
        return;
    }
    ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
    auto& server = shared_server();
    if (!server) {
        server = std::make_unique<testenv::ZkServer>(shared_server_options());
    }
    connect_string_ = server->connect_string();
}

void ZkServerTest::TearDown() {
    if (HasFailure() && shared_server()) {
        std::cerr << "--- the log of the shared server ends:\n" << shared_server()->log_tail(20) << "---\n";
    }
}

bool ZkServerTest::uses_outside_ensemble() { return !outside_ensemble().empty(); }

testenv::ZkServer& ZkServerTest::server() const { return *shared_server(); }

}  // namespace zkrecipes::test
