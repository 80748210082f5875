// ReadWriteLock on real servers: who waits for whom, what it costs, and what peers may do.
#include <zkrecipes/read_write_lock.hpp>

#include <future>
#include <set>
#include <shared_mutex>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using testenv::Record;
using ::testing::HasSubstr;

class ReadWriteLockTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (!IsSkipped()) observer().make_path(lock_path());
    }
    std::string peer_node(const std::string& kind, const std::string& sequence = "") {
        static int peers = 0;
        char uuid[40];
        std::snprintf(uuid, sizeof uuid, "00000000-0000-4000-8000-%012d", ++peers);
        return lock_path() + "/_c_" + uuid + "-" + kind + sequence;
    }
    /// As a Curator peer enters the queue.
    std::string peer_enters(const std::string& kind) {
        return observer().create(peer_node(kind), "10.0.0.1", testenv::CreateMode::ephemeral_sequential).path;
    }
    static std::string sequence_of(const std::string& path) { return path.substr(path.size() - 10); }
};

TEST_F(ReadWriteLockTest, SharesAreHeldBesideEachOtherAndKeepOutWhoWantsItAlone) {
    auto one = session(), two = session();
    ReadWriteLock a(one, lock_path()), b(two, lock_path());
    const Grant first = a.acquire_shared();
    Grant second = b.try_acquire_shared_until(kMaxWait);
    ASSERT_TRUE(second);
    EXPECT_TRUE(first.held() && second.held());
    EXPECT_THAT(first.node(), HasSubstr("-__READ__"));
    auto three = session();
    ReadWriteLock c(three, lock_path());
    EXPECT_FALSE(c.try_lock());
    EXPECT_TRUE(c.try_lock_shared());
    c.unlock_shared();
    EXPECT_FALSE(c.try_lock_for(20ms));
    EXPECT_TRUE(await_nodes(2));
}

TEST_F(ReadWriteLockTest, AMutexOnTheSamePathStandsInTheSameQueue) {
    auto one = session(), two = session(), three = session();
    ReadWriteLock lock(one, lock_path()), other(three, lock_path());
    ExclusiveMutex mutex(two, lock_path());
    Grant share = lock.acquire_shared();
    EXPECT_FALSE(mutex.try_lock());
    auto waiting = std::async(std::launch::async, [&] { return mutex.try_acquire_until(kMaxWait); });
    EXPECT_TRUE(await_nodes(2));
    EXPECT_FALSE(other.try_lock_shared()) << "past a mutex that waits";
    EXPECT_FALSE(other.try_lock());
    share.release();
    Grant held = waiting.get();
    ASSERT_TRUE(held);
    EXPECT_FALSE(lock.try_lock_shared());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_TRUE(held.release_and_wait(kMaxWait));
    Grant alone = lock.try_acquire_until(kMaxWait);
    EXPECT_TRUE(alone);
    EXPECT_FALSE(mutex.try_lock_for(20ms));
    EXPECT_TRUE(await_nodes(1));
}

TEST_F(ReadWriteLockTest, WhoHoldsItAloneKeepsOutEverybody) {
    auto one = session(), two = session();
    ReadWriteLock a(one, lock_path()), b(two, lock_path());
    Grant alone = a.acquire();
    EXPECT_THAT(alone.node(), HasSubstr("-__WRIT__"));
    EXPECT_FALSE(b.try_lock());
    EXPECT_FALSE(b.try_lock_shared());
    EXPECT_FALSE(b.try_lock_shared_for(20ms));
    EXPECT_FALSE(b.try_lock_shared_until(std::chrono::system_clock::now() + 10ms));
    EXPECT_TRUE(await_nodes(1));
    EXPECT_TRUE(alone.release_and_wait(kMaxWait));
    std::shared_lock guard(b, 20s);
    EXPECT_TRUE(guard.owns_lock());
    EXPECT_TRUE(b.shared_held_by_caller());
    EXPECT_FALSE(b.held_by_caller());
    EXPECT_GT(b.token(), 0);
}

