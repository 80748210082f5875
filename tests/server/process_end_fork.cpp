#include "server/process_end_fork.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/transaction.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace {

bool g_is_child = false;

// ThreadSanitizer cannot follow threads of a forked child. AddressSanitizer of gcc 12 leaves the lock of its allocator
// behind at a fork: the parent should be quiet then, and the child must not need much memory.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForksAreSafe = false;
#else
constexpr bool kForksAreSafe = true;
#endif

}  // namespace

// What the threads of the parent alone referred to looks like a leak in the child, which has not got them.
extern "C" int __lsan_is_turned_off() { return g_is_child ? 1 : 0; }

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;

void expect(bool ok, const char* what) {
    if (ok) return;
    std::cerr << "process " << ::getpid() << ": not so: " << what << std::endl;
    std::_Exit(3);
}

/// Error closed, which says why and what to do.
template <class Call>
void refused(const char* what, const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        const std::string text = error.what();
        const bool clear = text.find("parent process; make a new Session") != std::string::npos;
        if (error.errc() == Errc::closed && clear) return;
        std::cerr << text << '\n';
    }
    expect(false, what);
}

SessionOptions options_for(const std::string& connect) {
    SessionOptions options;
    options.hosts = connect;
    options.timeout = 10s;
    options.close_timeout = 30s;
    return options;
}

template <class T>
void ignore(T&&) {}

/// Objects of all kinds, made by the parent.
struct Everything {
    Everything(Session& session_of, const std::string& path)
        : session(session_of),
          mutex(session, path + "/mutex"),
          rw(session, path + "/rw"),
          multi(session, {{path + "/a", MultiLock::As::mutex}, {path + "/b", MultiLock::As::mutex}}),
          semaphore(session, path + "/semaphore", 2),
          semaphore_mutex(session, path + "/semaphore_mutex"),
          election(session, path + "/election"),
          barrier(session, path + "/barrier"),
          double_barrier(session, path + "/double", 2),
          counter(session, path + "/counter"),
          value(session, path + "/value", "seed"),
          count(session, path + "/count", 1),
          node(session, path + "/node"),
          group(session, path + "/group"),
          member(session, path + "/group", "me"),
          registry(session, path + "/registry"),
          grant(mutex.acquire()),
          lease(semaphore.acquire()),
          both(multi.acquire()),
          states(session.watch_state([](SessionState) {})),
          seen(value.observe([](const auto&) {})),
          leaders(election.observe([](const auto&) {})),
          transaction(grant),
          in_registry(registry.get("key")) {
        transaction.check(path);
        rw.lock_shared();
        semaphore_mutex.lock();
    }

