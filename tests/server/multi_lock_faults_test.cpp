// Lost requests, lost replies, lost sessions, and people who delete nodes: of a set nothing but the whole is ever left.
#include "server/multi_lock_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::HasSubstr;

class MultiLockFaultsTest : public MultiLockServerTest {
protected:
    static constexpr std::size_t kMembers = 3;

    void SetUp() override {
        MultiLockServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        make_directories(kMembers);
    }
    Match create() const { return Match::op(Opcode::multi).path(dir(0)); }
    bool await_own_nodes(std::size_t sets) { return await_nodes_in(kMembers, sets * kMembers); }
    void expect_usable_by_others() {
        auto s = session();
        MultiLock lock(s, mutexes(kMembers));
        EXPECT_TRUE(lock.try_acquire_until(kMaxWait).release_and_wait(kMaxWait));
        EXPECT_TRUE(await_own_nodes(0));
    }
};

TEST_F(MultiLockFaultsTest, AReplyToTheTransactionThatIsLostLeavesExactlyOneSet) {  // H1
    auto s = gated_session();
    const auto session_id = s.info().session_id;
    MultiLock lock(s, mutexes(kMembers));
    const auto fault = gate().cut_after(create());
    Grant grant = lock.acquire();
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(grant.session_id(), session_id);
    EXPECT_EQ(grant.token(), observer().exists(grant.node())->czxid);
    EXPECT_EQ(nodes_in(kMembers), kMembers);
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(nodes_in(kMembers), 0u);
}

TEST_F(MultiLockFaultsTest, ATransactionThatNeverArrivedIsSentAgain) {
    auto s = gated_session();
    MultiLock lock(s, mutexes(kMembers));
    const auto fault = gate().cut_before(create());
    const Grant grant = lock.acquire();
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(nodes_in(kMembers), kMembers);
}

TEST_F(MultiLockFaultsTest, WhenThePolicyGivesUpAllGhostsAreDeletedOnceTheNetworkHeals) {  // H2
    auto options = session_options("");
    options.retry = RetryPolicy::never();
    auto s = gated_session(options);
    MultiLock lock(s, mutexes(kMembers));
    const auto fault = gate().cut_after(create());
    gate().refuse();
    const Error error = error_of([&] { (void)lock.acquire(); });
    EXPECT_EQ(error.errc(), Errc::connection_lost);
    EXPECT_THAT(error.path(), HasSubstr(" and 2 more"));
    EXPECT_TRUE(fault.reached());
    EXPECT_EQ(nodes_in(kMembers), kMembers);  // the ghosts
    auto other = session();
    MultiLock next(other, mutexes(kMembers));
    Acquiring waiting([&] { return next.acquire(); });
    ASSERT_TRUE(await_own_nodes(2));
    gate().pass();
    EXPECT_TRUE(waiting.get().held());
    EXPECT_TRUE(await_own_nodes(0));
}

TEST_F(MultiLockFaultsTest, EveryRequestOfAContendedAcquireMayBeLostBeforeOrAfterItsExecution) {
    auto holder = session(), s = gated_session();
    // The transaction, the check and the release are all multis.
    const std::pair<Opcode, int> requests[] = {
        {Opcode::multi, 1},  {Opcode::multi, 2},         {Opcode::multi, 3},         {Opcode::exists, 1},
        {Opcode::exists, 3}, {Opcode::get_children2, 1}, {Opcode::get_children2, 3}, {Opcode::get_data, 2}};
    for (const auto& [op, nth] : requests) {
        for (const bool after : {false, true}) {
            SCOPED_TRACE(to_string(op) + " " + std::to_string(nth) + (after ? " lost after" : " lost before"));
            MultiLock held(holder, mutexes(kMembers)), lock(s, mutexes(kMembers));
            Grant first = held.acquire();
            const auto match = Match::op(op).path(root()).nth(nth);
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            const auto watched = gate().counts()[Opcode::get_data];
            Acquiring waiting([&] { return lock.acquire(); });
            ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] >= watched + kMembers; }));
            first.release();
            Grant grant = waiting.get();
            EXPECT_TRUE(grant.held());
            EXPECT_TRUE(await_own_nodes(1));
            EXPECT_TRUE(observer().exists(grant.node()));
            EXPECT_TRUE(grant.release_and_wait(kMaxWait));
            EXPECT_TRUE(fault.reached());
            EXPECT_TRUE(await_own_nodes(0));
        }
    }
}

TEST_F(MultiLockFaultsTest, NodesOfTheFormerSessionAreNotAdopted) {  // H3, H5
    auto s = gated_session();
    const auto former = s.info().session_id;
    MultiLock lock(s, mutexes(kMembers));
    const auto fault = gate().hold_reply(create());
    Acquiring acquiring([&] { return lock.acquire(); });
    ASSERT_TRUE(fault.wait_reached());
    gate().expire(former);
    fault.drop();
    const Grant grant = acquiring.get();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.session_id(), former);
    EXPECT_EQ(nodes_in(kMembers), kMembers);
    EXPECT_EQ(observer().exists(grant.node())->ephemeral_owner, grant.session_id());
}

