// What the message of a refused request says: which right is missing on which path, and as whom the session is known.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/transaction.hpp>

#include <future>
#include <utility>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MissingRightTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        Session anybody = connected_session(connect_string());
        ExclusiveMutex(anybody, path("open")).acquire().release_and_wait(kMaxWait);  // so root() grants everything
    }
    /// What it makes, its owner may use, and everybody else has these rights.
    Session owner_granting(int rights) {
        auto options = session_options(connect_string());
        options.auth = {{"digest", "owner:secret"}};
        options.acl = {{Acl::all, "auth", ""}, {rights, "world", "anyone"}};
        return Session(options);
    }
    Session guest() {
        auto options = session_options(connect_string());
        options.auth = {{"digest", "guest:hush:hush"}};
        return Session(options);
    }
    template <class Call>
    static std::string message(Call call) {
        const Error error = error_of(call);
        EXPECT_EQ(error.errc(), Errc::no_permission) << error.what();
        return error.what();
    }
    static auto lacks(const std::string& right, const std::string& path) {
        return AllOf(HasSubstr("the access list of " + path + " does not grant the right '" + right +
                               "' to this session, which is authenticated as digest:guest;"),
                     Not(HasSubstr("hush")));
    }
};

TEST_F(MissingRightTest, ToCreateInEachRecipe) {
    Session owner = owner_granting(Acl::all & ~(Acl::create | Acl::remove));
    Session stranger = guest();
    const auto p = path("d");
    ExclusiveMutex(owner, p).acquire().release_and_wait(kMaxWait);
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, p).acquire(); }), lacks("create", p));
    EXPECT_THAT(message([&] { (void)ReadWriteLock(stranger, p).acquire_shared(); }), lacks("create", p));
    EXPECT_THAT(message([&] { (void)LeaderElection(stranger, p).campaign(); }), lacks("create", p));
    EXPECT_THAT(message([&] { PersistentNode(stranger, p + "/n").wait_present(); }), lacks("create", p));
    EXPECT_THAT(message([&] { Barrier(stranger, p + "/b").set(); }), lacks("create", p));
    DoubleBarrier barrier(stranger, p, 2);
    for (int i = 0; i < 2; ++i) EXPECT_THAT(message([&] { (void)barrier.enter(); }), lacks("create", p));
    EXPECT_THAT(message([&] { (void)AtomicCounter(stranger, p + "/c").add(1); }), lacks("create", p));
    EXPECT_THAT(message([&] { SharedValue(stranger, p + "/v", "seed").set("x"); }), lacks("create", p));
    const Grant grant = ExclusiveMutex(stranger, path("open")).acquire();
    Transaction transaction(grant);
    transaction.set(path("open"), "x").create(p + "/t", "");
    EXPECT_THAT(message([&] { (void)transaction.commit(); }), lacks("create", p));
}

TEST_F(MissingRightTest, OfTheOnePathOfSeveral) {
    Session owner = owner_granting(Acl::all & ~Acl::create);
    Session stranger = guest();
    const auto p = path("closed"), q = path("open");
    ExclusiveMutex(owner, p).acquire().release_and_wait(kMaxWait);
    EXPECT_THAT(message([&] { (void)MultiLock(stranger, {q, p}).acquire(); }), lacks("create", p));
    Semaphore(owner, path("s"), 2).acquire().release_and_wait(kMaxWait);
    EXPECT_THAT(message([&] { (void)Semaphore(stranger, path("s"), 2).acquire(); }),
                lacks("create", path("s") + "/locks"));
}

TEST_F(MissingRightTest, OfTheParentThatAnInternalRequestWasToMakeSomethingIn) {
    Session owner = owner_granting(Acl::all & ~Acl::create);
    Session stranger = guest();
    ExclusiveMutex(owner, path("d")).acquire().release_and_wait(kMaxWait);
    const auto deep = path("d") + "/deep/lock";
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, deep).acquire(); }), lacks("create", path("d")));
    EXPECT_THAT(message([&] { (void)Semaphore(stranger, deep, 1).acquire(); }), lacks("create", path("d")));
}

TEST_F(MissingRightTest, ToRead) {
    Session owner = owner_granting(Acl::all & ~Acl::read);
    Session stranger = guest();
    const auto p = path("d");
    const Grant held = ExclusiveMutex(owner, p).acquire();
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, p).acquire(); }), lacks("read", p));
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, p).try_acquire(); }), lacks("read", p));
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, p).participants(); }), lacks("read", p));
    EXPECT_THAT(message([&] { (void)read_node(stranger, p); }), lacks("read", p));
    SharedValue(owner, path("v"), "seed").get();
    EXPECT_THAT(message([&] { (void)SharedValue(stranger, path("v"), "").get(); }), lacks("read", path("v")));
}

