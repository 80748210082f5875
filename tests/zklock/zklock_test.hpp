#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include "zklock/parsed_json.hpp"

#include "support/await.hpp"
#include "support/zk_server_test.hpp"
#include "zklock/zklock_process.hpp"

namespace zkrecipes::zklock::test {

using zkrecipes::test::await;

/// The built zklock against a real server, on a lock of the test's own.
class ZklockTest : public zkrecipes::test::ZkServerTest {
protected:
    std::string lock() const { return path("lock"); }
    /// Options that connect directly, or through a gate.
    std::vector<std::string> with(std::vector<std::string> rest, const std::string& connect = {}) const {
        std::vector<std::string> all = {"--connect", connect.empty() ? connect_string() : connect, "--session-timeout",
                                        session_timeout_};
        all.insert(all.end(), rest.begin(), rest.end());
        return all;
    }
    std::unique_ptr<ZklockProcess> start(std::vector<std::string> rest, ZklockProcess::Setup setup = {}) const {
        return std::make_unique<ZklockProcess>(with(std::move(rest)), std::move(setup));
    }
    Outcome run(std::vector<std::string> rest, ZklockProcess::Setup setup = {}) const {
        return zklock(with(std::move(rest)), std::move(setup));
    }
    /// A zklock that holds the lock until it is stopped, in a command that has started.
    std::unique_ptr<ZklockProcess> hold_with_command(std::vector<std::string> options = {}) {
        options.insert(options.end(), {lock(), "-c", "touch " + (scratch_ / "held") + "; exec sleep 300"});
        auto process = start(std::move(options));
        EXPECT_TRUE(await([&] { return exists(scratch_ / "held"); }));
        return process;
    }

    std::vector<std::string> contenders() {
        if (!observer_) observer_ = std::make_unique<testenv::RawClient>(connect_string());
        return observer_->children(lock()).value_or(std::vector<std::string>{});
    }
    std::size_t queue_length() { return contenders().size(); }

    Scratch scratch_;
    std::string session_timeout_ = "10";
    std::unique_ptr<testenv::RawClient> observer_;
};

}  // namespace zkrecipes::zklock::test
