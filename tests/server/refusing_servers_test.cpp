// What sessions and locks are told by servers whose settings refuse them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/await.hpp"
#include "support/error_of.hpp"
#include "support/secure_server.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

class RefusingServersTest : public ::testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }

    SessionOptions options(const std::string& connect) {
        SessionOptions options{.hosts = connect, .timeout = 3s};
        options.log = [this](LogLevel, const std::string& line) {
            const std::lock_guard lock(mutex_);
            lines_.push_back(line);
        };
        return options;
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    bool says(const std::string& text) {
        return await([&] { return ::testing::Value(lines(), Contains(HasSubstr(text))); });
    }

    static testenv::ServerOptions demanding(const std::string& scheme) {
        testenv::ServerOptions options;
        options.java_properties = {{"zookeeper.enforce.auth.enabled", "true"},
                                   {"zookeeper.enforce.auth.schemes", scheme}};
        return options;
    }

    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// Of a mutex and of a set, which ask for their nodes in two ways.
TEST_F(RefusingServersTest, AServerThatDemandsCredentialsIsNamedAndAnswersWithThem) {
    const testenv::ZkServer server(demanding("digest"));
    for (const bool of_set : {false, true}) {
        Session session(options(server.connect_string()));
        ExclusiveMutex mutex(session, "/l");
        MultiLock set(session, {"/a", "/b"});
        const Error error = error_of([&] { of_set ? (void)set.acquire() : (void)mutex.acquire(); });
        EXPECT_EQ(error.errc(), Errc::auth_failed) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("the servers demand credentials"));
    }
    auto allowed = options(server.connect_string());
    allowed.auth = {{"digest", "user:password"}};
    Session session(std::move(allowed));
    EXPECT_TRUE(ExclusiveMutex(session, "/l").acquire());
}

TEST_F(RefusingServersTest, AnIdleSessionLearnsThatTheServersDemandCredentials) {
    const testenv::ZkServer server(demanding("digest"));
    Session session(options(server.connect_string()));
    EXPECT_TRUE(await([&] { return session.state() == SessionState::closed; }));
    EXPECT_EQ(error_of([&] { (void)session.wait_connected(kMaxWait); }).errc(), Errc::auth_failed);
}

TEST_F(RefusingServersTest, AServerThatDemandsSaslIsNamed) {
    const testenv::Scratch scratch;
    auto settings = sasl_server(scratch.path());
    settings.java_properties["zookeeper.sessionRequireClientSASLAuth"] = "true";
    const testenv::ZkServer server(settings);
    auto other = options(server.connect_string());
    other.auth = {{"digest", "user:password"}};
    Session session(std::move(other));
    const Error error = error_of([&] { (void)ExclusiveMutex(session, "/l").acquire(); });
    EXPECT_EQ(error.errc(), Errc::auth_failed) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("sessionRequireClientSASLAuth"));
}

/// A follower tells a transaction something else than a single create.
TEST_F(RefusingServersTest, ALocalSessionIsToldTheSettingOfTheServers) {
    testenv::EnsembleOptions settings;
    settings.server.config_lines = {"localSessionsEnabled=true"};
    testenv::ZkEnsemble servers(settings);
    const int leader = servers.wait_quorum();
    for (const int member : {leader, (leader + 1) % 3}) {
        Session session(options(servers.connect_string(member)));
        ExclusiveMutex mutex(session, "/l");
        MultiLock set(session, {"/a", "/b"});
        for (const bool of_set : {true, false}) {
            const Error error = error_of([&] { of_set ? (void)set.acquire() : (void)mutex.acquire(); });
            EXPECT_EQ(error.errc(), Errc::unsupported) << error.what();
            EXPECT_THAT(error.what(), HasSubstr("localSessionsUpgradingEnabled=true"));
        }
    }
}

TEST_F(RefusingServersTest, ASessionThatIsOneTooManyForTheServerSaysSoAndConnectsOnceThereIsRoom) {
    testenv::ServerOptions settings;
    settings.config_lines = {"maxClientCnxns=1"};
    const testenv::ZkServer server(settings);
    auto patient = options(server.connect_string());
    patient.timeout = 20s;  // neither is lost on a busy machine
    Session first(patient);
    ASSERT_TRUE(first.wait_connected(kMaxWait));
    Session second(patient);
    // Of the second one: the first one says so, too, where its look for servers comes while it connects.
    EXPECT_TRUE(await([&] { return ::testing::Value(second.info().problem, HasSubstr("maxClientCnxns")); }));
    EXPECT_TRUE(says("maxClientCnxns"));
    first.close();
    EXPECT_TRUE(second.wait_connected(kMaxWait));
    EXPECT_EQ(second.info().problem, "");
}

/// The hash in an access list is that of the servers' own algorithm: here of SHA-256, of "user:password".
TEST_F(RefusingServersTest, AccessListsAndCredentialsWorkWithAnotherDigestAlgorithm) {
    testenv::ServerOptions settings;
    settings.java_properties = {{"zookeeper.DigestAuthenticationProvider.digestAlg", "SHA-256"}};
    const testenv::ZkServer server(settings);
    auto owner = options(server.connect_string());
    owner.auth = {{"digest", "user:password"}};
    owner.acl = {{Acl::all, "digest", "user:yRsdas04PETE7CDJcj51jDEYKh9PAjHWPZElmi6hS50="}};
    Session session(std::move(owner));
    ExclusiveMutex mutex(session, "/l");
    EXPECT_TRUE(mutex.acquire());
    Session stranger(options(server.connect_string()));
    EXPECT_EQ(error_of([&] { (void)ExclusiveMutex(stranger, "/l").acquire(); }).errc(), Errc::no_permission);
}

TEST_F(RefusingServersTest, ASessionWhoseWatchesAreTooLargeForTheServersSaysSo) {
    testenv::ServerOptions settings;
    settings.java_properties = {{"jute.maxbuffer", "4000"}};
    testenv::ZkServer server(settings);
    testenv::Gate gate(server.endpoint());
    auto patient = options(gate.connect_string());
    patient.timeout = 60s;  // the next session would set its watches one by one
    Session session(std::move(patient));
    std::vector<std::unique_ptr<SharedValue>> values;
    std::vector<Subscription> observed;
    for (int i = 0; i < 60; ++i) {
        values.push_back(
            std::make_unique<SharedValue>(session, "/" + std::string(100, 'x') + std::to_string(i), "seed"));
        observed.push_back(values.back()->observe([](const auto&) {}));
    }
    ASSERT_TRUE(await([&] { return server.watch_count() >= 60; }));
    // A server that is about to start may keep a connection for ever without an answer (its log: "this.zkDb is null"),
    // and with this timeout the C client waits for 40 s.
    gate.refuse();
    server.restart();
    gate.pass();
    EXPECT_TRUE(says("jute.maxbuffer")) << ::testing::PrintToString(lines());
    EXPECT_THAT(lines(), Contains(HasSubstr("cut the connection right after each of the last 4 connects")));
    observed.clear();
}

}  // namespace
}  // namespace zkrecipes::test