TEST_F(ReadWriteLockTest, AReaderWaitsBehindAnEarlierWriterAndNotForALaterOne) {  // H23
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    Grant first = lock.acquire_shared();
    Grant writer_grant, reader_grant, late_grant;
    std::atomic<bool> writer{false}, reader{false}, late{false};
    lock.acquire_async(kMaxWait, {}, [&](AcquireResult result) {
        writer_grant = std::move(result.value);
        writer = true;
    });
    ASSERT_TRUE(await_nodes(2));
    lock.acquire_shared_async(kMaxWait, {}, [&](AcquireResult result) {
        reader_grant = std::move(result.value);
        reader = true;
    });
    ASSERT_TRUE(await_nodes(3));
    auto other = session();
    ReadWriteLock(other, lock_path()).acquire_async(kMaxWait, {}, [&](AcquireResult result) {
        late_grant = std::move(result.value);
        late = true;
    });
    ASSERT_TRUE(await_nodes(4));
    const auto queue = lock.participants();
    ASSERT_EQ(queue.size(), 4u);
    std::string modes;
    for (const auto& participant : queue) modes += (participant.holder ? "*" : "") + participant.mode + " ";
    EXPECT_EQ(modes, "*shared exclusive shared exclusive ");
    EXPECT_FALSE(writer || reader || late);
    first.release();
    ASSERT_TRUE(await([&] { return writer.load(); }));
    EXPECT_TRUE(writer_grant.held());
    EXPECT_FALSE(reader || late);
    writer_grant.release();
    ASSERT_TRUE(await([&] { return reader.load(); }));
    EXPECT_TRUE(reader_grant.held());
    EXPECT_FALSE(late);
    reader_grant.release();
    ASSERT_TRUE(await([&] { return late.load(); }));
    EXPECT_TRUE(late_grant.held());
}

TEST_F(ReadWriteLockTest, FromSharedToAloneIsAnErrorAtOnceAndLeavesNothing) {  // H44
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    lock.lock_shared();
    lock.lock_shared();
    EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::would_deadlock);
    EXPECT_EQ(lock.try_acquire().missed(), Missed::busy);  // a grant has no owner
    EXPECT_EQ(error_of([&] { (void)lock.try_lock(); }).errc(), Errc::would_deadlock);
    EXPECT_THAT(error_of([&] { lock.lock(); }).what(), HasSubstr(lock_path()));
    lock.unlock_shared();
    EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::would_deadlock);  // one level is left
    lock.unlock_shared();
    EXPECT_TRUE(lock.try_lock_shared());
    lock.unlock_shared();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(ReadWriteLockTest, ALostShareStaysLostUntilItIsGivenBack) {
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    lock.lock_shared();
    const auto lost = lock.lost();
    ASSERT_TRUE(observer().remove(lock_path() + "/" + nodes().at(0)));
    ASSERT_TRUE(await([&] { return lost.stop_requested(); }));
    EXPECT_FALSE(lock.shared_held_by_caller());
    EXPECT_EQ(error_of([&] { lock.lock_shared(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::lock_lost);
    lock.unlock_shared();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
}

TEST_F(ReadWriteLockTest, APeersShareWithTheNumberOfItsWriterKeepsTheNextWriterOut) {  // H45
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    const auto peer = peer_enters("__WRIT__");
    std::atomic<bool> served{false};
    Grant grant;
    lock.acquire_async(kMaxWait, {}, [&](AcquireResult result) {
        grant = std::move(result.value);
        served = true;
    });
    ASSERT_TRUE(await_nodes(2));
    Acquiring reader([&] { return lock.try_acquire_shared_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(3));
    // The peer, holding it alone, takes a share and then gives up the rest.
    const auto share = peer_node("__READ__", sequence_of(peer));
    observer().create(share, "10.0.0.1", testenv::CreateMode::ephemeral);
    auto queue = lock.participants();
    ASSERT_EQ(queue.size(), 4u);
    EXPECT_TRUE(queue[0].holder && queue[1].holder && !queue[2].holder && !queue[3].holder);
    observer().remove(peer);
    // The writer has noticed when it watches the share; had it gone on by the end of the first node, it would hold now.
    ASSERT_TRUE(await([&] { return lock.participants().size() == 3; }));
    if (!uses_outside_ensemble()) {
        ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(share) != std::string::npos; }));
    }
    EXPECT_FALSE(served);
    EXPECT_FALSE(reader.done());
    observer().remove(share);
    ASSERT_TRUE(await([&] { return served.load(); }));
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(reader.done());
    grant.release();
    EXPECT_TRUE(reader.get().held());
}

TEST_F(ReadWriteLockTest, PeersAndWeWaitForEachOther) {
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    const auto reader = peer_enters("__READ__");
    EXPECT_FALSE(lock.try_lock());
    EXPECT_TRUE(lock.try_lock_shared());
    const auto writer = peer_enters("__WRIT__");
    lock.unlock_shared();
    observer().remove(reader);
    EXPECT_FALSE(lock.try_lock_shared());
    EXPECT_FALSE(lock.try_lock());
    observer().remove(writer);
    EXPECT_TRUE(lock.try_lock_for(kMaxWait));
    const auto token = lock.token();
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_shared_for(kMaxWait));
    EXPECT_GT(lock.token(), token);
    lock.unlock_shared();
}

