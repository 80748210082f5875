// Asking for a lock back between this library and Curator 5.4: its Revoker and our holders, request_revocation() and
// its holders that were made revocable. (kazoo has nothing of the kind.)
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "interop/interop_test.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::SizeIs;

class RevocationInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS(Who::curator);
        session_.emplace(connected_session(connect_string()));
    }
    void TearDown() override {
        session_.reset();
        InteropTest::TearDown();
    }
    Session& session() { return *session_; }
    /// By Curator's Revoker.
    static void revoke(Client& curator, const std::string& node) { curator.ask({"revoke", node}).fields(); }
    static bool await_told(const std::stop_token& token) {
        return await([&] { return token.stop_requested(); });
    }
    static bool acquire_revocable(Client& curator, const std::string& kind, const std::string& path) {
        return curator.ask({"acquire_revocable", kind, path, std::to_string(kMaxWait.count())}).yes();
    }
    /// How often Curator's listeners for this path were called. Asked of a client that has nothing else to do.
    static std::string asked(Client& curator, const std::string& path) {
        return curator.ask({"asked", path}).fields().at(0);
    }
    /// The contender that holds, or that waits, by our own look.
    Participant participant(bool holder) {
        for (auto& one : inspect_lock(session(), lock_path(), kMaxWait).participants) {
            if (one.holder == holder) return one;
        }
        ADD_FAILURE() << "there is none";
        return {};
    }

private:
    std::optional<Session> session_;
};

/// How one of our recipes holds something, and which node Curator asks.
struct OurHolder {
    const char* name;
    Grant (*acquire)(Session&, const std::string& path);
    std::string (*node)(const Grant&, Session&, const std::string& path);
};
std::string own_node(const Grant& grant, Session&, const std::string&) { return grant.node(); }

const OurHolder kOurHolders[] = {
    {"Mutex", [](Session& s, const std::string& path) { return ExclusiveMutex(s, path).acquire(); }, own_node},
    {"Writer", [](Session& s, const std::string& path) { return ReadWriteLock(s, path).acquire(); }, own_node},
    {"Reader", [](Session& s, const std::string& path) { return ReadWriteLock(s, path).acquire_shared(); }, own_node},
    {"SemaphoreMutex", [](Session& s, const std::string& path) { return SemaphoreMutex(s, path).acquire(); }, own_node},
    {"SecondOfTwoLeases", [](Session& s, const std::string& path) { return Semaphore(s, path, 3).acquire(2); },
     [](const Grant&, Session& s, const std::string& path) { return Semaphore(s, path, 3).participants().at(1).path; }},
    {"SecondMemberOfASet",
     [](Session& s, const std::string& path) {
         return MultiLock(s, {{path}, {path + "-second"}}).acquire();
     },
     [](const Grant&, Session& s, const std::string& path) {
         return inspect_lock(s, path + "-second", kMaxWait).participants.at(0).path;
     }},
};

class OurHolderAskedTest : public RevocationInteropTest, public ::testing::WithParamInterface<OurHolder> {};

TEST_P(OurHolderAskedTest, CuratorsRevokerAsksAnyHoldWhichGoesOnUntilItIsGivenBack) {
    const auto curator = client(Who::curator);
    Grant grant = GetParam().acquire(session(), lock_path());
    const auto token = grant.revocation();
    EXPECT_FALSE(token.stop_requested());
    revoke(*curator, GetParam().node(grant, session(), lock_path()));
    EXPECT_TRUE(await_told(token));
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(grant.lost().stop_requested());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
}

INSTANTIATE_TEST_SUITE_P(Interop, OurHolderAskedTest, ::testing::ValuesIn(kOurHolders),
                         [](const auto& holder) { return std::string(holder.param.name); });

