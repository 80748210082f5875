// An object that was moved from answers every call with the same Error, or, where a call must not throw, with nothing.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/transaction.hpp>

#include <mutex>
#include <optional>
#include <utility>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class MovedFromTest : public SessionTest {
protected:
    ~MovedFromTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    Session& connected() {
        open_connected();
        session.emplace(SessionAccess::make(core));
        return *session;
    }
    /// Moves it away, and expects that each call on what is left is refused.
    template <class T, class... Calls>
    void expect_refused(T& object, const std::string& kind, const Calls&... calls) {
        [[maybe_unused]] const T moved = std::move(object);
        (expect_refusal(kind, [&] { static_cast<void>(calls(object)); }), ...);
        object = T(std::move(object));  // what was moved from may be assigned, moved and destroyed
        (expect_refusal(kind, [&] { static_cast<void>(calls(object)); }), ...);
    }
    template <class Call>
    void expect_refusal(const std::string& kind, const Call& call) {
        try {
            call();
            ADD_FAILURE() << kind << ": no Error";
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::closed);
            EXPECT_NE(std::string(error.what()).find("this " + kind + " object was moved from"), std::string::npos)
                << error.what();
        }
    }

    std::function<void(AcquireResult)> nothing = [](const AcquireResult&) {};
    std::optional<Session> session;
};

/// The ways to take any lock that is held alone.
#define ZKRECIPES_WAYS_TO_LOCK                                                                          \
    [](auto& one) { return one.acquire(); }, [](auto& one) { return one.try_acquire_until(1s); },       \
        [this](auto& one) { one.acquire_async(1s, {}, nothing); }, [](auto& one) { one.lock(); },       \
        [](auto& one) { return one.try_lock(); }, [](auto& one) { return one.try_lock_for(1s); },       \
        [](auto& one) { return one.try_lock_until(1s); }, [](auto& one) { return one.participants(); }, \
        [](auto& one) { const std::lock_guard guard(one); }

TEST_F(MovedFromTest, ASessionIsRefused) {
    Session from = std::move(connected());
    session.reset();
    session.emplace(std::move(from));
    EXPECT_EQ(from.state(), SessionState::closed);
    EXPECT_EQ(from.info().state, SessionState::closed);
    from.close();
    expect_refusal("Session", [&] { from.wait_connected(); });
    expect_refusal("Session", [&] { auto watching = from.watch_state([](SessionState) {}); });
    expect_refusal("Session", [&] { (void)from.holds(); });
    expect_refusal("Session", [&] { (void)from.waits(); });
    expect_refusal("Session", [&] { ExclusiveMutex(from, "/l"); });
    expect_refusal("Session", [&] { Semaphore(from, "/l", 1); });
}

TEST_F(MovedFromTest, ASessionThatIsAssignedToIsClosedFirst) {
    Session none = std::move(connected());
    Session open = std::move(none);
    runtime->while_running([&] { open = std::move(none); });
    EXPECT_EQ(core->state(), SessionState::closed);
    session.reset();
}

TEST_F(MovedFromTest, AGrantIsEmpty) {
    Grant from;
    const Grant to = std::move(from);
    EXPECT_FALSE(from || from.held() || from.lost().stop_possible() || from.revocation().stop_possible());
    EXPECT_EQ(from.remaining_lease(), 0ms);
    EXPECT_EQ(from.token(), 0);
    EXPECT_TRUE(from.node().empty() && from.nodes().empty());
    EXPECT_TRUE(from.release_and_wait(1s));
    from.release();
    EXPECT_THROW(Transaction{from}, Error);
}

TEST_F(MovedFromTest, AMutexIsRefused) {
    ExclusiveMutex mutex(connected(), "/l");
    expect_refused(mutex, "ExclusiveMutex", ZKRECIPES_WAYS_TO_LOCK);
    mutex.unlock();
    EXPECT_FALSE(mutex.held_by_caller() || mutex.lost().stop_possible());
    EXPECT_EQ(mutex.token(), 0);
    EXPECT_EQ(mutex.path(), "");
}

