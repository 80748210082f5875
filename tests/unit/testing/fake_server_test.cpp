#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/testing.hpp>
#include <zkrecipes/transaction.hpp>

#include "support/await.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using testkit::FakeServer;
using testkit::Match;
using testkit::Refusal;
using testkit::Time;

/// How an asynchronous acquire ended; empty: it has not.
struct Outcome {
    std::atomic<bool> told{false};
    Grant grant;
};
std::shared_ptr<Outcome> acquire_later(ExclusiveMutex& mutex, Deadline deadline) {
    auto outcome = std::make_shared<Outcome>();
    mutex.acquire_async(deadline, {}, [outcome](AcquireResult result) {
        outcome->grant = std::move(result.value);
        outcome->told = true;
    });
    return outcome;
}

std::size_t threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// ---- real and manual time -----------------------------------------------------------------------------------------

class FakeServerTest : public ::testing::TestWithParam<Time> {
protected:
    /// Of a session that does not try for long to clean up when it is closed.
    static SessionOptions brief() {
        SessionOptions options;
        options.close_timeout = 100ms;
        return options;
    }
    FakeServer server{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Times, FakeServerTest, ::testing::Values(Time::real, Time::manual),
                         [](const auto& each) { return each.param == Time::real ? "Real" : "Manual"; });

TEST_P(FakeServerTest, ASessionIsConnectedAtOnce) {
    SessionOptions options;
    options.timeout = 7s;
    const Session session = server.session(options);
    EXPECT_EQ(session.state(), SessionState::connected);
    EXPECT_EQ(session.info().timeout, 7s);
    EXPECT_NE(session.info().session_id, 0);
}

TEST_P(FakeServerTest, WhatWasLostIsKnownWhenTheCallReturns) {
    Session session = server.session(), other = server.session();
    ExclusiveMutex mutex(session, "/a"), second(session, "/b"), third(other, "/c");
    Grant lost = mutex.acquire();
    const Grant stays = second.acquire(), untouched = third.acquire();
    server.lose(lost);
    EXPECT_FALSE(lost.held());
    EXPECT_TRUE(lost.lost().stop_requested());
    EXPECT_TRUE(stays.held());

    std::vector<SessionState> states;
    const auto subscription = session.watch_state([&](SessionState state) { states.push_back(state); });
    server.expire(session);
    EXPECT_FALSE(stays.held());
    EXPECT_TRUE(stays.lost().stop_requested());
    EXPECT_TRUE(untouched.held());
    EXPECT_EQ(std::count(states.begin(), states.end(), SessionState::lost), 1);
    EXPECT_EQ(states.back(), SessionState::connected);
    lost.release();
    EXPECT_TRUE(mutex.acquire().held());
}

TEST_P(FakeServerTest, ACutSessionIsSuspendedAndKeepsItsNodes) {
    Session session = server.session(), other = server.session();
    ExclusiveMutex mutex(session, "/a");
    const Grant grant = mutex.acquire();
    server.cut(session);
    EXPECT_EQ(session.state(), SessionState::suspended);
    EXPECT_EQ(other.state(), SessionState::connected);
    EXPECT_TRUE(grant.held());
    EXPECT_TRUE(server.exists(grant.node()));
    server.heal();
    EXPECT_EQ(session.state(), SessionState::connected);
    EXPECT_TRUE(grant.held());

    server.cut();
    EXPECT_EQ(other.state(), SessionState::suspended);
    const Session late = server.session();
    EXPECT_EQ(late.state(), SessionState::connecting);
    server.heal();
    EXPECT_EQ(late.state(), SessionState::connected);
}

TEST_P(FakeServerTest, AnExpiryThatTheSessionCannotHearComesWhenItIsBack) {
    Session session = server.session();
    ExclusiveMutex mutex(session, "/a");
    const Grant grant = mutex.acquire();
    server.cut();
    server.expire(session);
    EXPECT_FALSE(server.exists(grant.node()));
    EXPECT_TRUE(grant.held()) << "by its own clock";
    server.heal();
    EXPECT_FALSE(grant.held());
}

TEST_P(FakeServerTest, TheNthRequestIsHit) {
    Session session = server.session();
    SharedValue value(session, "/value", "seed");
    EXPECT_EQ(value.get().value, "seed");
    const auto second = server.refuse(Match::set().path_is("/value").nth(2), Refusal::no_auth);
    value.set("first");
    EXPECT_FALSE(second.reached());
    try {
        value.set("second");
        ADD_FAILURE() << "it was written";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::no_permission) << error.what();
    }
    EXPECT_TRUE(second.reached());
    EXPECT_EQ(server.data("/value"), "first");
    value.set("third");
    EXPECT_EQ(server.data("/value"), "third");
}

