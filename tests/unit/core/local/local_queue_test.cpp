// The waiters of one session for one lock: how many nodes they have, and how a node goes from one to the next.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include <gmock/gmock.h>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LocalQueueTest : public ServedTest {
protected:
    LocalQueueTest() {
        connect();
        put("/l");
    }
    ~LocalQueueTest() override {
        runtime->while_running([this] {
            grants.clear();
            mutex.reset();
        });
        serve();
    }
    void make_mutex(LockOptions of_lock = {}) { mutex.emplace(*session, "/l", std::move(of_lock)); }
    static LockOptions handing_over(std::uint32_t times) {
        LockOptions out;
        out.local_handovers = times;
        out.local_turn = 60s;
        return out;
    }
    static LockOptions keeping(std::chrono::milliseconds time) {
        LockOptions out;
        out.keep_for = time;
        return out;
    }
    /// Each that is granted goes to the end of `grants`.
    void ask(int times, Deadline deadline = Deadline::never()) {
        for (int i = 0; i < times; ++i) {
            mutex->acquire_async(deadline, {}, [this](AcquireResult result) {
                answers.push_back(result.error ? "error" : result.value ? "granted" : "not granted");
                if (result.value) grants.push_back(std::move(result.value));
            });
        }
        serve();
    }
    void release_first() {
        grants.erase(grants.begin());
        serve();
    }
    std::size_t nodes_of_lock() const { return children("/l").size(); }
    std::vector<std::string> asked_now() {
        serve();
        return std::exchange(asked, {});
    }

    std::optional<ExclusiveMutex> mutex;
    std::vector<Grant> grants;
    std::vector<std::string> answers;
};