TEST_F(MovedFromTest, AReadWriteLockIsRefused) {
    ReadWriteLock lock(connected(), "/l");
    expect_refused(
        lock, "ReadWriteLock", ZKRECIPES_WAYS_TO_LOCK, [](auto& one) { return one.acquire_shared(); },
        [](auto& one) { return one.try_acquire_shared_until(1s); },
        [this](auto& one) { one.acquire_shared_async(1s, {}, nothing); }, [](auto& one) { one.lock_shared(); },
        [](auto& one) { return one.try_lock_shared(); }, [](auto& one) { return one.try_lock_shared_for(1s); });
    lock.unlock();
    lock.unlock_shared();
    EXPECT_FALSE(lock.held_by_caller() || lock.shared_held_by_caller() || lock.lost().stop_possible());
    EXPECT_EQ(lock.token(), 0);
    EXPECT_EQ(lock.path(), "");
}

TEST_F(MovedFromTest, AMultiLockIsRefused) {
    MultiLock lock(connected(), {{"/a", MultiLock::As::mutex}});
    expect_refused(lock, "MultiLock", ZKRECIPES_WAYS_TO_LOCK,
                   [](auto& one) { return one.try_acquire_while_holding(1s); });
    lock.unlock();
    EXPECT_FALSE(lock.held_by_caller() || lock.lost().stop_possible());
    EXPECT_EQ(lock.token(), 0);
    EXPECT_TRUE(lock.members().empty());
}

TEST_F(MovedFromTest, ASemaphoreMutexIsRefused) {
    SemaphoreMutex mutex(connected(), "/l");
    expect_refused(mutex, "SemaphoreMutex", ZKRECIPES_WAYS_TO_LOCK);
    mutex.unlock();
    EXPECT_FALSE(mutex.held() || mutex.lost().stop_possible());
    EXPECT_EQ(mutex.token(), 0);
    EXPECT_EQ(mutex.path(), "");
}

TEST_F(MovedFromTest, ASemaphoreIsRefused) {
    Semaphore semaphore(connected(), "/l", 2);
    expect_refused(
        semaphore, "Semaphore", [](auto& one) { return one.acquire(); }, [](auto& one) { return one.try_acquire(); },
        [](auto& one) { return one.try_acquire_for(1s); }, [this](auto& one) { one.acquire_async(1s, {}, nothing); },
        [](auto& one) { return one.leases(); }, [](auto& one) { one.set_leases(1); },
        [](auto& one) { return one.participants(); });
    EXPECT_EQ(semaphore.path(), "");
}

TEST_F(MovedFromTest, ALockRegistryIsRefused) {
    LockRegistry registry(connected(), "/l");
    expect_refused(registry, "LockRegistry", [](auto& one) { return one.get("key"); });
    EXPECT_EQ(registry.size(), 0u);
    EXPECT_EQ(registry.path(), "");
}

TEST_F(MovedFromTest, AnElectionIsRefused) {
    LeaderElection election(connected(), "/l");
    expect_refused(
        election, "LeaderElection", [](auto& one) { return one.campaign(); },
        [](auto& one) { return one.try_campaign_until(1s); },
        [this](auto& one) { one.campaign_async(1s, {}, nothing); },
        [](auto& one) { one.run([](const Grant&, const std::stop_token&) {}); }, [](auto& one) { return one.leader(); },
        [](auto& one) { return one.candidates(); }, [](auto& one) { return one.observe([](const auto&) {}); });
    EXPECT_FALSE(election.resign());
    EXPECT_EQ(election.path(), "");
    EXPECT_EQ(election.id(), "");
}

TEST_F(MovedFromTest, BarriersAreRefused) {
    Barrier barrier(connected(), "/l");
    const auto done = [](const BarrierResult&) {};
    expect_refused(
        barrier, "Barrier", [](auto& one) { one.set(); }, [](auto& one) { one.remove(); },
        [](auto& one) { return one.wait(); }, [&](auto& one) { one.wait_async(1s, {}, done); });
    EXPECT_EQ(barrier.path(), "");
    DoubleBarrier both(*session, "/d", 2);
    expect_refused(
        both, "DoubleBarrier", [](auto& one) { return one.enter(); }, [](auto& one) { return one.leave(); },
        [&](auto& one) { one.enter_async(1s, {}, done); }, [&](auto& one) { one.leave_async(1s, {}, done); });
    EXPECT_EQ(both.path(), "");
    EXPECT_EQ(both.members(), 0);
}

