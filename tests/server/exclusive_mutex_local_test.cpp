// Many calls of one process on one lock: turns, nodes that are kept, and shares that join, on a real server.
#include <set>

#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using testenv::Record;

LockOptions handing_over(std::uint32_t times) {
    LockOptions out;
    out.local_handovers = times;
    out.local_turn = 60s;
    return out;
}

LockOptions keeping(std::chrono::milliseconds time) {
    LockOptions out;
    out.keep_for = time;
    return out;
}

/// As many calls of one session as it is told. Each gives the lock back as soon as it gets it, but for the first one
/// where that is wanted.
class Crowd {
public:
    Crowd(Session session, const std::string& path, const LockOptions& terms)
        : session_(std::move(session)), mutex_(session_, path, terms) {}
    ~Crowd() { session_.close(); }

    enum class First { gives_back, holds };
    void ask(int times, First first = First::gives_back) {
        hold_first_ = first == First::holds;
        for (int i = 0; i < times; ++i) {
            mutex_.acquire_async(Deadline::never(), {}, [this](AcquireResult result) {
                if (!result.value) return;
                const std::lock_guard guard(lock_);
                tokens_.push_back(result.value.token());
                if (std::exchange(hold_first_, false)) first_ = std::move(result.value);
            });
        }
    }
    bool holds() {
        const std::lock_guard guard(lock_);
        return static_cast<bool>(first_);
    }
    void release_first() {
        const std::lock_guard guard(lock_);
        first_.release();
    }
    /// How many have been granted the lock since the last call, and by how many nodes.
    std::pair<std::size_t, std::size_t> granted() {
        const std::lock_guard guard(lock_);
        const std::set<FencingToken> nodes(tokens_.begin() + static_cast<std::ptrdiff_t>(seen_), tokens_.end());
        return {tokens_.size() - std::exchange(seen_, tokens_.size()), nodes.size()};
    }

private:
    std::mutex lock_;
    std::vector<FencingToken> tokens_;
    std::size_t seen_ = 0;
    bool hold_first_ = false;
    Grant first_;
    Session session_;
    ExclusiveMutex mutex_;
};

class ExclusiveMutexLocalTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (!IsSkipped()) observer().make_path(lock_path());
    }
    /// What a session through the gate has asked of this lock.
    std::vector<Record> requests() {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            const bool asks = record.kind == Record::Kind::request && record.path.starts_with(lock_path());
            if (asks) out.push_back(record);
        }
        return out;
    }
    /// Acquires and releases until two holds in turn have one node.
    static void settle(ExclusiveMutex& mutex) {
        ASSERT_TRUE(await([&] {
            const auto token = mutex.acquire().token();
            return mutex.acquire().token() == token;
        }));
    }
};

TEST_F(ExclusiveMutexLocalTest, AnArrivalWaitsForOneTurnOfEachOtherSession) {
    constexpr std::size_t kTurn = 64;
    Crowd one(session(), lock_path(), handing_over(kTurn));
    one.ask(1000, Crowd::First::holds);
    ASSERT_TRUE(await([&] { return one.holds(); }));
    Crowd other(session(), lock_path(), handing_over(kTurn));
    other.ask(1000);
    ASSERT_TRUE(await_nodes(2));
    EXPECT_EQ(one.granted().first, 1u);

    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    std::mutex lock;
    std::vector<Grant> grants;
    const auto arrive = [&] {
        mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            const std::lock_guard guard(lock);
            grants.push_back(std::move(result.value));
        });
    };
    const auto granted = [&](std::size_t times) {
        return await([&] {
            const std::lock_guard guard(lock);
            return grants.size() == times;
        });
    };
    arrive();
    ASSERT_TRUE(await_nodes(3));
    one.release_first();
    ASSERT_TRUE(granted(1));
    EXPECT_EQ(one.granted(), std::pair(kTurn - 1, std::size_t{1}));
    EXPECT_EQ(other.granted(), std::pair(kTurn, std::size_t{1}));
    for (std::size_t round = 1; round <= 7; ++round) {
        arrive();
        ASSERT_TRUE(await_nodes(4));  // ours, the next one of ours, and one of each crowd
        grants.back().release();
        ASSERT_TRUE(granted(round + 1));
        for (Crowd* crowd : {&one, &other}) {
            const auto [holds, nodes] = crowd->granted();
            EXPECT_LE(holds, kTurn);
            EXPECT_LE(nodes, 1u);
        }
    }
    grants.clear();
}