TEST_F(LocalQueueTest, ACrowdHasTwoNodesAndEveryHoldOneOfItsOwn) {
    make_mutex();
    std::size_t most = 0;
    before_answer = [&](const std::string&) { most = std::max(most, nodes_of_lock()); };
    ask(20);
    FencingToken last = 0;
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(grants.size(), 1u) << "after " << i;
        EXPECT_GT(grants.front().token(), last);
        last = grants.front().token();
        release_first();
    }
    EXPECT_LE(most, 2u);
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, AWaiterThatLeavesAsksNothing) {
    make_mutex();
    ask(2);
    ask(100, in(1s));
    asked.clear();
    runtime->advance(1500ms);
    serve();
    EXPECT_EQ(answers.size(), 101u);
    EXPECT_THAT(asked, Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(asked, Not(Contains(HasSubstr("remove"))));
    release_first();
    EXPECT_EQ(grants.size(), 1u) << "the one that waits on";
}

TEST_F(LocalQueueTest, ALostHoldThatNobodyGivesBackIsNotInTheWay) {
    make_mutex();
    ask(3);
    erase(grants.front().node());
    serve();
    EXPECT_FALSE(grants.front().held());
    ASSERT_EQ(grants.size(), 2u);
    grants.pop_back();
    serve();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_TRUE(grants.back().held());
}

TEST_F(LocalQueueTest, ATryIsBusyWithoutARequestWhileSomebodyHereHoldsOrWaits) {
    make_mutex();
    ask(1);
    ExclusiveMutex other(*session, "/l");
    asked.clear();
    std::vector<std::string> tries;
    other.acquire_async(Deadline::passed(), {},
                        [&](AcquireResult result) { tries.emplace_back(result.value ? "granted" : "busy"); });
    EXPECT_THAT(asked_now(), IsEmpty());
    EXPECT_THAT(tries, ElementsAre("busy"));
}

TEST_F(LocalQueueTest, ATryGetsAFreeLock) {
    make_mutex();
    ask(1, Deadline::passed());
    ASSERT_EQ(grants.size(), 1u);
    ask(1);
    release_first();
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, AGrantEndsTheHoldBeforeItWhoseOwnerWasNotTold) {
    make_mutex();
    ask(2);
    nodes.erase(grants.front().node());  // an operator deletes it, and no event has come yet
    ++zxid;
    client().fire(WatchEventType::deleted, "/l/" + children("/l").front());  // harmless
    serve();
    std::string predecessor = grants.front().node();
    watched.erase("node " + predecessor);
    client().fire(WatchEventType::deleted, predecessor);
    serve();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_TRUE(grants.back().held());
    EXPECT_FALSE(grants.front().held());
    EXPECT_TRUE(grants.front().lost().stop_requested());
}

// ---- hand-over in the process ---------------------------------------------------------------------------------------

TEST_F(LocalQueueTest, AHandOverInTheProcessAsksNothingAndTheNextTurnHasANodeOfItsOwn) {
    make_mutex(handing_over(3));
    ask(4);
    const FencingToken token = grants.front().token();
    for (int i = 0; i < 2; ++i) {
        asked.clear();
        release_first();
        ASSERT_EQ(grants.size(), 1u);
        EXPECT_THAT(asked, IsEmpty());
        EXPECT_TRUE(grants.front().held());
        EXPECT_EQ(grants.front().token(), token);
    }
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_GT(grants.front().token(), token);
    release_first();
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, AHundredThousandHandOversLeaveNothing) {
    make_mutex(keeping(std::chrono::hours(1000)));
    ask(1);
    for (int i = 0; i < 10; ++i) {  // it is watched now, and the watch refers to its first hold
        runtime->advance(100ms);
        serve();
    }
    release_first();
    asked.clear();
    int held = 0;
    for (int i = 0; i < 150'000; ++i) {
        mutex->acquire_async(Deadline::never(), {}, [&](AcquireResult result) { held += result.value.held(); });
        runtime->run();
    }
    EXPECT_EQ(held, 150'000);
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(LocalQueueTest, TheFormerHolderHasNothingAnyMore) {
    make_mutex(handing_over(3));
    ask(2);
    std::optional<Grant> first(std::move(grants.front()));
    grants.clear();
    const std::stop_token lost = first->lost();
    first.reset();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    erase(grants.front().node());
    serve();
    EXPECT_FALSE(lost.stop_requested()) << "it gave the lock back before";
}

TEST_F(LocalQueueTest, ACheckThatWasSentBeforeEndsWhoeverHoldsTheNodeNow) {
    make_mutex(handing_over(3));
    ask(2);
    runtime->advance(1100ms);  // a heartbeat is on its way
    const Request check = client().take("multi");
    ASSERT_TRUE(check.answer);
    grants.erase(grants.begin());
    runtime->run();
    ASSERT_EQ(grants.size(), 1u);
    const Grant& next = grants.front();
    EXPECT_TRUE(next.held());
    nodes.erase(next.node());  // no event comes
    check.answer(refusal_at(0, 1));
    serve();
    EXPECT_FALSE(next.held());
    EXPECT_TRUE(next.lost().stop_requested());
}

TEST_F(LocalQueueTest, ANodeIsNotHandedOverOnAnOldLease) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    // T is 6 s. The process stands still; then its node is checked, but the leader may not have heard of the session
    // since before, so the lease of this check is short.
    runtime->freeze_for(3850ms);
    runtime->run();
    serve();
    runtime->advance(150ms);
    ASSERT_TRUE(grants.front().held());
    ASSERT_LT(grants.front().remaining_lease(), 2s);
    grants.clear();
    serve();
    EXPECT_FALSE(nodes.contains(node));
    for (int i = 0; i < 20 && grants.empty(); ++i) {
        runtime->advance(100ms);
        serve();
    }
    ASSERT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, ANodeThatWasNotCheckedForLongIsNotHandedOver) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    runtime->advance(2500ms);
    inside([this] { core->lease_committed(now()); });  // another node of the session was checked
    grants.clear();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeWhoseTextWasGivenAwayIsNotHandedOver) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    const Sequencer text(grants.front());
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeThatGuardsAnOpenWriteIsNotHandedOver) {
    put("/data");
    make_mutex(handing_over(9));
    ask(3);
    const std::string node = grants.front().node();
    Transaction written(grants.front());
    written.set("/data", "1");
    EXPECT_EQ(served([&] { (void)written.commit(); }), "ok");
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node) << "that write has been answered";
    Transaction open(grants.front());
    open.set("/data", "2");
    open.commit_async(Deadline::never(), {}, [](CommitResult) {});
    runtime->run();
    grants.clear();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeWithAShareBelowItIsNotHandedOver) {
    ReadWriteLock lock(*session, "/l", handing_over(9));
    std::string node;
    std::optional<Grant> next;
    EXPECT_EQ(served([&] {
                  Grant writer = lock.acquire();
                  node = writer.node();
                  Grant share = lock.acquire_shared();
                  lock.acquire_async(Deadline::never(), {},
                                     [&](AcquireResult result) { next = std::move(result.value); });
                  writer.release();
                  share.release();
              }),
              "ok");
    serve();
    ASSERT_TRUE(next);
    EXPECT_NE(next->node(), node);
}

