// Semaphore and SemaphoreMutex on real servers: who gets what, on which number they agree, and what peers may do.
#include <random>

#include "server/semaphore_support.hpp"
#include "support/whole.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class SemaphoreTest : public SemaphoreServerTest {
protected:
    /// As a Curator peer makes its lease.
    std::string peer_lease() {
        static int peers = 0;
        char name[80];
        std::snprintf(name, sizeof name, "/_c_00000000-0000-4000-8000-%012d-lease-", ++peers);
        return observer().create(leases_path() + name, "10.0.0.1", testenv::CreateMode::ephemeral_sequential).path;
    }
};

/// Counts what is inside, and whether it was ever too much.
class Inside {
public:
    explicit Inside(int most) : most_(most) {}
    void enter(int count) {
        const int now = inside_ += count;
        if (now > most_) too_many_ = true;
        int seen = largest_;
        while (now > seen && !largest_.compare_exchange_weak(seen, now)) {
        }
    }
    void leave(int count) { inside_ -= count; }
    bool too_many() const { return too_many_; }
    int largest() const { return largest_; }

private:
    const int most_;
    std::atomic<int> inside_{0}, largest_{0};
    std::atomic<bool> too_many_{false};
};

TEST_F(SemaphoreTest, TwoClientsThatTakeTwoOfTwoNeverWaitForEachOther) {  // H28
    auto one = session(), two = session();
    Inside inside(2);
    const int rounds = share_of(1000, 250);
    const auto work = [&](Session& s) {
        Semaphore semaphore(s, lock_path(), 2);
        for (int round = 0; round < rounds; ++round) {
            const Grant grant = semaphore.try_acquire_until(2, kMaxWait);
            ASSERT_TRUE(grant) << "round " << round;
            inside.enter(2);
            inside.leave(2);
        }
    };
    std::thread other([&] { work(two); });
    work(one);
    other.join();
    EXPECT_FALSE(inside.too_many());
    EXPECT_TRUE(await_leased(0));
    EXPECT_EQ(waiting(), 0u);
}

TEST_F(SemaphoreTest, RandomNumbersOfLeasesNeverExceedTheLimitAndReachIt) {
    constexpr std::int32_t kLeases = 5;
    auto one = session(), two = session();
    Semaphore a(one, lock_path(), kLeases), b(two, lock_path(), kLeases);
    Inside inside(kLeases);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            std::minstd_rand random(t + 1);
            for (int i = 0; i < 30; ++i) {
                const auto count = static_cast<std::int32_t>(random() % kLeases + 1);
                const Grant grant = (t % 2 == 0 ? a : b).try_acquire_until(count, kMaxWait);
                ASSERT_TRUE(grant);
                inside.enter(count);
                std::this_thread::yield();
                inside.leave(count);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(inside.too_many());
    EXPECT_EQ(inside.largest(), kLeases);  // all of them were used
    EXPECT_TRUE(await_leased(0));
}

TEST_F(SemaphoreTest, ASlotIsUsedWhicheverHolderLeft) {  // H25
    auto s = session();
    Semaphore semaphore(s, lock_path(), 3);
    for (const std::size_t leaving : {0, 1, 2}) {
        std::vector<Grant> held;
        for (int i = 0; i < 3; ++i) held.push_back(semaphore.acquire());
        Acquiring waits([&] { return semaphore.acquire(); });
        ASSERT_TRUE(await_waiting(1));
        held[leaving].release();
        EXPECT_TRUE(waits.get().held());
    }
    EXPECT_TRUE(await_leased(0));
}

TEST_F(SemaphoreTest, WhoWantsManyIsNotOvertakenByWhoWantsFew) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 3);
    Grant one = semaphore.acquire();
    Acquiring many([&] { return semaphore.acquire(3); });
    ASSERT_TRUE(await_waiting(1));
    Acquiring few([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(2));
    EXPECT_FALSE(few.done());
    EXPECT_EQ(leased(), 1u);  // nobody keeps some while it waits for more
    one.release();
    Grant all = many.get();
    EXPECT_TRUE(all.held());
    EXPECT_EQ(leased(), 3u);
    all.release();
    EXPECT_TRUE(few.get().held());
}

