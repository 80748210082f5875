// PersistentNode on scripted handles: what its blocking calls answer.
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/shared_value.hpp>

#include <spdlog/sinks/ostream_sink.h>

#include <optional>
#include <sstream>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class PersistentNodeUnitTest : public SessionTest {
protected:
    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~PersistentNodeUnitTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    std::optional<Session> session;
};

TEST_F(PersistentNodeUnitTest, AWaitThatHasTimedOutIsNotAnsweredAgain) {
    connect();
    PersistentNode node(*session, "/n");
    std::optional<bool> present;
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch, [&] {
        EXPECT_NO_THROW(present = node.wait_present(Deadline(runtime->steady_now() + 1s)));
    });
    runtime->advance(1s);  // its deadline has passed, but its fiber does not run yet
    EXPECT_FALSE(present);
    node.close();
    runtime->run();
    waiting.join();
    EXPECT_EQ(present, false);
}

class ServedNodeTest : public ServedTest {
protected:
    ServedNodeTest() {
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
        connect();
    }
    /// The session writes to the log when it is closed.
    ~ServedNodeTest() override {
        runtime->while_running([this] { session.reset(); });
    }
    std::size_t logged(const std::string& text) const {
        const std::string all = log.str();
        std::size_t count = 0;
        for (auto at = all.find(text); at != all.npos; at = all.find(text, at + 1)) ++count;
        return count;
    }
    std::ostringstream log;
};

