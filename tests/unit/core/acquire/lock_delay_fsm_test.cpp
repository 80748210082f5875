// The delay after a holder that vanished: each step × everything that can go wrong at it, generated, and the cases that
// say why.
#include "core/acquire/lock_delay_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "unit/core/operation/operation_world.hpp"

namespace zkrecipes::internal {
namespace {

enum class Trouble {
    lost_before,
    lost_after,
    moved,
    hold_lost,
    node_deleted,
    session_lost,
    timed_out,
    stopped,
    closed,
    throttled  // not executed, and the connection stays; not among kTroubles
};
constexpr Trouble kTroubles[] = {Trouble::lost_before, Trouble::lost_after,   Trouble::moved,
                                 Trouble::hold_lost,   Trouble::node_deleted, Trouble::session_lost,
                                 Trouble::timed_out,   Trouble::stopped,      Trouble::closed};

constexpr std::chrono::milliseconds kDelay{15'000};
constexpr std::int64_t kOwnToken = 50;

/// The lock directory and our node in it.
class DelayWorld : public LockDelayPort, public OperationWorld {
public:
    struct Plan {
        int at = -1;  // index of the step that it meets: a request, or a timer
        Trouble trouble{};
    };
    explicit DelayWorld(const std::string& before, Patience patience = Patience::wait)
        : data(before), at_first(before), fsm(*this, kDelay, patience) {}

    void run() {
        fsm.start();
        for (int i = 0; i < 200 && !ended() && pump(); ++i) {
        }
    }
    bool ended() const { return answers != 0 || restarts != 0; }
    bool pump() {
        if (!pending && !timer && !is_connected) {
            connect();
            return true;
        }
        if (!pending && !timer) return false;
        const int step = steps++;
        std::optional<Trouble> trouble;
        for (const auto& plan : plans) {
            if (plan.at == step) trouble = plan.trouble;
        }
        if (pending) {
            const auto request = *std::exchange(pending, std::nullopt);
            meet(trouble, request);
            return true;
        }
        timer = false;
        const auto wait = last_delay;
        connect();
        if (trouble) disturb(*trouble);
        if (ended()) return true;
        if (wait == kDelay) delayed = true;
        fsm.on_timer();
        return true;
    }

    // ---- LockDelayPort
    void enter_queue() override {
        if (!std::exchange(entered, true)) return fsm.on_acquired(kOwnToken, others_in_queue);
        ++restarts;
    }
    bool in_queue() const override { return true; }
    bool queue_is_busy() const override { return others_in_queue; }
    void leave_queue() override {}
    void give_back(bool may_be_marked) override {
        ++given_back;
        marked = may_be_marked;
    }
    bool held() const override { return is_held; }
    void read(Ticket ticket) override { pending = Request{ticket, std::nullopt, 0}; }
    void mark(Ticket ticket, const std::string& text, std::int32_t wanted) override {
        EXPECT_TRUE(is_held);
        pending = Request{ticket, text, wanted};
    }
    void note_delay() override { ++notes; }
    void answer(Ended outcome, Errc errc, std::string) override {
        ++answers;
        how = outcome;
        error = errc;
    }

    struct Request {
        Ticket ticket;
        std::optional<std::string> text;  // of a mark
        std::int32_t version;
    };
    std::string data;
    const std::string at_first;
    std::int32_t version = 3;
    bool entered = false, is_held = true, node_there = true, directory_there = true;
    std::vector<Plan> plans;
    std::optional<Request> pending;
    int steps = 0, notes = 0, restarts = 0, given_back = 0;
    bool delayed = false, marked = false, marked_too_early = false, others_in_queue = false;
    std::optional<Ended> how;
    Errc error{};
    LockDelayFsm fsm;

private:
    void connect() {
        if (!std::exchange(is_connected, true)) fsm.on_connected();
    }
    void disturb(Trouble trouble) {
        switch (trouble) {
            case Trouble::hold_lost: is_held = false; break;
            case Trouble::node_deleted: node_there = false; break;
            case Trouble::session_lost:
                is_held = node_there = is_connected = false;
                fsm.on_session_lost();
                break;
            case Trouble::timed_out: fsm.deadline(); break;
            case Trouble::stopped: fsm.stop(); break;
            case Trouble::closed: fsm.on_closed(Errc::closed, "closed"); break;
            default: break;
        }
    }
    void meet(const std::optional<Trouble>& trouble, const Request& request) {
        const bool before =
            trouble == Trouble::lost_before || trouble == Trouble::moved || trouble == Trouble::throttled;
        if (trouble) disturb(*trouble);
        const auto [rc, index] = before ? std::pair{Rc::ok, std::size_t{0}} : execute(request);
        Rc told = rc;
        if (trouble == Trouble::lost_before || trouble == Trouble::lost_after) told = Rc::connection_loss;
        if (trouble == Trouble::throttled) told = Rc::throttled;
        if (trouble == Trouble::moved) told = Rc::session_moved;
        if (trouble == Trouble::session_lost) told = Rc::session_expired;
        if (told == Rc::connection_loss) is_connected = false;
        if (request.text) return fsm.on_marked(request.ticket, told, index);
        NodeStat stat;
        stat.version = version;
        fsm.on_read(request.ticket, told, data, stat);
    }
    std::pair<Rc, std::size_t> execute(const Request& request) {
        if (!request.text) return {directory_there ? Rc::ok : Rc::no_node, 0};
        if (!node_there) return {Rc::no_node, 0};
        if (!directory_there) return {Rc::no_node, 1};
        if (request.version != version) return {Rc::bad_version, 1};
        const auto last = read_holder_mark(data);
        marked_too_early = marked_too_early || (last->held && last->token != kOwnToken && !delayed);
        data = *request.text;
        ++version;
        return {Rc::ok, 0};
    }
};

const std::string kVanished = write_holder_mark({40, true});
const std::string kGivenBack = write_holder_mark({40, false});
const std::string kOwn = write_holder_mark({kOwnToken, true});

TEST(LockDelayFaultTable, NobodyUsesTheLockBeforeTheDelayIsOverAndBeforeItIsWrittenDown) {
    for (const std::string& before : {std::string(), kVanished, kGivenBack}) {
        for (const auto patience : {Patience::wait, Patience::try_once}) {
            for (const Trouble first : kTroubles) {
                for (const Trouble second : kTroubles) {
                    for (int at = 0; at < 6; ++at) {
                        DelayWorld world(before, patience);
                        world.plans = {{at, first}, {at + 1, second}};
                        world.run();
                        std::ostringstream text;
                        text << "before '" << before << "', " << static_cast<int>(first) << " at " << at << ", "
                             << static_cast<int>(second) << " behind it, patience " << static_cast<int>(patience);
                        SCOPED_TRACE(text.str());
                        ASSERT_EQ(world.answers + world.restarts, 1);
                        EXPECT_FALSE(world.timer);
                        EXPECT_FALSE(world.marked_too_early);
                        if (world.answers == 1 && world.how == Ended::granted) {
                            EXPECT_EQ(world.data, kOwn);
                            EXPECT_TRUE(world.is_held);
                            EXPECT_EQ(world.given_back, 0);
                            EXPECT_TRUE(world.delayed || before != kVanished);
                        }
                        // What may have been written is known to whoever has to give it back.
                        EXPECT_EQ(world.finishes, world.answers);
                        if (world.answers == 1 && world.how != Ended::granted) {
                            EXPECT_EQ(world.given_back, 1);
                        }
                        if (world.given_back == 1 && world.answers == 1 && world.data != world.at_first) {
                            EXPECT_TRUE(world.marked);
                        }
                        if (HasFailure()) return;
                    }
                }
            }
        }
    }
}

TEST(LockDelayFsmTest, AfterAReleaseOrNobodyThereIsNoDelay) {
    for (const std::string& before : {std::string(), kGivenBack}) {
        DelayWorld world(before);
        world.run();
        EXPECT_EQ(world.how, Ended::granted);
        EXPECT_EQ(world.steps, 2) << "read, mark";
        EXPECT_EQ(world.notes, 0);
        EXPECT_EQ(world.data, kOwn);
    }
}

TEST(LockDelayFsmTest, AfterAHolderThatVanishedTheWholeDelayIsWaitedForOnce) {
    DelayWorld world(kVanished);
    world.run();
    EXPECT_EQ(world.how, Ended::granted);
    EXPECT_TRUE(world.delayed);
    EXPECT_EQ(world.notes, 1);
    EXPECT_EQ(world.data, kOwn);
}

TEST(LockDelayFsmTest, ATryDoesNotWait) {
    DelayWorld world(kVanished, Patience::try_once);
    world.run();
    EXPECT_EQ(world.how, Ended::busy);
    EXPECT_FALSE(world.marked);
    EXPECT_EQ(world.data, kVanished);
}

TEST(LockDelayFsmTest, WhoGivesUpInTheDelayWritesNothingSoThatTheNextOneWaits) {
    for (const Trouble trouble : {Trouble::timed_out, Trouble::stopped, Trouble::closed}) {
        DelayWorld world(kVanished);
        world.plans = {{1, trouble}};
        world.run();
        EXPECT_NE(world.how, Ended::granted);
        EXPECT_FALSE(world.marked);
        EXPECT_EQ(world.data, kVanished);
    }
}

TEST(LockDelayFsmTest, AHoldThatIsLostInTheDelayBeginsAgainInTheQueue) {
    for (const Trouble trouble : {Trouble::hold_lost, Trouble::session_lost, Trouble::node_deleted}) {
        DelayWorld world(kVanished);
        world.plans = {{1, trouble}};
        world.run();
        EXPECT_EQ(world.restarts, 1);
        EXPECT_EQ(world.data, kVanished);
    }
}

TEST(LockDelayFsmTest, AfterALossInTheDelayTheNextHoldIsUsedWithoutAnythingOfTheFirst) {
    DelayWorld world(kVanished);
    world.plans = {{1, Trouble::hold_lost}};
    world.run();
    ASSERT_EQ(world.restarts, 1);
    EXPECT_EQ(world.given_back, 1);
    world.is_held = true;
    world.restarts = 0;
    world.fsm.on_acquired(kOwnToken, false);
    while (!world.ended() && world.pump()) {
    }
    EXPECT_EQ(world.how, Ended::granted);
    EXPECT_EQ(world.notes, 2) << "the delay is waited for again";
    EXPECT_EQ(world.data, kOwn);
}

TEST(LockDelayFsmTest, AHoldThatIsLostWhileNoServerCanBeAskedBeginsAgainInTheQueueAtOnce) {
    DelayWorld world(kGivenBack);
    world.is_connected = false;
    world.fsm.start();
    ASSERT_TRUE(world.timer);
    world.is_held = false;
    world.timer = false;
    world.fsm.on_timer();
    EXPECT_EQ(world.restarts, 1);
    EXPECT_FALSE(world.timer);
}

TEST(LockDelayFsmTest, ADeadlineThatPassesInTheQueueHoldsForAGrantThatComesLate) {
    DelayWorld world(kGivenBack);
    world.entered = true;  // the queue does not answer at once
    world.fsm.start();
    world.fsm.deadline();
    EXPECT_EQ(world.answers, 0) << "the queue has the same deadline";
    world.fsm.on_acquired(kOwnToken, false);
    EXPECT_EQ(world.how, Ended::unreachable);
    EXPECT_EQ(world.given_back, 1);
    EXPECT_EQ(world.finishes, 1);
}

TEST(LockDelayFsmTest, TheDelayIsBusyAndAMissingAnswerIsNot) {
    DelayWorld reading(kVanished);
    reading.fsm.start();
    EXPECT_FALSE(reading.fsm.is_busy());
    reading.fsm.deadline();
    EXPECT_EQ(reading.how, Ended::unreachable);
    DelayWorld delaying(kVanished);
    delaying.fsm.start();
    delaying.pump();
    delaying.is_connected = false;
    EXPECT_FALSE(delaying.fsm.is_busy());
    delaying.is_connected = true;
    delaying.fsm.deadline();
    EXPECT_EQ(delaying.how, Ended::busy);
    DelayWorld after_others(kVanished);
    after_others.others_in_queue = true;
    after_others.fsm.start();
    after_others.fsm.deadline();
    EXPECT_EQ(after_others.how, Ended::busy) << "its turn has just come";
    DelayWorld marking(kVanished);
    marking.fsm.start();
    marking.pump();
    marking.pump();
    ASSERT_TRUE(marking.pending && marking.pending->text);
    marking.fsm.deadline();
    EXPECT_EQ(marking.how, Ended::busy) << "the delay took the time";
}

TEST(LockDelayFsmTest, WhileItQueuesTheQueueTellsWhy) {
    DelayWorld world(kGivenBack);
    world.entered = true;
    world.fsm.start();
    EXPECT_FALSE(world.fsm.is_busy());
    world.others_in_queue = true;
    EXPECT_TRUE(world.fsm.is_busy());
    world.fsm.on_not_acquired(Ended::stopped);
    EXPECT_EQ(world.how, Ended::stopped);
}

TEST(LockDelayFsmTest, ATryThatLosesItsNodeIsBusyAndOneThatLosesItsLeaseIsUnreachable) {
    DelayWorld deleted(kGivenBack, Patience::try_once);
    deleted.directory_there = false;
    deleted.run();
    EXPECT_EQ(deleted.how, Ended::busy);
    DelayWorld refused(kGivenBack, Patience::try_once);
    refused.plans = {{1, Trouble::node_deleted}};
    refused.run();
    EXPECT_EQ(refused.how, Ended::busy);
    DelayWorld late(kGivenBack, Patience::try_once);
    late.plans = {{0, Trouble::hold_lost}};
    late.run();
    EXPECT_EQ(late.how, Ended::unreachable);
}

TEST(LockDelayFsmTest, AMarkWhoseAnswerWasLostIsFoundAgain) {
    DelayWorld world(kGivenBack);
    world.plans = {{1, Trouble::lost_after}};
    world.run();
    EXPECT_EQ(world.how, Ended::granted);
    EXPECT_EQ(world.version, 4) << "written once";
}

TEST(LockDelayFsmTest, AMarkThatIsFoundAgainIsOfNoUseWhenTheHoldIsLostMeanwhile) {
    DelayWorld world(kGivenBack);
    world.plans = {{1, Trouble::lost_after}, {3, Trouble::hold_lost}};  // the mark; and, after the pause, the read
    world.run();
    EXPECT_EQ(world.data, kOwn);
    EXPECT_EQ(world.answers, 0);
    EXPECT_EQ(world.restarts, 1);
    EXPECT_EQ(world.given_back, 1);
}

TEST(LockDelayFsmTest, ThePolicyCountsTheFailuresOfOneOutage) {
    DelayWorld world(kVanished);
    world.attempts_allowed = 1;
    world.plans = {{0, Trouble::lost_before}, {4, Trouble::lost_before}};  // the read, and, after the delay, the mark
    world.run();
    EXPECT_EQ(world.how, Ended::granted);
}

TEST(LockDelayFsmTest, ThePolicySeesAServerThatThrottlesEveryMarkAsOneTrouble) {
    DelayWorld world(kGivenBack);
    world.attempts_allowed = 3;
    for (int at = 1; at < 20; at += 3) world.plans.push_back({at, Trouble::throttled});  // a read, the mark, the pause
    world.run();
    EXPECT_EQ(world.how, Ended::failed);
    EXPECT_EQ(world.error, Errc::connection_lost);
}

TEST(LockDelayFsmTest, OtherDataAreAnError) {
    for (const char* const data : {"10.0.0.1", "{}", "{\"v\":1,\"token\":1}", "{\"v\":1,\"token\":0,\"held\":1}",
                                   "{\"v\":1,\"token\":1,\"held\":2}", "{\"v\":1,\"token\":1,\"held\":1}x"}) {
        DelayWorld world(data);
        world.run();
        EXPECT_EQ(world.how, Ended::failed) << data;
        EXPECT_EQ(world.error, Errc::bad_data);
        EXPECT_EQ(world.data, data);
    }
    EXPECT_EQ(read_holder_mark(kVanished), (HolderMark{40, true}));
}

}  // namespace
}  // namespace zkrecipes::internal