    void is_refused() {
        of_the_session();
        of_grants();
        of_locks();
        of_values();
        of_members();
        nothing_is_held();
    }
    /// Gives back all, in the order in which nobody would.
    void is_dropped() {
        states.reset();
        seen.reset();
        session.close();
        lease.release();
        Grant other = std::move(grant);
        other = Grant();
        expect(!other.held() && !grant.held(), "an empty grant is not held");
        multi.unlock();
        semaphore_mutex.unlock();
        rw.unlock_shared();
        node.close();
        member.leave();
    }

private:
    void of_the_session() {
        expect(session.state() == SessionState::closed, "state() says closed");
        expect(session.info().state == SessionState::closed, "info() says closed");
        refused("wait_connected", [&] { ignore(session.wait_connected(1s)); });
        refused("watch_state", [&] { ignore(session.watch_state([](SessionState) {})); });
        refused("a new mutex", [&] { ExclusiveMutex(session, "/m"); });
        refused("a new semaphore", [&] { Semaphore(session, "/s", 1); });
        refused("a new node", [&] { PersistentNode(session, "/n"); });
        refused("a new value", [&] { SharedValue(session, "/v", ""); });
        refused("read_node", [&] { ignore(read_node(session, "/", Fresh::no, 1s)); });
        refused("inspect_lock", [&] { ignore(inspect_lock(session, "/m", 1s)); });
        refused("find_locks", [&] { ignore(find_locks(session, "/", Deadline::never())); });
        refused("wait_until_free", [&] { ignore(wait_until_free(session, "/m", 1s)); });
    }
    void of_grants() {
        expect(!grant.held(), "held()");
        expect(grant.remaining_lease() == 0ms, "remaining_lease()");
        expect(!grant.again().held(), "again()");
        expect(grant.lost().stop_requested(), "lost()");
        refused("revocation", [&] { ignore(grant.revocation()); });
        refused("release_and_wait", [&] { lease.release_and_wait(1s); });
        refused("commit", [&] { transaction.commit(); });
        refused("try_commit_until", [&] { ignore(transaction.try_commit_for(1s)); });
        refused("commit_async", [&] { transaction.commit_async(1s, {}, [](const auto&) {}); });
        refused("Transaction::check", [&] { transaction.check("/"); });
    }
    void of_locks() {
        const auto nothing = [](const AcquireResult&) {};
        refused("acquire", [&] { ignore(mutex.acquire()); });
        refused("try_acquire_until", [&] { ignore(mutex.try_acquire_for(1s)); });
        refused("acquire_async", [&] { mutex.acquire_async(1s, {}, nothing); });
        refused("lock", [&] { mutex.lock(); });
        refused("try_lock", [&] { ignore(mutex.try_lock()); });
        refused("try_lock_for", [&] { ignore(mutex.try_lock_for(1s)); });
        refused("participants", [&] { ignore(mutex.participants()); });
        refused("rw.acquire", [&] { ignore(rw.try_acquire_for(1s)); });
        refused("rw.acquire_shared", [&] { ignore(rw.acquire_shared()); });
        refused("rw.downgrade", [&] { ignore(rw.downgrade(grant)); });
        refused("rw.downgrade_async", [&] { rw.downgrade_async(grant, 1s, {}, nothing); });
        refused("rw.acquire_async", [&] { rw.acquire_async(1s, {}, nothing); });
        refused("rw.try_lock_shared", [&] { ignore(rw.try_lock_shared()); });
        refused("multi.acquire", [&] { ignore(multi.acquire()); });
        refused("multi.try_acquire_while_holding", [&] { ignore(multi.try_acquire_while_holding(1s)); });
        refused("multi.acquire_async", [&] { multi.acquire_async(1s, {}, nothing); });
        refused("multi.participants", [&] { ignore(multi.participants()); });
        refused("semaphore.acquire", [&] { ignore(semaphore.acquire()); });
        refused("semaphore.try_acquire", [&] { ignore(semaphore.try_acquire()); });
        refused("semaphore.acquire_async", [&] { semaphore.acquire_async(1s, {}, nothing); });
        refused("semaphore.leases", [&] { ignore(semaphore.leases()); });
        refused("semaphore.set_leases", [&] { semaphore.set_leases(3); });
        refused("semaphore_mutex.lock", [&] { semaphore_mutex.lock(); });
        refused("semaphore_mutex.acquire_async", [&] { semaphore_mutex.acquire_async(1s, {}, nothing); });
        refused("registry.get", [&] { ignore(registry.get("key")); });
        refused("the registry's lock", [&] { in_registry.lock(); });
        expect(registry.size() == 0, "registry.size()");
    }
    void of_values() {
        refused("counter.get", [&] { ignore(counter.get()); });
        refused("counter.add", [&] { ignore(counter.add(1)); });
        refused("counter.add_async", [&] { counter.add_async(1, 1s, {}, [](const auto&) {}); });
        refused("counter.force_set", [&] { counter.force_set(1); });
        refused("value.get", [&] { ignore(value.get()); });
        refused("value.set", [&] { value.set("x"); });
        refused("value.try_set", [&] { ignore(value.try_set(0, "x")); });
        refused("value.set_async", [&] { value.set_async("x", 1s, {}, [](const auto&) {}); });
        refused("value.observe", [&] { ignore(value.observe([](const auto&) {})); });
        refused("count.get", [&] { ignore(count.get()); });
        refused("count.set", [&] { count.set(2); });
        refused("barrier.set", [&] { barrier.set(); });
        refused("barrier.remove", [&] { barrier.remove(); });
        refused("barrier.wait", [&] { ignore(barrier.wait(1s)); });
        refused("barrier.wait_async", [&] { barrier.wait_async(1s, {}, [](const auto&) {}); });
        refused("double_barrier.enter", [&] { ignore(double_barrier.enter(1s)); });
        refused("double_barrier.leave", [&] { ignore(double_barrier.leave(1s)); });
    }
    void of_members() {
        refused("election.campaign", [&] { ignore(election.campaign()); });
        refused("election.campaign_async", [&] { election.campaign_async(1s, {}, [](const auto&) {}); });
        refused("election.run", [&] { election.run([](const Grant&, const std::stop_token&) {}); });
        refused("election.leader", [&] { ignore(election.leader()); });
        refused("election.candidates", [&] { ignore(election.candidates()); });
        refused("election.observe", [&] { ignore(election.observe([](const auto&) {})); });
        expect(!election.resign(), "election.resign()");
        refused("node.wait_present", [&] { ignore(node.wait_present(1s)); });
        refused("node.set_data", [&] { node.set_data("x"); });
        refused("node.data", [&] { ignore(node.data()); });
        refused("node.watch_state", [&] { ignore(node.watch_state([](PersistentNodeState) {})); });
        refused("node.close_and_wait", [&] { ignore(node.close_and_wait(1s)); });
        expect(node.state() == PersistentNodeState::closed, "node.state()");
        refused("member.wait_joined", [&] { ignore(member.wait_joined(1s)); });
        refused("member.payload", [&] { ignore(member.payload()); });
        refused("member.members", [&] { ignore(member.members()); });
        refused("member.leave_and_wait", [&] { ignore(member.leave_and_wait(1s)); });
        refused("group.members", [&] { ignore(group.members()); });
        refused("group.observe", [&] { ignore(group.observe([](const auto&) {})); });
    }
    void nothing_is_held() {
        expect(!mutex.held_by_caller() && mutex.token() == 0, "mutex.held_by_caller()");
        expect(!rw.held_by_caller() && !rw.shared_held_by_caller() && rw.token() == 0, "rw.held_by_caller()");
        expect(!multi.held_by_caller() && multi.token() == 0, "multi.held_by_caller()");
        expect(!semaphore_mutex.held() && semaphore_mutex.token() == 0, "semaphore_mutex.held()");
        expect(!mutex.path().empty() && !election.id().empty(), "what objects are called is known");
    }

public:
    Session& session;
    ExclusiveMutex mutex;
    ReadWriteLock rw;
    MultiLock multi;
    Semaphore semaphore;
    SemaphoreMutex semaphore_mutex;
    LeaderElection election;
    Barrier barrier;
    DoubleBarrier double_barrier;
    AtomicCounter counter;
    SharedValue value;
    SharedCount count;
    PersistentNode node;
    Group group;
    GroupMember member;
    LockRegistry registry;
    Grant grant;
    Grant lease;
    Grant both;
    Subscription states;
    Subscription seen;
    Subscription leaders;
    Transaction transaction;
    ExclusiveMutex in_registry;
};