TEST_F(SemaphoreTest, TheNumberIsAgreedOn) {
    auto one = session(), two = session();
    Semaphore a(one, lock_path(), 3), b(two, lock_path(), 4);
    EXPECT_EQ(a.leases(), 3);
    EXPECT_EQ(terms(), "");
    const Grant grant = a.acquire();
    EXPECT_EQ(terms(), R"({"v":1,"leases":3})");
    EXPECT_EQ(b.leases(), 3);
    for (int attempt = 0; attempt < 2; ++attempt) {
        const Error error = error_of([&] { (void)b.acquire(); });
        EXPECT_EQ(error.errc(), Errc::bad_option);
        EXPECT_EQ(error.path(), lock_path());
        EXPECT_THAT(error.what(), HasSubstr("here are 3 leases, but this object was made for 4"));
    }
    EXPECT_EQ(error_of([&] { (void)b.try_acquire(); }).errc(), Errc::bad_option);
    SemaphoreMutex mutex(two, lock_path());
    EXPECT_EQ(error_of([&] { mutex.lock(); }).errc(), Errc::bad_option);
    EXPECT_TRUE(await_waiting(0));
    observer().set(leases_path(), "three");
    EXPECT_EQ(error_of([&] { (void)a.acquire(); }).errc(), Errc::bad_data);  // H68
    EXPECT_EQ(error_of([&] { a.leases(); }).errc(), Errc::bad_data);
    EXPECT_EQ(error_of([&] { a.set_leases(2); }).errc(), Errc::bad_data);
}

