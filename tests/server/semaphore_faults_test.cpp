// Lost requests, lost replies, lost sessions, and people who delete nodes.
#include "server/semaphore_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Direction;
using testenv::Match;
using testenv::Opcode;
using ::testing::Each;
using ::testing::SizeIs;

class SemaphoreFaultsTest : public SemaphoreServerTest {
protected:
    void SetUp() override {
        SemaphoreServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
    Match taking() const {
        const auto leases = leases_path();
        return Match::op(Opcode::multi).where([leases](const testenv::Record& record) {
            return record.parts.size() > 2 && record.path == leases;
        });
    }
    void expect_usable_by_others(std::int32_t all) {
        auto s = session();
        Semaphore semaphore(s, lock_path(), all);
        EXPECT_TRUE(semaphore.try_acquire_until(all, kMaxWait).held());
        EXPECT_TRUE(await_leased(0));
        EXPECT_EQ(waiting(), 0u);
    }
};

TEST_F(SemaphoreFaultsTest, AReplyToTheTransactionThatIsLostLeavesExactlyWhatWasWanted) {  // H1
    auto s = gated_session();
    const auto session_id = s.info().session_id;
    Semaphore semaphore(s, lock_path(), 3);
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const auto fault = after ? gate().cut_after(taking()) : gate().cut_before(taking());
        Grant grant = semaphore.acquire(2);
        EXPECT_TRUE(fault.reached());
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(grant.session_id(), session_id);
        EXPECT_EQ(grant.token(), observer().exists(grant.node())->czxid);
        EXPECT_EQ(leased(), 2u);
        EXPECT_EQ(waiting(), 0u);
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(leased(), 0u);
    }
}

TEST_F(SemaphoreFaultsTest, LeasesTakenInADirectoryThatWasMadeAnewAreGivenBack) {  // H82
    auto s = gated_session(60s);
    Semaphore semaphore(s, lock_path(), 4);
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(semaphore.acquire().release_and_wait(kMaxWait));
    }
    const auto version = observer().get(leases_path())->stat.version;
    ASSERT_GT(version, 0);
    const auto held_back = gate().hold_reply(Match::op(Opcode::get_data).path(leases_path()));
    Acquiring acquiring([&] { return semaphore.acquire(4); });
    ASSERT_TRUE(held_back.wait_reached());
    observer().remove(leases_path());  // as the servers do with an empty container
    observer().make_path(leases_path());
    for (int written = 0; written < version; ++written) observer().set(leases_path(), R"({"v":1,"leases":1})");
    held_back.release();
    EXPECT_EQ(error_of([&] { (void)acquiring.get(); }).errc(), Errc::bad_option) << "here is another number now";
    EXPECT_TRUE(await_leased(0));
    EXPECT_TRUE(await_waiting(0));
}

TEST_F(SemaphoreFaultsTest, EveryRequestOfAContendedAcquireMayBeLostBeforeOrAfterItsExecution) {
    auto holder = session(), other = session();
    auto s = gated_session();
    for (const Opcode op :
         {Opcode::create2, Opcode::exists, Opcode::get_children2, Opcode::get_data, Opcode::multi, Opcode::remove}) {
        for (const bool after : {false, true}) {
            SCOPED_TRACE(to_string(op) + (after ? " lost after" : " lost before"));
            Semaphore held(holder, lock_path(), 2), before(other, lock_path(), 2), semaphore(s, lock_path(), 2);
            Grant first = held.acquire(2);
            Acquiring ahead([&] { return before.acquire(); });
            ASSERT_TRUE(await_waiting(1));
            const auto match = Match::op(op).path(lock_path());
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            Acquiring waits([&] { return semaphore.acquire(); });
            ASSERT_TRUE(await_waiting(2));
            first.release();
            Grant second = ahead.get();
            EXPECT_TRUE(second.held());
            Grant grant = waits.get();
            EXPECT_TRUE(grant.held());
            EXPECT_EQ(leased(), 2u);
            EXPECT_TRUE(await_waiting(0));
            EXPECT_TRUE(grant.release_and_wait(kMaxWait));
            EXPECT_TRUE(second.release_and_wait(kMaxWait));
            if (!fault.reached()) fault.cancel();  // what it is for depends on how far the one ahead was
            EXPECT_TRUE(await_leased(0));
        }
    }
    expect_usable_by_others(2);
}

