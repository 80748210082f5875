// What a session learns of the tick of a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerTickTest : public ::testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }

    /// A server whose tick is longer than half of the timeout that the session gets.
    static testenv::ServerOptions server_with(const std::string& words) {
        testenv::ServerOptions options;
        options.tick_time = 2s;
        options.min_session_timeout = 500ms;
        options.config_lines = {"4lw.commands.whitelist=" + words};
        return options;
    }
    Session session(const testenv::ZkServer& server, std::chrono::milliseconds tick = 0ms) {
        SessionOptions options{.hosts = server.connect_string(), .timeout = 3s, .server_tick = tick};
        options.log = [this](LogLevel, const std::string& line) {
            const std::lock_guard lock(mutex_);
            lines_.push_back(line);
        };
        return Session(std::move(options));
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    /// A session asks its server once, and not for long: several of them, where the machine is slow.
    bool a_session_says(const testenv::ZkServer& server, const std::string& text,
                        std::chrono::milliseconds tick = 0ms) {
        return await([&] {
            const Session asking = session(server, tick);
            return await([&] { return ::testing::Value(lines(), Contains(HasSubstr(text))); }, 3s);
        });
    }

    std::mutex mutex_;
    std::vector<std::string> lines_;
};

TEST_F(ServerTickTest, AServerThatMayTellItsTickIsBelieved) {
    const testenv::ZkServer server(server_with("srvr,conf"));
    EXPECT_TRUE(
        a_session_says(server, server.connect_string() + " has a tickTime of 2000 ms: a session timeout of 3000 ms"));
    EXPECT_TRUE(a_session_says(server, "SessionOptions::server_tick is only 1000 ms", 1s));
}

TEST_F(ServerTickTest, AServerThatMayNotTellItChangesNothing) {
    const testenv::ZkServer server(server_with("srvr"));
    EXPECT_TRUE(a_session_says(server, "does not tell its settings"));
    EXPECT_THAT(lines(), Not(Contains(HasSubstr("tickTime"))));
}

}  // namespace
}  // namespace zkrecipes::test