TEST_P(FakeServerTest, ALostRequestIsNotExecutedAndALostAnswerIs) {
    Session session = server.session();
    Session other = server.session();
    SharedValue value(session, "/value", "seed");
    value.set("first");
    const auto before = server.cut_before(Match::set().session(session));
    EXPECT_THROW(value.set("not sent"), Error);
    EXPECT_TRUE(before.reached());
    EXPECT_EQ(server.data("/value"), "first");
    const auto after = server.cut_after(Match::set());
    try {
        value.set("second");
        ADD_FAILURE() << "the answer was not lost";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::outcome_unknown) << error.what();
    }
    EXPECT_TRUE(after.reached());
    EXPECT_EQ(server.data("/value"), "second");
    EXPECT_EQ(session.state(), SessionState::connected);

    const auto cancelled = server.cut_after(Match::any().session(other));
    cancelled.cancel();
    EXPECT_EQ(SharedValue(other, "/value", "").get().value, "second");
    EXPECT_FALSE(cancelled.reached());
}

TEST_P(FakeServerTest, AFaultFindsAPartOfATransaction) {
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    const auto fault = server.refuse(Match::create().path_is("/two"), Refusal::quota_exceeded);
    try {
        Transaction(grant).create("/one", "").create("/two", "").commit();
        ADD_FAILURE() << "it was committed";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::quota_exceeded) << error.what();
    }
    EXPECT_TRUE(fault.reached());
    EXPECT_FALSE(server.exists("/one"));
}

TEST_P(FakeServerTest, HeartbeatsAreNotMatched) {
    SessionOptions options;
    options.timeout = 1s;
    const auto undisturbed = [&] {
        Session session = server.session(options);
        ExclusiveMutex mutex(session, "/lock");
        const Grant grant = mutex.acquire();
        const auto beats = [&](int count) {
            for (auto last = grant.remaining_lease(); count > 0 && grant.held();) {
                if (GetParam() == Time::manual) server.advance(10ms);
                const auto before = std::exchange(last, grant.remaining_lease());
                if (last > before) --count;  // a heartbeat was answered
            }
            return count == 0;
        };
        // After half a second it has read and watched the node of the hold, as any request.
        if (!beats(12)) return false;  // where the machine stands still, the hold is lost
        const auto fault = server.cut_before(Match::any());
        const bool beaten = beats(4), reached = fault.reached();
        fault.cancel();
        if (!beaten || !grant.held()) return false;
        EXPECT_FALSE(reached);
        return true;
    };
    EXPECT_TRUE(test::await(undisturbed));
}

TEST_P(FakeServerTest, NodesCanBeLookedAtAndChanged) {
    SessionOptions options;
    options.hosts = "ignored:1,ignored:2/app";
    options.path_prefix = "/team";
    Session session = server.session(options);
    SharedValue value(session, "/value", "seed");
    std::vector<std::string> seen;
    const auto subscription =
        value.observe([&](const std::optional<VersionedValue>& now) { seen.push_back(now ? now->value : "-"); });
    EXPECT_EQ(server.data("/app/team/value"), "seed");
    server.write("/app/team/value", "written");
    server.remove("/app/team/value");
    EXPECT_FALSE(server.exists("/app/team/value"));
    EXPECT_EQ(server.data("/app/team/value"), std::nullopt);
    server.write("/x/y/z", "deep");
    server.write("/x/a", "");
    EXPECT_EQ(server.children("/x"), (std::vector<std::string>{"a", "y"}));
    EXPECT_EQ(server.children("/missing"), std::vector<std::string>());
    server.remove("/x");  // refused: it has children
    EXPECT_EQ(server.data("/x/y/z"), "deep");
    ASSERT_GE(seen.size(), 3U);
    EXPECT_EQ(std::vector<std::string>(seen.end() - 3, seen.end()), (std::vector<std::string>{"seed", "written", "-"}));
}