TEST_F(ReadWriteLockTest, UncontendedBothSidesCostOneRoundTripAndTwoRequests) {
    auto s = gated_session(kNoHeartbeat);
    ReadWriteLock lock(s, lock_path());
    for (const bool shared : {false, true, false}) {
        gate().reset_trace();
        Grant grant = in_round_trips({2}, [&] { return shared ? lock.acquire_shared() : lock.acquire(); });
        EXPECT_EQ(to_string(counts()), "exists 1, create2 1");
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 1) << to_string(trace());
        {
            const Grant again = grant.again();
            EXPECT_EQ(again.token(), grant.token());
        }
        EXPECT_EQ(counts().total(), 2u);
        EXPECT_TRUE(grant.held());
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(counts()[Opcode::remove], 1u);
        EXPECT_EQ(counts().total(), 3u) << to_string(trace());
    }
}

TEST_F(ReadWriteLockTest, AShareBesideAnotherCostsOneListMoreAndNoWatch) {
    auto other = session();
    ReadWriteLock beside(other, lock_path());
    const Grant share = beside.acquire_shared();
    auto s = gated_session(kNoHeartbeat);
    ReadWriteLock lock(s, lock_path());
    gate().reset_trace();
    const Grant grant = in_round_trips({2, 1}, [&] { return lock.acquire_shared(); });
    EXPECT_EQ(counts()[Opcode::get_children2], 1u);
    EXPECT_EQ(counts().total(), 3u) << to_string(trace());
    EXPECT_EQ(round_trips(trace(), s.info().session_id), 2);
}

TEST_F(ReadWriteLockTest, AFailedTryOfEitherSideIsOneReadAndNothingElse) {
    auto holder = session();
    ReadWriteLock held(holder, lock_path());
    Grant grant = held.acquire();
    auto s = gated_session(kNoHeartbeat);
    ReadWriteLock lock(s, lock_path());
    const auto one_read = [&](bool got) {
        EXPECT_FALSE(got);
        EXPECT_EQ(to_string(counts()), "get_children2 1");
        gate().reset_trace();
    };
    gate().reset_trace();
    one_read(lock.try_lock());
    one_read(lock.try_lock_shared());
    ASSERT_TRUE(grant.release_and_wait(kMaxWait));
    const Grant share = held.acquire_shared();
    one_read(lock.try_lock());
}

