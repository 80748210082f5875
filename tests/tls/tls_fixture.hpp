#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include <zkrecipes/version.hpp>

#include "server/exclusive_mutex_support.hpp"
#include "tls/recorder.hpp"

#include <zkrecipes/testenv/scratch.hpp>

namespace zkrecipes::test {

using Clock = std::chrono::steady_clock;

inline bool has_feature(const std::string& name) { return std::ranges::count(features(), name) > 0; }

/// The certificates of all tests of this program.
inline const std::string& certificates() {
    static const auto* const scratch = [] {
        auto made = std::make_unique<testenv::Scratch>();
        const std::string command = std::string(ZKRECIPES_MAKE_CERTIFICATES) + " " + made->path();
        return std::system(command.c_str()) == 0 ? made.release() : nullptr;
    }();
    static const std::string none;
    return scratch == nullptr ? none : scratch->path();
}

inline std::string unlikely_path() { return "/a-path-that-no-encrypted-stream-holds-by-chance"; }

inline void expect_encrypted(const Recorder& recorder) {
    for (const auto& stream : recorder.streams()) {
        EXPECT_EQ(why_not_tls(stream.to_server), "");
        EXPECT_EQ(stream.to_server.find(unlikely_path()), std::string::npos);
        EXPECT_EQ(stream.to_client.find(unlikely_path()), std::string::npos);
    }
}

/// Whether the end of the lease moves. What is left of it does not tell: it may be most just after a heartbeat.
inline bool heartbeats_pass(const Grant& grant) {
    const auto end = [&] {
        const auto now = Clock::now();
        return now + grant.remaining_lease();
    };
    const auto before = end();
    return await([&] { return end() > before + 100ms; }) && grant.held();
}

class TlsTest : public testing::Test {
protected:
    void SetUp() override {
        ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
        if (certificates().empty()) GTEST_SKIP() << "openssl cannot make certificates here";
        if (!has_feature("tls")) GTEST_SKIP() << "this ZooKeeper C client has no TLS; use scripts/tls";
    }
    static testenv::ZkServer& server() {
        static const auto owner = std::make_unique<testenv::ZkServer>(tls_server(certificates()));
        return *owner;
    }
    static testenv::Endpoint tls_endpoint() { return {server().endpoint().address, kTlsPort}; }
    static SessionOptions options_for(const std::string& hosts, std::chrono::milliseconds timeout = 4s) {
        SessionOptions options = session_options(hosts, timeout);
        options.tls = tls_options(certificates());
        return options;
    }
    /// A session that cannot connect says why, within the deadline.
    static std::string problem_of(const SessionOptions& options, const std::string& wanted,
                                  std::chrono::milliseconds deadline = 20s) {
        const auto before = Clock::now();
        Session session(options);
        // Another reason may come before: a server that starts opens its TLS port last.
        EXPECT_TRUE(await([&] { return session.info().problem.find(wanted) != std::string::npos; }))
            << session.info().problem;
        EXPECT_FALSE(session.wait_connected(Deadline(std::chrono::milliseconds(300))));
        const std::string problem = session.info().problem;
        EXPECT_LT(Clock::now() - before, deadline);
        const auto closing = Clock::now();
        session.close();
        EXPECT_LT(Clock::now() - closing, 20s);
        return problem;
    }
};

}  // namespace zkrecipes::test