TEST_F(SemaphoreTest, ARaisedNumberLetsWaitersInAndIsFollowedByWhoWasThereBefore) {
    auto one = session(), two = session();
    Semaphore a(one, lock_path(), 1), b(two, lock_path(), 1);
    const Grant grant = a.acquire();
    Acquiring first([&] { return b.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    Acquiring second([&] { return a.acquire(); });
    ASSERT_TRUE(await_waiting(2));
    b.set_leases(3);
    const Grant x = first.get(), y = second.get();
    EXPECT_TRUE(x.held() && y.held());
    EXPECT_EQ(leased(), 3u);
    EXPECT_EQ(a.leases(), 3);
    Semaphore later(one, lock_path(), 3), out_of_date(one, lock_path(), 1);
    EXPECT_FALSE(later.try_acquire());
    EXPECT_EQ(error_of([&] { (void)out_of_date.acquire(); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { (void)a.acquire(4); }).errc(), Errc::bad_option);
}

TEST_F(SemaphoreTest, ALoweredNumberRevokesNobody) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 3);
    Grant two = semaphore.acquire(2), one = semaphore.acquire();
    Acquiring waits([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    Acquiring too_many([&] { return semaphore.acquire(2); });
    ASSERT_TRUE(await_waiting(2));
    semaphore.set_leases(1);
    EXPECT_TRUE(two.held() && one.held());
    one.release();
    ASSERT_TRUE(await_leased(2));
    EXPECT_FALSE(waits.done());
    two.release();
    EXPECT_TRUE(waits.get().held());
    EXPECT_EQ(error_of([&] { (void)too_many.get(); }).errc(), Errc::bad_option);
    EXPECT_TRUE(await_waiting(0));
}

TEST_F(SemaphoreTest, TheNumberMayBeSetBeforeAnybodyCame) {
    auto s = session();
    Semaphore semaphore(s, path("fresh"), 2);
    semaphore.set_leases(4);
    EXPECT_EQ(semaphore.leases(), 4);
    const Grant grant = semaphore.acquire(4);
    EXPECT_TRUE(grant.held());
    semaphore.set_leases(4);  // no change
    EXPECT_EQ(observer().get(path("fresh") + "/leases")->stat.version, 1);
}

TEST_F(SemaphoreTest, BadInputIsRefused) {
    auto s = session();
    for (const std::int32_t leases : {0, -1}) {
        EXPECT_EQ(error_of([&] { Semaphore(s, lock_path(), leases); }).errc(), Errc::bad_option);
    }
    EXPECT_EQ(error_of([&] { Semaphore(s, "/", 1); }).errc(), Errc::bad_path);
    EXPECT_EQ(error_of([&] { Semaphore(s, "a", 1); }).errc(), Errc::bad_path);
    EXPECT_EQ(error_of([&] { SemaphoreMutex(s, "/a//b"); }).errc(), Errc::bad_path);
    Semaphore semaphore(s, lock_path(), 2);
    for (const std::int32_t count : {0, -1, 3, 1001}) {
        const Error error = error_of([&] { (void)semaphore.acquire(count); });
        EXPECT_EQ(error.errc(), Errc::bad_option) << count;
        EXPECT_THAT(error.what(), HasSubstr(std::to_string(count)));
        EXPECT_EQ(error_of([&] { (void)semaphore.try_acquire(count); }).errc(), Errc::bad_option) << count;
    }
    EXPECT_EQ(error_of([&] { semaphore.acquire_async(kMaxWait, {}, {}); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { semaphore.set_leases(0); }).errc(), Errc::bad_option);
    EXPECT_EQ(waiting() + leased(), 0u);
    EXPECT_EQ(terms(), "");
}

TEST_F(SemaphoreTest, AThousandLeasesAtOnceAreTakenHeldAndGivenBack) {
    auto s = session();
    LockOptions options;
    options.name = std::string(200, 'x');
    Semaphore semaphore(s, lock_path(), 1000, options);
    Grant grant = semaphore.acquire(1000);
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(leased(), 1000u);
    EXPECT_FALSE(semaphore.try_acquire());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(leased(), 0u);
}

TEST_F(SemaphoreTest, LeasesAndWaitersAreListedWithTheirData) {
    auto s = session(), other = session();
    LockOptions options;
    options.id = "worker-1";
    options.labels = {{"shard", "7"}};
    Semaphore mine(s, lock_path(), 2, options), theirs(other, lock_path(), 2);
    EXPECT_THAT(mine.participants(), SizeIs(0));
    const Grant grant = mine.acquire(2);
    Acquiring waits([&] { return theirs.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_waiting(1));
    const auto all = mine.participants();
    ASSERT_THAT(all, SizeIs(3));
    for (const std::size_t i : {0, 1}) {
        EXPECT_TRUE(all[i].holder);
        EXPECT_EQ(all[i].id, "worker-1");
        EXPECT_EQ(all[i].labels.at("shard"), "7");
        EXPECT_EQ(all[i].token, grant.token());
        EXPECT_EQ(all[i].session_id, s.info().session_id);
        EXPECT_EQ(all[i].mode, "semaphore");
    }
    EXPECT_EQ(all[0].path, grant.node());
    EXPECT_FALSE(all[2].holder);
    EXPECT_EQ(all[2].session_id, other.info().session_id);
    EXPECT_THAT(all[2].path, HasSubstr("/locks/_c_"));
    // An operator takes the leases away.
    for (const std::size_t i : {0, 1}) EXPECT_TRUE(remove_participant(other, all[i], kMaxWait));
    EXPECT_TRUE(waits.get().held());
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
}

TEST_F(SemaphoreTest, AsynchronousAcquiresAreServedInTheSameQueue) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 2);
    Grant held = semaphore.acquire(2);
    std::atomic<int> answers{0};
    Grant got;
    semaphore.acquire_async(2, kMaxWait, {}, [&](AcquireResult result) {
        got = std::move(result.value);
        ++answers;
    });
    std::stop_source stop;
    std::atomic<int> stopped{0};
    semaphore.acquire_async(Deadline::never(), stop.get_token(),
                            [&](AcquireResult result) { stopped += !result.value && !result.error; });
    ASSERT_TRUE(await_waiting(2));
    stop.request_stop();
    ASSERT_TRUE(await([&] { return stopped == 1; }));
    EXPECT_TRUE(await_waiting(1));
    EXPECT_EQ(answers, 0);
    held.release();
    ASSERT_TRUE(await([&] { return answers == 1; }));
    EXPECT_TRUE(got.held());
}

/// Of so many lists of one directory some wait for others, and what is sent behind them overtakes them.
TEST_F(SemaphoreTest, ManyTriesOfOneSessionAtOnceAreAllAnswered) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 100);
    std::atomic<int> granted = 0, answered = 0;
    for (int round = 1; round <= 10; ++round) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 40; ++i) {
            threads.emplace_back([&] {
                try {
                    const Grant grant = semaphore.try_acquire();
                    granted += grant ? 1 : 0;
                    ++answered;
                } catch (const Error&) {  // closed, below
                }
            });
        }
        const bool all = await([&] { return answered == 40 * round; });
        if (!all) s.close();
        for (auto& thread : threads) thread.join();
        ASSERT_TRUE(all) << answered;
    }
    EXPECT_GT(granted, 0);
}

