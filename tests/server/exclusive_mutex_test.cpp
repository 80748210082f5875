#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::CreateMode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ExclusiveMutexServerTest, AcquiresAndReleasesOnAnEmptyTree) {  // H8
    auto s = session();
    const auto deep = lock_path() + "/four/levels/deep";
    ExclusiveMutex mutex(s, deep);
    Grant grant = mutex.acquire();
    EXPECT_TRUE(grant.held());
    EXPECT_GT(grant.token(), 0);
    EXPECT_GT(grant.remaining_lease(), 0ms);
    EXPECT_THAT(grant.node(), HasSubstr(deep + "/_c_"));
    EXPECT_EQ(grant.session_id(), s.info().session_id);
    EXPECT_EQ(observer().exists(grant.node())->czxid, grant.token());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_FALSE(grant);
    EXPECT_THAT(nodes_of(deep), IsEmpty());
}

TEST_F(ExclusiveMutexServerTest, WaitersAreServedInTheirOrder) {
    auto holder = session();
    ExclusiveMutex mutex(holder, lock_path());
    Grant grant = mutex.acquire();
    std::mutex guard;
    std::vector<int> order;
    std::vector<Session> sessions;
    for (int i = 0; i < 5; ++i) sessions.push_back(session());
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 5; ++i) {
        waiters.emplace_back([&, i] {
            ExclusiveMutex mine(sessions[static_cast<std::size_t>(i)], lock_path());
            const Grant got = mine.acquire();
            const std::lock_guard lock(guard);
            order.push_back(i);
        });
        ASSERT_TRUE(await_nodes(static_cast<std::size_t>(i) + 2));
    }
    grant.release();
    waiters.clear();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(ExclusiveMutexServerTest, TwoObjectsOfOneSessionExcludeEachOther) {  // H29
    auto s = session();
    ExclusiveMutex one(s, lock_path()), two(s, lock_path());
    Grant grant = one.acquire();
    EXPECT_FALSE(two.try_lock());
    EXPECT_FALSE(two.try_lock_for(30ms));
    EXPECT_TRUE(await_nodes(1));
    grant.release();
    EXPECT_TRUE(two.try_lock());
    two.unlock();
}

TEST_F(ExclusiveMutexServerTest, AReleaseIsSeenByTheNextTryOfTheSameSession) {
    auto s = session();
    ExclusiveMutex one(s, lock_path()), two(s, lock_path());
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(one.try_lock());
        one.unlock();
        ASSERT_TRUE(two.try_lock());
        two.unlock();
    }
}

TEST_F(ExclusiveMutexServerTest, AWaiterThatLeavesTheMiddleOfTheQueueLetsNobodyIn) {  // H21
    auto s = session(), second = session(), third = session();
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    std::stop_source leave;
    Acquiring middle(
        [&] { return ExclusiveMutex(second, lock_path()).try_acquire_until(Deadline::never(), leave.get_token()); });
    ASSERT_TRUE(await_nodes(2));
    Acquiring last([&] { return ExclusiveMutex(third, lock_path()).acquire(); });
    ASSERT_TRUE(await_nodes(3));
    leave.request_stop();
    EXPECT_FALSE(middle.get());
    ASSERT_TRUE(await_nodes(2));
    EXPECT_FALSE(last.done());
    grant.release();
    EXPECT_TRUE(last.get().held());
}

TEST_F(ExclusiveMutexServerTest, ForeignChildrenNeitherBlockNorBreak) {  // H70
    auto s = session();
    observer().make_path(lock_path());
    observer().create(lock_path() + "/!junk");
    observer().create(lock_path() + "/zjunk");
    observer().create(lock_path() + "/x-", "", CreateMode::persistent_sequential);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    EXPECT_TRUE(grant.held());
    EXPECT_THAT(mutex.participants(), SizeIs(1));
}

TEST_F(ExclusiveMutexServerTest, NodesOfOtherClientsAreWaitedFor) {
    auto s = session();
    observer().make_path(lock_path());
    const auto zk_go = observer().create(lock_path() + "/_c_0123456789abcdef0123456789abcdef-lock-", "10.0.0.1",
                                         CreateMode::ephemeral_sequential);
    ExclusiveMutex mutex(s, lock_path());
    EXPECT_FALSE(mutex.try_lock());
    Acquiring waiting([&] { return mutex.acquire(); });
    ASSERT_TRUE(await_nodes(2));
    const auto queue = mutex.participants();
    ASSERT_THAT(queue, SizeIs(2));
    EXPECT_TRUE(queue[0].holder);
    EXPECT_EQ(queue[0].raw, "10.0.0.1");
    EXPECT_EQ(queue[0].id, "");
    observer().remove(zk_go.path);
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(ExclusiveMutexServerTest, ParticipantsAreShownInOrderWithWhatTheySay) {
    auto s = session();
    LockOptions options;
    options.id = "web1";
    options.name = "deploy";
    options.labels = {{"ticket", "OPS-7"}};
    ExclusiveMutex mutex(s, lock_path(), options);
    const Grant grant = mutex.acquire();
    std::stop_source stop;
    Acquiring waiting([&] {
        ExclusiveMutex other(s, lock_path());
        return other.try_acquire_until(Deadline::never(), stop.get_token());
    });
    ASSERT_TRUE(await_nodes(2));
    const auto queue = mutex.participants();
    ASSERT_THAT(queue, SizeIs(2));
    EXPECT_TRUE(queue[0].holder);
    EXPECT_FALSE(queue[1].holder);
    EXPECT_EQ(queue[0].id, "web1");
    EXPECT_EQ(queue[0].name, "deploy");
    EXPECT_EQ(queue[0].labels.at("ticket"), "OPS-7");
    EXPECT_EQ(queue[0].mode, "exclusive");
    EXPECT_EQ(queue[0].token, grant.token());
    EXPECT_EQ(queue[0].session_id, s.info().session_id);
    EXPECT_EQ(queue[0].pid, getpid());
    EXPECT_EQ(queue[0].path, grant.node());
    EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - queue[0].since), 10min);
    EXPECT_EQ(queue[1].id, queue[1].host + ":" + std::to_string(getpid()));
    stop.request_stop();
    EXPECT_FALSE(waiting.get());
}

