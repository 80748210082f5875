#include "server/multi_lock_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(MultiLockServerTest, MakesMissingDirectoriesAndWritesOneTransaction) {
    auto s = session();
    const auto deep = path("a/b/c");
    MultiLock lock(s, {{deep}, {path("w"), As::exclusive}, {path("a/r"), As::shared}});
    Grant grant = lock.acquire();
    ASSERT_TRUE(grant.held());
    ASSERT_THAT(nodes_of(deep), SizeIs(1));
    EXPECT_THAT(nodes_of(deep)[0], HasSubstr("-lock-"));
    EXPECT_THAT(nodes_of(path("w")).at(0), HasSubstr("-__WRIT__"));
    EXPECT_THAT(nodes_of(path("a/r")).at(0), HasSubstr("-__READ__"));
    EXPECT_EQ(grant.node(), deep + "/" + nodes_of(deep)[0]);
    for (const auto& directory : {deep, path("w"), path("a/r")}) {
        const auto stat = observer().exists(directory + "/" + nodes_of(directory).at(0));
        EXPECT_EQ(stat->czxid, grant.token());  // one token for all
        EXPECT_EQ(stat->ephemeral_owner, grant.session_id());
    }
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_THAT(nodes_of(deep), IsEmpty());
    EXPECT_THAT(nodes_of(path("w")), IsEmpty());
    EXPECT_THAT(nodes_of(path("a/r")), IsEmpty());
    Grant later = lock.acquire();
    EXPECT_GT(later.token(), grant.token());
}

TEST_F(MultiLockServerTest, EachMemberIsAnOrdinaryLockToThoseWhoUseThatPathAlone) {
    auto s = session(), other = session();
    const auto m = path("m"), w = path("w"), r = path("r");
    MultiLock lock(s, {{m}, {w, As::exclusive}, {r, As::shared}});
    ExclusiveMutex mutex(other, m);
    ReadWriteLock alone(other, w), shared(other, r);
    {
        const Grant grant = lock.acquire();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(alone.try_lock());
        EXPECT_FALSE(alone.try_lock_shared());
        EXPECT_FALSE(shared.try_lock());
        EXPECT_TRUE(shared.try_lock_shared());
        shared.unlock_shared();
    }
    const auto kept_out_by = [&](Grant held) {
        Acquiring waiting([&] { return lock.try_acquire_until(kMaxWait); });
        EXPECT_TRUE(await([&] { return nodes_of(m).size() + nodes_of(w).size() + nodes_of(r).size() == 4; }));
        EXPECT_FALSE(waiting.done());
        held.release();
        EXPECT_TRUE(waiting.get().held());
    };
    kept_out_by(mutex.acquire());
    kept_out_by(alone.acquire());
    kept_out_by(alone.acquire_shared());
    kept_out_by(shared.acquire());
    const Grant beside = shared.acquire_shared();
    EXPECT_TRUE(lock.try_acquire().held());
}

TEST_F(MultiLockServerTest, SetsThatNameAPathDifferentlyStillExcludeEachOther) {
    auto s = session(), other = session();
    MultiLock mutex(s, {{lock_path()}, {path("x")}});
    for (const As as : {As::exclusive, As::shared}) {
        MultiLock differently(other, {{path("y")}, {lock_path(), as}});
        Grant grant = differently.acquire();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        Grant back = mutex.acquire();
        EXPECT_FALSE(differently.try_lock());
        EXPECT_TRUE(back.release_and_wait(kMaxWait));
    }
}

TEST_F(MultiLockServerTest, AllOrNone) {
    auto s = session(), other = session();
    make_directories(3);
    ExclusiveMutex single(other, dir(1));
    const Grant held = acquired_elsewhere(single);
    MultiLock lock(s, mutexes(3));
    EXPECT_FALSE(lock.try_lock());
    EXPECT_EQ(nodes_in(3), 1u);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(lock.try_lock_for(50ms));  // one deadline over all
    EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
    EXPECT_TRUE(await_nodes_in(3, 1));
    EXPECT_FALSE(lock.held_by_caller());
}