TEST_F(SemaphoreFaultsTest, LeasesOfTheFormerSessionAreNotAdopted) {  // H3, H5, H69
    auto s = gated_session();
    const auto former = s.info().session_id;
    Semaphore semaphore(s, lock_path(), 2);
    const auto fault = gate().hold_reply(taking());
    Acquiring acquiring([&] { return semaphore.acquire(2); });
    ASSERT_TRUE(fault.wait_reached());
    EXPECT_EQ(leased(), 2u);
    gate().expire(former);
    fault.drop();
    const Grant grant = acquiring.get();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.session_id(), former);
    EXPECT_EQ(leased(), 2u);
    EXPECT_EQ(observer().exists(grant.node())->ephemeral_owner, grant.session_id());
}

TEST_F(SemaphoreFaultsTest, AStopWhileTheTransactionIsOnItsWayAnswersAtOnceAndLeavesNothing) {  // H6, H7
    auto s = gated_session();
    Semaphore semaphore(s, lock_path(), 2);
    for (const bool lost : {false, true}) {
        const auto fault = gate().hold_reply(taking());
        std::stop_source stop;
        Acquiring acquiring([&] { return semaphore.try_acquire_until(2, Deadline::never(), stop.get_token()); });
        ASSERT_TRUE(fault.wait_reached());
        stop.request_stop();
        EXPECT_FALSE(acquiring.get());
        EXPECT_EQ(leased(), 2u);  // nobody has heard of them yet
        lost ? fault.drop() : fault.release();
        EXPECT_TRUE(await_leased(0));
        EXPECT_EQ(waiting(), 0u);
    }
    expect_usable_by_others(2);
}

TEST_F(SemaphoreFaultsTest, ALostLeaseLosesTheGrantOfAllOfThem) {
    auto s = session(60s);
    Semaphore semaphore(s, lock_path(), 3);
    Grant grant = semaphore.acquire(3);
    const auto nodes = nodes_of(leases_path());
    ASSERT_THAT(nodes, SizeIs(3));
    ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(nodes.back()) != std::string::npos; }));
    const auto last = leases_path() + "/" + nodes.back();
    ASSERT_TRUE(observer().remove(last));
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested(); }));
    EXPECT_FALSE(grant.held());
    EXPECT_EQ(leased(), 2u);  // until it is given back
    grant.release();
    EXPECT_TRUE(await_leased(0));
}

TEST_F(SemaphoreFaultsTest, ASessionThatEndsGivesItsLeasesToWhoWaits) {
    auto s = gated_session(), other = session();
    Semaphore theirs(s, lock_path(), 2), semaphore(other, lock_path(), 2);
    const Grant lost = theirs.acquire(2);
    Acquiring waits([&] { return semaphore.acquire(2); });
    ASSERT_TRUE(await_waiting(1));
    gate().expire(s.info().session_id);
    EXPECT_TRUE(waits.get().held());
    EXPECT_TRUE(await([&] { return lost.lost().stop_requested(); }));
    EXPECT_FALSE(lost.held());
}

TEST_F(SemaphoreFaultsTest, AHeadWhoseSessionEndsGoesToTheBackOfTheQueueInTheSameCall) {
    auto holder = session(), third = session();
    auto s = gated_session();
    Semaphore held(holder, lock_path(), 1), mine(s, lock_path(), 1), later(third, lock_path(), 1);
    Grant first = held.acquire();
    Acquiring waits([&] { return mine.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_waiting(1));
    Acquiring overtaking([&] { return later.acquire(); });
    ASSERT_TRUE(await_waiting(2));
    const auto former = s.info().session_id;
    gate().expire(former);
    ASSERT_TRUE(await([&] { return s.info().session_id != former; }));
    ASSERT_TRUE(await_waiting(2));
    first.release();
    Grant second = overtaking.get();
    EXPECT_TRUE(second.held());
    EXPECT_FALSE(waits.done());
    second.release();
    EXPECT_TRUE(waits.get().held());
}

TEST_F(SemaphoreFaultsTest, AReleaseDuringAnOutageOfTheHeadIsNotMissed) {  // H19
    auto holder = session();
    auto s = gated_session();
    Semaphore held(holder, lock_path(), 1), semaphore(s, lock_path(), 1);
    Grant first = held.acquire();
    Acquiring waits([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() != SessionState::connected; }));
    EXPECT_TRUE(first.release_and_wait(kMaxWait));
    EXPECT_FALSE(waits.done());
    gate().pass();
    EXPECT_TRUE(waits.get().held());
}