TEST_F(MovedFromTest, ValuesAreRefused) {
    AtomicCounter counter(connected(), "/c");
    expect_refused(
        counter, "AtomicCounter", [](auto& one) { return one.get(); }, [](auto& one) { return one.add(1); },
        [](auto& one) { return one.subtract(1); }, [](auto& one) { return one.try_add_until(1, 1s); },
        [](auto& one) { one.add_async(1, 1s, {}, [](const CounterResult&) {}); },
        [](auto& one) { return one.compare_and_set(1, 2); }, [](auto& one) { return one.exchange(1); },
        [](auto& one) { one.force_set(1); }, [](auto& one) { return one.initialize(1); });
    EXPECT_EQ(counter.path(), "");
    const auto done = [](const SetResult&) {};
    SharedValue value(*session, "/v", "");
    expect_refused(
        value, "SharedValue", [](auto& one) { return one.get(); }, [](auto& one) { one.set("x"); },
        [](auto& one) { return one.try_set(0, "x"); }, [&](auto& one) { one.set_async("x", 1s, {}, done); },
        [&](auto& one) { one.try_set_async(0, "x", 1s, {}, done); },
        [](auto& one) { return one.observe([](const auto&) {}); });
    EXPECT_EQ(value.path(), "");
    SharedCount count(*session, "/n", 0);
    expect_refused(
        count, "SharedValue", [](auto& one) { return one.get(); }, [](auto& one) { one.set(1); },
        [](auto& one) { return one.try_set(0, 1); }, [](auto& one) { return one.observe([](const auto&) {}); });
    EXPECT_EQ(count.path(), "");
}

TEST_F(MovedFromTest, NodesAndGroupsAreRefused) {
    const auto told = [](PersistentNodeState) {};
    PersistentNode node(connected(), "/n");
    expect_refused(
        node, "PersistentNode", [](auto& one) { return one.wait_present(1s); }, [](auto& one) { one.set_data("x"); },
        [](auto& one) { return one.data(); }, [&](auto& one) { return one.watch_state(told); },
        [](auto& one) { return one.close_and_wait(1s); });
    node.close();
    EXPECT_EQ(node.state(), PersistentNodeState::closed);
    EXPECT_EQ(node.path(), "");
    Group group(*session, "/g");
    expect_refused(
        group, "Group", [](auto& one) { return one.members(); },
        [](auto& one) { return one.observe([](const auto&) {}); });
    EXPECT_EQ(group.path(), "");
    GroupMember member(*session, "/g", "me");
    expect_refused(
        member, "GroupMember", [](auto& one) { return one.wait_joined(1s); }, [](auto& one) { one.set_payload("x"); },
        [](auto& one) { return one.payload(); }, [&](auto& one) { return one.watch_state(told); },
        [](auto& one) { return one.members(); }, [](auto& one) { return one.observe([](const auto&) {}); },
        [](auto& one) { return one.leave_and_wait(1s); });
    member.leave();
    EXPECT_EQ(member.state(), PersistentNodeState::closed);
    EXPECT_EQ(member.path(), "");
    EXPECT_EQ(member.id(), "");
}

TEST_F(MovedFromTest, ATransactionIsRefused) {
    const auto hold = Sequencer::parse("zkr1r:7:x/locks/a/_c_00000000-0000-4000-8000-000000000001-lock-0000000007");
    Transaction transaction(connected(), hold);
    expect_refused(
        transaction, "Transaction", [&](auto& one) { one.require(hold); }, [](auto& one) { one.require(Grant()); },
        [](auto& one) { one.create("/x", ""); }, [](auto& one) { one.set("/x", ""); },
        [](auto& one) { one.remove("/x"); }, [](auto& one) { one.check("/x"); },
        [](auto& one) { one.idempotent_in("/x"); }, [](auto& one) { return one.commit(); },
        [](auto& one) { return one.try_commit_until(1s); },
        [](auto& one) { one.commit_async(1s, {}, [](const CommitResult&) {}); });
    EXPECT_EQ(transaction.size(), 0u);
}

}  // namespace
}  // namespace zkrecipes::testing