TEST_F(MultiLockFaultsTest, AStopOrADeadlineWhileTheTransactionIsOnItsWayLeavesNothing) {  // H6, H7
    for (const bool drop : {false, true}) {
        auto s = gated_session();
        MultiLock lock(s, mutexes(kMembers));
        const auto fault = gate().hold_reply(create());
        std::stop_source stop;
        Acquiring acquiring(
            [&] { return lock.try_acquire_until(drop ? Deadline(200ms) : Deadline::never(), stop.get_token()); });
        ASSERT_TRUE(fault.wait_reached());
        EXPECT_EQ(nodes_in(kMembers), kMembers);
        if (!drop) stop.request_stop();
        EXPECT_FALSE(acquiring.get());
        if (drop) {
            fault.drop();
        } else {
            fault.release();
        }
        EXPECT_TRUE(await_own_nodes(0));
        expect_usable_by_others();
    }
}

TEST_F(MultiLockFaultsTest, AWaiterWhoseSessionEndsGoesToTheBackOfTheQueuesInTheSameCall) {
    auto holder = session(), s = gated_session();
    MultiLock held(holder, mutexes(kMembers)), lock(s, mutexes(kMembers));
    Grant first = held.acquire();
    const auto former = s.info().session_id;
    Acquiring waiting([&] { return lock.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_own_nodes(2));
    gate().expire(former);
    ASSERT_TRUE(await([&] { return s.info().session_id != former; }));
    ASSERT_TRUE(await_own_nodes(2));
    first.release();
    const Grant grant = waiting.get();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.session_id(), former);
}

TEST_F(MultiLockFaultsTest, AHoldWhoseSessionEndsIsLostAndReEntryIsAnError) {  // H30
    auto s = gated_session();
    MultiLock lock(s, mutexes(kMembers));
    lock.lock();
    const auto token = lock.token();
    gate().expire(s.info().session_id);
    ASSERT_TRUE(await([&] { return lock.lost().stop_requested(); }));
    EXPECT_FALSE(lock.held_by_caller());
    auto other = session();
    {
        std::jthread([&] {
            MultiLock theirs(other, mutexes(kMembers));
            EXPECT_GT(theirs.acquire().token(), token);
        });
    }
    EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::lock_lost);
    lock.unlock();
    lock.lock();
    EXPECT_TRUE(lock.held_by_caller());
    lock.unlock();
}

TEST_F(MultiLockFaultsTest, ADeletedMemberEndsTheHoldAndItsReleaseTakesTheRestAway) {  // H47
    auto s = session(kNoHeartbeat);
    MultiLock lock(s, mutexes(kMembers));
    Grant grant = lock.acquire();
    const auto last = dir(2) + "/" + nodes_of(dir(2)).at(0);
    ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(last) != std::string::npos; }));
    ASSERT_TRUE(observer().remove(last));
    ASSERT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(grant.held());
    EXPECT_EQ(nodes_in(kMembers), 2u);  // whoever still works is still protected there
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(nodes_in(kMembers), 0u);
}

TEST_F(MultiLockFaultsTest, ADeletedWaiterGoesToTheBackOfAllQueues) {  // H46
    auto holder = session(), s = session();
    ExclusiveMutex single(holder, dir(1));
    Grant held = single.acquire();
    MultiLock lock(s, mutexes(kMembers));
    Acquiring waiting([&] { return lock.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes_in(kMembers, kMembers + 1));
    ASSERT_TRUE(await([&] { return server().watch_count() >= 1; }));
    ASSERT_TRUE(observer().remove(dir(2) + "/" + nodes_of(dir(2)).at(0)));
    held.release();
    EXPECT_TRUE(waiting.get().held());
    EXPECT_TRUE(await_own_nodes(0));
}

TEST_F(MultiLockFaultsTest, AReleaseWithoutAServerIsDoneLater) {  // H32
    auto s = gated_session();
    MultiLock lock(s, mutexes(kMembers));
    Grant grant = lock.acquire();
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() != SessionState::connected; }));
    grant.release();
    gate().pass();
    EXPECT_TRUE(await_own_nodes(0));
}

TEST_F(MultiLockFaultsTest, ADeletionMissedDuringAnOutageIsSeenAfterIt) {  // H19
    auto holder = session(), s = gated_session();
    MultiLock held(holder, mutexes(kMembers)), lock(s, mutexes(kMembers));
    Grant first = held.acquire();
    Acquiring waiting([&] { return lock.acquire(); });
    ASSERT_TRUE(await_own_nodes(2));
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() != SessionState::connected; }));
    EXPECT_TRUE(first.release_and_wait(kMaxWait));
    EXPECT_FALSE(waiting.done());
    gate().pass();
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(MultiLockFaultsTest, CloseEndsWaitingCallsAndHolds) {
    auto holder = session(), s = session();
    MultiLock held(holder, mutexes(kMembers)), lock(s, mutexes(kMembers)), free(s, {{path("free")}});
    Grant first = held.acquire();
    const auto before = std::make_shared<Grant>();
    std::jthread([&] { *before = free.acquire(); });
    Acquiring waiting([&] { return lock.acquire(); });
    ASSERT_TRUE(await_own_nodes(2));
    s.close();
    EXPECT_EQ(error_of([&] { (void)waiting.get(); }).errc(), Errc::closed);
    EXPECT_FALSE(before->held());
    EXPECT_TRUE(await_own_nodes(1));
    EXPECT_EQ(error_of([&] { lock.acquire_async(kMaxWait, {}, [](AcquireResult) {}); }).errc(), Errc::closed);
}

}  // namespace
}  // namespace zkrecipes::test
