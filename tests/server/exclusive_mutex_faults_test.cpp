// Lost requests, lost replies, lost sessions, and people who delete nodes.
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Direction;
using testenv::Match;
using testenv::Opcode;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExclusiveMutexFaultsTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        observer().make_path(lock_path());
    }
    Match create() const { return Match::op(Opcode::create2).path(lock_path()); }
    static SessionOptions giving_up() {
        auto options = session_options("");
        options.retry = RetryPolicy::never();
        return options;
    }
    void expect_usable_by_others() {
        auto s = session();
        ExclusiveMutex mutex(s, lock_path());
        EXPECT_TRUE(mutex.try_lock_for(kMaxWait));
        mutex.unlock();
        EXPECT_TRUE(await_nodes(0));
    }
};

TEST_F(ExclusiveMutexFaultsTest, AReplyToCreateThatIsLostLeavesExactlyOneNode) {  // H1
    auto s = gated_session();
    const auto session_id = s.info().session_id;
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().cut_after(create());
    Grant grant = mutex.acquire();
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(grant.session_id(), session_id);
    EXPECT_EQ(grant.token(), observer().exists(grant.node())->czxid);
    EXPECT_THAT(nodes(), SizeIs(1));
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_THAT(nodes(), IsEmpty());
}

// As docs/testenv.md has it.
TEST(TestenvDocumentTest, TheExampleLosesTheAnswerToACreate) {
    ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
    using testenv::Fault, testenv::Gate, testenv::RawClient, testenv::ZkServer;
    // [testenv]
    ZkServer server;  // serves when the constructor returns
    Gate gate(server.endpoint());
    const Fault lost = gate.cut_after(Match::create().path("lock-"));

    Session client(gate.connect_string());  // your client; it connects through the gate
    ExclusiveMutex mutex(client, "/report");
    EXPECT_TRUE(mutex.try_lock_for(30s));  // its create is executed, and the answer does not arrive
    EXPECT_TRUE(lost.wait_reached());

    RawClient observer(server.connect_string());  // a client of its own, to look from outside
    EXPECT_EQ(observer.children("/report")->size(), 1U);
    mutex.unlock();
    // [/testenv]
}

TEST_F(ExclusiveMutexFaultsTest, ACreateThatNeverArrivedIsSentAgain) {
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().cut_before(create());
    const Grant grant = mutex.acquire();
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(grant.held());
    EXPECT_THAT(nodes(), SizeIs(1));
}

TEST_F(ExclusiveMutexFaultsTest, WhenThePolicyGivesUpTheGhostIsDeletedOnceTheNetworkHeals) {  // H2
    auto s = gated_session(giving_up());
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().cut_after(create());
    gate().refuse();  // and there is no way back
    const Error error = error_of([&] { (void)mutex.acquire(); });
    EXPECT_EQ(error.errc(), Errc::connection_lost);
    EXPECT_EQ(error.path(), lock_path());
    EXPECT_TRUE(fault.reached());
    EXPECT_THAT(nodes(), SizeIs(1));  // the ghost
    auto other = session();
    ExclusiveMutex next(other, lock_path());
    Acquiring waiting([&] { return next.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    gate().pass();
    EXPECT_TRUE(waiting.get().held());
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(ExclusiveMutexFaultsTest, EveryRequestOfAContendedAcquireMayBeLostBeforeOrAfterItsExecution) {
    auto holder = session();
    auto s = gated_session();
    for (const Opcode op :
         {Opcode::create2, Opcode::exists, Opcode::get_children2, Opcode::get_data, Opcode::multi, Opcode::remove}) {
        for (const bool after : {false, true}) {
            SCOPED_TRACE(to_string(op) + (after ? " lost after" : " lost before"));
            ExclusiveMutex held(holder, lock_path());
            Grant first = held.acquire();
            ExclusiveMutex mutex(s, lock_path());
            const auto match = Match::op(op).path(lock_path());
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            const auto watched = gate().counts()[Opcode::get_data];
            // Only where the end of the predecessor does not grant by itself, it is followed by a check.
            Acquiring waiting(
                [&] { return op == Opcode::multi ? ReadWriteLock(s, lock_path()).acquire() : mutex.acquire(); });
            ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] > watched; }));
            first.release();
            Grant grant = waiting.get();
            EXPECT_TRUE(grant.held());
            EXPECT_TRUE(await_nodes(1));
            EXPECT_EQ(nodes_of(lock_path()).at(0), grant.node().substr(lock_path().size() + 1));
            EXPECT_TRUE(grant.release_and_wait(kMaxWait));  // H32, H33: also where the delete or its reply is lost
            EXPECT_TRUE(fault.reached());
            EXPECT_TRUE(await_nodes(0));
        }
    }
}