TEST_F(MultiLockServerTest, WhoeverComesLaterWaitsBehindASetThatStillWaitsElsewhere) {
    auto s = session(), other = session(), third = session();
    make_directories(2);
    ExclusiveMutex first(other, dir(0)), late(third, dir(1));
    Grant held = first.acquire();
    MultiLock lock(s, mutexes(2));
    Acquiring waiting([&] { return lock.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes_in(2, 3));
    EXPECT_FALSE(late.try_lock());  // fair: the set came first there
    held.release();
    EXPECT_TRUE(waiting.get().held());
    EXPECT_TRUE(late.try_lock_for(kMaxWait));
    late.unlock();
}

TEST_F(MultiLockServerTest, WaitingWhileHoldingSomethingIsRefusedUnlessTheCallerSaysSo) {
    auto s = session();
    make_directories(4);
    MultiLock one(s, mutexes(2)), two(s, mutexes(2, 2)), overlapping(s, mutexes(2, 1));
    ExclusiveMutex single(s, path("single"));
    const auto refused = [&](MultiLock& lock) {
        const Error error = error_of([&] { (void)lock.try_acquire_until(kMaxWait); });
        EXPECT_EQ(error.errc(), Errc::would_deadlock);
        EXPECT_THAT(error.what(), HasSubstr("try_acquire_while_holding"));
        EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::would_deadlock);
    };
    one.lock();
    one.lock();  // its own owner is welcome
    refused(two);
    one.unlock();
    refused(two);
    EXPECT_TRUE(two.try_lock());  // waits for nobody
    two.unlock();
    EXPECT_TRUE(two.try_acquire_while_holding(kMaxWait).held());
    EXPECT_FALSE(overlapping.try_acquire_while_holding(30ms));  // it would wait for itself, and the deadline ends it
    one.unlock();
    single.lock();
    refused(one);
    std::jthread([&] { EXPECT_TRUE(one.try_acquire_until(kMaxWait).held()); });  // somebody else has locked nothing
    single.unlock();
    const Grant beside = single.acquire();  // a grant has no owner
    EXPECT_TRUE(one.try_acquire_until(kMaxWait).held());
    std::atomic<bool> done{false};
    Grant of_nobody;
    two.acquire_async(kMaxWait, {}, [&](AcquireResult result) {
        of_nobody = std::move(result.value);
        done = true;
    });
    ASSERT_TRUE(await([&] { return done.load(); }));
    EXPECT_TRUE(one.try_acquire_until(kMaxWait).held());
}

TEST_F(MultiLockServerTest, ParticipantsAreShownForEachMember) {
    auto s = session(), other = session();
    LockOptions options;
    options.id = "worker 1";
    MultiLock lock(s, {{path("m")}, {path("r"), As::shared}}, options);
    EXPECT_FALSE(lock.participants().at(0).exists);
    const Grant grant = lock.acquire();
    ReadWriteLock beside(other, path("r"));
    const Grant share = beside.acquire_shared();
    const auto views = lock.participants();
    ASSERT_EQ(views.size(), 2u);
    EXPECT_EQ(views[0].path, path("m"));
    ASSERT_THAT(views[0].participants, SizeIs(1));
    EXPECT_TRUE(views[0].participants[0].holder);
    EXPECT_EQ(views[0].participants[0].id, "worker 1");
    EXPECT_EQ(views[0].participants[0].token, grant.token());
    ASSERT_THAT(views[1].participants, SizeIs(2));
    EXPECT_EQ(views[1].participants[0].mode, "shared");
    EXPECT_TRUE(views[1].participants[1].holder);
}

TEST_F(MultiLockServerTest, EveryQueueGoesOnAcrossTheOverflowOfItsNumbers) {  // H11
    // Our own number is small, and the negative ones come before it; by their text -1 would come before -2.
    auto s = session();
    make_directories(2);
    const auto enters = [&](std::size_t i, const char* name) {
        observer().create(dir(i) + "/" + name, "", testenv::CreateMode::ephemeral);
        return dir(i) + "/" + name;
    };
    const auto second = enters(0, "b-lock--000000001"), first = enters(0, "a-lock--000000002"),
               writer = enters(1, "c-__WRIT__-000000001"), reader = enters(1, "d-__READ__-000000002");
    MultiLock lock(s, {{dir(0)}, {dir(1), As::shared}});
    Acquiring waiting([&] { return lock.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes_in(2, 6));
    if (!uses_outside_ensemble()) {
        const auto watched = [&](const std::string& node) {
            return server().four_letter("wchp").find(node) != std::string::npos;
        };
        ASSERT_TRUE(await([&] { return watched(second) && watched(writer); }));
        EXPECT_FALSE(watched(first) || watched(reader));
    }
    for (const auto& node : {first, writer, second}) {
        EXPECT_FALSE(waiting.done());
        EXPECT_TRUE(observer().remove(node));
    }
    EXPECT_TRUE(waiting.get().held());

    // Past the largest number the order goes on.
    make_directories(3);
    for (const char* name : {"f-lock--2147483648", "e-lock-2147483647"}) enters(2, name);
    const auto seen = MultiLock(s, {{dir(2)}}).participants();
    EXPECT_TRUE(seen.at(0).participants.at(0).node.starts_with("e") && seen[0].participants[0].holder);
}

TEST_F(MultiLockServerTest, TheNamespaceOfTheSessionIsBeforeEveryMember) {
    auto options = session_options(connect_string());
    options.path_prefix = path("tenant");
    Session s(options);
    MultiLock lock(s, {{"/jobs/a"}, {"/jobs/b"}});
    const Grant grant = lock.try_acquire_until(kMaxWait);
    ASSERT_TRUE(grant);
    EXPECT_THAT(nodes_of(path("tenant") + "/jobs/a"), SizeIs(1));
    EXPECT_THAT(nodes_of(path("tenant") + "/jobs/b"), SizeIs(1));
    EXPECT_THAT(lock.participants().at(1).participants, SizeIs(1));
}

}  // namespace
}  // namespace zkrecipes::test
