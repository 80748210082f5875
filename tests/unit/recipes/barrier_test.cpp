// Barrier and DoubleBarrier before a small server: what each answer of the servers means to the caller.
#include <zkrecipes/barrier.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

BarrierOptions without_access() {
    BarrierOptions options;
    options.acl.emplace();
    return options;
}
BarrierOptions without_parents() {
    BarrierOptions options;
    options.create_parents = false;
    return options;
}
BarrierOptions only_for(const std::string& id) {
    BarrierOptions options;
    options.acl.emplace().emplace_back().id = id;
    return options;
}

class BarrierUnitTest : public ServedTest {
protected:
    BarrierUnitTest() { connect(); }
};

TEST_F(BarrierUnitTest, WhatCannotWorkIsRefusedWithoutARequest) {
    EXPECT_EQ(code_of([&] { Barrier(*session, "/b", without_access()); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { Barrier(*session, "/"); }), Errc::bad_path);
    EXPECT_EQ(code_of([&] { DoubleBarrier(*session, "/b", 2, without_access()); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { DoubleBarrier(*session, "/b", 0); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { DoubleBarrier(*session, "/", 1); }), Errc::bad_path);
    Barrier barrier(*session, "/b");
    DoubleBarrier twice(*session, "/b", 1);
    EXPECT_EQ(code_of([&] { barrier.wait_async({}, {}, nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { twice.enter_async({}, {}, nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { twice.leave_async({}, {}, nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { (void)twice.leave(); }), Errc::bad_option);
    EXPECT_EQ(twice.members(), 1);
    EXPECT_THAT(client().sent, IsEmpty());
}

TEST_F(BarrierUnitTest, ItIsClosedByANodeAndOpenedByItsEndAsOftenAsOneLikes) {
    Barrier barrier(*session, "/p/b");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(served([&] { barrier.set(); }), "ok");
    ASSERT_TRUE(nodes.contains("/p/b"));
    EXPECT_EQ(nodes["/p/b"].mode, CreateMode::persistent);
    EXPECT_EQ(nodes["/p/b"].acl.size(), 1u);
    EXPECT_EQ(nodes["/p/b"].acl.front().id, options.acl.front().id);
    EXPECT_EQ(nodes["/p"].mode, CreateMode::container);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(served([&] { barrier.remove(); }), "ok");
    EXPECT_FALSE(nodes.contains("/p/b"));
    Barrier guarded(*session, "/p/b", only_for("some"));
    EXPECT_EQ(served([&] { guarded.set(); }), "ok");
    EXPECT_EQ(nodes["/p/b"].acl.front().id, "some");
}

TEST_F(BarrierUnitTest, WhatTheServersRefuseIsAnError) {
    Barrier barrier(*session, "/b"), below(*session, "/none/b", without_parents());
    EXPECT_EQ(code_served([&] { below.set(); }), Errc::no_parent);
    EXPECT_FALSE(nodes.contains("/none"));
    refusals = {{"create /b", Rc::no_auth}, {"remove /b", Rc::no_auth}, {"get /b", Rc::no_auth}};
    EXPECT_EQ(code_served([&] { barrier.set(); }), Errc::no_permission);
    EXPECT_EQ(code_served([&] { barrier.remove(); }), Errc::no_permission);
    EXPECT_EQ(code_served([&] { (void)barrier.wait(); }), Errc::no_permission);
    std::optional<BarrierResult> told;
    barrier.wait_async({}, {}, [&](BarrierResult result) { told = std::move(result); });
    serve();
    ASSERT_TRUE(told);
    EXPECT_FALSE(told->value);
    EXPECT_EQ(code_of([&] { std::rethrow_exception(told->error); }), Errc::no_permission);
    refusals = {{"create /b", Rc::no_children_for_ephemerals}, {"remove /b", Rc::bad_version}};
    EXPECT_NE(code_served([&] { barrier.set(); }), Errc{});
    EXPECT_NE(code_served([&] { barrier.remove(); }), Errc{});
    refusals.clear();
    put("/b");
    put("/b/child");
    EXPECT_EQ(code_served([&] { barrier.remove(); }), Errc::not_empty);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(BarrierUnitTest, AParentThatMayNotBeMadeOrVanishesEachTimeIsAnError) {
    Barrier barrier(*session, "/p/b");
    refusals = {{"create /p", Rc::no_auth}};
    EXPECT_EQ(code_served([&] { barrier.set(); }), Errc::no_permission);
    refusals.clear();
    before_answer = [this](const std::string& what) {
        if (what == "create /p/b") erase("/p");
    };
    asked.clear();
    EXPECT_EQ(code_served([&] { barrier.set(); }), Errc::no_parent);
    EXPECT_EQ(times("create /p/b"), 9u);
    EXPECT_EQ(times("create /p"), 8u);
}

TEST_F(BarrierUnitTest, ADeadlineSaysWhetherAnythingMayHaveHappened) {
    Barrier barrier(*session, "/b");
    EXPECT_EQ(code_unserved(6s, [&] { barrier.set(in(1s)); }), Errc::outcome_unknown);
    client().disconnect();
    runtime->run();
    EXPECT_EQ(code_unserved(2s, [&] { barrier.set(in(1s)); }), Errc::unreachable);
    EXPECT_EQ(code_unserved(2s, [&] { barrier.remove(in(1s)); }), Errc::unreachable);
}

TEST_F(BarrierUnitTest, EachAnswerMayBeLost) {
    Barrier barrier(*session, "/p/b");
    for (const bool after : {false, true}) {
        lost_after = after;
        for (int request = 1; request <= 3; ++request) {
            nodes = {{"/", {}}};
            asked.clear();
            lose_answer = request;
            EXPECT_EQ(served([&] { barrier.set(); }), "ok") << request;
            EXPECT_TRUE(nodes.contains("/p/b"));
        }
        asked.clear();
        lose_answer = 1;
        EXPECT_EQ(served([&] { barrier.remove(); }), "ok");
        EXPECT_FALSE(nodes.contains("/p/b"));
        asked.clear();
        EXPECT_EQ(served([&] { EXPECT_TRUE(barrier.wait()); }), "ok");
    }
    EXPECT_EQ(leftovers(), "");
}

TEST_F(BarrierUnitTest, AWaitEndsWhenTheNodeThatItSawIsGone) {
    Barrier barrier(*session, "/b");
    EXPECT_EQ(served([&] { EXPECT_TRUE(barrier.wait(Deadline::passed())); }), "ok");
    put("/b");
    EXPECT_EQ(served([&] { EXPECT_FALSE(barrier.wait(Deadline::passed())); }), "ok");
    EXPECT_EQ(leftovers(), "");
    std::vector<bool> told;
    const auto tell = [&](const BarrierResult& result) {
        EXPECT_EQ(result.error, nullptr);
        told.push_back(result.value);
    };
    barrier.wait_async({}, {}, tell);
    serve();
    write("/b", "another text");
    serve();
    EXPECT_THAT(told, IsEmpty());
    erase("/b");
    serve();
    EXPECT_THAT(told, ElementsAre(true));
    EXPECT_EQ(leftovers(), "");

    put("/b");
    barrier.wait_async({}, {}, tell);
    serve();
    break_connection();
    settle();
    EXPECT_THAT(told, ElementsAre(true)) << "it is the same node";
    client().disconnect();
    runtime->run();
    watched.clear();
    erase("/b");
    put("/b");
    client().connect(owner);
    settle();
    EXPECT_THAT(told, ElementsAre(true, true)) << "it was open in between";
    EXPECT_EQ(leftovers(), "");

    std::stop_source stop;
    barrier.wait_async({}, stop.get_token(), tell);
    serve();
    stop.request_stop();
    serve();
    EXPECT_THAT(told, ElementsAre(true, true, false));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(BarrierUnitTest, AWaitGoesOnInTheNextSession) {
    Barrier barrier(*session, "/b");
    put("/b");
    std::optional<BarrierResult> told;
    barrier.wait_async({}, {}, [&](BarrierResult result) { told = std::move(result); });
    serve();
    next_session();
    settle();
    EXPECT_FALSE(told);
    EXPECT_THAT(watched, ElementsAre("node /b"));
    erase("/b");
    settle();
    ASSERT_TRUE(told);
    EXPECT_TRUE(told->value);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(BarrierUnitTest, WithoutRoomForAWatchAWaitIsAnError) {
    Barrier barrier(*session, "/b");
    put("/b");
    use_up_watches();
    EXPECT_EQ(code_served([&] { (void)barrier.wait(); }), Errc::budget_exceeded);
    DoubleBarrier twice(*session, "/d", 2);
    EXPECT_EQ(code_served([&] { (void)twice.enter(); }), Errc::budget_exceeded);
    allow_watches();
    EXPECT_EQ(leftovers(), "");
}

class DoubleBarrierUnitTest : public ServedTest {
protected:
    DoubleBarrierUnitTest() { connect(); }
    /// Enters without waiting; what it said comes to the end of `told`.
    void enter(DoubleBarrier& barrier, Deadline deadline = {}) {
        barrier.enter_async(deadline, {}, teller());
        serve();
    }
    void leave(DoubleBarrier& barrier) {
        barrier.leave_async({}, {}, teller());
        serve();
    }
    std::function<void(BarrierResult)> teller() {
        return [this](const BarrierResult& result) {
            told.push_back(!result.error ? (result.value ? "yes" : "no") : std::to_string(static_cast<int>(code_of([&] {
                std::rethrow_exception(result.error);
            }))));
        };
    }
    static std::string error(Errc code) { return std::to_string(static_cast<int>(code)); }

    std::vector<std::string> told;
};

TEST_F(DoubleBarrierUnitTest, AllEnterAndLeaveTogether) {
    DoubleBarrier one(*session, "/d", 2, only_for("some")), two(*session, "/d", 2);
    enter(one);
    EXPECT_THAT(told, IsEmpty());
    EXPECT_EQ(code_of([&] { enter(one); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { leave(one); }), Errc::bad_option);
    ASSERT_EQ(children("/d").size(), 1u);
    EXPECT_EQ(nodes["/d/" + children("/d").front()].acl.front().id, "some");
    EXPECT_EQ(nodes["/d/" + children("/d").front()].owner, owner);
    enter(two);
    EXPECT_THAT(told, ElementsAre("yes", "yes"));
    EXPECT_EQ(children("/d").size(), 3u);
    EXPECT_EQ(nodes["/d/ready"].owner, 0);
    EXPECT_EQ(nodes["/d/ready"].mode, CreateMode::persistent);
    EXPECT_EQ(nodes["/d/ready"].acl.size(), 1u);
    EXPECT_EQ(code_of([&] { enter(one); }), Errc::bad_option);
    leave(one);
    EXPECT_EQ(told.size(), 2u);
    leave(two);
    EXPECT_THAT(told, ElementsAre("yes", "yes", "yes", "yes"));
    EXPECT_THAT(children("/d"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
    enter(one, Deadline::passed());
    EXPECT_EQ(told.back(), "no");
    EXPECT_THAT(children("/d"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(DoubleBarrierUnitTest, WhoIsInsideAndTakenForGoneIsToldWhy) {
    DoubleBarrier alone(*session, "/d", 1);
    enter(alone);
    for (const auto& name : children("/d")) erase("/d/" + name);
    put("/d/another");
    leave(alone);
    EXPECT_EQ(told.back(), error(Errc::lock_lost));
    EXPECT_EQ(leftovers(), "");
    erase("/d/another");
    enter(alone);
    EXPECT_EQ(told.back(), "yes");
    next_session();
    settle();
    put("/d/another");
    leave(alone);
    EXPECT_EQ(told.back(), error(Errc::session_lost));
    EXPECT_EQ(leftovers(), "");
    erase("/d/another");
    enter(alone);
    EXPECT_EQ(told.back(), "yes") << "with a node of the new session";
    leave(alone);
    EXPECT_EQ(told.back(), "yes");
    EXPECT_THAT(children("/d"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(DoubleBarrierUnitTest, ANodeThatWasDeletedByLeavingIsNotDeletedAgain) {
    DoubleBarrier alone(*session, "/d", 1);
    enter(alone);
    const std::string ours = "/d/" + children("/d").front();
    ASSERT_NE(ours, "/d/ready");
    asked.clear();
    leave(alone);
    EXPECT_THAT(told, ElementsAre("yes", "yes"));
    EXPECT_THAT(asked, ElementsAre("children /d", "multi " + ours));
}

TEST_F(DoubleBarrierUnitTest, WhoWaitsForTheOthersWaitsOnInTheNextSession) {
    DoubleBarrier one(*session, "/d", 2), two(*session, "/d", 2);
    enter(one);
    const auto before = children("/d");
    next_session();
    settle();
    ASSERT_EQ(children("/d").size(), 1u);
    EXPECT_NE(children("/d"), before) << "a node of the new session";
    EXPECT_THAT(told, IsEmpty());
    enter(two);
    settle();
    EXPECT_THAT(told, ElementsAre("yes", "yes"));
}

TEST_F(DoubleBarrierUnitTest, WhoseTimeIsUpWatchesNobodyAnyMore) {
    DoubleBarrier one(*session, "/d", 2), two(*session, "/d", 2);
    enter(one, in(1s));
    runtime->advance(2s);
    serve();
    ASSERT_THAT(told, ElementsAre("no"));
    EXPECT_EQ(leftovers(), "");
    enter(one);
    enter(two);
    one.leave_async(in(1s), {}, teller());
    serve();
    runtime->advance(2s);
    serve();
    EXPECT_THAT(told, ElementsAre("no", "yes", "yes", "no"));
    EXPECT_THAT(leftovers(), Not(HasSubstr("a watch")));  // the other one is inside
    leave(two);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(DoubleBarrierUnitTest, AnObjectThatIsDestroyedInsideLeavesAndOneOutsideAsksNothing) {
    {
        DoubleBarrier alone(*session, "/d", 1);
        enter(alone);
        EXPECT_EQ(children("/d").size(), 2u);
    }
    serve();
    EXPECT_THAT(children("/d"), ElementsAre("ready"));
    EXPECT_EQ(leftovers(), "");
    asked.clear();
    { const DoubleBarrier outside(*session, "/d", 1); }
    serve();
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(DoubleBarrierUnitTest, WhatTheServersRefuseIsAnErrorAndLeavesNothing) {
    DoubleBarrier strict(*session, "/none", 1, without_parents());
    enter(strict);
    EXPECT_EQ(told.back(), error(Errc::no_parent));
    EXPECT_FALSE(nodes.contains("/none"));
    DoubleBarrier hidden(*session, "/d", 1);
    refusals = {{"children /d", Rc::no_auth}};
    enter(hidden);
    EXPECT_EQ(told.back(), error(Errc::no_permission));
    refusals.clear();
    EXPECT_EQ(leftovers(), "");
    EXPECT_THAT(children("/d"), IsEmpty());
    enter(hidden);
    EXPECT_EQ(told.back(), "yes");
}

TEST_F(DoubleBarrierUnitTest, TheNodeOfAnEnterThatGaveUpIsDeletedBeforeTheNextOneIsMade) {
    DoubleBarrier one(*session, "/d", 2);
    enter(one, in(1s));
    const std::string former = "/d/" + children("/d").front();
    refusals = {{"remove " + former, Rc::no_auth}};
    runtime->advance(2s);
    serve();
    ASSERT_THAT(told, ElementsAre("no"));
    enter(one);
    EXPECT_EQ(told.back(), error(Errc::no_permission)) << "others would count both";
    EXPECT_THAT(children("/d"), ElementsAre(former.substr(3)));
    refusals.clear();
    enter(one, in(1s));
    EXPECT_EQ(told.size(), 2u) << "it waits";
    EXPECT_THAT(children("/d"), Not(Contains(former.substr(3))));
    EXPECT_EQ(children("/d").size(), 1u);
    runtime->advance(2s);
    serve();
    EXPECT_EQ(told.back(), "no");
    EXPECT_THAT(children("/d"), IsEmpty());
}

TEST_F(DoubleBarrierUnitTest, EachAnswerMayBeLost) {
    for (const bool after : {false, true}) {
        lost_after = after;
        for (int request = 1; request <= 12; ++request) {
            SCOPED_TRACE(request);
            nodes = {{"/", {}}};
            asked.clear();
            told.clear();
            lose_answer = request;
            DoubleBarrier one(*session, "/d", 2), two(*session, "/d", 2);
            enter(one);
            enter(two);
            settle();
            EXPECT_THAT(told, ElementsAre("yes", "yes"));
            leave(one);
            leave(two);
            settle();
            EXPECT_THAT(told, ElementsAre("yes", "yes", "yes", "yes"));
            EXPECT_THAT(children("/d"), IsEmpty());
            EXPECT_EQ(leftovers(), "");
        }
    }
}

}  // namespace
}  // namespace zkrecipes::testing
