// Guarded transactions: each step × everything that can go wrong at it, generated, and the cases that say why.
#include "core/value/commit_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "unit/core/operation/operation_world.hpp"

namespace zkrecipes::internal {
namespace {

using How = CommitEnd::How;
using Mark = CommitFsm::Mark;

enum class Event {
    none,
    lost_before,
    lost_after,
    cut_off_before,  // the same, and the hold is over before it is connected again
    cut_off_after,
    moved,  // the servers say that they did not execute it
    expired_before,
    expired_after,
    stopped,
    timed_out,
    closed,
    hold_lost,      // by our own clock; the node is still there
    node_deleted,   // by somebody else; our clock knows nothing
    mark_forbidden  // nobody may make a mark any more
};
constexpr Event kEvents[] = {Event::cut_off_before, Event::cut_off_after,  Event::lost_before,   Event::lost_after,
                             Event::moved,          Event::expired_before, Event::expired_after, Event::stopped,
                             Event::timed_out,      Event::closed,         Event::hold_lost,     Event::node_deleted,
                             Event::mark_forbidden};

/// A server with the node of one hold, and one connection that breaks when told to.
class CommitWorld : public CommitPort, public OperationWorld {
public:
    struct Plan {
        int at = -1;  // index of the request that it meets
        Event event = Event::none;
    };
    explicit CommitWorld(Mark mark, Patience patience = Patience::wait)
        : has_mark(mark == Mark::yes), fsm(*this, mark, patience) {
        attempts_allowed = 5;
    }

    // ---- running ----
    bool pump() {
        if (pending) {
            const int index = executed_requests++;
            const auto request = *std::exchange(pending, std::nullopt);
            for (const auto& plan : plans) {
                if (plan.at == index) return meet(request, plan.event), true;
            }
            reply(request, true, Rc::ok);
            return true;
        }
        if (!is_connected && !is_closed && stay_away-- <= 0) {
            is_connected = true;
            fsm.on_connected();
            return true;
        }
        if (timer) {
            timer = false;
            fsm.on_timer();
            return true;
        }
        return false;
    }
    void run() {
        fsm.start();
        for (int i = 0; i < 200 && pump(); ++i) {
        }
    }

    // ---- CommitPort ----
    bool all_held() const override { return held; }
    void send(Ticket ticket, What what) override {
        EXPECT_TRUE(is_connected);
        EXPECT_FALSE(pending);
        EXPECT_TRUE(what != What::all || held) << "sent without a hold";
        sent.push_back(what);
        pending = {ticket, what};
    }
    bool reserve_mark() override { return room; }
    void delete_mark() override { mark_there = false; }
    void delete_mark_if_any() override { mark_there = false; }
    void answer(CommitEnd how) override {
        ++answers;
        end = std::move(how);
    }

