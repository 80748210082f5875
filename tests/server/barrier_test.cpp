// Barriers and double barriers on a real server: who waits for whom, what is left behind, whatever breaks.
#include <zkrecipes/barrier.hpp>

#include "server/nodes_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BarrierTest : public NodesServerTest {
protected:
    void SetUp() override {
        NodesServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
    std::string barrier_path() const { return path("barrier"); }
    bool closed() { return observer().exists(barrier_path()).has_value(); }
    std::vector<std::string> inside() { return nodes_of(barrier_path()); }
    bool await_inside(std::size_t count) {
        return await([&] { return inside().size() == count; });
    }
    bool await_watches(std::int64_t count) {
        return await([&] { return server().watch_count() == count; });
    }
};

/// The result of an asynchronous call.
class Later {
public:
    std::function<void(BarrierResult)> writer() {
        return [this](const BarrierResult& result) {
            try {
                if (result.error) std::rethrow_exception(result.error);
                passed_ = result.value;
            } catch (const Error& error) {
                errc_ = error.errc();
            }
            done_ = true;
        };
    }
    bool done() const { return done_; }
    bool passed() const {
        EXPECT_TRUE(await([&] { return done(); }));
        return passed_;
    }
    Errc errc() const {
        EXPECT_TRUE(await([&] { return done(); }));
        return errc_;
    }

private:
    std::atomic<bool> done_{false};
    std::atomic<bool> passed_{false};
    std::atomic<Errc> errc_{};
};

// ---- Barrier ------------------------------------------------------------------------------------------------------

TEST_F(BarrierTest, WhoWaitsGoesOnWhenSomebodyOpensIt) {
    auto a = session(), b = session();
    Barrier ours(a, path("a/barrier")), theirs(b, path("a/barrier"));
    EXPECT_TRUE(ours.wait(kMaxWait));  // nobody has closed it
    ours.set(kMaxWait);
    theirs.set(kMaxWait);  // already
    EXPECT_FALSE(ours.wait(Deadline::passed()));
    EXPECT_FALSE(ours.wait(20ms));
    Later one, two;
    theirs.wait_async(Deadline::never(), {}, one.writer());
    ours.wait_async(Deadline::never(), {}, two.writer());
    ASSERT_TRUE(await_watches(2));
    EXPECT_FALSE(one.done());
    ours.remove(kMaxWait);
    EXPECT_TRUE(one.passed());
    EXPECT_TRUE(two.passed());
    theirs.remove(kMaxWait);  // already
    EXPECT_TRUE(await_watches(0)) << server().four_letter("wchp");
}

TEST_F(BarrierTest, OneThatIsClosedAgainAtOnceLetsThoseWhoWaitedGo) {
    auto waits = gated_session(60s), s = session();
    Barrier ours(waits, barrier_path()), theirs(s, barrier_path());
    theirs.set(kMaxWait);
    Later one, two;
    ours.wait_async(Deadline::never(), {}, one.writer());
    EXPECT_FALSE(ours.wait(Deadline::passed()));  // answered behind the read of the one that waits
    theirs.remove(kMaxWait);
    theirs.set(kMaxWait);
    EXPECT_TRUE(one.passed());
    ours.wait_async(Deadline::never(), {}, two.writer());
    EXPECT_FALSE(ours.wait(Deadline::passed()));  // answered behind the read of the one that waits
    gate().refuse();                              // and the same while nobody looks
    gate().reset_all();
    ASSERT_TRUE(await([&] { return waits.state() == SessionState::suspended; }));
    theirs.remove(kMaxWait);
    theirs.set(kMaxWait);
    gate().pass();
    EXPECT_TRUE(two.passed());
}