TEST_F(SemaphoreTest, FibersOfOneThreadShareTheLeases) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 2);
    Inside inside(2);
    std::vector<boost::fibers::fiber> fibers;
    for (int f = 0; f < 6; ++f) {
        fibers.emplace_back([&] {
            for (int i = 0; i < 10; ++i) {
                const Grant grant = semaphore.try_acquire_until(kMaxWait);
                ASSERT_TRUE(grant);
                inside.enter(1);
                boost::this_fiber::yield();
                inside.leave(1);
            }
        });
    }
    for (auto& fiber : fibers) fiber.join();
    EXPECT_FALSE(inside.too_many());
    EXPECT_TRUE(await_leased(0));
}

TEST_F(SemaphoreTest, WhatAPeerHoldsCountsWhateverItsNameIs) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 2);
    const auto peer = peer_lease();
    observer().create(leases_path() + "/somebody");
    EXPECT_FALSE(semaphore.try_acquire());
    Acquiring waits([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    EXPECT_TRUE(observer().remove(peer));
    EXPECT_TRUE(waits.get().held());
}

TEST_F(SemaphoreTest, WhoeverStandsBeforeUsInTheQueueOfAPeerIsWaitedFor) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 2);
    const auto place = observer()
                           .create(queue_path() + "/_c_00000000-0000-4000-8000-00000000aaaa-lock-", "10.0.0.1",
                                   testenv::CreateMode::ephemeral_sequential)
                           .path;
    Acquiring waits([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(2));
    peer_lease();
    peer_lease();
    EXPECT_TRUE(observer().remove(place));
    ASSERT_TRUE(await([&] { return waiting() == 1; }));
    EXPECT_FALSE(waits.done());
    for (const auto& lease : nodes_of(leases_path())) EXPECT_TRUE(observer().remove(leases_path() + "/" + lease));
    EXPECT_TRUE(waits.get().held());
}

TEST_F(SemaphoreTest, QueueAndLeasesGoOnAcrossTheOverflowOfTheirNumbers) {  // H11
    auto s = session();
    const auto makes = [&](const std::string& node) {
        observer().create(node, "10.0.0.1", testenv::CreateMode::ephemeral);
        return node;
    };
    // Our own number is small, and the negative ones come before it; by their text -1 would come before -2.
    const auto second = makes(queue_path() + "/b-lock--000000001"), first = makes(queue_path() + "/a-lock--000000002");
    // Leases are counted, whatever their numbers are, and listed by their age.
    const auto older = makes(leases_path() + "/c-lease-2147483647"),
               younger = makes(leases_path() + "/d-lease--2147483648");
    Semaphore semaphore(s, lock_path(), 2);
    EXPECT_FALSE(semaphore.try_acquire());
    Acquiring waits([&] { return semaphore.try_acquire_until(2, kMaxWait); });
    ASSERT_TRUE(await_waiting(3));
    if (!uses_outside_ensemble()) {
        ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(second) != std::string::npos; }));
        EXPECT_EQ(server().four_letter("wchp").find(first), std::string::npos);
    }
    std::string order;
    for (const auto& one : semaphore.participants()) order += (one.holder ? "*" : "") + one.node.substr(0, 1);
    EXPECT_EQ(order, "*c*dab_");  // the last is ours
    for (const auto& node : {first, younger, second, older}) {
        EXPECT_FALSE(waits.done());
        EXPECT_TRUE(observer().remove(node));
    }
    EXPECT_TRUE(waits.get().held());
    EXPECT_TRUE(await_leased(0));

    // The same of the mutex.
    const auto before = makes(queue_path() + "/e-lock--000000001");
    observer().set(leases_path(), "");
    SemaphoreMutex mutex(s, lock_path());
    Acquiring locks([&] { return mutex.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_waiting(2));
    EXPECT_FALSE(mutex.try_lock() || locks.done());
    EXPECT_TRUE(observer().remove(before));
    EXPECT_TRUE(locks.get().held());
}