/// What the child does is up to `round`: uses it, gives it back, or both; and ends with a static Session of the
/// parent's.
void be_the_child(Everything& inherited, const std::string& connect, const std::string& path, int round) {
    g_is_child = true;
    ::alarm(120);  // a hang is a death
    if (round % 2 == 0) inherited.is_refused();
    if (round % 3 == 0) inherited.is_dropped();
    if (kForksAreSafe && round % 4 == 0) {
        // The remedy: a session of its own, for which the holds of the parent are those of somebody else.
        Session own(options_for(connect));
        ExclusiveMutex contended(own, path + "/mutex");
        expect(!contended.try_lock(), "the parent holds it");
        MultiLock multi(own, {{path + "/child", MultiLock::As::mutex}});
        const std::lock_guard lock(multi);
        expect(multi.held_by_caller(), "the child's own lock is held");
    }
}

int wait_for(pid_t child) {
    int status = -1;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// Until the lease was renewed, so that the session is alive beyond all doubt.
void await_renewal(const Grant& grant) {
    const auto until = [&] { return std::chrono::steady_clock::now() + grant.remaining_lease(); };
    const auto before = until();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (grant.held() && until() < before + 100ms) {
        expect(std::chrono::steady_clock::now() < deadline, "the lease is renewed");
        std::this_thread::sleep_for(1ms);
    }
    expect(grant.held(), "the parent holds on");
}

}  // namespace

int fork_while_holding(const std::string& connect, const std::string& path) {
    static Session session(options_for(connect));
    expect(session.wait_connected(60s), "a server answers");
    const auto session_id = session.info().session_id;
    static Everything everything(session, path);
    {
        // So that locks inside the library are taken at many of the forks.
        const std::jthread busy([&](const std::stop_token& stop) {
            ExclusiveMutex mutex(session, path + "/busy");
            while (kForksAreSafe && !stop.stop_requested()) {
                const std::lock_guard lock(mutex);
                ignore(everything.counter.add(1));
            }
        });
        for (int round = 0; round < 12; ++round) {
            const pid_t child = ::fork();
            expect(child >= 0, "fork");
            if (child == 0) {
                be_the_child(everything, connect, path, round);
                std::exit(0);  // static destructors, too
            }
            const int status = wait_for(child);
            if (status != 0) std::cerr << "round " << round << ": status " << status << '\n';
            expect(status == 0, "the child ends with exit code 0");
            expect(everything.grant.held(), "the parent's hold survives the child");
        }
    }
    await_renewal(everything.grant);
    expect(session.info().session_id == session_id, "it is the same session");
    expect(everything.rw.shared_held_by_caller() && everything.both.held(), "all is held");
    expect(everything.semaphore_mutex.held() && everything.lease.held(), "leases are held");
    everything.both.release();
    everything.rw.unlock_shared();
    everything.semaphore_mutex.unlock();
    return everything.grant.release_and_wait(60s) ? 0 : 1;
}

}  // namespace zkrecipes::test