TEST_F(RevocationInteropTest, AHolderOfOursThatGivesWayLetsCuratorIn) {
    const auto waiter = client(Who::curator), operator_ = client(Who::curator);
    Grant grant = ExclusiveMutex(session(), lock_path()).acquire();
    const Answer acquire = waiter->acquire("mutex", lock_path());
    ASSERT_TRUE(await_nodes(2));
    revoke(*operator_, grant.node());  // before anybody here asked for the token
    EXPECT_TRUE(await_told(grant.revocation()));
    EXPECT_FALSE(acquire.done());
    grant.release();
    EXPECT_TRUE(acquire.yes());
    waiter->release("mutex", lock_path()).fields();
}

TEST_F(RevocationInteropTest, AWaiterOfOursThatCuratorAskedIsToldOnceItHolds) {
    const auto holder = client(Who::curator);
    ASSERT_TRUE(holder->acquire("mutex", lock_path()).yes());
    Acquiring waiting([&] { return ExclusiveMutex(session(), lock_path()).try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    revoke(*holder, lock_path() + "/" + queue().at(1));
    holder->release("mutex", lock_path()).fields();
    const Grant got = waiting.get();
    EXPECT_TRUE(got.held());
    EXPECT_TRUE(await_told(got.revocation()));
}

class CuratorHolderAskedTest : public RevocationInteropTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(CuratorHolderAskedTest, WeAskARevocableHolderAndItsListenerIsCalled) {
    const auto holder = client(Who::curator), listener = client(Who::curator);
    ASSERT_TRUE(acquire_revocable(*holder, GetParam(), lock_path()));
    Acquiring waiting([&] { return ReadWriteLock(session(), lock_path()).try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    const Participant seen = participant(true);
    EXPECT_EQ(seen.raw, "") << "what Curator writes into the node of a revocable lock";
    EXPECT_EQ(asked(*listener, lock_path()), "0");
    EXPECT_TRUE(request_revocation(session(), seen, kMaxWait));
    EXPECT_TRUE(await([&] { return asked(*listener, lock_path()) == "1"; }));
    EXPECT_TRUE(participant(true).revocation_requested);
    EXPECT_FALSE(waiting.done()) << "it is a request";
    holder->release(GetParam(), lock_path()).fields();
    EXPECT_TRUE(waiting.get().held());
}

// A mutex of Curator's does not see our writer, but our writer waits for it as well.
INSTANTIATE_TEST_SUITE_P(Interop, CuratorHolderAskedTest, ::testing::Values("mutex", "write", "read"),
                         [](const auto& kind) { return kind.param; });

TEST_F(RevocationInteropTest, ARevocableWaiterOfCuratorsIsToldWhileItWaits) {
    const auto waiter = client(Who::curator), listener = client(Who::curator);
    Grant grant = ExclusiveMutex(session(), lock_path()).acquire();
    const Answer acquire =
        waiter->ask({"acquire_revocable", "mutex", lock_path(), std::to_string(Client::kForever.count())});
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, grant.node().substr(lock_path().size() + 1));
    EXPECT_TRUE(request_revocation(session(), participant(false), kMaxWait));
    EXPECT_TRUE(await([&] { return asked(*listener, lock_path()) == "1"; }));
    EXPECT_FALSE(acquire.done());
    grant.release();
    EXPECT_TRUE(acquire.yes());
}

TEST_F(RevocationInteropTest, AHolderOfCuratorsThatIsNotRevocableKeepsTheLockAndGivesItBackAsEver) {
    const auto holder = client(Who::curator);
    ASSERT_TRUE(holder->acquire("mutex", lock_path()).yes());
    EXPECT_TRUE(request_revocation(session(), participant(true), kMaxWait));
    EXPECT_TRUE(participant(true).revocation_requested);
    ExclusiveMutex ours(session(), lock_path());
    EXPECT_FALSE(ours.try_lock());
    holder->release("mutex", lock_path()).fields();
    EXPECT_TRUE(ours.try_lock_for(kMaxWait));
    ours.unlock();
    EXPECT_TRUE(await_nodes(0));
}

}  // namespace
}  // namespace zkrecipes::test
