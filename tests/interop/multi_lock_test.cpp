// A set of locks, and Curator clients that know nothing of sets: each member is an ordinary lock to them. And Curator's
// own multi-locks, which take one lock after the other.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>

#include "interop/curator_crowd.hpp"
#include "interop/interop_test.hpp"
#include "server/exclusive_mutex_support.hpp"
#include "support/whole.hpp"

namespace zkrecipes::test {
namespace {

using As = MultiLock::As;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Member {
    const char* name;
    As as;
    const char* kept_out;  // what Curator must not get while we hold the set
};
constexpr Member kMembers[] = {
    {"m", As::mutex, "mutex"}, {"w", As::exclusive, "write"}, {"w", As::exclusive, "read"}, {"r", As::shared, "write"}};

class MultiLockInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS(Who::curator);
        session_.emplace(connect_string());
        lock_.emplace(*session_,
                      std::vector<MultiLock::Member>{{path("m")}, {path("w"), As::exclusive}, {path("r"), As::shared}});
    }
    void TearDown() override {
        lock_.reset();
        session_.reset();
        InteropTest::TearDown();
    }
    Session& session() { return *session_; }
    MultiLock& lock() { return *lock_; }
    std::size_t count(const char* name) {
        return observer().children(path(name)).value_or(std::vector<std::string>()).size();
    }
    bool await_count(const char* name, std::size_t nodes) {
        return await([&] { return count(name) == nodes; });
    }
    /// Somebody watches a node of the queue, so somebody waits for it.
    bool await_watched(const std::string& node) {
        return await([&] { return server().four_letter("wchp").find(node) != std::string::npos; });
    }
    bool await_empty() {
        return await([&] { return count("m") + count("w") + count("r") == 0; });
    }

private:
    std::optional<Session> session_;
    std::optional<MultiLock> lock_;
};

TEST_F(MultiLockInteropTest, CuratorIsKeptOutOfEveryMemberAndSharesWhatIsShared) {
    const auto curator = client(Who::curator);
    Grant grant = lock().try_acquire_until(kMaxWait);
    ASSERT_TRUE(grant.held());
    for (const auto& member : kMembers) {
        SCOPED_TRACE(std::string(member.name) + " " + member.kept_out);
        EXPECT_FALSE(curator->acquire(member.kept_out, path(member.name), 50ms).yes());
    }
    EXPECT_TRUE(curator->acquire("read", path("r"), kMaxWait).yes());
    curator->release("read", path("r")).fields();
    const Answer waiting = curator->acquire("mutex", path("m"));
    ASSERT_TRUE(await([&] { return observer().children(path("m"))->size() == 2; }));
    EXPECT_FALSE(waiting.done());
    grant.release();
    EXPECT_TRUE(waiting.yes());
    curator->release("mutex", path("m")).fields();
    EXPECT_TRUE(await_empty());
}

TEST_F(MultiLockInteropTest, CuratorInAnyMemberKeepsTheSetOut) {
    const auto curator = client(Who::curator);
    for (const auto& member : kMembers) {
        SCOPED_TRACE(std::string(member.name) + " " + member.kept_out);
        ASSERT_TRUE(curator->acquire(member.kept_out, path(member.name), kMaxWait).yes());
        EXPECT_FALSE(lock().try_lock());
        EXPECT_FALSE(lock().try_lock_for(50ms));
        curator->release(member.kept_out, path(member.name)).fields();
        EXPECT_TRUE(lock().try_lock_for(kMaxWait));
        lock().unlock();
        EXPECT_TRUE(await_empty());
    }
    ASSERT_TRUE(curator->acquire("read", path("r"), kMaxWait).yes());
    EXPECT_TRUE(lock().try_lock());  // beside it
    lock().unlock();
    curator->release("read", path("r")).fields();
}