/// The table of docs/session.md.
TEST_F(MissingRightTest, ReadCreateAndDeleteSufficeForLocks) {
    Session owner = owner_granting(Acl::read | Acl::create | Acl::remove);
    Session stranger = guest();
    const auto p = path("d"), q = path("e");
    const auto passes_to = [](auto& theirs, auto& mine) {
        Grant held = theirs.acquire();
        Acquiring waiting([&] { return mine.acquire(); });
        EXPECT_TRUE(await([&] { return mine.participants().size() == 2; }));
        held.release();
        EXPECT_TRUE(waiting.get().release_and_wait(kMaxWait));
    };
    ExclusiveMutex theirs(owner, p), mine(stranger, p);
    passes_to(theirs, mine);
    ReadWriteLock their_lock(owner, q), my_lock(stranger, q);
    passes_to(their_lock, my_lock);
    EXPECT_TRUE(my_lock.acquire_shared().release_and_wait(kMaxWait));
    EXPECT_TRUE(MultiLock(stranger, {p, q}).acquire().release_and_wait(kMaxWait));
    EXPECT_TRUE(LeaderElection(stranger, p).campaign().release_and_wait(kMaxWait));
    Semaphore their_leases(owner, path("s"), 1), my_leases(stranger, path("s"), 1);
    passes_to(their_leases, my_leases);
}

TEST_F(MissingRightTest, ToWriteAndToDelete) {
    Session owner = owner_granting(Acl::read | Acl::create);
    Session stranger = guest();
    const auto v = path("v"), p = path("d");
    SharedValue(owner, v, "seed").get();
    EXPECT_THAT(message([&] { SharedValue(stranger, v, "").set("x"); }), lacks("write", v));
    const Grant held = ExclusiveMutex(owner, p).acquire();
    const Participant holder = ExclusiveMutex(stranger, p).participants().front();
    EXPECT_THAT(message([&] { (void)remove_participant(stranger, holder, kMaxWait); }), lacks("delete", p));
    EXPECT_THAT(message([&] { (void)request_revocation(stranger, holder, kMaxWait); }),
                lacks("write", p + "/" + holder.node));
}

TEST_F(MissingRightTest, WhoMayDeleteInTheDirectoryRemovesANodeThatItMayNotRead) {
    auto options = session_options(connect_string());
    options.auth = {{"digest", "owner:secret"}};
    options.acl = {{Acl::all, "auth", ""}};
    Session owner(options);
    Session stranger = guest();
    const auto expect_removed = [&](const Grant& held, const std::string& lock) {
        const LockView view = inspect_lock(stranger, lock, kMaxWait);
        ASSERT_EQ(view.participants.size(), 1u);
        EXPECT_FALSE(view.participants[0].readable);
        EXPECT_TRUE(view.participants[0].holder);
        EXPECT_THAT(message([&] { (void)request_revocation(stranger, view.participants[0], kMaxWait); }),
                    lacks("write", view.participants[0].path));
        EXPECT_TRUE(held.held());
        EXPECT_TRUE(remove_participant(stranger, view.participants[0], kMaxWait));
        EXPECT_TRUE(await([&] { return !held.held(); }));
        EXPECT_FALSE(remove_participant(stranger, view.participants[0], kMaxWait));
    };
    Session anybody = connected_session(connect_string());
    expect_removed(ExclusiveMutex(owner, path("open")).acquire(), path("open"));
    LeaderElection(anybody, path("election")).campaign().release_and_wait(kMaxWait);
    const Grant led = LeaderElection(owner, path("election")).campaign();
    EXPECT_FALSE(LeaderElection(stranger, path("election")).leader()->readable);
    expect_removed(led, path("election"));
    Semaphore(anybody, path("limit"), 2).acquire().release_and_wait(kMaxWait);
    expect_removed(Semaphore(owner, path("limit"), 2).acquire(), path("limit"));
    ParticipantFilter filter;
    filter.at_least_for = std::chrono::milliseconds(0);
    const Grant held = ExclusiveMutex(owner, path("open")).acquire();
    EXPECT_THAT(find_locks(stranger, root(), filter, kMaxWait), ::testing::IsEmpty());
    std::promise<FoundLocks> found;
    find_locks_async(stranger, root(), filter, kMaxWait, {},
                     [&](Result<FoundLocks> result) { found.set_value(std::move(result.value)); });
    EXPECT_THAT(found.get_future().get().unreadable, ::testing::ElementsAre(held.nodes().at(0)));
}

TEST_F(MissingRightTest, OfASessionWithoutCredentialsAndWithAPrefix) {
    Session owner = owner_granting(Acl::all & ~Acl::create);
    ExclusiveMutex(owner, path("d")).acquire().release_and_wait(kMaxWait);
    auto options = session_options(connect_string());
    options.path_prefix = root();
    Session stranger(options);
    EXPECT_THAT(message([&] { (void)ExclusiveMutex(stranger, "/d").acquire(); }),
                AllOf(HasSubstr(" /d: "), HasSubstr("the access list of " + path("d") +
                                                    " does not grant the right 'create' to this session, which "
                                                    "presents no credentials;")));
}

}  // namespace
}  // namespace zkrecipes::test