TEST_F(SemaphoreTest, GrantsLiveLongerThanTheirSemaphore) {
    auto s = session();
    Grant grant;
    {
        Semaphore semaphore(s, lock_path(), 1);
        grant = semaphore.acquire();
        Semaphore moved(std::move(semaphore));
        EXPECT_EQ(moved.path(), lock_path());
        EXPECT_FALSE(moved.try_acquire_for(1ms));
        EXPECT_FALSE(moved.try_acquire_until(std::chrono::system_clock::now() + 1ms));
    }
    EXPECT_TRUE(grant.held());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(leased(), 0u);
}

// ---- SemaphoreMutex -------------------------------------------------------------------------------------------------

TEST_F(SemaphoreTest, OneThreadLocksTheMutexAndAnotherUnlocksIt) {  // H36, H38
    auto s = session();
    SemaphoreMutex mutex(s, lock_path());
    int turn = 0;
    const auto play = [&](int me) {
        for (int i = 0; i < 100; ++i) {
            mutex.lock();
            turn += me;
            // Whoever has locked it leaves the unlocking to a thread that has not.
            std::thread([&] { mutex.unlock(); }).join();
        }
    };
    std::thread other([&] { play(1'000); });
    play(1);
    other.join();
    EXPECT_EQ(turn, 100'100);
    EXPECT_TRUE(await_leased(0));
    EXPECT_EQ(terms(), R"({"v":1,"leases":1})");
}

TEST_F(SemaphoreTest, TheMutexIsNotReentrantAndKnowsWhatItHolds) {
    auto s = session();
    SemaphoreMutex mutex(s, lock_path());
    EXPECT_FALSE(mutex.held());
    EXPECT_EQ(mutex.token(), 0);
    mutex.lock();
    EXPECT_TRUE(mutex.held());
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_acquire());
    EXPECT_FALSE(mutex.try_lock_for(1ms));
    const auto first = mutex.token();
    EXPECT_EQ(first, mutex.participants().at(0).token);
    mutex.unlock();
    EXPECT_FALSE(mutex.held());
    mutex.lock();
    EXPECT_GT(mutex.token(), first);  // grows with every later holder
    mutex.unlock();
}

TEST_F(SemaphoreTest, EachLockOfTheMutexNeedsItsUnlockAlsoAfterALoss) {
    auto s = session();
    SemaphoreMutex mutex(s, lock_path());
    mutex.lock();
    const auto lost = mutex.lost();
    const auto node = mutex.participants().at(0).path;
    ASSERT_TRUE(await([&] { return !uses_outside_ensemble() && server().watch_count() > 0; }));
    ASSERT_TRUE(observer().remove(node));
    ASSERT_TRUE(await([&] { return lost.stop_requested(); }));
    EXPECT_FALSE(mutex.held());
    mutex.lock();  // somebody else does
    EXPECT_TRUE(mutex.held());
    mutex.unlock();  // that of the lost one
    EXPECT_TRUE(mutex.held());
    EXPECT_EQ(leased(), 1u);
    mutex.unlock();
    EXPECT_TRUE(await_leased(0));
}

}  // namespace
}  // namespace zkrecipes::test