TEST_P(FakeServerTest, ServersKnowNothingOfEachOther) {
    FakeServer second(GetParam());
    Session one = server.session(), two = second.session();
    ExclusiveMutex mine(one, "/lock"), other(two, "/lock");
    const Grant first = mine.try_acquire(), next = other.try_acquire();
    EXPECT_TRUE(first.held());
    EXPECT_TRUE(next.held());
    second.lose(first);
    second.cut();
    EXPECT_TRUE(first.held());
    EXPECT_EQ(one.state(), SessionState::connected);
    second.heal();
}

TEST_P(FakeServerTest, ThreadsAndFibersWaitForEachOther) {
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    int counter = 0;
    const auto count = [&] {
        for (int i = 0; i < 20; ++i) {
            const Grant grant = mutex.acquire();
            const int seen = counter;
            boost::this_fiber::yield();
            counter = seen + 1;
        }
    };
    {
        std::jthread thread(count);
        std::vector<boost::fibers::fiber> fibers;
        for (int i = 0; i < 3; ++i) fibers.emplace_back(count);
        for (auto& fiber : fibers) fiber.join();
    }
    EXPECT_EQ(counter, 80);
    EXPECT_TRUE(server.await([&] { return server.children("/lock").empty(); }));
}

TEST_P(FakeServerTest, CallbacksMayCallTheServer) {
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    bool there = true;
    const std::stop_callback on_loss(grant.lost(), [&] {
        server.write("/told", "");
        there = server.exists(grant.node());
    });
    server.lose(grant);
    EXPECT_FALSE(there);
    EXPECT_TRUE(server.exists("/told"));
}

TEST_P(FakeServerTest, ASessionMayOutliveItsServerAndBeClosed) {
    auto gone = std::make_unique<FakeServer>(GetParam());
    Session session = gone->session(brief()), waiting = gone->session(brief());
    ExclusiveMutex mutex(session, "/lock"), other(waiting, "/lock");
    Grant grant = mutex.acquire();
    const auto outcome = acquire_later(other, Deadline::never());
    gone.reset();
    EXPECT_TRUE(await([&] { return session.state() != SessionState::connected; }));
    grant.release();
    session.close();  // returns
    EXPECT_EQ(session.state(), SessionState::closed);
}

TEST_P(FakeServerTest, ASessionThatIsCutOffCanBeClosed) {
    {
        Session session = server.session(brief());
        ExclusiveMutex mutex(session, "/lock");
        Grant grant = mutex.acquire();
        server.cut();
        grant.release();  // its node cannot be deleted now
    }
    server.heal();
    EXPECT_EQ(server.session().state(), SessionState::connected);
}

TEST_P(FakeServerTest, NoThreadStays) {
    const auto before = threads();
    for (int i = 0; i < 20; ++i) {
        FakeServer each(GetParam());
        Session session = each.session();
        ExclusiveMutex mutex(session, "/lock");
        const Grant grant = mutex.acquire();
        each.expire(session);
    }
    EXPECT_TRUE(await([&] { return threads() <= before; })) << threads() << " after " << before;
}

TEST(FakeServerBusyTest, AServerThatIsBusyAllTheTimeCanBeDisturbed) {
    FakeServer server;
    Session session = server.session(), victim = server.session();
    ExclusiveMutex mutex(victim, "/victim");
    std::atomic<bool> over{false};
    {
        std::vector<std::jthread> busy;
        for (int i = 0; i < 3; ++i) {
            busy.emplace_back([&, lock = std::make_shared<ExclusiveMutex>(session, "/" + std::to_string(i))] {
                while (!over) static_cast<void>(lock->acquire());
            });
        }
        for (int i = 0; i < 6; ++i) {
            const Grant grant = mutex.try_acquire_for(kMaxWait);
            EXPECT_TRUE(grant.held());
            i % 2 == 0 ? server.lose(grant) : server.expire(victim);
            EXPECT_TRUE(await([&] { return !grant.held() && grant.lost().stop_requested(); }));
        }
        over = true;
    }
}

