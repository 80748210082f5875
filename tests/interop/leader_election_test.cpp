// One leadership, had and stood for by C++, by Curator 5.4 (LeaderLatch, LeaderSelector) and by kazoo 2.8 (Election).
#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

struct ElectionPair {
    Who leader;
    Who next;
    const char* kind;
    Names names() const { return std::string(kind) == "election" ? Names::kazoo : Names::curator; }
};

class ElectionPairTest : public InteropTest, public ::testing::WithParamInterface<ElectionPair> {};

std::string id_of(Who who) {
    return who == Who::cpp ? "a C++ client" : who == Who::curator ? "a Curator client" : "a kazoo client";
}

TEST_P(ElectionPairTest, OneLeadsAtATimeAndBothReadTheIds) {
    const auto [first, second, kind] = GetParam();
    ZKRECIPES_NEEDS(first, second);
    const auto leader = client(first, GetParam().names()), next = client(second, GetParam().names());
    ASSERT_TRUE(leader->acquire(kind, lock_path()).yes());
    const auto leading = queue();
    ASSERT_THAT(leading, SizeIs(1));
    EXPECT_FALSE(next->acquire(kind, lock_path(), 50ms).yes());
    ASSERT_TRUE(await_nodes(1));
    const auto third = client(second, GetParam().names());  // the others' own threads wait meanwhile
    const Answer acquire = third->acquire(kind, lock_path());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, leading[0]);
    for (auto* const reader : {leader.get(), next.get()}) {
        const bool kazoo = reader == (first == Who::kazoo ? leader.get() : second == Who::kazoo ? next.get() : nullptr);
        const std::string leads = kazoo ? "" : " leads";  // kazoo's contenders() say only who they are
        EXPECT_THAT(reader->participants(kind, lock_path()).fields(), ElementsAre(id_of(first) + leads, id_of(second)));
    }
    leader->release(kind, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
    EXPECT_FALSE(leader->acquire(kind, lock_path(), 50ms).yes());
    third->release(kind, lock_path()).fields();
    EXPECT_TRUE(leader->acquire(kind, lock_path(), kMaxWait).yes());
    leader->release(kind, lock_path()).fields();
    EXPECT_TRUE(await_nodes(0));
}

constexpr ElectionPair kElections[] = {{Who::cpp, Who::curator, "latch"},    {Who::curator, Who::cpp, "latch"},
                                       {Who::cpp, Who::curator, "selector"}, {Who::curator, Who::cpp, "selector"},
                                       {Who::cpp, Who::kazoo, "election"},   {Who::kazoo, Who::cpp, "election"}};
INSTANTIATE_TEST_SUITE_P(Interop, ElectionPairTest, ::testing::ValuesIn(kElections), [](const auto& pair) {
    return std::string(to_string(pair.param.leader)) + "And" + to_string(pair.param.next) + "As" + pair.param.kind;
});

class ElectionCrowdTest : public InteropTest, public ::testing::WithParamInterface<const char*> {};

// Each increments a number that nothing but the leadership protects, resigns, and stands again.
TEST_P(ElectionCrowdTest, AMixedCrowdHasOneLeaderAtATime) {
    ZKRECIPES_NEEDS(Who::curator);
    constexpr int kTerms = 25;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 4; ++i) clients.push_back(client(Who::cpp));
    for (int i = 0; i < 4; ++i) clients.push_back(client(Who::curator));
    const auto file = counter_file();
    std::vector<Answer> counts;
    for (const auto& each : clients) counts.push_back(each->count(GetParam(), lock_path(), kTerms, file));
    for (const auto& count : counts) EXPECT_TRUE(count.fields().empty());
    EXPECT_EQ(counted(), kTerms * static_cast<long>(clients.size()));
    EXPECT_TRUE(await_nodes(0));
}

INSTANTIATE_TEST_SUITE_P(Interop, ElectionCrowdTest, ::testing::Values("latch", "selector"),
                         [](const auto& kind) { return std::string(kind.param); });

class ElectionKillTest : public InteropTest {};

TEST_F(ElectionKillTest, APeerKilledWhileLeadingIsFollowedWhenItsSessionEnds) {
    ZKRECIPES_NEEDS(Who::curator);
    PeerProcess peer(PeerLanguage::curator);
    const auto doomed = peer.client(connect_string(), 6s);
    const auto ours = client(Who::cpp);
    ASSERT_TRUE(doomed->acquire("latch", lock_path()).yes());
    const Answer acquire = ours->acquire("latch", lock_path());
    ASSERT_TRUE(await_nodes(2));
    peer.kill();
    EXPECT_TRUE(acquire.yes());
    EXPECT_THAT(ours->participants("latch", lock_path()).fields(), ElementsAre("a C++ client leads"));
}

}  // namespace
}  // namespace zkrecipes::test