TEST_F(ExclusiveMutexServerTest, TheQueueIsSortedAcrossTheOverflowOfItsNumbers) {  // H11
    auto s = session();
    observer().make_path(lock_path());
    for (const char* name : {"b-lock--2147483648", "a-lock-2147483647", "c-lock--2147483647", "d-lock-2147483646"}) {
        observer().create(lock_path() + "/" + name, "", CreateMode::ephemeral);
    }
    const auto view = inspect_lock(s, lock_path(), kMaxWait);
    std::string order;
    for (const auto& participant : view.participants) order += participant.node[0];
    EXPECT_EQ(order, "dabc");
    EXPECT_TRUE(view.participants[0].holder);
}

TEST_F(ExclusiveMutexServerTest, WhoeverHasANegativeNumberIsWaitedForInTheOrderOfTheNumbers) {  // H11
    // Our own number is small, and the negative ones come before it; by their text -1 would come before -2.
    auto s = session();
    observer().make_path(lock_path());
    const auto first = lock_path() + "/a-lock--000000002", second = lock_path() + "/b-lock--000000001";
    for (const auto& node : {second, first}) observer().create(node, "", CreateMode::ephemeral);
    Acquiring waiting([&] { return ExclusiveMutex(s, lock_path()).try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(3));
    if (!uses_outside_ensemble()) {
        ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(second) != std::string::npos; }));
    }
    for (const auto& node : {first, second}) {
        EXPECT_FALSE(waiting.done());
        EXPECT_TRUE(observer().remove(node));
    }
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(ExclusiveMutexServerTest, ANamespaceIsPutBeforeEveryPathAndTakenAwayAgain) {
    auto options = session_options(connect_string());
    options.path_prefix = path("tenant");
    Session s(options);
    ExclusiveMutex mutex(s, "/jobs/nightly");
    const Grant grant = mutex.acquire();
    EXPECT_THAT(grant.node(), HasSubstr(path("tenant") + "/jobs/nightly/_c_"));
    EXPECT_THAT(nodes_of(path("tenant") + "/jobs/nightly"), SizeIs(1));
    EXPECT_TRUE(mutex.participants().at(0).path.starts_with("/jobs/nightly/_c_"));
    EXPECT_EQ(mutex.path(), "/jobs/nightly");
    const auto locks = find_locks(s, "/", kMaxWait);
    ASSERT_THAT(locks, SizeIs(1));
    EXPECT_EQ(locks[0].path, "/jobs/nightly");
}

TEST_F(ExclusiveMutexServerTest, LocksAreFoundBelowAPrefix) {
    auto s = session();
    ExclusiveMutex a(s, path("a/one")), b(s, path("b")), free(s, path("c"));
    const Grant one = a.acquire(), two = b.acquire();
    free.acquire().release_and_wait(kMaxWait);
    const auto locks = find_locks(s, root(), kMaxWait);
    ASSERT_THAT(locks, SizeIs(2));
    std::vector<std::string> paths = {locks[0].path, locks[1].path};
    EXPECT_THAT(paths, ::testing::UnorderedElementsAre(path("a/one"), path("b")));
    EXPECT_TRUE(locks[0].participants.at(0).holder);
    EXPECT_THAT(find_locks(s, path("nothing"), kMaxWait), IsEmpty());
    EXPECT_FALSE(inspect_lock(s, path("nothing"), kMaxWait).exists);
    EXPECT_TRUE(inspect_lock(s, path("c"), kMaxWait).exists);
}

TEST_F(ExclusiveMutexServerTest, AParticipantIsRemovedOnlyIfItIsTheOneThatWasSeen) {
    auto s = session(), other = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    auto seen = mutex.participants().at(0);
    auto forged = seen;
    forged.token += 1;
    EXPECT_FALSE(remove_participant(other, forged, kMaxWait));
    observer().set(grant.node(), "changed");
    EXPECT_EQ(error_of([&] { remove_participant(other, seen, kMaxWait); }).errc(), Errc::bad_data);
    EXPECT_THAT(nodes(), SizeIs(1));
    seen = mutex.participants().at(0);
    EXPECT_TRUE(remove_participant(other, seen, kMaxWait));
    EXPECT_THAT(nodes(), IsEmpty());
    EXPECT_FALSE(remove_participant(other, seen, kMaxWait));
}

TEST_F(ExclusiveMutexServerTest, WaitingUntilFreeStandsInNoQueue) {
    auto s = session();
    EXPECT_TRUE(wait_until_free(s, lock_path(), kMaxWait));  // not even a directory
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    EXPECT_FALSE(wait_until_free(s, lock_path(), 20ms));
    std::stop_source stop;
    std::atomic<int> result{-1};
    std::jthread watcher([&] { result = wait_until_free(s, lock_path(), kMaxWait); });
    EXPECT_THAT(nodes(), SizeIs(1));
    grant.release();
    EXPECT_TRUE(await([&] { return result == 1; }));
    grant = mutex.acquire();
    std::jthread stopped(
        [&] { result = wait_until_free(s, lock_path(), Deadline::never(), stop.get_token()) ? 1 : 2; });
    stop.request_stop();
    EXPECT_TRUE(await([&] { return result == 2; }));
}

}  // namespace
}  // namespace zkrecipes::test