TEST_F(ExclusiveMutexFaultsTest, ANodeOfTheFormerSessionIsNotAdopted) {  // H3, H5
    auto s = gated_session();
    const auto former = s.info().session_id;
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().hold_reply(create());
    Acquiring acquiring([&] { return mutex.acquire(); });
    ASSERT_TRUE(fault.wait_reached());
    gate().expire(former);
    fault.drop();
    const Grant grant = acquiring.get();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.session_id(), former);
    EXPECT_THAT(nodes(), SizeIs(1));
    EXPECT_EQ(observer().exists(grant.node())->ephemeral_owner, grant.session_id());
}

TEST_F(ExclusiveMutexFaultsTest, AStopWhileTheCreateIsOnItsWayAnswersAtOnceAndLeavesNothing) {  // H6, H7
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().hold_reply(create());
    std::stop_source stop;
    Acquiring acquiring([&] { return mutex.try_acquire_until(Deadline::never(), stop.get_token()); });
    ASSERT_TRUE(fault.wait_reached());
    EXPECT_THAT(nodes(), SizeIs(1));
    stop.request_stop();
    EXPECT_FALSE(acquiring.get());
    EXPECT_THAT(nodes(), SizeIs(1));  // nobody has heard of it yet
    fault.release();
    EXPECT_TRUE(await_nodes(0));
    expect_usable_by_others();
}

TEST_F(ExclusiveMutexFaultsTest, ADeadlineWhileTheCreateIsOnItsWayLeavesNothingEvenIfTheReplyIsLost) {
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const auto fault = gate().hold_reply(create());
    EXPECT_FALSE(mutex.try_acquire_for(2s));
    ASSERT_TRUE(fault.wait_reached());
    fault.drop();
    EXPECT_TRUE(await_nodes(0));
    expect_usable_by_others();
}

