// Holds that end by their own time, and labels that change meanwhile, on a real server.
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using MaxHoldServerTest = ExclusiveMutexServerTest;
using LabelsServerTest = ExclusiveMutexServerTest;

LockOptions limited(std::chrono::milliseconds max_hold) {
    LockOptions out;
    out.max_hold = max_hold;
    return out;
}

TEST_F(MaxHoldServerTest, TheNextOneIsGrantedAtTheEndAndNotBefore) {
    auto s = session(), other = session();
    ExclusiveMutex mine(s, lock_path(), limited(700ms)), theirs(other, lock_path());
    const auto before = std::chrono::steady_clock::now();
    const Grant grant = mine.acquire();
    EXPECT_LE(grant.remaining_lease(), 700ms);
    const Grant next = theirs.acquire();
    EXPECT_FALSE(grant.held()) << "never both";
    EXPECT_TRUE(next.held());
    EXPECT_GT(next.token(), grant.token());
    EXPECT_GE(std::chrono::steady_clock::now() - before, 700ms);
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_THAT(nodes(), SizeIs(1)) << "though its owner never releases";
}

TEST_F(MaxHoldServerTest, WhileNoServerAnswersTheHoldEndsAndItsNodeIsDeletedAfterwards) {
    auto s = gated_session(20s);
    ExclusiveMutex mutex(s, lock_path(), limited(5s));
    const Grant grant = mutex.acquire();
    gate().refuse();
    gate().reset_all();
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(grant.held());
    EXPECT_THAT(nodes(), SizeIs(1));
    gate().pass();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(MaxHoldServerTest, AReleaseInTimeCostsWhatItAlwaysDoes) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path(), limited(60s));
    mutex.acquire().release_and_wait(kMaxWait);
    gate().reset_trace();
    EXPECT_TRUE(mutex.acquire().release_and_wait(kMaxWait));
    EXPECT_EQ(requests_of_lock(), 3U);
}

TEST_F(MaxHoldServerTest, SharesOfOneNodeEndOneByOne) {
    auto s = session(60s), other = session();
    LockOptions of_lock = limited(8s);
    of_lock.local_handovers = 4;
    of_lock.local_turn = 60s;
    ReadWriteLock lock(s, lock_path(), of_lock), theirs(other, lock_path());
    const Grant first = lock.acquire_shared();
    ASSERT_TRUE(await([&] { return first.remaining_lease() < 4s; }));
    std::promise<Grant> joined;
    lock.acquire_shared_async(Deadline::never(), {},
                              [&](AcquireResult result) { joined.set_value(std::move(result.value)); });
    const Grant second = joined.get_future().get();
    EXPECT_EQ(second.node(), first.node());
    Acquiring writer([&] { return theirs.acquire(); });
    ASSERT_TRUE(await([&] { return !first.held(); }));
    EXPECT_TRUE(second.held());
    EXPECT_FALSE(writer.done());
    const Grant written = writer.get();
    EXPECT_FALSE(second.held());
    EXPECT_TRUE(written.held());
}

TEST_F(MaxHoldServerTest, ALeadershipEndsAndTheNextCandidateLeads) {
    auto s = session();
    ElectionOptions of_election;
    of_election.max_hold = 300ms;
    LeaderElection election(s, lock_path(), of_election);
    std::vector<FencingToken> tokens;
    std::stop_source enough;
    election.run(
        [&](const Grant& leadership, const std::stop_token& over) {
            tokens.push_back(leadership.token());
            if (tokens.size() == 3) enough.request_stop();
            EXPECT_TRUE(await([&] { return over.stop_requested(); }));
        },
        enough.get_token());
    EXPECT_THAT(tokens, SizeIs(3));
    EXPECT_TRUE(await_nodes(0));
}

// ---- labels -------------------------------------------------------------------------------------------------------

