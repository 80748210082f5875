// One lock with shares, used by C++, Curator 5.4 and kazoo 2.8 (under Curator's names).
#include "interop/interop_test.hpp"
#include "support/whole.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kRead = "read";
constexpr const char* kWrite = "write";

struct Pair {
    Who holder;
    Who waiter;
    Names names = Names::curator;
};
class ReadWritePairTest : public InteropTest, public ::testing::WithParamInterface<Pair> {};

TEST_P(ReadWritePairTest, AWriterKeepsOutBothAndAReaderTheWriters) {
    ZKRECIPES_NEEDS(GetParam().holder, GetParam().waiter);
    const auto holder = client(GetParam().holder, GetParam().names),
               waiter = client(GetParam().waiter, GetParam().names);
    for (const auto* held : {kWrite, kRead}) {
        for (const auto* wanted : {kWrite, kRead}) {
            if (held == kRead && wanted == kRead) continue;
            SCOPED_TRACE(std::string(held) + " held, wanted " + wanted);
            ASSERT_TRUE(holder->acquire(held, lock_path()).yes());
            const auto first = queue().at(0);
            EXPECT_FALSE(waiter->acquire(wanted, lock_path(), 50ms).yes());
            EXPECT_TRUE(await_nodes(1));
            const Answer acquire = waiter->acquire(wanted, lock_path());
            ASSERT_TRUE(await_nodes(2));
            expect_waiting(acquire, first);
            holder->release(held, lock_path()).fields();
            EXPECT_TRUE(acquire.yes());
            waiter->release(wanted, lock_path()).fields();
            EXPECT_TRUE(await_nodes(0));
        }
    }
}

TEST_P(ReadWritePairTest, SharesAreHeldBesideEachOtherAndBothReadWhoHolds) {
    ZKRECIPES_NEEDS(GetParam().holder, GetParam().waiter);
    const auto holder = client(GetParam().holder, GetParam().names),
               waiter = client(GetParam().waiter, GetParam().names);
    ASSERT_TRUE(holder->acquire(kRead, lock_path()).yes());
    ASSERT_TRUE(waiter->acquire(kRead, lock_path(), kMaxWait).yes());
    for (const auto& node : nodes()) EXPECT_TRUE(observer().get(lock_path() + "/" + node)) << node;
    for (auto* reader : {holder.get(), waiter.get()}) {
        const auto said = reader->participants(kRead, lock_path()).fields();
        ASSERT_THAT(said, SizeIs(2));
        for (const auto& each : said) EXPECT_NE(each, "");
    }
    holder->release(kRead, lock_path()).fields();
    waiter->release(kRead, lock_path()).fields();
    EXPECT_TRUE(await_nodes(0));
}

constexpr Pair kPairs[] = {{Who::cpp, Who::curator},
                           {Who::curator, Who::cpp},
                           {Who::cpp, Who::kazoo},
                           {Who::kazoo, Who::cpp},
                           {Who::curator, Who::kazoo},
                           {Who::kazoo, Who::curator},
                           {Who::cpp, Who::kazoo, Names::kazoo},
                           {Who::kazoo, Who::cpp, Names::kazoo}};
INSTANTIATE_TEST_SUITE_P(Interop, ReadWritePairTest, ::testing::ValuesIn(kPairs), [](const auto& pair) {
    return std::string(to_string(pair.param.holder)) + "And" + to_string(pair.param.waiter) +
           (pair.param.names == Names::kazoo ? "InKazoosDialect" : "");
});

class ReadWriteInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS(Who::curator, Who::kazoo);
    }
};

TEST_F(ReadWriteInteropTest, NobodyOvertakesAWriterThatWaits) {
    struct Contender {
        Who who;
        const char* kind;
    };
    constexpr Contender kContenders[] = {{Who::curator, kRead}, {Who::kazoo, kRead},   {Who::cpp, kWrite},
                                         {Who::cpp, kRead},     {Who::curator, kRead}, {Who::kazoo, kWrite},
                                         {Who::cpp, kRead},     {Who::curator, kWrite}};
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> acquires;
    for (const auto& each : kContenders) {
        clients.push_back(client(each.who));
        acquires.push_back(clients.back()->acquire(each.kind, lock_path()));
        ASSERT_TRUE(await_nodes(clients.size()));
    }
    // Who may hold at the same time: the readers before each writer, and each writer.
    const std::vector<std::vector<std::size_t>> groups = {{0, 1}, {2}, {3, 4}, {5}, {6}, {7}};
    for (const auto& group : groups) {
        for (const auto i : group) ASSERT_TRUE(acquires[i].yes()) << i;
        for (std::size_t later = group.back() + 1; later < acquires.size(); ++later) {
            EXPECT_FALSE(acquires[later].done()) << later;
        }
        for (const auto i : group) clients[i]->release(kContenders[i].kind, lock_path()).fields();
    }
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(ReadWriteInteropTest, AMixedCrowdLosesNoUpdateAndReadersSeeNoneHappen) {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> answers;
    const auto file = counter_file();
    const int rounds = share_of(250, 50);
    long written = 0;
    const auto add = [&](Who who, int number) {
        for (int i = 0; i < number; ++i) {
            clients.push_back(client(who));
            const bool writes = i % 2 == 0;
            written += writes ? rounds : 0;
            answers.push_back(writes ? clients.back()->count(kWrite, lock_path(), rounds, file)
                                     : clients.back()->look(kRead, lock_path(), rounds, file));
        }
    };
    add(Who::cpp, 8);
    add(Who::curator, 4);
    add(Who::kazoo, 4);
    for (const auto& answer : answers) EXPECT_TRUE(answer.fields().empty());
    EXPECT_EQ(counted(), written);
    EXPECT_TRUE(await_nodes(0));
}

class ReadWriteKillTest : public InteropTest, public ::testing::WithParamInterface<Who> {};

TEST_P(ReadWriteKillTest, APeerKilledWhileItHoldsAndWaitsMakesRoom) {
    ZKRECIPES_NEEDS(GetParam());
    PeerProcess peer(GetParam() == Who::curator ? PeerLanguage::curator : PeerLanguage::kazoo);
    const auto share = peer.client(connect_string(), 6s), writer = peer.client(connect_string(), 6s);
    const auto ours = client(Who::cpp), after = client(Who::cpp);
    ASSERT_TRUE(share->acquire(kRead, lock_path()).yes());
    const Answer never = writer->acquire(kWrite, lock_path());
    ASSERT_TRUE(await_nodes(2));
    const Answer read = ours->acquire(kRead, lock_path());
    ASSERT_TRUE(await_nodes(3));
    const Answer write = after->acquire(kWrite, lock_path());
    ASSERT_TRUE(await_nodes(4));
    const auto all = queue();
    expect_waiting(never, all[0]);
    expect_waiting(read, all[1]);
    expect_waiting(write, all[2]);
    peer.kill();
    EXPECT_TRUE(read.yes());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(write, all[2]);
    ours->release(kRead, lock_path()).fields();
    EXPECT_TRUE(write.yes());
}

INSTANTIATE_TEST_SUITE_P(Interop, ReadWriteKillTest, ::testing::Values(Who::curator, Who::kazoo),
                         [](const auto& who) { return to_string(who.param); });

}  // namespace
}  // namespace zkrecipes::test
