#pragma once

#include <gtest/gtest.h>

#include <string>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/await.hpp"

namespace zkrecipes::test {

/// A test against one standalone server that all tests of the program share, under a root path that is the test's
/// alone.
///
/// Skipped, with the reason, when Java or ZooKeeper is not installed. $ZKRECIPES_TEST_CONNECT names an ensemble to use
/// instead; tests that need the server itself, server(), begin with ZKRECIPES_NEEDS_OWN_SERVER() and are skipped then.
/// When a test fails, the end of the server's log is printed. Tests that stop, freeze or gate a server make a ZkServer
/// of their own.
class ZkServerTest : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    /// "127.1.2.3:2181".
    [[nodiscard]] const std::string& connect_string() const { return connect_string_; }
    /// The same for sessions: with TLS, if scripts/tls wants the tests to use it.
    [[nodiscard]] std::string session_string() const;
    /// "/test-<unique>-<suite>-<name>", not created: a path below it has a parent that is missing, as in a fresh
    /// ensemble.
    [[nodiscard]] const std::string& root() const { return root_; }
    /// root() + "/" + name
    [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
    /// The shared server. Only after ZKRECIPES_NEEDS_OWN_SERVER(): an outside ensemble has none that we could ask.
    [[nodiscard]] testenv::ZkServer& server() const;
    [[nodiscard]] static bool uses_outside_ensemble();

    /// Options of the shared server; it is started by the first test that needs it.
    static testenv::ServerOptions shared_server_options();

private:
    std::string connect_string_;
    std::string root_;
};

/// Skips the running test when there is no Java or no ZooKeeper here. For tests that start servers of their own.
#define ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER()                                                     \
    do {                                                                                       \
        if (const std::string reason = zkrecipes::test::why_no_zookeeper(); !reason.empty()) { \
            GTEST_SKIP() << reason;                                                            \
        }                                                                                      \
    } while (false)

/// Skips the running ZkServerTest when it uses an outside ensemble.
#define ZKRECIPES_NEEDS_OWN_SERVER()                                                           \
    do {                                                                                       \
        if (uses_outside_ensemble()) {                                                         \
            GTEST_SKIP() << "needs a server of its own, ZKRECIPES_TEST_CONNECT names another"; \
        }                                                                                      \
    } while (false)

/// Why no server can be started here; empty when one can.
[[nodiscard]] std::string why_no_zookeeper();

}  // namespace zkrecipes::test