// ---- manual time --------------------------------------------------------------------------------------------------

TEST(FakeServerClockTest, AWaitEndsWhenItsTimeHasPassedAndNotBefore) {
    FakeServer server(Time::manual);
    Session first = server.session(), second = server.session();
    ExclusiveMutex mine(first, "/lock"), other(second, "/lock");
    const Grant grant = mine.acquire();
    const auto outcome = acquire_later(other, Deadline(1h));
    EXPECT_EQ(server.children("/lock").size(), 2U);
    server.advance(59min);
    EXPECT_FALSE(outcome->told);
    server.advance(1min);
    EXPECT_TRUE(outcome->told);
    EXPECT_FALSE(outcome->grant);
    EXPECT_EQ(server.children("/lock").size(), 1U);
    EXPECT_TRUE(grant.held()) << "its session was alive all the time";
}

TEST(FakeServerClockTest, ALeaseEndsToTheMillisecond) {
    FakeServer server(Time::manual);
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    server.advance(20s);
    server.cut();
    const auto lease = grant.remaining_lease();
    EXPECT_GT(lease, 0ms);
    server.advance(lease - 1ms);
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(grant.lost().stop_requested());
    server.advance(2ms);
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(grant.lost().stop_requested());
}

TEST(FakeServerClockTest, ASilentSessionEndsOnTheServerAndItsNodesGo) {
    FakeServer server(Time::manual);
    SessionOptions options;
    options.timeout = 10s;
    Session session = server.session(options), other = server.session(options);
    ExclusiveMutex mutex(session, "/lock"), next(other, "/lock");
    const Grant grant = mutex.acquire();
    const auto outcome = acquire_later(next, Deadline::never());
    server.cut(session);
    server.advance(9s);
    EXPECT_TRUE(server.exists(grant.node()));
    EXPECT_FALSE(outcome->told);
    EXPECT_FALSE(grant.held()) << "lost before somebody else can get it";
    server.advance(2s);
    EXPECT_FALSE(server.exists(grant.node()));
    EXPECT_TRUE(outcome->told);
    EXPECT_TRUE(outcome->grant.held());
}

TEST(FakeServerClockTest, TimeStandsStill) {
    FakeServer server(Time::manual);
    SessionOptions options;
    options.timeout = 200ms;
    Session session = server.session(options);
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    const auto lease = grant.remaining_lease();
    const auto until = std::chrono::steady_clock::now() + 250ms;
    EXPECT_TRUE(await([&] { return std::chrono::steady_clock::now() >= until; }));
    EXPECT_EQ(grant.remaining_lease(), lease);
    server.advance(1min);
    EXPECT_TRUE(grant.held());
}

TEST(FakeServerClockTest, TheAgeOfAWaiterFollowsTheClock) {
    FakeServer server(Time::manual);
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    server.advance(30min);
    ParticipantFilter filter;
    filter.at_least_for = 29min;
    EXPECT_EQ(find_locks(session, "/", filter, 10s).size(), 1U);
    filter.at_least_for = 31min;
    EXPECT_EQ(find_locks(session, "/", filter, 10s).size(), 0U);
}

TEST(FakeServerClockTest, TheClockIsMovedOnlyWhereThatMakesSense) {
    FakeServer real;
    EXPECT_THROW(real.advance(1s), std::logic_error);
    FakeServer server(Time::manual);
    EXPECT_THROW(server.advance(-1s), std::logic_error);
    Session session = server.session();
    bool refused = false;
    {
        const auto subscription = session.watch_state([&](SessionState) {
            try {
                server.advance(1s);
            } catch (const std::logic_error&) {
                refused = true;
            }
        });
        server.advance(0s);
    }
    EXPECT_TRUE(refused);
}

TEST(FakeServerClockTest, ACallbackThatBlocksIsNotWaitedForLong) {
    FakeServer server(Time::manual);
    Session session = server.session();
    std::promise<void> go_on;
    const auto subscription =
        session.watch_state([&, going = go_on.get_future().share()](SessionState) { going.wait(); });
    server.advance(1min);  // returns, with all its steps, after about a second
    EXPECT_EQ(session.state(), SessionState::connected);
    go_on.set_value();
}

}  // namespace
}  // namespace zkrecipes::test
