// Locks by key: what shares its holds, what is forgotten, what is refused.
#include <zkrecipes/lock_registry.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

class LockRegistryTest : public ExclusiveMutexServerTest {};

TEST_F(LockRegistryTest, OneKeyIsOneLockHoweverOftenItIsAskedFor) {
    auto s = session();
    LockRegistry locks(s, lock_path());
    auto lock = locks.get("orders/42");
    EXPECT_EQ(lock.path(), lock_path() + "/orders/42");
    lock.lock();
    // Re-entrant through another object, and counted together with it.
    EXPECT_TRUE(locks.get("orders/42").try_lock());
    locks.get("orders/42").unlock();
    EXPECT_TRUE(lock.held_by_caller());
    // Another thread is another owner; another key another lock.
    std::jthread([&] {
        EXPECT_FALSE(locks.get("orders/42").try_lock());
        auto other = locks.get("orders/43");
        EXPECT_TRUE(other.try_lock());
        other.unlock();
    }).join();
    lock.unlock();
    EXPECT_FALSE(locks.get("orders/42").held_by_caller());
}

TEST_F(LockRegistryTest, TheExampleOfTheManual) {
    auto session = this->session();
    const std::string below = lock_path();
    int served = 0;
    const auto serve = [&](const std::string&) { ++served; };
    // [keys]
    LockRegistry locks(session, below);
    const auto handle = [&](const std::string& order) {
        auto lock = locks.get("orders/" + order);
        const std::lock_guard guard(lock);
        serve(order);
    };
    // [/keys]
    for (const char* order : {"1", "2", "1"}) handle(order);
    EXPECT_EQ(served, 3);
}

TEST_F(LockRegistryTest, TheKeysAreSpreadOverTheSessions) {
    std::vector<Session> sessions;
    for (int i = 0; i < 3; ++i) sessions.push_back(session());
    LockRegistry locks(sessions, lock_path());
    std::map<std::int64_t, int> of_session;
    std::vector<Grant> grants;
    for (int key = 0; key < 60; ++key) {
        const std::string name = "k" + std::to_string(key);
        grants.push_back(locks.get(name).acquire());
        EXPECT_FALSE(locks.get(name).try_lock()) << "one key, one lock";
        ++of_session[grants.back().session_id()];
    }
    ASSERT_EQ(of_session.size(), 3u);
    for (const auto& [id, keys] : of_session) EXPECT_GT(keys, 5);
    EXPECT_EQ(error_of([&] { LockRegistry(std::span<Session>(), lock_path()); }).errc(), Errc::bad_option);
}

TEST_F(LockRegistryTest, ALockStaysLockedThoughNobodyKeepsAnObjectOfIt) {
    auto s = session();
    LockRegistry locks(s, lock_path());
    locks.get("kept").lock();
    for (int i = 0; i < 1000; ++i) locks.get("other" + std::to_string(i));  // tidied meanwhile
    EXPECT_TRUE(locks.get("kept").held_by_caller());
    std::jthread([&] { EXPECT_FALSE(locks.get("kept").try_lock()); }).join();
    locks.get("kept").unlock();
    std::jthread([&] {
        EXPECT_TRUE(locks.get("kept").try_lock());
        locks.get("kept").unlock();
    }).join();
}

TEST_F(LockRegistryTest, ManyKeysLeaveNothingBehind) {
    auto s = session();
    LockRegistry locks(s, lock_path());
    auto in_hands = locks.get("in/hands");
    std::size_t most = 0;
    for (int i = 0; i < 50'000; ++i) {
        locks.get("orders/" + std::to_string(i));
        most = std::max(most, locks.size());
    }
    EXPECT_LE(most, 65U);
    EXPECT_EQ(locks.get("in/hands").path(), in_hands.path());
}

TEST_F(LockRegistryTest, KeysMayBeUsedByManyThreadsAtTheSameTime) {
    auto s = session();
    LockRegistry locks(s, lock_path());
    std::array<int, 3> unprotected{};
    constexpr int kThreads = 6, kRounds = 50;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < kRounds; ++i) {
                    const auto slot = static_cast<std::size_t>(t + i) % unprotected.size();
                    auto lock = locks.get("counter/" + std::to_string(slot));
                    const std::lock_guard guard(lock);
                    ++unprotected[slot];
                }
            });
        }
    }
    EXPECT_EQ(unprotected[0] + unprotected[1] + unprotected[2], kThreads * kRounds);
}

TEST_F(LockRegistryTest, ReadersShareAKeyAndItsWriterIsAlone) {
    auto s = session();
    ReadWriteLockRegistry locks(s, lock_path());
    locks.get("config").lock_shared();
    std::jthread([&] {
        EXPECT_TRUE(locks.get("config").try_lock_shared());
        locks.get("config").unlock_shared();
        EXPECT_FALSE(locks.get("config").try_lock());
    }).join();
    locks.get("config").unlock_shared();
}

TEST_F(LockRegistryTest, AKeyThatIsNoPathIsRefusedAndIsNoOtherKey) {
    auto s = session();
    LockRegistry locks(s, lock_path());
    for (const char* key : {"", "/a", "a/", "a//b", "../a", "a/./b", "a\nb"}) {
        const Error error = error_of([&] { locks.get(key); });
        EXPECT_EQ(error.errc(), Errc::bad_path) << key;
    }
    EXPECT_EQ(locks.size(), 0U);
    EXPECT_EQ(error_of([&] { LockRegistry(s, "relative"); }).errc(), Errc::bad_path);
    LockOptions options;
    options.acl.emplace();
    EXPECT_EQ(error_of([&] { LockRegistry(s, lock_path(), options); }).errc(), Errc::bad_option);
}

TEST_F(LockRegistryTest, HoldsOutliveTheRegistry) {
    auto s = session();
    Grant grant;
    {
        LockRegistry locks(s, lock_path());
        grant = locks.get("a").acquire();
    }
    EXPECT_TRUE(grant.held());
    LockRegistry again(s, lock_path());
    EXPECT_FALSE(again.get("a").try_lock());
    grant.release();
    EXPECT_TRUE(again.get("a").try_lock_for(kMaxWait));
    again.get("a").unlock();
}

}  // namespace
}  // namespace zkrecipes::test