TEST_F(ServedNodeTest, WhatCannotWorkIsRefusedWithoutARequest) {
    PersistentNodeOptions bad;
    bad.acl.emplace();
    EXPECT_EQ(code_of([&] { PersistentNode(*session, "/n", bad); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { PersistentNode(*session, "/"); }), Errc::bad_path);
    bad.acl.reset();
    bad.data = std::string(2'000'000, 'x');
    EXPECT_EQ(code_of([&] { PersistentNode(*session, "/n", bad); }), Errc::too_large);
    EXPECT_TRUE(client().sent.empty());
    PersistentNode node(*session, "/n");
    EXPECT_EQ(code_of([&] { node.set_data(bad.data); }), Errc::too_large);
    EXPECT_EQ(code_of([&] { (void)node.watch_state(nullptr); }), Errc::bad_option);
}

TEST_F(ServedNodeTest, WhoWaitsIsToldWhatIsRefusedAndTheLogOnceInAWhile) {
    refusals = {{"create /n", Rc::no_auth}};
    PersistentNode node(*session, "/n");
    EXPECT_EQ(code_served([&] { (void)node.wait_present(); }), Errc::no_permission);
    EXPECT_EQ(code_served([&] { (void)node.wait_present(in(1s)); }), Errc::no_permission);
    EXPECT_EQ(logged("cannot be made"), 1u);
    settle();
    settle();
    const auto tries = times("create /n");
    EXPECT_GT(tries, 5u);
    EXPECT_GE(logged("cannot be made"), 1u);
    EXPECT_LT(logged("cannot be made"), tries);
    refusals.clear();
    settle();
    EXPECT_EQ(served([&] { EXPECT_TRUE(node.wait_present()); }), "ok");
}

TEST_F(ServedNodeTest, AWaitThatIsOverLeavesNoTimer) {
    PersistentNode node(*session, "/n");
    std::optional<bool> present;
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch, [&] { present = node.wait_present(in(3600s)); });
    const auto timers = runtime->timers();
    serve();
    boost::this_fiber::yield();
    waiting.join();
    EXPECT_EQ(present, true);
    EXPECT_LT(runtime->timers(), timers);
    std::stop_source stop;
    refusals = {{"remove /n", Rc::throttled}};
    node.close();
    serve();
    EXPECT_EQ(code_of([&] { (void)node.wait_present(); }), Errc::closed);
    EXPECT_EQ(code_unserved(2s, [&] { EXPECT_FALSE(node.close_and_wait(in(1s))); }), Errc{});
    refusals.clear();
    settle();
    EXPECT_EQ(served([&] { EXPECT_TRUE(node.close_and_wait(in(1s))); }), "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedNodeTest, AListenerIsToldEachStateAndNoneAfterItsEnd) {
    std::vector<std::string> told;
    PersistentNode node(*session, "/n");
    auto subscription = node.watch_state([&](PersistentNodeState state) { told.emplace_back(to_string(state)); });
    serve();
    next_session();
    settle();
    EXPECT_EQ(told, (std::vector<std::string>{"missing", "present", "missing", "present"}));
    runtime->hold_lane(Lane::notifier, true);
    erase("/n");
    runtime->run();
    subscription.reset();
    runtime->hold_lane(Lane::notifier, false);
    settle();
    EXPECT_EQ(told.size(), 4u);
    EXPECT_EQ(node.state(), PersistentNodeState::present);
}

TEST_F(ServedNodeTest, TheNodeOfAFormerSessionOfOursIsDeletedAndTheLogSaysSo) {
    PersistentNode node(*session, "/n");
    serve();
    const auto before = nodes.at("/n");
    nodes.at("/n").owner = 0;  // the servers have not noticed yet that its session has ended
    next_session();
    nodes.at("/n").owner = before.owner;
    settle();
    EXPECT_EQ(nodes["/n"].owner, owner);
    EXPECT_EQ(logged("of a former session of ours"), 1u);
}

TEST_F(ServedNodeTest, WhatIsAssignedToOrDestroyedIsClosed) {
    PersistentNode node(*session, "/n");
    serve();
    node = PersistentNode(*session, "/m");
    serve();
    EXPECT_FALSE(nodes.contains("/n"));
    EXPECT_TRUE(nodes.contains("/m"));
    {
        const PersistentNode other(*session, "/o");
        serve();
    }
    serve();
    EXPECT_FALSE(nodes.contains("/o"));
    PersistentNode moved = std::move(node);
    EXPECT_EQ(moved.state(), PersistentNodeState::present);
    EXPECT_TRUE(nodes.contains("/m"));
    PersistentNodeOptions strict;
    strict.create_parents = false;
    PersistentNode below(*session, "/none/n", strict);
    EXPECT_EQ(code_served([&] { (void)below.wait_present(); }), Errc::no_parent);
}

TEST_F(PersistentNodeUnitTest, WhereTellingFailsTooItIsToldInTheEnd) {
    connect();
    PersistentNode node(*session, "/n");
    int told = 0;
    node.wait_present_async(Deadline::never(), {}, [&](const Result<bool>& r) { told += r.error ? 1 : 100; });
    runtime->run();
    runtime->refuse_posts(true);
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    runtime->refuse_posts(false);
    runtime->advance(1s);
    EXPECT_EQ(node.state(), PersistentNodeState::closed);
    EXPECT_EQ(told, 1);
}

TEST_F(PersistentNodeUnitTest, WhyTheSessionWasClosedIsToldToWhoWaitsAndToWhoComesLater) {
    options.auth.push_back({"digest", "u:p"});
    connect();
    PersistentNode node(*session, "/n");
    std::vector<Errc> told;
    const auto expect_error = [&](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            told.push_back(error.errc());
        }
    };
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch,
                                 [&] { expect_error([&] { (void)node.wait_present(); }); });
    client().answer_auth(Rc::auth_failed);
    runtime->run();
    waiting.join();
    expect_error([&] { node.set_data("x"); });
    EXPECT_EQ(told, std::vector(2, Errc::auth_failed));
}

TEST_F(ServedNodeTest, WhoMayNotSeeWhatItObservesIsToldByTheLog) {
    refusals = {{"children /g", Rc::no_auth}, {"children /e", Rc::no_auth}, {"get /v", Rc::no_auth}};
    Group group(*session, "/g");
    LeaderElection election(*session, "/e");
    SharedValue value(*session, "/v", "seed");
    const auto members = group.observe([](auto&&...) {});
    const auto leader = election.observe([](auto&&...) {});
    const auto latest = value.observe([](auto&&...) {});
    serve();
    EXPECT_EQ(logged("cannot see who is there: not permitted (1 times)"), 1u);
    EXPECT_EQ(logged("cannot see who leads: not permitted (1 times)"), 1u);
    EXPECT_EQ(logged("cannot see /v: not permitted (1 times)"), 1u);
    settle();
    EXPECT_EQ(logged("(3 times)"), 0u) << "less and less often";
}

}  // namespace
}  // namespace zkrecipes::testing
