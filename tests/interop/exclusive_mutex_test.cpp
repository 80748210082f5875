// One mutex, held and waited for by C++, Curator 5.4 and kazoo 2.8 (under Curator's names).
#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kMutex = "mutex";

struct Pair {
    Who holder;
    Who waiter;
    Names names = Names::curator;
};
class MutexPairTest : public InteropTest, public ::testing::WithParamInterface<Pair> {};

TEST_P(MutexPairTest, WhoeverHoldsItTheOtherWaits) {
    ZKRECIPES_NEEDS(GetParam().holder, GetParam().waiter);
    const auto holder = client(GetParam().holder, GetParam().names),
               waiter = client(GetParam().waiter, GetParam().names);
    ASSERT_TRUE(holder->acquire(kMutex, lock_path()).yes());
    const auto held = queue();
    ASSERT_THAT(held, SizeIs(1));
    // A wait that ends leaves nothing behind.
    EXPECT_FALSE(waiter->acquire(kMutex, lock_path(), 50ms).yes());
    EXPECT_TRUE(await_nodes(1));
    const Answer acquire = waiter->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, held[0]);
    holder->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
    EXPECT_FALSE(holder->acquire(kMutex, lock_path(), 50ms).yes());
    waiter->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(holder->acquire(kMutex, lock_path(), kMaxWait).yes());
    holder->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(await_nodes(0));
}

TEST_P(MutexPairTest, BothReadWhoHoldsAndWhoWaits) {
    ZKRECIPES_NEEDS(GetParam().holder, GetParam().waiter);
    const auto holder = client(GetParam().holder, GetParam().names),
               waiter = client(GetParam().waiter, GetParam().names);
    ASSERT_TRUE(holder->acquire(kMutex, lock_path()).yes());
    const auto third = client(GetParam().waiter, GetParam().names);
    const Answer acquire = third->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(2));
    for (const auto& node : nodes()) EXPECT_TRUE(observer().get(lock_path() + "/" + node)) << node;
    const auto says = [](Who who) -> ::testing::Matcher<std::string> {
        if (who == Who::cpp) return HasSubstr("\"id\":\"a C++ client\"");
        if (who == Who::kazoo) return std::string("a kazoo client");
        return AllOf(Not(""), Not(HasSubstr("client")));  // the address of its host
    };
    for (const auto* reader : {holder.get(), waiter.get()}) {
        EXPECT_THAT(const_cast<Client*>(reader)->participants(kMutex, lock_path()).fields(),
                    ElementsAre(says(GetParam().holder), says(GetParam().waiter)));
    }
    holder->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
    third->release(kMutex, lock_path()).fields();
}

std::string pair_name(const ::testing::TestParamInfo<Pair>& pair) {
    return std::string(to_string(pair.param.holder)) + "And" + to_string(pair.param.waiter) +
           (pair.param.names == Names::kazoo ? "InKazoosDialect" : "");
}
constexpr Pair kPairs[] = {{Who::cpp, Who::curator},
                           {Who::curator, Who::cpp},
                           {Who::cpp, Who::kazoo},
                           {Who::kazoo, Who::cpp},
                           {Who::curator, Who::kazoo},
                           {Who::kazoo, Who::curator},
                           {Who::cpp, Who::kazoo, Names::kazoo},
                           {Who::kazoo, Who::cpp, Names::kazoo}};
INSTANTIATE_TEST_SUITE_P(Interop, MutexPairTest, ::testing::ValuesIn(kPairs), pair_name);

class MutexInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS(Who::curator, Who::kazoo);
    }
};