TEST_F(MultiLockInteropTest, OneQueueInTheOrderOfArrivalAndBothReadWhoStandsInIt) {
    const auto before = client(Who::curator), after = client(Who::curator), reader = client(Who::curator);
    ASSERT_TRUE(before->acquire("mutex", path("m")).yes());
    Acquiring set([&] { return lock().try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_count("m", 2));
    const Answer last = after->acquire("mutex", path("m"));
    ASSERT_TRUE(await_count("m", 3));
    const Answer behind = reader->acquire("read", path("w"));
    ASSERT_TRUE(await_count("w", 2));
    EXPECT_FALSE(set.done() || last.done() || behind.done());

    const auto seen = lock().participants();
    ASSERT_THAT(seen, SizeIs(3));
    ASSERT_THAT(seen[0].participants, SizeIs(3));
    for (const std::size_t i : {0, 2}) {  // Curator's: the address of its host
        EXPECT_THAT(seen[0].participants[i].raw, AllOf(Not(""), Not(HasSubstr("{"))));
    }
    EXPECT_EQ(seen[0].participants[1].session_id, session().info().session_id);
    const auto said = client(Who::curator)->participants("mutex", path("m")).fields();
    ASSERT_THAT(said, SizeIs(3));
    EXPECT_THAT(said[1], HasSubstr("\"v\":1"));

    before->release("mutex", path("m")).fields();
    Grant grant = set.get();
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(last.done() || behind.done());
    grant.release();
    EXPECT_TRUE(last.yes());
    EXPECT_TRUE(behind.yes());
    after->release("mutex", path("m")).fields();
    reader->release("read", path("w")).fields();
    EXPECT_TRUE(await_empty());
}

TEST_F(MultiLockInteropTest, NeitherCuratorNorKazooSeesTheMarkerOfASet) {
    ZKRECIPES_NEEDS(Who::kazoo);
    const auto curator = client(Who::curator), kazoo = client(Who::kazoo);
    std::atomic<bool> over{false};
    std::jthread cycles([&] {
        while (!over) EXPECT_TRUE(lock().try_acquire_until(kMaxWait));
    });
    int lists = 0;
    for (int i = 0; i < 100; ++i) {
        for (const auto* reader : {&curator, &kazoo}) {
            std::vector<std::string> said;
            try {
                said = (*reader)->participants("mutex", path("m")).fields();
            } catch (const std::runtime_error&) {
                continue;  // the node was gone when its data were read
            }
            EXPECT_LE(said.size(), 1u);
            for (const auto& node : said) EXPECT_THAT(node, HasSubstr("\"v\":1"));
            lists += static_cast<int>(said.size());
        }
    }
    over = true;
    cycles.join();
    EXPECT_GT(lists, 0);
    ASSERT_TRUE(curator->acquire("mutex", path("m"), kMaxWait).yes());
    curator->release("mutex", path("m")).fields();
    EXPECT_TRUE(await_empty());
}

TEST_F(MultiLockInteropTest, ACuratorKilledInAnyMemberWhileItHoldsAndWaitsMakesRoom) {
    PeerProcess peer(PeerLanguage::curator);
    const auto holds = peer.client(connect_string(), 6s), waits = peer.client(connect_string(), 6s);
    Grant share = Acquiring([&] { return ReadWriteLock(session(), path("w")).acquire_shared(); }).get();
    ASSERT_TRUE(holds->acquire("mutex", path("m")).yes());
    const Answer never = waits->acquire("write", path("w"));
    ASSERT_TRUE(await_count("w", 2));
    Acquiring set([&] { return lock().try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_count("w", 3));
    peer.kill();
    ASSERT_TRUE(await_count("w", 2));
    ASSERT_TRUE(await_count("m", 1));
    EXPECT_FALSE(set.done());
    share.release();
    EXPECT_TRUE(set.get().held());
    EXPECT_THROW(never.fields(), std::runtime_error);
}

TEST_F(MultiLockInteropTest, AMultiLockOfCuratorsAndASetWaitForEachOtherUntilOneGivesWay) {
    // Curator's multi-lock holds one lock while it waits for the next, in whatever order. So it can hold what a set
    // waits for, and wait behind that set: docs/recipes/multi_lock.md says what to do.
    const auto curator = client(Who::curator);
    Grant first = Acquiring([&] { return ExclusiveMutex(session(), path("a")).acquire(); }).get();
    const Answer sorted = curator->ask({"acquire_set", "-1", "mutex", path("b"), "mutex", path("a")});
    ASSERT_TRUE(await_count("a", 2));
    MultiLock both(session(), {{path("b")}, {path("a")}});
    std::stop_source give_way;
    Acquiring set([&] { return both.try_acquire_until(Deadline::never(), give_way.get_token()); });
    ASSERT_TRUE(await_count("a", 3));
    const auto ours = path("b") + "/" + observer().children(path("b")).value().at(0);
    first.release();
    ASSERT_TRUE(await_count("b", 2));  // Curator holds a, and has come to b
    ASSERT_TRUE(await_watched(ours));  // where it waits for the set, which waits for it
    EXPECT_FALSE(sorted.done() || set.done());

    give_way.request_stop();
    EXPECT_FALSE(set.get());
    EXPECT_TRUE(sorted.yes());
    Acquiring again([&] { return both.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_count("b", 2));
    curator->ask({"release_set"}).fields();
    EXPECT_TRUE(again.get().held());
}

TEST_F(MultiLockInteropTest, ACrowdOfSetsThatGiveWayToCuratorsMultiLocksNeitherStandsStillNorOverlaps) {  // H42
    // The whole of it is a command: multi_lock_crowd.
    PeerProcess peer(PeerLanguage::curator);
    const auto wanted = static_cast<std::size_t>(share_of(5000, 100));
    CrowdOptions options;
    options.acquisitions = wanted;
    options.guests = curator_guests(peer, connect_string(), 4);
    options.give_way_after = scaled(150ms);
    const auto report = run_crowd(connect_string(), root(), std::move(options));
    std::cout << report.text() << "\n";
    EXPECT_TRUE(report.went_well(wanted)) << report.text();
    EXPECT_GT(report.of_guests, 0u);
    EXPECT_LT(report.of_guests, wanted);
}

}  // namespace
}  // namespace zkrecipes::test