TEST_F(ReadWriteLockTest, AReleaseWakesExactlyTheReadersThatCanProceed) {  // H22
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto holder = gated_session(kNoHeartbeat);
    ReadWriteLock held(holder, lock_path());
    Grant grant = held.acquire();
    // W | R*25 | W | R*25, all of sessions of their own.
    constexpr std::size_t kReaders = 25;
    std::vector<Session> sessions;
    std::mutex guard;
    std::vector<Grant> granted;
    std::atomic<std::size_t> served{0};
    const auto enter = [&](bool shared) {
        sessions.push_back(gated_session(kNoHeartbeat));
        ReadWriteLock lock(sessions.back(), lock_path());
        const auto done = [&](AcquireResult result) {
            {
                const std::lock_guard in(guard);
                granted.push_back(std::move(result.value));
            }
            ++served;
        };
        if (shared) {
            lock.acquire_shared_async(Deadline::never(), {}, done);
        } else {
            lock.acquire_async(Deadline::never(), {}, done);
        }
        ASSERT_TRUE(await_nodes(sessions.size() + 1));
    };
    for (const int half : {0, 1}) {
        if (half == 1) enter(false);
        for (std::size_t i = 0; i < kReaders; ++i) enter(true);
    }
    // All of them, and the holder, which has watched its own node by now.
    ASSERT_TRUE(await([&] { return server().watch_count() >= static_cast<std::int64_t>(2 * kReaders + 2); }));
    const auto holder_session = grant.session_id();
    gate().reset_trace();
    grant.release();
    ASSERT_TRUE(await([&] { return served == kReaders; }));
    ASSERT_TRUE(await([&] { return counts()[Opcode::multi] >= kReaders; }));
    std::size_t woken = 0;
    for (const auto& record : trace()) woken += record.kind == Record::Kind::event && record.session != holder_session;
    EXPECT_EQ(woken, kReaders) << to_string(trace());
    EXPECT_EQ(counts()[Opcode::remove], 1u);
    EXPECT_EQ(counts()[Opcode::get_children2], 0u);  // their one writer is gone: nobody has to look again
    // The readers leave; the writer, and nobody else, is woken by them, and then has it alone.
    std::set<std::int64_t> may_be_woken;  // a reader that has watched its own node is told, too
    for (std::size_t i = 0; i <= kReaders; ++i) may_be_woken.insert(sessions[i].info().session_id);
    gate().reset_trace();
    {
        const std::lock_guard in(guard);
        for (auto& share : granted) EXPECT_TRUE(share.held());
        granted.clear();
    }
    ASSERT_TRUE(await([&] { return served == kReaders + 1; }));
    EXPECT_TRUE(await_nodes(kReaders + 1));
    for (const auto& record : trace()) {
        EXPECT_TRUE(record.kind != Record::Kind::event || may_be_woken.contains(record.session)) << to_string(record);
    }
    {
        const std::lock_guard in(guard);
        EXPECT_TRUE(granted.at(0).held());
        EXPECT_THAT(granted.at(0).node(), HasSubstr("__WRIT__"));
    }
    for (auto& s : sessions) s.close();
    ASSERT_TRUE(await([&] { return served == 2 * kReaders + 1; }));
}

TEST_F(ReadWriteLockTest, OfFiftyWritersBehindAShareAReleaseWakesTheNextOne) {  // H22
    ZKRECIPES_NEEDS_OWN_SERVER();
    constexpr std::size_t kWriters = 50;
    auto holder = gated_session(kNoHeartbeat);
    ReadWriteLock held(holder, lock_path());
    Grant share = held.acquire_shared();
    std::vector<Session> sessions;
    std::mutex guard;
    std::vector<Grant> granted;
    granted.reserve(kWriters);
    const auto served = [&] {
        const std::lock_guard in(guard);
        return granted.size();
    };
    for (std::size_t i = 0; i < kWriters; ++i) sessions.push_back(gated_session(kNoHeartbeat));
    for (auto& s : sessions) {
        ReadWriteLock(s, lock_path()).acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            const std::lock_guard in(guard);
            granted.push_back(std::move(result.value));
        });
    }
    // The holder, too, has watched its node by now.
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] == kWriters + 1; }));
    for (std::size_t done = 0; done < 5; ++done) {
        gate().reset_trace();
        Grant& leaving = done == 0 ? share : granted[done - 1];
        const auto leaver = leaving.session_id();
        leaving.release();
        ASSERT_TRUE(await([&] { return served() == done + 1; }));
        std::size_t woken = 0;
        for (const auto& record : trace()) woken += record.kind == Record::Kind::event && record.session != leaver;
        EXPECT_EQ(woken, 1u) << to_string(trace());
        EXPECT_EQ(counts()[Opcode::get_children2], 1u);          // a share may have appeared before it
        EXPECT_EQ(counts().writes(), 2u) << to_string(trace());  // the delete, and the new holder's check
    }
    for (auto& s : sessions) s.close();
    ASSERT_TRUE(await([&] { return served() == kWriters; }));
}

