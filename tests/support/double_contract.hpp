#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

#include "support/await.hpp"

namespace zkrecipes::test {

/// Tests as users write them, against a FakeServer or a real one: both must behave alike. `Backend` is one server:
///     Session session(SessionOptions options);
///     std::string path(name)              that nobody else uses
///     void expire(const Session&); void lose(const Grant&); void cut(); void heal();
///     FAULT cut_after_create(path part)   with wait_reached()
///     std::vector<std::string> children(path); std::optional<std::string> data(path);
///     bool exists_needs_read()
///     static constexpr int kRounds;
template <class Backend>
class DoubleContract : public ::testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = Backend::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
        backend_ = std::make_unique<Backend>();
    }
    Backend& server() { return *backend_; }
    static SessionOptions with_timeout(std::chrono::milliseconds timeout) {
        SessionOptions options;
        options.timeout = timeout;
        return options;
    }

private:
    std::unique_ptr<Backend> backend_;
};
TYPED_TEST_SUITE_P(DoubleContract);

/// Takes a lock and loses it, then takes it again and loses the session. Returns how often that went well.
template <class Backend>
int lose_and_expire(Backend& server, const std::string& path) {
    Session session = server.session({});
    ExclusiveMutex mutex(session, path);
    int done = 0;
    {
        const Grant grant = mutex.try_acquire_for(kMaxWait);
        const bool held = grant.held();
        server.lose(grant);
        done += held && await([&] { return !grant.held() && grant.lost().stop_requested(); });
    }
    const Grant grant = mutex.try_acquire_for(kMaxWait);
    const bool held = grant.held();
    server.expire(session);
    done += held && await([&] { return !grant.held() && grant.lost().stop_requested(); });
    return done;
}

TYPED_TEST_P(DoubleContract, LocksAreLostAndSessionsExpire) {
    for (int round = 0; round < TypeParam::kRounds; ++round) {
        ASSERT_EQ(lose_and_expire(this->server(), this->server().path("lock")), 2) << "round " << round;
    }
}

TYPED_TEST_P(DoubleContract, AWaiterFollowsAHolderThatIsLost) {
    auto& server = this->server();
    Session first = server.session({}), second = server.session({});
    const std::string path = server.path("lock");
    ExclusiveMutex mine(first, path), other(second, path);
    Grant grant = mine.acquire();
    const FencingToken token = grant.token();
    auto waiting = std::async(std::launch::async, [&] { return other.try_acquire_for(kMaxWait); });
    ASSERT_TRUE(await([&] { return server.children(path).size() == 2; }));
    server.lose(grant);
    const Grant next = waiting.get();
    EXPECT_TRUE(next.held());
    EXPECT_GT(next.token(), token);
    EXPECT_TRUE(await([&] { return !grant.held(); }));
}

TYPED_TEST_P(DoubleContract, ACreateWhoseAnswerIsLostHappensOnce) {
    auto& server = this->server();
    Session session = server.session({});
    ASSERT_TRUE(session.wait_connected(kMaxWait));
    ExclusiveMutex mutex(session, server.path("lock"));
    const auto lost = server.cut_after_create("lock-");
    const Grant grant = mutex.try_acquire_for(kMaxWait);
    EXPECT_TRUE(grant.held());
    EXPECT_TRUE(lost.wait_reached(kMaxWait));
    EXPECT_EQ(server.children(server.path("lock")).size(), 1U);
}

TYPED_TEST_P(DoubleContract, AHoldEndsWhenNoServerAnswersForLong) {
    auto& server = this->server();
    Session session = server.session(this->with_timeout(scaled(std::chrono::milliseconds(600))));
    ExclusiveMutex mutex(session, server.path("lock"));
    Grant grant = mutex.acquire();
    server.cut();
    EXPECT_TRUE(await([&] { return session.state() != SessionState::connected; }));
    EXPECT_TRUE(await([&] { return !grant.held() && grant.lost().stop_requested(); }));
    grant.release();
    EXPECT_FALSE(mutex.try_acquire_for(std::chrono::milliseconds(10)));
    server.heal();
    EXPECT_TRUE(await([&] { return mutex.try_acquire_for(kMaxWait).held(); })) << "the timeout is short";
}

TYPED_TEST_P(DoubleContract, AFormerHolderWritesNothing) {
    auto& server = this->server();
    Session session = server.session({});
    ExclusiveMutex mutex(session, server.path("lock"));
    const std::string value = server.path("value");
    const Grant grant = mutex.acquire();
    Transaction(grant).create(value, "first").commit();
    server.lose(grant);
    try {
        Transaction(grant).set(value, "second").commit();
        ADD_FAILURE() << "written without the lock";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::lock_lost) << error.what();
    }
    EXPECT_EQ(server.data(value), "first");
}

TYPED_TEST_P(DoubleContract, TheNextCandidateLeadsWhenASessionExpires) {
    auto& server = this->server();
    Session first = server.session({}), second = server.session({});
    const std::string path = server.path("leader");
    LeaderElection mine(first, path, {.id = "first"}), other(second, path, {.id = "second"});
    const Grant leadership = mine.campaign();
    auto waiting = std::async(std::launch::async, [&] { return other.try_campaign_for(kMaxWait); });
    ASSERT_TRUE(await([&] { return server.children(path).size() == 2; }));
    server.expire(first);
    const Grant next = waiting.get();
    EXPECT_TRUE(next.held());
    EXPECT_TRUE(await([&] { return !leadership.held(); }));
    const auto leader = mine.leader(kMaxWait);
    ASSERT_TRUE(leader.has_value());
    EXPECT_EQ(leader->id, "second");
}

TYPED_TEST_P(DoubleContract, ADirectoryThatMayNotBeReadIsRefusedWhereExistsNeedsThatRight) {
    auto& server = this->server();
    SessionOptions options;
    options.auth = {{"digest", "owner:secret"}};
    options.acl = {{Acl::all, "auth", ""}, {Acl::create | Acl::remove, "world", "anyone"}};
    Session owner = server.session(options), stranger = server.session({});
    const std::string path = server.path("blind");
    ExclusiveMutex owned(owner, path), mutex(stranger, path);
    (void)owned.acquire().release_and_wait(kMaxWait);
    try {
        const Grant grant = mutex.try_acquire_for(kMaxWait);
        EXPECT_FALSE(server.exists_needs_read());
        EXPECT_TRUE(grant.held()) << "nobody is before it, so nothing else has to be read";
    } catch (const Error& error) {
        EXPECT_TRUE(server.exists_needs_read()) << error.what();
        EXPECT_EQ(error.errc(), Errc::no_permission) << error.what();
    }
    EXPECT_TRUE(await([&] { return owned.participants().empty(); }));
}

REGISTER_TYPED_TEST_SUITE_P(DoubleContract, LocksAreLostAndSessionsExpire, AWaiterFollowsAHolderThatIsLost,
                            ACreateWhoseAnswerIsLostHappensOnce, AHoldEndsWhenNoServerAnswersForLong,
                            AFormerHolderWritesNothing, TheNextCandidateLeadsWhenASessionExpires,
                            ADirectoryThatMayNotBeReadIsRefusedWhereExistsNeedsThatRight);

}  // namespace zkrecipes::test