    struct Sent {
        Ticket ticket;
        What what;
    };
    const bool has_mark;
    bool room = true;
    bool held = true, node_there = true, mark_there = false, mark_allowed = true, mark_writable = true;
    int executed_requests = 0, mark_version = 0;
    std::vector<Plan> plans;
    std::optional<Sent> pending;
    std::vector<What> sent;
    int written = 0;
    std::optional<CommitEnd> end;
    CommitFsm fsm;

private:
    void meet(const Sent& request, Event event) {
        const bool before =
            event == Event::lost_before || event == Event::expired_before || event == Event::cut_off_before;
        switch (event) {
            case Event::cut_off_before:
            case Event::cut_off_after: held = false; [[fallthrough]];
            case Event::lost_before:
            case Event::lost_after: is_connected = false; return reply(request, !before, Rc::connection_loss);
            case Event::moved: return reply(request, false, Rc::session_moved);
            case Event::expired_before:
            case Event::expired_after:
                if (!before) execute(request.what);
                expire();
                reply(request, false, Rc::session_expired);
                return fsm.on_session_lost();
            case Event::stopped: fsm.stop(); break;
            case Event::timed_out: fsm.deadline(); break;
            case Event::closed:
                execute(request.what);
                is_closed = true;
                is_connected = mark_there = node_there = false;
                fsm.on_closed(Errc::closed, "closed");
                return reply(request, false, Rc::closed);
            case Event::hold_lost: held = false; break;
            case Event::node_deleted: node_there = false; break;
            case Event::mark_forbidden: mark_allowed = false; break;
            case Event::none: break;
        }
        reply(request, true, Rc::ok);
    }
    void expire() {
        ++session;
        held = node_there = mark_there = is_connected = false;
    }
    /// As ZooKeeper does it: all or nothing, and the first that fails is the answer.
    std::pair<Rc, std::size_t> execute(What what) {
        std::size_t index = 0;
        if (what == What::which_mark) {
            if (!mark_there) return {Rc::no_node, index};
            return {mark_version == 0 ? Rc::ok : Rc::bad_version, index};
        }
        if (has_mark) {
            if (!mark_allowed) return {Rc::no_auth, index};
            if (mark_there) return {Rc::node_exists, index};
            ++index;
        }
        if (what == What::mark_alone && !mark_writable) return {Rc::no_auth, index};
        if (what == What::all) {
            if (!node_there) return {Rc::no_node, index};
            ++written;
        }
        mark_there = has_mark;
        mark_version = what == What::mark_alone ? 1 : 0;
        return {Rc::ok, index};
    }
    void reply(const Sent& request, bool run, Rc rc) {
        const auto [result, index] = run ? execute(request.what) : std::pair{Rc::ok, std::size_t{0}};
        fsm.on_answer(request.ticket, rc == Rc::ok ? result : rc, rc == Rc::ok ? index : 0);
    }
};

std::string describe(const CommitWorld& world) {
    std::ostringstream text;
    text << (world.has_mark ? "with" : "without") << " a mark;";
    for (const auto& plan : world.plans) text << " " << static_cast<int>(plan.event) << " at " << plan.at << ";";
    text << " sent " << world.sent.size() << ", written " << world.written;
    if (world.end) text << ", end " << static_cast<int>(world.end->how) << " " << world.end->detail;
    return text.str();
}

void expect_honest(const CommitWorld& world) {
    ASSERT_EQ(world.answers, 1);
    EXPECT_EQ(world.finishes, 1);
    EXPECT_LE(world.written, 1) << "happened twice";
    EXPECT_FALSE(world.mark_there) << "a mark is left";
    EXPECT_FALSE(world.timer);
    switch (world.end->how) {
        case How::committed:
        case How::committed_before: EXPECT_EQ(world.written, 1); break;
        case How::timed_out:
        case How::stopped:
        case How::refused: EXPECT_EQ(world.written, 0); break;
        case How::failed:
            if (world.end->error != Errc::outcome_unknown) {
                EXPECT_EQ(world.written, 0);
            }
            break;
    }
    if (!world.has_mark) {
        // Without a mark nothing may be sent again of which an answer was lost.
        const bool unknown = world.end->how == How::failed && world.end->error == Errc::outcome_unknown;
        for (const auto& plan : world.plans) {
            const bool lost = plan.event == Event::lost_before || plan.event == Event::lost_after ||
                              plan.event == Event::cut_off_before || plan.event == Event::cut_off_after;
            if (lost && plan.at < world.executed_requests) {
                EXPECT_TRUE(unknown);
            }
        }
    }
}

TEST(CommitFaultTable, HappensAtMostOnceAndNeverSaysWhatIsNotSo) {
    for (const Mark mark : {Mark::no, Mark::yes}) {
        for (const Patience patience : {Patience::wait, Patience::try_once}) {
            for (const Event first : kEvents) {
                for (const Event second : kEvents) {
                    for (const Event third : kEvents) {
                        CommitWorld world(mark, patience);
                        world.plans = {{0, first}, {1, second}, {2, third}};
                        world.run();
                        SCOPED_TRACE(describe(world));
                        expect_honest(world);
                        if (HasFatalFailure() || HasNonfatalFailure()) return;
                    }
                }
            }
        }
    }
}

TEST(CommitFsmTest, WithoutFaultsItIsOneRequest) {
    for (const Mark mark : {Mark::no, Mark::yes}) {
        CommitWorld world(mark);
        world.run();
        EXPECT_EQ(world.end->how, How::committed);
        EXPECT_EQ(world.sent.size(), 1u);
    }
}

TEST(CommitFsmTest, AHoldThatIsOverByOurOwnClockSendsNothing) {
    CommitWorld world(Mark::no);
    world.held = false;
    world.run();
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(world.end->error, Errc::lock_lost);
}

TEST(CommitFsmTest, AHoldWhoseNodeIsGoneIsRefusedByTheServers) {
    CommitWorld world(Mark::no);
    world.node_there = false;
    world.run();
    EXPECT_EQ(world.end->how, How::refused);
    EXPECT_EQ(world.end->rc, Rc::no_node);
}

TEST(CommitFsmTest, ALostAnswerIsUnknownAndNotSentAgain) {
    for (const Event event : {Event::lost_before, Event::lost_after}) {
        CommitWorld world(Mark::no);
        world.plans = {{0, event}};
        world.run();
        EXPECT_EQ(world.sent.size(), 1u);
        EXPECT_EQ(world.end->error, Errc::outcome_unknown);
    }
}

TEST(CommitFsmTest, WhatWasSurelyNotExecutedIsSentAgain) {
    CommitWorld world(Mark::no);
    world.plans = {{0, Event::moved}};
    world.run();
    EXPECT_EQ(world.sent.size(), 2u);
    EXPECT_EQ(world.end->how, How::committed);
}

TEST(CommitFsmTest, AMarkTellsWhetherItHasHappened) {
    CommitWorld before(Mark::yes), after(Mark::yes);
    before.plans = {{0, Event::lost_before}};
    before.run();
    EXPECT_EQ(before.end->how, How::committed);
    after.plans = {{0, Event::lost_after}};
    after.run();
    EXPECT_EQ(after.end->how, How::committed_before);
    EXPECT_EQ(before.written, 1);
    EXPECT_EQ(after.written, 1);
}

TEST(CommitFsmTest, WhereTheHoldIsOverMeanwhileTheMarkAloneIsSent) {
    for (const Event event : {Event::lost_before, Event::lost_after}) {
        CommitWorld world(Mark::yes);
        world.plans = {{0, event}};
        world.fsm.start();
        ASSERT_TRUE(world.pump());
        world.held = false;
        for (int i = 0; i < 20 && world.pump(); ++i) {
        }
        EXPECT_EQ(world.sent.back(), CommitPort::What::mark_alone);
        if (event == Event::lost_before) {
            EXPECT_EQ(world.end->error, Errc::lock_lost);
            EXPECT_EQ(world.written, 0);
        } else {
            EXPECT_EQ(world.end->how, How::committed_before);
        }
        EXPECT_FALSE(world.mark_there);
    }
}

// Found by the simulation: workload values, seed 200415.
TEST(CommitFsmTest, AMarkThatWasSentAloneIsNotTakenForThatOfAnAttempt) {
    for (const Event first : {Event::cut_off_before, Event::cut_off_after}) {
        CommitWorld world(Mark::yes);
        world.plans = {{0, first}, {1, Event::lost_after}, {3, Event::lost_before}};
        world.run();
        if (first == Event::cut_off_before) {
            EXPECT_EQ(world.end->error, Errc::lock_lost);
            EXPECT_EQ(world.written, 0);
        } else {
            EXPECT_EQ(world.end->how, How::committed_before);
            EXPECT_EQ(world.written, 1);
        }
        EXPECT_EQ(world.sent.back(), CommitPort::What::which_mark);
        EXPECT_FALSE(world.mark_there);
    }
}

// What was asked of the mark may fail in every way, too.
TEST(CommitFaultTable, AskingWhichMarkItIsNeverSaysWhatIsNotSo) {
    for (const Event first : {Event::cut_off_before, Event::cut_off_after}) {
        for (const Event second : {Event::lost_before, Event::lost_after}) {
            for (const Event third : kEvents) {
                for (const Event fourth : kEvents) {
                    for (const Event fifth : kEvents) {
                        CommitWorld world(Mark::yes);
                        world.plans = {{0, first}, {1, second}, {2, third}, {3, fourth}, {4, fifth}};
                        world.run();
                        SCOPED_TRACE(describe(world));
                        expect_honest(world);
                        if (HasFatalFailure() || HasNonfatalFailure()) return;
                    }
                }
            }
        }
    }
}

TEST(CommitFsmTest, WhereTheMarkMayNotBeWrittenItWasNotThereAllTheSame) {
    CommitWorld world(Mark::yes);
    world.mark_writable = false;
    world.plans = {{0, Event::cut_off_before}};
    world.run();
    EXPECT_EQ(world.end->error, Errc::lock_lost);
    EXPECT_EQ(world.written, 0);
    EXPECT_FALSE(world.mark_there);
}

TEST(CommitFsmTest, TheEndOfTheSessionTakesTheMarkWithIt) {
    CommitWorld world(Mark::yes);
    world.plans = {{0, Event::lost_after}};
    world.stay_away = 1000;
    world.fsm.start();
    ASSERT_TRUE(world.pump());
    ++world.session;
    world.mark_there = world.held = false;
    world.fsm.on_session_lost();
    EXPECT_EQ(world.end->error, Errc::outcome_unknown);
    EXPECT_EQ(world.finishes, 1);
}

TEST(CommitFsmTest, NotConnectedItWaitsAndNothingHasHappenedWhenTheDeadlinePasses) {
    CommitWorld world(Mark::yes);
    world.is_connected = false;
    world.stay_away = 1000;
    world.fsm.start();
    EXPECT_EQ(world.answers, 0);
    world.fsm.deadline();
    EXPECT_EQ(world.end->how, How::timed_out);
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(world.finishes, 1);

    CommitWorld once(Mark::no, Patience::try_once);
    once.is_connected = false;
    once.fsm.start();
    EXPECT_EQ(once.end->how, How::timed_out);
}

TEST(CommitFsmTest, TheEndOfTheSessionDuringAPauseEndsItOnlyWithTheHold) {
    for (const bool held : {true, false}) {
        CommitWorld world(Mark::no);
        world.is_connected = false;
        world.fsm.start();
        world.held = held;
        world.fsm.on_session_lost();
        EXPECT_EQ(world.answers, held ? 0 : 1);
        if (!held) {
            EXPECT_EQ(world.end->error, Errc::lock_lost);
        }
    }
}

TEST(CommitFsmTest, BeforeTheFirstConnectNoPolicyGivesUp) {
    CommitWorld world(Mark::no);
    world.session = 0;
    world.is_connected = false;
    world.attempts_allowed = 0;
    world.stay_away = 5;
    world.fsm.start();
    EXPECT_EQ(world.answers, 0);
    world.session = 1;
    for (int i = 0; i < 20 && world.pump(); ++i) {
    }
    world.is_connected = true;
    world.fsm.on_connected();
    for (int i = 0; i < 20 && world.pump(); ++i) {
    }
    EXPECT_EQ(world.end->how, How::committed);
}

TEST(CommitFsmTest, WhenThePolicyGivesUpNothingHasHappenedOrItIsUnknown) {
    CommitWorld nothing(Mark::yes), something(Mark::yes);
    nothing.is_connected = something.is_connected = false;
    nothing.stay_away = 1000;
    nothing.run();
    EXPECT_EQ(nothing.end->error, Errc::connection_lost);
    something.is_connected = true;
    something.plans = {{0, Event::lost_after}};
    something.stay_away = 1000;
    something.run();
    EXPECT_EQ(something.end->error, Errc::outcome_unknown);
    EXPECT_FALSE(something.mark_there);
}

TEST(CommitFsmTest, ADeadlineAfterTheSendIsUnknownAndTheMarkIsLookedAfter) {
    CommitWorld world(Mark::yes);
    world.plans = {{0, Event::timed_out}};
    world.fsm.start();
    world.fsm.deadline();
    EXPECT_EQ(world.end->error, Errc::outcome_unknown);
    EXPECT_EQ(world.finishes, 0);
    for (int i = 0; i < 20 && world.pump(); ++i) {
    }
    EXPECT_EQ(world.finishes, 1);
    EXPECT_EQ(world.answers, 1);
    EXPECT_FALSE(world.mark_there);
}

TEST(CommitFsmTest, NoRoomForAMarkIsAnErrorAndSendsNothing) {
    CommitWorld world(Mark::yes);
    world.room = false;
    world.run();
    EXPECT_EQ(world.end->error, Errc::budget_exceeded);
    EXPECT_TRUE(world.sent.empty());
}

}  // namespace
}  // namespace zkrecipes::internal