TEST_F(ExclusiveMutexFaultsTest, AReleaseDuringAnOutageIsNotMissed) {  // H19
    auto holder = session();
    ExclusiveMutex held(holder, lock_path());
    Grant first = held.acquire();
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    Acquiring waiting([&] { return mutex.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() != SessionState::connected; }));
    EXPECT_TRUE(first.release_and_wait(kMaxWait));
    EXPECT_FALSE(waiting.done());
    gate().pass();
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(ExclusiveMutexFaultsTest, AWaiterWhoseSessionEndsGoesToTheBackOfTheQueueInTheSameCall) {
    auto holder = session();
    ExclusiveMutex held(holder, lock_path());
    Grant first = held.acquire();
    auto s = gated_session();
    const auto former = s.info().session_id;
    ExclusiveMutex mutex(s, lock_path());
    Acquiring waiting([&] { return mutex.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    auto third = session();
    ExclusiveMutex later(third, lock_path());
    Acquiring overtaking([&] { return later.acquire(); });
    ASSERT_TRUE(await_nodes(3));
    gate().expire(former);
    ASSERT_TRUE(await([&] { return s.info().session_id != former; }));
    ASSERT_TRUE(await_nodes(3));
    first.release();
    Grant second = overtaking.get();
    EXPECT_TRUE(second.held());
    EXPECT_FALSE(waiting.done());
    second.release();
    const Grant last = waiting.get();
    EXPECT_TRUE(last.held());
    EXPECT_NE(last.session_id(), former);
}

TEST_F(ExclusiveMutexFaultsTest, ReEntryIntoAHoldWhoseSessionEndedIsAnError) {  // H30, H31
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    mutex.lock();
    mutex.lock();
    const auto token = mutex.token();
    gate().expire(s.info().session_id);
    ASSERT_TRUE(await([&] { return mutex.lost().stop_requested(); }));
    EXPECT_FALSE(mutex.held_by_caller());
    auto other = session();
    ExclusiveMutex theirs(other, lock_path());
    Grant next = theirs.acquire();
    EXPECT_GT(next.token(), token);
    EXPECT_EQ(error_of([&] { mutex.lock(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(error_of([&] { (void)mutex.try_lock(); }).errc(), Errc::lock_lost);
    ASSERT_TRUE(s.wait_connected(kMaxWait));                // until then a try cannot tell whether the lock is busy
    EXPECT_EQ(mutex.try_acquire().missed(), Missed::busy);  // a grant has no owner
    mutex.unlock();
    EXPECT_EQ(error_of([&] { mutex.lock(); }).errc(), Errc::lock_lost);  // still one level inside
    mutex.unlock();
    EXPECT_FALSE(mutex.try_lock());  // the pairing is restored: an ordinary lock again
    next.release();
    mutex.lock();
    EXPECT_TRUE(mutex.held_by_caller());
    EXPECT_GT(mutex.token(), token);
    mutex.unlock();
}

TEST_F(ExclusiveMutexFaultsTest, ADeletedNodeEndsTheHoldByItsWatch) {  // H47
    auto s = session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    // Once the hold has lasted a moment its node is watched.
    ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(grant.node()) != std::string::npos; }));
    ASSERT_TRUE(observer().remove(grant.node()));
    ASSERT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(grant.held());
}

TEST_F(ExclusiveMutexFaultsTest, ADeletedWaiterGoesToTheBackOfTheQueue) {  // H46
    auto s = session(), other = session();
    ExclusiveMutex mutex(s, lock_path()), theirs(other, lock_path());
    Grant first = mutex.acquire();
    Acquiring waiting([&] { return theirs.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    const auto node = mutex.participants().at(1).path;
    Acquiring overtaking([&] { return ExclusiveMutex(s, lock_path()).acquire(); });
    ASSERT_TRUE(await_nodes(3));
    ASSERT_TRUE(observer().remove(node));
    first.release();
    Grant second = overtaking.get();
    EXPECT_TRUE(second.held());
    EXPECT_FALSE(waiting.done());
    ASSERT_TRUE(await_nodes(2));
    second.release();
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(ExclusiveMutexFaultsTest, ADirectoryEmptiedByAnOperatorGrantsOneAtATime) {
    auto s = session(), other = session();
    ExclusiveMutex mutex(s, lock_path()), theirs(other, lock_path());
    const Grant first = mutex.acquire();
    ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(first.node()) != std::string::npos; }));
    Acquiring waiting([&] { return theirs.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    try {
        observer().remove_tree(lock_path());
    } catch (const testenv::RawError&) {
        // Whoever waited was quicker, and has a new node in the directory already.
    }
    Grant second = waiting.get();
    // It may have been first for a moment, until its own node was deleted as well. Then it has been told.
    EXPECT_TRUE(second.held() || await([&] { return second.lost().stop_requested(); }));
    EXPECT_TRUE(await([&] { return first.lost().stop_requested(); }));
    EXPECT_FALSE(first.held());
    second.release();
    EXPECT_TRUE(theirs.acquire().held());
}

TEST_F(ExclusiveMutexFaultsTest, TheEndOfALeaseIsKnownWithoutAnyServer) {  // H48, H50
    auto s = gated_session(12s);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    gate().blackhole(Direction::both);
    ASSERT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(grant.held());
    EXPECT_THAT(nodes(), SizeIs(1));  // and long before the servers know
    gate().pass();
    EXPECT_FALSE(grant.held());  // for ever
    EXPECT_FALSE(mutex.try_acquire()) << "its node stays until it is released";
}

TEST_F(ExclusiveMutexFaultsTest, AnInterruptionShorterThanTheLeaseEndsNoHold) {  // H49
    auto s = gated_session(60s);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::connect] >= 2; }));
    ASSERT_TRUE(await([&] { return s.state() == SessionState::connected; }));
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(grant.lost().stop_requested());
}

TEST_F(ExclusiveMutexFaultsTest, AReleaseWithoutAServerIsDoneLater) {  // H32
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() != SessionState::connected; }));
    EXPECT_FALSE(grant.release_and_wait(20ms));
    EXPECT_FALSE(grant);
    EXPECT_THAT(nodes(), SizeIs(1));
    gate().pass();
    EXPECT_TRUE(await_nodes(0));
    EXPECT_TRUE(mutex.try_lock_for(kMaxWait));
    mutex.unlock();
}

