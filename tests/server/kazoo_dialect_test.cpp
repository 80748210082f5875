// The kazoo dialect on a real server, without kazoo: names, directories, and recovery by identity.
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class KazooDialectServerTest : public ExclusiveMutexServerTest {
protected:
    static LockOptions options() {
        LockOptions o;
        o.dialect = Dialect::kazoo;
        return o;
    }
    testenv::Match create() const { return testenv::Match::op(Opcode::create2).path(lock_path()); }
};

TEST_F(KazooDialectServerTest, DirectoriesArePersistentAndNodesAreNamedAsKazooDoes) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path(), options());
    mutex.lock();
    EXPECT_EQ(testenv::count(gate().trace())[Opcode::create_container], 0u) << to_string(gate().trace());
    ASSERT_THAT(nodes(), SizeIs(1));
    EXPECT_THAT(nodes()[0], MatchesRegex("[0-9a-f]{32}__lock__[0-9]{10}"));
    mutex.unlock();
    ASSERT_TRUE(await_nodes(0));
    ReadWriteLock lock(s, lock_path(), options());
    const Grant share = lock.acquire_shared();
    EXPECT_THAT(nodes().at(0), MatchesRegex("[0-9a-f]{32}__rlock__[0-9]{10}"));
    const auto seen = lock.participants();
    ASSERT_THAT(seen, SizeIs(1));
    EXPECT_TRUE(seen[0].holder);
    EXPECT_EQ(seen[0].mode, "shared");
    EXPECT_EQ(seen[0].token, share.token());
}

TEST_F(KazooDialectServerTest, AReplyToCreateThatIsLostLeavesExactlyOneNode) {  // H1
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session();
    for (const bool shared : {false, true}) {
        ReadWriteLock lock(s, lock_path(), options());
        observer().make_path(lock_path());
        const auto fault = gate().cut_after(create());
        Grant grant = shared ? lock.acquire_shared() : lock.acquire();
        EXPECT_TRUE(fault.reached());
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(grant.token(), observer().exists(grant.node())->czxid);
        EXPECT_THAT(nodes(), SizeIs(1));
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_THAT(nodes(), IsEmpty());
    }
}

TEST_F(KazooDialectServerTest, WhenThePolicyGivesUpTheGhostIsDeletedOnceTheNetworkHeals) {  // H2
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto giving_up = session_options("");
    giving_up.retry = RetryPolicy::never();
    auto s = gated_session(giving_up);
    ExclusiveMutex mutex(s, lock_path(), options());
    observer().make_path(lock_path());
    const auto fault = gate().cut_after(create());
    EXPECT_EQ(error_of([&] { mutex.lock(); }).errc(), Errc::connection_lost);
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(KazooDialectServerTest, KazoosNodesAreWaitedForInTheOrderOfTheirNumbers) {
    auto s = session();
    ReadWriteLock lock(s, lock_path(), options());
    observer().make_path(lock_path());
    const auto enter = [&](const std::string& name) {
        return observer().create(path("lock/") + name, "", testenv::CreateMode::ephemeral_sequential).path;
    };
    const auto reader = enter("ffffffffffff4fff8fffffffffffffff__rlock__");
    EXPECT_FALSE(lock.try_lock());
    EXPECT_TRUE(lock.try_lock_shared());
    lock.unlock_shared();
    const auto writer = enter("00000000000040008000000000000000__lock__");
    EXPECT_FALSE(lock.try_lock_shared());
    observer().remove(reader);
    EXPECT_FALSE(lock.try_lock_shared_for(20ms));
    enter("_c_00000000-0000-4000-8000-000000000001-__WRIT__");  // of the other dialect: not there
    observer().remove(writer);
    EXPECT_TRUE(lock.try_lock_for(kMaxWait));
    lock.unlock();
}

}  // namespace
}  // namespace zkrecipes::test