TEST_F(BarrierTest, AWaitEndsAtItsDeadlineByAStopAndWithTheSession) {
    auto s = session();
    Barrier barrier(s, barrier_path());
    barrier.set(kMaxWait);
    std::stop_source stop;
    Later stopped, stopped_before, timed_out, closed_with;
    barrier.wait_async(Deadline::never(), stop.get_token(), stopped.writer());
    barrier.wait_async(10ms, {}, timed_out.writer());
    EXPECT_FALSE(timed_out.passed());
    stop.request_stop();
    EXPECT_FALSE(stopped.passed());
    EXPECT_FALSE(barrier.wait(kMaxWait, stop.get_token()));
    barrier.wait_async(Deadline::never(), stop.get_token(), stopped_before.writer());
    EXPECT_FALSE(stopped_before.passed());
    EXPECT_TRUE(await_watches(0));
    barrier.wait_async(Deadline::never(), {}, closed_with.writer());
    s.close();
    EXPECT_EQ(closed_with.errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { barrier.wait(kMaxWait); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { barrier.wait_async(kMaxWait, {}, closed_with.writer()); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { barrier.wait_async(kMaxWait, {}, {}); }).errc(), Errc::bad_option);
    EXPECT_TRUE(closed());  // it is nobody's
}

TEST_F(BarrierTest, EveryAnswerMayBeLostBeforeOrAfterTheExecution) {  // H1
    for (const bool after : {false, true}) {
        const auto with_cut = [&](Opcode op, auto call) {
            auto s = gated_session(60s);  // one for each: a client that is cut again and again takes its time
            Barrier barrier(s, barrier_path());
            const auto match = Match::op(op).path_is(barrier_path());
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            call(barrier);
            EXPECT_TRUE(fault.reached());
        };
        with_cut(Opcode::create2, [](Barrier& barrier) { barrier.set(kMaxWait); });
        EXPECT_TRUE(closed());
        with_cut(Opcode::get_data, [](Barrier& barrier) {
            EXPECT_FALSE(barrier.wait(Deadline::passed()));
            EXPECT_FALSE(barrier.wait(100ms));
        });
        with_cut(Opcode::remove, [](Barrier& barrier) { barrier.remove(kMaxWait); });
        EXPECT_FALSE(closed());
        observer().create(barrier_path());
        with_cut(Opcode::get_data, [&](Barrier& barrier) {
            observer().remove(barrier_path());
            EXPECT_TRUE(barrier.wait(kMaxWait));
        });
    }
    auto s = gated_session(60s);
    Barrier barrier(s, barrier_path());
    const auto held = gate().hold_reply(Match::op(Opcode::create2).path_is(barrier_path()));
    EXPECT_EQ(error_of([&] { barrier.set(300ms); }).errc(), Errc::outcome_unknown);
    ASSERT_TRUE(held.wait_reached(kMaxWait));
    held.release();
    observer().create(path("barrier/child"));
    EXPECT_EQ(error_of([&] { barrier.remove(kMaxWait); }).errc(), Errc::not_empty);
    Barrier orphan(s, path("no/barrier"), {.create_parents = false});
    EXPECT_EQ(error_of([&] { orphan.set(kMaxWait); }).errc(), Errc::no_parent);
}

TEST_F(BarrierTest, AWaitIsOneReadAndOneWatch) {
    observer().make_path(barrier_path());
    auto s = gated_session(60s);
    Barrier barrier(s, barrier_path());
    gate().reset_trace();
    Later later;
    barrier.wait_async(Deadline::never(), {}, later.writer());
    ASSERT_TRUE(await_watches(1));
    observer().remove(barrier_path());
    EXPECT_TRUE(later.passed());
    EXPECT_EQ(counted("barrier"), "get_data 1");
}

// ---- DoubleBarrier ------------------------------------------------------------------------------------------------

/// Members that enter and leave on threads of the library.
class DoubleBarrierTest : public BarrierTest {
protected:
    std::unique_ptr<DoubleBarrier> member(Session& s, int members) {
        return std::make_unique<DoubleBarrier>(s, barrier_path(), members);
    }
};

TEST_F(DoubleBarrierTest, AllEnterTogetherAndLeaveTogetherAgainAndAgain) {
    auto s = session();
    std::vector<std::unique_ptr<DoubleBarrier>> members;
    for (int i = 0; i < 4; ++i) members.push_back(member(s, 4));
    for (int round = 0; round < 5; ++round) {
        std::vector<Later> entered(4), left(4);
        for (std::size_t i = 0; i < 4; ++i) {
            if (i == 3) {
                ASSERT_TRUE(await_inside(3));
                for (std::size_t j = 0; j < 3; ++j) EXPECT_FALSE(entered[j].done());
            }
            members[i]->enter_async(Deadline::never(), {}, entered[i].writer());
        }
        for (const auto& each : entered) ASSERT_TRUE(each.passed());
        EXPECT_EQ(inside().size(), 5u);  // and `ready`
        for (std::size_t i = 0; i < 4; ++i) {
            const std::size_t at = (i + static_cast<std::size_t>(round)) % 4;
            if (i == 3) {
                for (std::size_t j = 0; j < 4; ++j) EXPECT_FALSE(left[j].done());
            }
            members[at]->leave_async(Deadline::never(), {}, left[at].writer());
        }
        for (const auto& each : left) ASSERT_TRUE(each.passed());
        EXPECT_THAT(inside(), IsEmpty());
    }
    EXPECT_TRUE(await_watches(0)) << server().four_letter("wchp");
}

TEST_F(DoubleBarrierTest, WhoLeavesIsNotOutBeforeTheOthersHaveLeft) {
    auto s = session();
    const auto a = member(s, 3), b = member(s, 3), c = member(s, 3);
    Later entered_a, entered_b;
    a->enter_async(Deadline::never(), {}, entered_a.writer());
    b->enter_async(Deadline::never(), {}, entered_b.writer());
    ASSERT_TRUE(c->enter(kMaxWait));
    ASSERT_TRUE(entered_a.passed() && entered_b.passed());
    // One of these is not the first by name: it takes its node away, and waits all the same.
    Later left_a, left_b;
    a->leave_async(500ms, {}, left_a.writer());
    b->leave_async(500ms, {}, left_b.writer());
    EXPECT_FALSE(left_a.passed());
    EXPECT_FALSE(left_b.passed());
    EXPECT_TRUE(c->leave(kMaxWait));
    EXPECT_THAT(inside(), IsEmpty());
}

TEST_F(DoubleBarrierTest, WhoComesLaterIsLetInAndIsWaitedFor) {
    auto s = session();
    const auto a = member(s, 2), b = member(s, 2), late = member(s, 2);
    Later first;
    a->enter_async(Deadline::never(), {}, first.writer());
    EXPECT_TRUE(b->enter(kMaxWait));
    EXPECT_TRUE(first.passed());
    EXPECT_TRUE(late->enter(kMaxWait));
    Later left_a, left_b;
    a->leave_async(Deadline::never(), {}, left_a.writer());
    b->leave_async(Deadline::never(), {}, left_b.writer());
    EXPECT_TRUE(late->leave(kMaxWait));
    EXPECT_TRUE(left_a.passed());
    EXPECT_TRUE(left_b.passed());
    EXPECT_THAT(inside(), IsEmpty());
}

TEST_F(DoubleBarrierTest, WhoGivesUpLeavesNothingAndMayComeAgain) {  // H6, H51
    auto s = gated_session(60s);
    observer().make_path(barrier_path());
    const auto a = member(s, 2), b = member(s, 2);
    EXPECT_FALSE(a->enter(50ms));
    EXPECT_TRUE(await_inside(0));
    EXPECT_FALSE(a->enter(Deadline::passed()));
    std::stop_source stop;
    Later stopped;
    const auto held = gate().hold_reply(Match::op(Opcode::create2).path(barrier_path()));
    a->enter_async(Deadline::never(), stop.get_token(), stopped.writer());
    ASSERT_TRUE(held.wait_reached());
    stop.request_stop();
    EXPECT_FALSE(stopped.passed());
    held.drop();
    EXPECT_TRUE(await_inside(0));
    EXPECT_FALSE(a->enter(kMaxWait, stop.get_token()));
    EXPECT_EQ(error_of([&] { a->leave(kMaxWait); }).errc(), Errc::bad_option);
    Later entered;
    a->enter_async(Deadline::never(), {}, entered.writer());
    EXPECT_EQ(error_of([&] { a->enter(kMaxWait); }).errc(), Errc::bad_option);
    EXPECT_TRUE(b->enter(kMaxWait));
    EXPECT_TRUE(entered.passed());
    EXPECT_FALSE(a->leave(50ms));  // b stays
    EXPECT_TRUE(await_inside(2));  // b and `ready`
    EXPECT_TRUE(b->leave(kMaxWait));
    EXPECT_TRUE(await_inside(0));
    EXPECT_TRUE(await_watches(0)) << server().four_letter("wchp");
}

TEST_F(DoubleBarrierTest, WhoComesAgainCountsOnce) {
    auto s = gated_session(60s);
    observer().make_path(barrier_path());
    const auto a = member(s, 2);
    const auto held = gate().hold_reply(Match::op(Opcode::create2).path(barrier_path()));
    std::stop_source stop;
    Later first, again;
    a->enter_async(Deadline::never(), stop.get_token(), first.writer());
    ASSERT_TRUE(held.wait_reached());
    stop.request_stop();
    EXPECT_FALSE(first.passed());  // its node is there, and it cannot know that yet
    a->enter_async(Deadline::passed(), {}, again.writer());
    // Its former node is deleted a second time before the new one is created.
    EXPECT_TRUE(await([&] { return gate().counts()[Opcode::remove] == 2 || gate().counts()[Opcode::create2] == 2; }));
    held.release();
    ASSERT_FALSE(again.passed());
    EXPECT_TRUE(await_inside(0));
}

TEST_F(DoubleBarrierTest, EveryAnswerMayBeLostBeforeOrAfterTheExecution) {  // H1
    observer().make_path(barrier_path());
    struct Row {
        Opcode op;
        bool entering;
    };
    for (const auto [op, entering] :
         {Row{Opcode::create2, true}, Row{Opcode::get_children2, true}, Row{Opcode::get_data, true},
          Row{Opcode::exists, true}, Row{Opcode::set_data, true}, Row{Opcode::remove, true},
          Row{Opcode::get_children2, false}, Row{Opcode::remove, false}, Row{Opcode::multi, false}}) {
        for (int nth = 1; nth <= 2; ++nth) {
            for (const bool after : {false, true}) {
                SCOPED_TRACE(to_string(op) + (after ? " after " : " before ") + std::to_string(nth));
                auto s = gated_session(60s), other = session();
                const auto a = member(s, 2), b = member(other, 2);
                const auto match = Match::op(op).path(barrier_path()).nth(nth);
                const auto cut = [&] { return after ? gate().cut_after(match) : gate().cut_before(match); };
                Later entered, left;
                std::optional<testenv::Fault> fault;
                if (entering) fault = cut();
                const bool old_one = entering && (op == Opcode::set_data || op == Opcode::remove);
                if (old_one) observer().create(barrier_path() + "/ready");
                a->enter_async(Deadline::never(), {}, entered.writer());
                ASSERT_TRUE(b->enter(kMaxWait));
                ASSERT_TRUE(entered.passed());
                if (!entering) fault = cut();
                a->leave_async(Deadline::never(), {}, left.writer());
                ASSERT_TRUE(b->leave(kMaxWait));
                ASSERT_TRUE(left.passed());
                EXPECT_TRUE(await_inside(0));
                fault->cancel();  // not every run sends two of them
            }
        }
    }
}

TEST_F(DoubleBarrierTest, ASessionThatEndsOutsideIsReplacedAndOneThatEndsInsideIsAnError) {
    auto s = gated_session(), other = session();
    const auto a = member(s, 2), b = member(other, 2);
    Later entered;
    a->enter_async(Deadline::never(), {}, entered.writer());
    ASSERT_TRUE(await_inside(1));
    const auto before = inside();
    gate().expire(s.info().session_id);
    ASSERT_TRUE(await([&] { return inside().size() == 1 && inside() != before; }));
    ASSERT_TRUE(b->enter(kMaxWait));
    ASSERT_TRUE(entered.passed());
    const auto former = s.info().session_id;
    gate().expire(former);
    ASSERT_TRUE(await([&] { return s.info().session_id != former; }));
    EXPECT_EQ(error_of([&] { a->leave(kMaxWait); }).errc(), Errc::session_lost);
    EXPECT_TRUE(b->leave(kMaxWait));  // not waiting for it
    EXPECT_THAT(inside(), IsEmpty());
    Later again;
    a->enter_async(Deadline::never(), {}, again.writer());
    EXPECT_TRUE(b->enter(kMaxWait));
    EXPECT_TRUE(again.passed());
    for (const auto& name : inside()) {
        if (name != "ready") observer().remove(barrier_path() + "/" + name);  // an operator
    }
    EXPECT_EQ(error_of([&] { a->leave(kMaxWait); }).errc(), Errc::lock_lost);
    EXPECT_EQ(error_of([&] { b->leave(kMaxWait); }).errc(), Errc::lock_lost);
    EXPECT_THAT(inside(), IsEmpty());
}

TEST_F(DoubleBarrierTest, AMemberThatSomebodyDeletesWhileItWaitsComesBack) {
    auto s = gated_session(60s), other = session();
    const auto a = member(s, 2), b = member(other, 2);
    Later entered;
    a->enter_async(Deadline::never(), {}, entered.writer());
    ASSERT_TRUE(await_watches(2));                    // `ready` and itself
    gate().blackhole(testenv::Direction::to_client);  // it hears of it when all is gone, or it would be faster
    observer().remove_tree(barrier_path());
    gate().pass();
    ASSERT_TRUE(await_inside(1));
    EXPECT_TRUE(b->enter(kMaxWait));
    EXPECT_TRUE(entered.passed());
}

TEST_F(DoubleBarrierTest, WhatMembersOfEndedSessionsHaveLeftLetsNobodyIn) {
    observer().make_path(barrier_path() + "/ready");
    auto s = session();
    const auto a = member(s, 2), b = member(s, 2);
    const auto await_alone = [&] {
        return await([&] {
            const auto names = inside();
            return names.size() == 1 && names.front() != "ready";
        });
    };
    std::stop_source stop;
    Later stopped, entered;
    a->enter_async(Deadline::never(), stop.get_token(), stopped.writer());
    ASSERT_TRUE(await_alone());
    stop.request_stop();
    EXPECT_FALSE(stopped.passed());
    EXPECT_TRUE(await_inside(0));
    observer().create(barrier_path() + "/ready");
    a->enter_async(Deadline::never(), {}, entered.writer());
    ASSERT_TRUE(await_alone());
    EXPECT_FALSE(entered.done());
    EXPECT_TRUE(b->enter(kMaxWait));
    EXPECT_TRUE(entered.passed());
}

TEST_F(DoubleBarrierTest, WhoHasGoneSinceTheListIsNotCounted) {
    observer().make_path(barrier_path());
    auto s = gated_session(60s), other = session();
    const auto a = member(s, 2), b = member(other, 2);
    std::stop_source stop_a, stop_b;
    Later entered_a, entered_b;
    b->enter_async(Deadline::never(), stop_b.get_token(), entered_b.writer());
    ASSERT_TRUE(await_watches(2)) << "it has listed, and waits: it will not see that both are there";
    const auto held = gate().hold_reply(Match::op(Opcode::get_children2).path(barrier_path()));
    a->enter_async(Deadline::never(), stop_a.get_token(), entered_a.writer());
    ASSERT_TRUE(held.wait_reached());
    stop_b.request_stop();
    EXPECT_FALSE(entered_b.passed());
    ASSERT_TRUE(await_inside(1));
    held.release();
    ASSERT_TRUE(await_watches(2)) << "it has looked again, and waits";
    EXPECT_FALSE(entered_a.done());
    stop_a.request_stop();
    EXPECT_FALSE(entered_a.passed());
    EXPECT_TRUE(await_inside(0));
}

TEST_F(DoubleBarrierTest, WhoIsCountedAndSlowToLookIsInAlsoWhenTheOthersAreLeaving) {
    observer().make_path(barrier_path());
    auto s = gated_session(60s), other = session();
    for (const auto op : {Opcode::get_data, Opcode::exists, Opcode::create2, Opcode::get_children2}) {
        for (int round = 0; round < 8; ++round) {  // who is the first by name is chance
            // Of a former round: b takes it away while a has seen it and has not done anything about it yet.
            if (round % 2 == 1) observer().create(barrier_path() + "/ready");
            const auto a = member(s, 2), b = member(other, 2);
            const auto held = gate().hold_reply(Match::op(op).path(barrier_path()));
            Later entered;
            a->enter_async(Deadline::never(), {}, entered.writer());
            ASSERT_TRUE(held.wait_reached());
            // Its create was sent behind its first read, but may be executed later than that: b would wait for a to see
            // that both are there, which a does only when it is released.
            ASSERT_TRUE(await_inside(round % 2 == 1 ? 2 : 1));
            ASSERT_TRUE(b->enter(kMaxWait));
            EXPECT_FALSE(b->leave(20ms));
            ASSERT_TRUE(await_inside(2));  // b has gone
            held.release();
            ASSERT_TRUE(entered.passed());
            ASSERT_TRUE(a->leave(kMaxWait));
            ASSERT_TRUE(await_inside(0));
        }
    }
}

TEST_F(DoubleBarrierTest, TheLastOneWhoseNodeSomebodyDeletesWhileItLeavesTakesReadyAlong) {
    observer().make_path(barrier_path());
    auto s = gated_session(60s);
    const auto a = member(s, 1);
    ASSERT_TRUE(a->enter(kMaxWait));
    const auto held = gate().hold_reply(Match::op(Opcode::get_children2).path(barrier_path()));
    Later left;
    a->leave_async(Deadline::never(), {}, left.writer());
    ASSERT_TRUE(held.wait_reached());
    for (const auto& name : inside()) {
        if (name != "ready") observer().remove(barrier_path() + "/" + name);  // an operator
    }
    held.release();
    EXPECT_TRUE(left.passed());
    EXPECT_THAT(inside(), IsEmpty());
}

TEST_F(DoubleBarrierTest, AnObjectThatIsDestroyedInsideLeaves) {
    auto s = session(), other = session();
    auto a = member(s, 2);
    const auto b = member(other, 2);
    Later entered, left;
    a->enter_async(Deadline::never(), {}, entered.writer());
    ASSERT_TRUE(b->enter(kMaxWait));
    ASSERT_TRUE(entered.passed());
    b->leave_async(Deadline::never(), {}, left.writer());
    EXPECT_FALSE(left.done());
    a.reset();
    EXPECT_TRUE(left.passed());
    EXPECT_TRUE(await_inside(0));
    EXPECT_EQ(error_of([&] { DoubleBarrier(s, barrier_path(), 0); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { DoubleBarrier(s, "/", 1); }).errc(), Errc::bad_path);
}

}  // namespace
}  // namespace zkrecipes::test
