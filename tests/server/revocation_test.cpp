// Holders and waiters that are asked to give way, by us and as Curator's Revoker does it.
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using ::testing::SizeIs;

class RevocationTest : public ExclusiveMutexServerTest {
protected:
    void ask_back(const Grant& grant) { observer().set(grant.node(), "__REVOKE__"); }
    static void do_a_piece() { std::this_thread::yield(); }
    static bool await_request(const std::stop_token& token) {
        return await([&] { return token.stop_requested(); });
    }
};

TEST_F(RevocationTest, TheHolderIsToldOnTheNotifierThreadAndGoesOnHolding) {
    auto s = session(), other = session();
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    const auto revocation = grant.revocation();
    EXPECT_FALSE(revocation.stop_requested());
    std::promise<std::thread::id> told;
    const std::stop_callback on_request(revocation, [&] { told.set_value(std::this_thread::get_id()); });

    const auto seen = inspect_lock(other, lock_path(), kMaxWait).participants;
    ASSERT_THAT(seen, SizeIs(1));
    EXPECT_FALSE(seen[0].revocation_requested);
    EXPECT_TRUE(request_revocation(other, seen[0], kMaxWait));
    auto where = told.get_future();
    ASSERT_EQ(where.wait_for(kMaxWait), std::future_status::ready);
    EXPECT_NE(where.get(), std::this_thread::get_id());

    EXPECT_TRUE(grant.held()) << "it is a request";
    EXPECT_FALSE(grant.lost().stop_requested());
    const auto after = mutex.participants();
    ASSERT_THAT(after, SizeIs(1));
    EXPECT_TRUE(after[0].revocation_requested);
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_FALSE(request_revocation(other, after[0], kMaxWait)) << "gone already";
}

TEST_F(RevocationTest, AHolderThatGivesWayLetsTheNextOneIn) {
    auto s = session(), other = session();
    ExclusiveMutex mine(s, lock_path()), theirs(other, lock_path());
    Grant grant = mine.acquire();
    std::atomic<bool> working{true};
    std::jthread worker([&] {
        // [holder]
        const std::stop_token asked = grant.revocation();
        while (working && grant.held()) {
            do_a_piece();
            if (asked.stop_requested()) break;  // at a point where it does no harm
        }
        grant.release();
        // [/holder]
    });
    Acquiring next([&] { return theirs.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    Session& session = other;
    const std::string path = lock_path();
    // [asking]
    for (const Participant& one : inspect_lock(session, path, 10s).participants) {
        if (one.holder) request_revocation(session, one, 10s);
    }
    // [/asking]
    EXPECT_TRUE(next.get().held());
    working = false;
}

TEST_F(RevocationTest, ARequestThatCameBeforeAnybodyAskedIsToldAtOnce) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    ask_back(grant);
    EXPECT_TRUE(await_request(grant.revocation()));
}

TEST_F(RevocationTest, AWaiterThatWasAskedIsToldOnceItHolds) {
    auto s = session(), other = session();
    ExclusiveMutex first(s, lock_path()), second(other, lock_path());
    Grant grant = first.acquire();
    Acquiring waiting([&] { return second.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    const auto queue = first.participants();
    ASSERT_THAT(queue, SizeIs(2));
    EXPECT_TRUE(request_revocation(s, queue[1], kMaxWait));
    grant.release();
    const Grant got = waiting.get();
    EXPECT_TRUE(got.held());
    EXPECT_TRUE(await_request(got.revocation()));
}

TEST_F(RevocationTest, AHoldThatIsWatchedAlreadyIsReadAnew) {
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    // After half a second the session watches the node of its own accord.
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] == 1; }));
    ask_back(grant);
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] == 2; })) << "the change is looked at";
    EXPECT_TRUE(await_request(grant.revocation()));
}

TEST_F(RevocationTest, ItCostsOneReadWhenAskedForAndNothingOtherwise) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    mutex.acquire().release_and_wait(kMaxWait);
    gate().reset_trace();
    {
        Grant grant = mutex.acquire();
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    }
    EXPECT_EQ(requests_of_lock(), 3U);
    gate().reset_trace();
    const auto begin = std::chrono::steady_clock::now();
    Grant grant = mutex.acquire();
    const auto token = grant.revocation();
    // A hold that is half a second old is watched already, and the node is read anew.
    const auto at_most = std::chrono::steady_clock::now() - begin < 500ms ? 1U : 2U;
    EXPECT_EQ(token, grant.revocation());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_GE(gate().counts()[Opcode::get_data], 1U);
    EXPECT_LE(gate().counts()[Opcode::get_data], at_most);
    EXPECT_EQ(requests_of_lock(), 3U);
    EXPECT_FALSE(token.stop_requested());
}

TEST_F(RevocationTest, ARequestDuringAnOutageIsToldAfterIt) {
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    const auto watched = grant.revocation();
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] >= 1; }));
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    ask_back(grant);
    gate().pass();
    EXPECT_TRUE(await_request(watched));
}

TEST_F(RevocationTest, WhoAsksForItDuringAnOutageIsToldAfterIt) {
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] >= 1; })) << "watched of its own accord";
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    const auto watched = grant.revocation();
    ask_back(grant);
    gate().pass();
    EXPECT_TRUE(await_request(watched));
}

TEST_F(RevocationTest, SharesAreAskedOneByOne) {
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    Grant one = lock.acquire_shared();
    Grant two;
    std::jthread([&] { two = lock.acquire_shared(); }).join();
    const auto first = one.revocation(), second = two.revocation();
    ask_back(two);
    EXPECT_TRUE(await_request(second));
    EXPECT_FALSE(first.stop_requested());
}

TEST_F(RevocationTest, OtherDataIsNoRequestAndALostHoldIsToldOfNone) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    const auto token = grant.revocation();
    observer().set(grant.node(), "__REVOKE__ please");
    observer().remove(grant.node());
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(token.stop_requested());
    EXPECT_FALSE(Grant().revocation().stop_possible());
    grant.release();
}

TEST_F(RevocationTest, TheSameNameWithAnotherTokenIsNotAsked) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    auto seen = mutex.participants().front();
    ++seen.token;
    EXPECT_FALSE(request_revocation(s, seen, kMaxWait));
    EXPECT_FALSE(mutex.participants().front().revocation_requested);
}

}  // namespace
}  // namespace zkrecipes::test