TEST_F(SemaphoreFaultsTest, ReadingOrChangingTheirNumberEndsAtTheDeadline) {
    auto s = gated_session();
    Semaphore semaphore(s, lock_path(), 2);
    semaphore.acquire().release();
    gate().blackhole(Direction::both);
    EXPECT_EQ(error_of([&] { semaphore.leases(20ms); }).errc(), Errc::unreachable);
    EXPECT_EQ(error_of([&] { semaphore.set_leases(3, 20ms); }).errc(), Errc::unreachable);
    gate().pass();
}

TEST_F(SemaphoreFaultsTest, AnEmptiedPathGrantsNoMoreThanThereAre) {  // H46
    auto s = session(60s), other = session();
    Semaphore one(s, lock_path(), 1), two(other, lock_path(), 1);
    const Grant first = one.acquire();
    ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(first.node()) != std::string::npos; }));
    Acquiring waits([&] { return two.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    for (const auto& directory : {queue_path(), leases_path()}) {
        for (const auto& node : nodes_of(directory)) EXPECT_TRUE(observer().remove(directory + "/" + node));
    }
    EXPECT_TRUE(waits.get().held());
    EXPECT_TRUE(await([&] { return first.lost().stop_requested(); }));
    EXPECT_FALSE(first.held());
}

TEST_F(SemaphoreFaultsTest, ContainersReapedInBetweenAreMadeAgain) {  // H9
    testenv::ServerOptions options;
    options.java_properties = {{"znode.container.checkIntervalMs", "20"}, {"znode.container.maxPerMinute", "1000000"}};
    testenv::ZkServer reaping(options);
    auto s = connected_session(reaping.connect_string());
    Semaphore semaphore(s, "/reaped/semaphore", 2);
    std::atomic<int> inside{0}, acquired{0};
    std::atomic<bool> too_many{false};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 25; ++i) {
                const Grant grant = semaphore.acquire();
                if (++inside > 2) too_many = true;
                ++acquired;
                --inside;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(acquired, 100);
    EXPECT_FALSE(too_many);
}

TEST_F(SemaphoreFaultsTest, ADirectoryThatForbidsToCreateIsAnErrorAtOnce) {  // H13
    auto options = session_options(connect_string());
    options.auth = {{"digest", "owner:secret"}};
    options.acl = Acl::creator_all();
    Session owner(options);
    const auto directory = path("private");
    Semaphore(owner, directory, 1).acquire().release_and_wait(kMaxWait);
    auto stranger = session();
    Semaphore semaphore(stranger, directory, 1);
    EXPECT_EQ(error_of([&] { (void)semaphore.acquire(); }).errc(), Errc::no_permission);
}

TEST_F(SemaphoreFaultsTest, CloseEndsWaitingCallsAndGrants) {
    auto s = session();
    Semaphore semaphore(s, lock_path(), 1);
    const Grant grant = semaphore.acquire();
    Acquiring waits([&] { return semaphore.acquire(); });
    ASSERT_TRUE(await_waiting(1));
    s.close();
    EXPECT_EQ(error_of([&] { (void)waits.get(); }).errc(), Errc::closed);
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(await([&] { return waiting() + leased() == 0; }));
    EXPECT_EQ(error_of([&] { (void)semaphore.try_acquire(); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { semaphore.acquire_async(kMaxWait, {}, [](AcquireResult) {}); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { semaphore.participants(); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { semaphore.set_leases(2); }).errc(), Errc::closed);
}

}  // namespace
}  // namespace zkrecipes::test
