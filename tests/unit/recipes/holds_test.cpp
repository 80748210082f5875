// What is held, shown, handed on and given back, before a small server.
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

class HoldsTest : public ServedTest {
protected:
    HoldsTest() { connect(); }
};

TEST_F(HoldsTest, AReadWriteLockShowsWhatItsCallerHolds) {
    ReadWriteLock lock(*session, "/l");
    EXPECT_EQ(served([&] {
                  EXPECT_EQ(lock.token(), 0);
                  EXPECT_FALSE(lock.lost().stop_possible());
                  lock.lock_shared();
                  EXPECT_TRUE(lock.shared_held_by_caller());
                  EXPECT_FALSE(lock.held_by_caller());
                  EXPECT_GT(lock.token(), 0);
                  EXPECT_TRUE(lock.lost().stop_possible());
                  lock.unlock_shared();
                  EXPECT_FALSE(lock.shared_held_by_caller());
                  lock.lock();
                  EXPECT_FALSE(lock.shared_held_by_caller());
                  EXPECT_TRUE(lock.held_by_caller());
                  EXPECT_GT(lock.token(), 0);
                  EXPECT_TRUE(lock.lost().stop_possible());
                  lock.unlock();
                  const Grant grant = lock.acquire();
                  EXPECT_FALSE(lock.held_by_caller()) << "grants do not count";
                  EXPECT_EQ(lock.token(), 0);
                  EXPECT_FALSE(lock.lost().stop_possible());
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(HoldsTest, AReleaseThatIsWaitedForSaysWhetherTheNodeIsGoneAndLeavesNoTimer) {
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_EQ(served([&] {
                  Grant grant = mutex.acquire();
                  const auto timers = runtime->timers();
                  EXPECT_TRUE(grant.release_and_wait(in(3600s)));
                  EXPECT_LE(runtime->timers(), timers);
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    EXPECT_EQ(code_unserved(2s, [&] { EXPECT_FALSE(grant.release_and_wait(in(1s))); }), Errc{});
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(HoldsTest, ARegistryForgetsTheKeysThatNobodyUses) {
    LockRegistry locks(*session, "/keys");
    EXPECT_EQ(code_of([&] { LockRegistry(*session, "keys"); }), Errc::bad_path);
    EXPECT_THAT(outcome_of([&] { LockRegistry(*session, "keys"); }), ::testing::HasSubstr("LockRegistry"));
    EXPECT_EQ(served([&] {
                  locks.get("held").lock();
                  const auto kept = locks.get("kept");
                  for (int i = 0; i < 62; ++i) (void)locks.get(std::to_string(i));
                  EXPECT_EQ(locks.size(), 64u);
                  (void)locks.get("one more");
                  EXPECT_EQ(locks.size(), 3u) << "the new one, the one that is held, and the one with an object";
                  EXPECT_TRUE(locks.get("held").held_by_caller());
                  locks.get("held").unlock();
                  for (int i = 0; i < 62; ++i) (void)locks.get(std::to_string(i));
                  EXPECT_EQ(locks.size(), 2u);
              }),
              "ok");
    ReadWriteLockRegistry pairs(*session, "/pairs");
    EXPECT_EQ(served([&] {
                  pairs.get("shared").lock_shared();
                  pairs.get("alone").lock();
                  for (int i = 0; i < 63; ++i) (void)pairs.get(std::to_string(i));
                  EXPECT_EQ(pairs.size(), 3u);
                  pairs.get("shared").unlock_shared();
                  pairs.get("alone").unlock();
              }),
              "ok");
}

TEST_F(HoldsTest, ASequencerStandsForItsHoldWhileTheNodeIsThatOne) {
    ExclusiveMutex mutex(*session, "/l");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    const Sequencer check(grant), release(grant, Sequencer::Bearer::may_release);
    const auto held = [&] {
        bool yes = false;
        EXPECT_EQ(served([&] { yes = still_held(*session, check); }), "ok");
        return yes;
    };
    EXPECT_TRUE(held());
    EXPECT_EQ(code_of([&] { (void)release_held(*session, check); }), Errc::not_owner);
    auto& node = nodes.at(grant.node());
    ++node.czxid;
    EXPECT_FALSE(held()) << "another node of this name";
    EXPECT_EQ(served([&] { EXPECT_FALSE(release_held(*session, release)); }), "ok");
    --node.czxid;
    refusals = {{"exists " + grant.node(), Rc::no_auth}};
    EXPECT_EQ(code_served([&] { (void)still_held(*session, check); }), Errc::no_permission);
    refusals.clear();
    EXPECT_EQ(code_unserved(2s, [&] { (void)still_held(*session, check, in(1s)); }), Errc::unreachable);
    for (const bool after : {false, true}) {
        lost_after = after;
        for (int request = 1; request <= 3; ++request) {
            asked.clear();
            lose_answer = request;
            if (!grant.held()) {
                EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
                asked.clear();
            }
            const Sequencer now(grant, Sequencer::Bearer::may_release);
            EXPECT_EQ(served([&] { EXPECT_TRUE(release_held(*session, now)); }), "ok") << request;
            EXPECT_THAT(children("/l"), IsEmpty());
            grant.release();
            serve();
        }
    }
    EXPECT_FALSE(held());
}

TEST_F(HoldsTest, ACommitThatChecksTheOwnNodeRenewsTheLease) {
    ExclusiveMutex mutex(*session, "/l");
    put("/a");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    const auto at_first = grant.remaining_lease();
    runtime->freeze_for(1s);
    EXPECT_EQ(grant.remaining_lease(), at_first - 1s);
    std::string told;
    Transaction write(grant);
    EXPECT_EQ(code_of([&] { write.commit_async({}, {}, nullptr); }), Errc::bad_option);
    write.set("/a", "b").create("/c", "d");
    EXPECT_EQ(write.size(), 2u);
    EXPECT_THAT(outcome_of([&] { write.commit_async({}, {}, nullptr); }), ::testing::HasSubstr("/a"));
    write.commit_async({}, {}, [&](CommitResult result) {
        ASSERT_FALSE(result.error);
        ASSERT_EQ(result.value->operations.size(), 2u);
        EXPECT_EQ(result.value->operations[0].version, 1);
        EXPECT_EQ(result.value->operations[1].path, "/c");
        EXPECT_EQ(result.value->operations[1].version, 0);
        told = "yes";
    });
    serve();
    EXPECT_EQ(told, "yes");
    EXPECT_EQ(grant.remaining_lease(), at_first);
    EXPECT_EQ(nodes["/a"].data, "b");
}

TEST_F(HoldsTest, AReadWithinAHoldIsAnsweredOnlyWhileItsNodeIsThere) {
    ExclusiveMutex mutex(*session, "/l");
    put("/a", "data");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    std::optional<NodeContent> content;
    const auto read = [&](const std::string& path) {
        return code_served([&] { content = read_node(*session, path, grant); });
    };
    EXPECT_EQ(read("/a"), Errc{});
    ASSERT_TRUE(content);
    EXPECT_EQ(content->data, "data");
    EXPECT_EQ(read("/none"), Errc{});
    EXPECT_FALSE(content);
    before_answer = [&](const std::string& what) {
        if (what.starts_with("multi ")) nodes.erase(grant.node());  // before anybody here is told
    };
    EXPECT_EQ(read("/a"), Errc::lock_lost);
    before_answer = nullptr;
    grant = Grant();
    serve();
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    runtime->freeze_for(std::chrono::hours(1));
    ASSERT_FALSE(grant.held());
    asked.clear();
    EXPECT_EQ(read("/a"), Errc::lock_lost);
    EXPECT_EQ(times("get /a"), 0u) << "whether it is lost, our own clock tells";
}

TEST_F(HoldsTest, WhoeverChangesTheNumberOfLeasesAgreesWithIt) {
    Semaphore one(*session, "/s", 2), other(*session, "/s", 2), third(*session, "/s", 2);
    const auto takes_four = [&](Semaphore& semaphore) {
        return code_served([&] { EXPECT_TRUE(semaphore.try_acquire_for(4, 0s).held()); });
    };
    EXPECT_EQ(served([&] { one.set_leases(5); }), "ok");
    EXPECT_EQ(takes_four(one), Errc{});
    EXPECT_EQ(served([&] { other.set_leases(5); }), "ok");
    EXPECT_EQ(takes_four(other), Errc{}) << "it was that number already";
    EXPECT_EQ(takes_four(third), Errc::bad_option);
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