TEST_F(ExclusiveMutexFaultsTest, AContainerReapedInBetweenIsMadeAgainAndTokensGrowAllTheSame) {  // H9, H10
    testenv::ServerOptions options;
    options.java_properties = {{"znode.container.checkIntervalMs", "20"}, {"znode.container.maxPerMinute", "1000000"}};
    testenv::ZkServer reaping(options);
    auto s = connected_session(reaping.connect_string());
    testenv::RawClient look(reaping.connect_string());
    std::atomic<int> acquired{0};
    std::vector<std::jthread> threads;
    std::atomic<FencingToken> last{0};
    std::atomic<bool> stale{false};
    ExclusiveMutex mutex(s, "/reaped/lock");
    int resets = 0;
    for (int round = 0; round < 4; ++round) {
        // Wait until the directory has gone, so that the sequence numbers start again.
        threads.clear();
        if (round > 0) {
            ASSERT_TRUE(await([&] { return !look.exists("/reaped/lock"); }));
            ++resets;
        }
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 25; ++i) {
                    const Grant grant = mutex.acquire();
                    if (grant.token() <= last.exchange(grant.token())) stale = true;
                    ++acquired;
                }
            });
        }
    }
    threads.clear();
    EXPECT_EQ(acquired, 400);
    EXPECT_EQ(resets, 3);
    EXPECT_FALSE(stale);
}

TEST_F(ExclusiveMutexFaultsTest, ADirectoryThatForbidsToCreateIsAnErrorAtOnce) {  // H13
    auto options = session_options(connect_string());
    options.auth = {{"digest", "owner:secret"}};
    options.acl = Acl::creator_all();
    Session owner(options);
    const auto directory = path("private");
    ExclusiveMutex(owner, directory).acquire().release_and_wait(kMaxWait);
    auto stranger = session();
    ExclusiveMutex mutex(stranger, directory);
    const Error error = error_of([&] { (void)mutex.acquire(); });
    EXPECT_EQ(error.errc(), Errc::no_permission);
    EXPECT_EQ(error.path(), directory);
}

TEST_F(ExclusiveMutexFaultsTest, ADirectoryThatForbidsToReadIsAnErrorThatLeavesNoNode) {
    auto options = session_options(connect_string());
    options.auth = {{"digest", "owner:secret"}};
    options.acl = {{Acl::all, "auth", ""}, {Acl::create | Acl::remove, "world", "anyone"}};
    Session owner(options), s = session();
    const auto directory = path("blind");
    ExclusiveMutex one(owner, directory), two(s, directory);
    Grant grant = one.acquire();
    EXPECT_EQ(error_of([&] { (void)two.acquire(); }).errc(), Errc::no_permission);
    EXPECT_TRUE(await([&] { return one.participants().size() == 1; }));
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
}

TEST_F(ExclusiveMutexFaultsTest, CloseEndsWaitingCallsAndHolds) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    Acquiring waiting([&] { return mutex.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    s.close();
    EXPECT_EQ(error_of([&] { (void)waiting.get(); }).errc(), Errc::closed);
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_TRUE(await_nodes(0));
    EXPECT_EQ(error_of([&] { (void)mutex.acquire(); }).errc(), Errc::closed);
    ExclusiveMutex another(s, lock_path());
    EXPECT_EQ(error_of([&] { (void)another.acquire(); }).errc(), Errc::closed);  // H40
    EXPECT_EQ(error_of([&] { (void)another.try_lock(); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { (void)another.try_acquire_until(kMaxWait); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { mutex.participants(); }).errc(), Errc::closed);
}

}  // namespace
}  // namespace zkrecipes::test