TEST_F(ReadWriteLockTest, TheQueueGoesOnAcrossTheOverflowOfItsNumbers) {  // H11
    const auto enters = [&](const std::string& directory, const std::string& kind, const char* number) {
        observer().make_path(directory);
        const auto node = directory + peer_node(kind, number).substr(lock_path().size());
        observer().create(node, "10.0.0.1", testenv::CreateMode::ephemeral);
        return node;
    };
    auto s = session();
    ReadWriteLock around(s, lock_path());
    enters(lock_path(), "__READ__", "-2147483647");
    enters(lock_path(), "__WRIT__", "-2147483648");
    enters(lock_path(), "__READ__", "2147483647");
    enters(lock_path(), "__READ__", "2147483646");
    std::string modes;
    for (const auto& one : around.participants()) modes += (one.holder ? "*" : "") + one.mode + " ";
    EXPECT_EQ(modes, "*shared *shared exclusive shared ");

    // Our own number is small, and the negative ones come before it; by their text -1 would come before -2.
    const auto directory = path("through-zero");
    ReadWriteLock lock(s, directory);
    const auto share = enters(directory, "__READ__", "-000000003"),
               second = enters(directory, "__WRIT__", "-000000002"),
               third = enters(directory, "__WRIT__", "-000000001");
    Acquiring reader([&] { return lock.try_acquire_shared_until(kMaxWait); });
    ASSERT_TRUE(await([&] { return nodes_of(directory).size() == 4; }));
    auto other = session();
    Acquiring writer([&] { return ReadWriteLock(other, directory).try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await([&] { return nodes_of(directory).size() == 5; }));
    if (!uses_outside_ensemble()) {
        ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(third) != std::string::npos; }));
        EXPECT_EQ(server().four_letter("wchp").find(second), std::string::npos);
    }
    for (const auto& node : {third, share, second}) {
        EXPECT_FALSE(reader.done() || writer.done());
        EXPECT_TRUE(observer().remove(node));
    }
    Grant got = reader.get();
    EXPECT_TRUE(got.held());
    EXPECT_FALSE(writer.done());
    got.release();
    EXPECT_TRUE(writer.get().held());
}

TEST_F(ReadWriteLockTest, ReadersSeeOneStateAndWritersLoseNothing) {
    auto one = session(), two = session();
    ReadWriteLock a(one, lock_path()), b(two, lock_path());
    std::atomic<int> writers{0}, readers{0}, wrong{0};
    int counter = 0;
    {
        std::vector<std::jthread> crowd;
        for (int agent = 0; agent < 8; ++agent) {
            crowd.emplace_back([&, agent] {
                auto& lock = agent % 2 == 0 ? a : b;
                for (int i = 0; i < 20; ++i) {
                    if ((agent + i) % 4 == 0) {
                        const std::unique_lock guard(lock);
                        wrong += writers++ + readers;
                        ++counter;
                        --writers;
                    } else {
                        const std::shared_lock guard(lock);
                        ++readers;
                        wrong += writers;
                        --readers;
                    }
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(counter, 40);
    EXPECT_TRUE(await_nodes(0));
}

}  // namespace
}  // namespace zkrecipes::test