TEST_F(LocalQueueTest, AReleaseThatWaitsDeletesTheNode) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    Grant first = std::move(grants.front());
    grants.clear();
    EXPECT_EQ(served([&] { EXPECT_TRUE(first.release_and_wait(in(5s))); }), "ok");
    EXPECT_FALSE(nodes.contains(node));
    ASSERT_EQ(grants.size(), 1u);
}

// ---- a node that is kept --------------------------------------------------------------------------------------------

TEST_F(LocalQueueTest, AKeptLockIsAcquiredAgainWithoutARequest) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    EXPECT_TRUE(nodes.contains(node));
    asked.clear();
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node);
    EXPECT_THAT(asked, IsEmpty());
    release_first();
    EXPECT_THAT(asked, IsEmpty());
    for (int i = 0; i < 12; ++i) {
        runtime->advance(1s);
        serve();
    }
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, AKeptLockIsGivenBackWhenAnotherClientWantsIt) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    put("/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099", "", 0x999);
    serve();
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, AContenderThatCameDuringAHoldEndsTheKeeping) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    ask(1);
    ASSERT_EQ(grants.front().node(), node);
    put("/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099", "", 0x999);
    serve();
    EXPECT_TRUE(grants.front().held());
    release_first();
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalQueueTest, AKeptLockIsNotTakenBeforeItIsKnownThatNobodyElseIsThere) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    grants.clear();
    runtime->run();  // the watch is on its way
    mutex->acquire_async(Deadline::never(), {},
                         [this](AcquireResult result) { grants.push_back(std::move(result.value)); });
    runtime->run();
    EXPECT_TRUE(grants.empty());
    put("/l/_c_00000000-0000-4000-8000-000000000009-lock-0000000009", "", 0x999);
    serve();
    ASSERT_TRUE(grants.empty() || grants.front().node() != node);
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalQueueTest, WhoeverComesAtOnceGetsTheKeptLockWhenItIsKnownThatNobodyElseIsThere) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    grants.clear();
    asked.clear();
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node);
    EXPECT_THAT(asked, Not(Contains(HasSubstr("create"))));
}

TEST_F(LocalQueueTest, AKeptLockIsGivenBackWhenTheConnectionBreaks) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    break_connection();
    serve();
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalQueueTest, AKeptNodeThatAnOperatorDeletedIsNotTaken) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    erase(node);
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
    EXPECT_TRUE(nodes.contains(grants.front().node()));
}

TEST_F(LocalQueueTest, AKeptLockIsGivenBackWhenNobodyHereCanTakeItAnyMore) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    runtime->while_running([this] { mutex.reset(); });
    serve();
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, OptionsThatDoNotGoTogetherAreRefused) {
    LockOptions both = keeping(1s);
    both.delay_after_loss = 1s;
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", both); }), Errc::bad_option);
    LockOptions negative = keeping(-1s);
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", negative); }), Errc::bad_option);
}

}  // namespace
}  // namespace zkrecipes::testing