TEST_F(MutexInteropTest, OneQueueForAllInTheOrderOfArrival) {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> acquires;
    for (const Who who :
         {Who::kazoo, Who::cpp, Who::curator, Who::cpp, Who::kazoo, Who::curator, Who::kazoo, Who::cpp}) {
        clients.push_back(client(who));
        acquires.push_back(clients.back()->acquire(kMutex, lock_path()));
        ASSERT_TRUE(await_nodes(clients.size()));
    }
    const auto all = queue();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        expect_waiting(acquires[i + 1], all[i]);
        ASSERT_FALSE(HasFailure());
    }
    for (std::size_t i = 0; i < acquires.size(); ++i) {
        ASSERT_TRUE(acquires[i].yes());
        EXPECT_EQ(queue().front(), all[i]);
        for (std::size_t later = i + 1; later < acquires.size(); ++later) EXPECT_FALSE(acquires[later].done());
        clients[i]->release(kMutex, lock_path()).fields();
    }
}

TEST_F(MutexInteropTest, APeerThatGivesUpInTheMiddleOfTheQueueLetsNobodyIn) {
    const auto holder = client(Who::cpp), middle = client(Who::curator), last = client(Who::cpp);
    ASSERT_TRUE(holder->acquire(kMutex, lock_path()).yes());
    const auto first = queue().at(0);
    const Answer gives_up = middle->acquire(kMutex, lock_path(), 5s);
    ASSERT_TRUE(await_nodes(2));
    const Answer acquire = last->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(3));
    EXPECT_FALSE(gives_up.yes());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, first);
    holder->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
}

TEST_F(MutexInteropTest, AMixedCrowdLosesNoUpdate) {
    constexpr int kRounds = 125;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 8; ++i) clients.push_back(client(Who::cpp));
    for (int i = 0; i < 4; ++i) clients.push_back(client(Who::curator));
    for (int i = 0; i < 4; ++i) clients.push_back(client(Who::kazoo));
    const auto file = counter_file();
    std::vector<Answer> counts;
    for (const auto& each : clients) counts.push_back(each->count(kMutex, lock_path(), kRounds, file));
    for (const auto& count : counts) EXPECT_TRUE(count.fields().empty());
    EXPECT_EQ(counted(), kRounds * static_cast<long>(clients.size()));
    EXPECT_TRUE(await_nodes(0));
}

class MutexKillTest : public InteropTest, public ::testing::WithParamInterface<Who> {};

TEST_P(MutexKillTest, APeerKilledWhileHoldingMakesRoomWhenItsSessionEnds) {
    ZKRECIPES_NEEDS(GetParam());
    PeerProcess peer(GetParam() == Who::curator ? PeerLanguage::curator : PeerLanguage::kazoo);
    const auto doomed = peer.client(connect_string(), 6s);
    const auto ours = client(Who::cpp);
    ASSERT_TRUE(doomed->acquire(kMutex, lock_path()).yes());
    const auto held = queue().at(0);
    const Answer acquire = ours->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, held);
    peer.kill();
    EXPECT_TRUE(acquire.yes());
    EXPECT_THAT(nodes(), SizeIs(1));
    EXPECT_THAT(nodes().front(), Not(held));
}

TEST_P(MutexKillTest, APeerKilledWhileWaitingIsWaitedForByNobodyInTheEnd) {
    ZKRECIPES_NEEDS(GetParam());
    PeerProcess peer(GetParam() == Who::curator ? PeerLanguage::curator : PeerLanguage::kazoo);
    const auto doomed = peer.client(connect_string(), 6s);
    const auto ours = client(Who::cpp), other = client(GetParam());
    ASSERT_TRUE(ours->acquire(kMutex, lock_path()).yes());
    const Answer never = doomed->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(2));
    const Answer acquire = other->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_nodes(3));
    const auto all = queue();
    expect_waiting(never, all[0]);
    expect_waiting(acquire, all[1]);
    peer.kill();
    EXPECT_THROW(never.fields(), std::runtime_error);
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(acquire, all[0]);
    ours->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
    other->release(kMutex, lock_path()).fields();
}

INSTANTIATE_TEST_SUITE_P(Interop, MutexKillTest, ::testing::Values(Who::curator, Who::kazoo),
                         [](const auto& who) { return to_string(who.param); });

}  // namespace
}  // namespace zkrecipes::test
