// Locks found by what is known of those who hold them or wait for them.
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/leader_election.hpp>

#include "server/exclusive_mutex_support.hpp"
#include "support/error_of.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FindLocksTest : public ExclusiveMutexServerTest {
protected:
    static LockOptions who(const std::string& id, std::map<std::string, std::string> labels = {}) {
        LockOptions options;
        options.id = id;
        options.labels = std::move(labels);
        return options;
    }
    std::vector<std::string> found(Session& s, const ParticipantFilter& filter) {
        std::vector<std::string> out;
        for (const auto& lock : find_locks(s, root(), filter, kMaxWait)) {
            for (const auto& one : lock.participants) {
                out.push_back(lock.path.substr(root().size()) + (one.holder ? " held by " : " wanted by ") + one.id);
            }
        }
        return out;
    }
};

TEST_F(FindLocksTest, ByIdLabelHostAndStanding) {
    auto s = session();
    auto other = session();
    ExclusiveMutex ann(s, path("a"), who("ann", {{"team", "red"}, {"job", "backup"}}));
    ExclusiveMutex bob(s, path("b/deep"), who("bob", {{"team", "blue"}}));
    ExclusiveMutex eve(other, path("a"), who("eve", {{"team", "blue"}}));
    Grant a = ann.acquire();
    const Grant b = bob.acquire();
    std::jthread waiting([&] { const Grant got = eve.acquire(); });
    ASSERT_TRUE(await([&] { return nodes_of(path("a")).size() == 2; }));

    using Standing = ParticipantFilter::Standing;
    ParticipantFilter filter;
    EXPECT_THAT(found(s, filter), ElementsAre("/a held by ann", "/a wanted by eve", "/b/deep held by bob"));
    filter.standing = Standing::holding;
    EXPECT_THAT(found(s, filter), ElementsAre("/a held by ann", "/b/deep held by bob"));
    filter.standing = Standing::waiting;
    EXPECT_THAT(found(s, filter), ElementsAre("/a wanted by eve"));
    filter.standing = Standing::any;
    filter.id = "bob";
    EXPECT_THAT(found(s, filter), ElementsAre("/b/deep held by bob"));
    filter.id.reset();
    filter.labels = {{"team", "blue"}};
    EXPECT_THAT(found(s, filter), ElementsAre("/a wanted by eve", "/b/deep held by bob"));
    filter.labels = {{"team", "red"}, {"job", "restore"}};
    EXPECT_THAT(found(s, filter), IsEmpty());
    filter.labels = {{"missing", ""}};
    EXPECT_THAT(found(s, filter), IsEmpty());
    filter.labels.clear();
    filter.host = ann.participants().front().host;
    EXPECT_THAT(found(s, filter), SizeIs(3));
    filter.host = "elsewhere";
    EXPECT_THAT(found(s, filter), IsEmpty());
    a.release();
}

TEST_F(FindLocksTest, ByAge) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    const Participant one = mutex.participants().front();
    ParticipantFilter filter;
    filter.at_least_for = 1min;
    EXPECT_FALSE(filter.matches(one, one.since + 59s));
    EXPECT_TRUE(filter.matches(one, one.since + 60s));
    EXPECT_THAT(find_locks(s, root(), filter, kMaxWait), IsEmpty());
    filter.at_least_for = -1min;  // the servers' clock may be ahead of ours
    EXPECT_THAT(find_locks(s, root(), filter, kMaxWait), SizeIs(1));
}

TEST_F(FindLocksTest, ForeignNodesMatchByStandingAlone) {
    auto s = session();
    observer().make_path(path("foreign"));
    observer().create(path("foreign") + "/_c_00000000-0000-0000-0000-000000000000-lock-", "10.0.0.1",
                      testenv::CreateMode::ephemeral_sequential);
    ParticipantFilter filter;
    filter.standing = ParticipantFilter::Standing::holding;
    EXPECT_THAT(find_locks(s, root(), filter, kMaxWait), SizeIs(1));
    filter.id = "";
    EXPECT_THAT(find_locks(s, root(), filter, kMaxWait), SizeIs(1));
    filter.id = "10.0.0.1";
    EXPECT_THAT(find_locks(s, root(), filter, kMaxWait), IsEmpty());
}

TEST_F(FindLocksTest, TheNodeOfAContenderIsNoLock) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    const std::string node = grant.nodes().front();
    ExclusiveMutex below(s, node);
    LeaderElection election(s, node);
    const std::vector<std::function<void()>> calls = {
        [&] { (void)inspect_lock(s, node, kMaxWait); },
        [&] { (void)wait_until_free(s, node, kMaxWait); },
        [&] { (void)below.participants(); },
        [&] { (void)below.try_acquire(); },
        [&] { (void)election.leader(); },
        [&] { (void)election.candidates(); },
        [&] { (void)Group(s, node).members(); },
    };
    for (const auto& call : calls) {
        const Error error = error_of(call);
        EXPECT_EQ(error.errc(), Errc::bad_path) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("it is the ephemeral node of a contender or member, or below one"));
    }
    EXPECT_THAT(find_locks(s, node, kMaxWait), IsEmpty());
    EXPECT_TRUE(list_lock(s, node, kMaxWait).exists);
}

TEST_F(FindLocksTest, EphemeralNodesOfOthersHideNoLock) {
    auto s = session();
    ExclusiveMutex mutex(s, path("a/lock"));
    const Grant grant = mutex.acquire();
    observer().make_path(path("members"));
    for (const std::string& other : {path("web1"), path("members/web2")}) {
        observer().create(other, "python", testenv::CreateMode::ephemeral);
    }
    // As if they were a semaphore's.
    observer().create(path("members/leases"), R"({"leases":3})", testenv::CreateMode::ephemeral);
    observer().create(path("members/locks"), "", testenv::CreateMode::ephemeral);
    EXPECT_THAT(find_locks(s, root(), kMaxWait), SizeIs(1));
    EXPECT_TRUE(inspect_lock(s, path("members"), kMaxWait).participants.empty());
}

}  // namespace
}  // namespace zkrecipes::test