TEST_F(ExclusiveMutexLocalTest, AHandOverInTheProcessAsksNothing) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path(), handing_over(1000));
    std::vector<std::thread> threads;
    long counter = 0;
    std::set<FencingToken> tokens;
    std::pair<FencingToken, std::uint64_t> last{};
    bool in_order = true;
    Grant first = mutex.acquire();
    gate().reset_trace();
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                const Grant grant = mutex.acquire();
                const std::pair now(grant.token(), grant.handovers());
                in_order = in_order && now > last;
                last = now;
                tokens.insert(grant.token());
                ++counter;
            }
        });
    }
    first.release();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(counter, 200);
    EXPECT_TRUE(in_order);
    // Where nobody waits at the moment of a release, the node is given back, and that is the end of a turn.
    EXPECT_LE(requests().size(), 6 * tokens.size());
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(ExclusiveMutexLocalTest, AKeptLockIsAcquiredAgainWithoutARequestAndGivenToTheFirstWhoAsks) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path(), keeping(60s));
    settle(mutex);
    ASSERT_TRUE(await([&] {
        gate().reset_trace();
        for (int i = 0; i < 1000; ++i) mutex.acquire().release();
        return requests().empty();  // else what sets the watch was still on its way
    }));
    EXPECT_EQ(nodes().size(), 1u);
    auto elsewhere = session();
    gate().reset_trace();
    const Grant theirs = ExclusiveMutex(elsewhere, lock_path()).acquire();
    EXPECT_TRUE(theirs.held());
    EXPECT_EQ(requests_of_lock(), 1u);
    EXPECT_EQ(gate().counts()[Opcode::remove], 1u);
    EXPECT_EQ(nodes().size(), 1u);
}

TEST_F(ExclusiveMutexLocalTest, AKeptLockIsGivenBackWhenItsTimeIsOver) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path(), keeping(200ms));
    mutex.acquire().release();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(ExclusiveMutexLocalTest, SharesJoinAndAWriterElsewhereIsNext) {
    auto s = gated_session(kNoHeartbeat);
    ReadWriteLock lock(s, lock_path(), handing_over(3));
    Grant first = lock.acquire_shared();
    gate().reset_trace();
    {
        const Grant second = lock.acquire_shared(), third = lock.acquire_shared();
        EXPECT_EQ(second.token(), first.token());
        EXPECT_EQ(nodes().size(), 1u);
    }
    auto elsewhere = session();
    ReadWriteLock theirs(elsewhere, lock_path());
    std::atomic<bool> written{false};
    theirs.acquire_async(Deadline::never(), {}, [&](AcquireResult result) { written = result.value.held(); });
    ASSERT_TRUE(await_nodes(2));
    Grant last = lock.acquire_shared();  // joins the last time that it may
    EXPECT_EQ(last.token(), first.token());
    for (const auto& record : requests()) EXPECT_NE(record.opcode, Opcode::create2);
    std::atomic<bool> read{false};
    lock.acquire_shared_async(Deadline::never(), {}, [&](AcquireResult result) { read = result.value.held(); });
    ASSERT_TRUE(await_nodes(3));
    first.release();
    EXPECT_TRUE(last.held());
    EXPECT_FALSE(written);
    EXPECT_FALSE(read);
    last.release();
    EXPECT_TRUE(await([&] { return written && read; }));
}

}  // namespace
}  // namespace zkrecipes::test