TEST_F(LabelsServerTest, EverybodySeesThemAndTheWaiterWaitsOn) {
    auto s = session(), other = session();
    LockOptions of_lock;
    of_lock.id = "me";
    of_lock.labels = {{"step", "1"}};
    ExclusiveMutex mutex(s, lock_path(), of_lock), theirs(other, lock_path());
    Grant grant = mutex.acquire();
    Acquiring next([&] { return theirs.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    for (const char* step : {"2", "3"}) EXPECT_TRUE(grant.set_labels({{"step", step}}, kMaxWait));
    const auto seen = inspect_lock(other, lock_path(), kMaxWait, true).participants;
    ASSERT_THAT(seen, SizeIs(2));
    EXPECT_THAT(seen[0].labels, ElementsAre(Pair("step", "3")));
    EXPECT_EQ(seen[0].id, "me");
    EXPECT_EQ(seen[0].version, 2);
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(next.done());
    ParticipantFilter filter;
    filter.labels = {{"step", "3"}};
    const auto found = find_locks(other, root(), filter, kMaxWait);
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_THAT(found[0].participants, SizeIs(1));
    std::promise<bool> told;
    grant.set_labels_async({}, kMaxWait, {}, [&](const Result<bool>& result) { told.set_value(result.value); });
    EXPECT_TRUE(told.get_future().get());
    EXPECT_THAT(mutex.participants().at(0).labels, IsEmpty());
    grant.release();
    EXPECT_TRUE(next.get().held());
}

TEST_F(LabelsServerTest, ARequestToReleaseStaysAndIsTold) {
    auto s = session(), other = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    const auto asked = grant.revocation();
    EXPECT_TRUE(grant.set_labels({{"a", "b"}}, kMaxWait));
    EXPECT_FALSE(asked.stop_requested());
    EXPECT_TRUE(request_revocation(other, inspect_lock(other, lock_path(), kMaxWait).participants.at(0), kMaxWait));
    EXPECT_FALSE(grant.set_labels({{"c", "d"}}, kMaxWait));
    EXPECT_TRUE(mutex.participants().at(0).revocation_requested);
    EXPECT_TRUE(await([&] { return asked.stop_requested(); }));
    EXPECT_TRUE(grant.held());
}

TEST_F(LabelsServerTest, CostTwoRoundTripsAndAreTheSameInEveryNodeOfAHold) {
    auto s = gated_session(kNoHeartbeat);
    MultiLock both(s, {{path("a")}, {path("b")}});
    Semaphore semaphore(s, path("s"), 4);
    ExclusiveMutex mutex(s, lock_path());
    const Grant set = both.acquire(), leases = semaphore.try_acquire_for(2, kMaxWait);
    const Grant grant = mutex.acquire();
    gate().reset_trace();
    EXPECT_TRUE(grant.set_labels({{"x", "y"}}, kMaxWait));
    EXPECT_EQ(gate().counts()[Opcode::multi], 1U);
    for (const Grant* several : {&set, &leases}) EXPECT_TRUE(several->set_labels({{"x", "y"}}, kMaxWait));
    for (const auto& view : both.participants()) {
        EXPECT_THAT(view.participants.at(0).labels, ElementsAre(Pair("x", "y")));
    }
    const auto of_semaphore = semaphore.participants();
    ASSERT_THAT(of_semaphore, SizeIs(2));
    for (const auto& one : of_semaphore) EXPECT_THAT(one.labels, ElementsAre(Pair("x", "y")));
}

TEST_F(LabelsServerTest, AreLockLostAfterTheHoldAndNoPermissionWhereTheListForbidsIt) {
    auto s = session();
    ExclusiveMutex limited_mutex(s, lock_path(), limited(200ms));
    const Grant grant = limited_mutex.acquire();
    ASSERT_TRUE(await([&] { return !grant.held(); }));
    EXPECT_EQ(error_of([&] { grant.set_labels({}, kMaxWait); }).errc(), Errc::lock_lost);
    LockOptions read_only;
    read_only.acl = Acl::open();
    read_only.acl->front().permissions = Acl::all & ~Acl::write;
    ExclusiveMutex mutex(s, path("other"), read_only);
    const Grant other = mutex.acquire();
    EXPECT_EQ(error_of([&] { other.set_labels({{"a", "b"}}, kMaxWait); }).errc(), Errc::no_permission);
    EXPECT_TRUE(other.held());
}

TEST_F(LabelsServerTest, InTheKazooDialectThereAreSomeToo) {
    auto s = session();
    LockOptions of_lock;
    of_lock.dialect = Dialect::kazoo;
    ExclusiveMutex mutex(s, lock_path(), of_lock);
    const Grant grant = mutex.acquire();
    EXPECT_TRUE(grant.set_labels({{"a", "b"}}, kMaxWait));
    EXPECT_THAT(mutex.participants().at(0).labels, ElementsAre(Pair("a", "b")));
}

}  // namespace
}  // namespace zkrecipes::test
