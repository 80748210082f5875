// From alone to shared beside peers: nobody gets in between.
#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

constexpr const char* kRead = "read";
constexpr const char* kWrite = "write";

struct Peers {
    Who writer;
    Names names;
};
class DowngradeInteropTest : public InteropTest, public ::testing::WithParamInterface<Peers> {};

TEST_P(DowngradeInteropTest, AWriterOfAPeerWaitsForOurShareAndAReaderBehindItToo) {
    const auto [peer, names] = GetParam();
    ZKRECIPES_NEEDS(peer);
    const auto ours = client(Who::cpp, names), writer = client(peer, names), reader = client(peer, names);
    ASSERT_TRUE(ours->acquire(kWrite, lock_path()).yes());
    const auto held = queue().at(0);
    const Answer write = writer->acquire(kWrite, lock_path());
    ASSERT_TRUE(await_nodes(2));
    expect_waiting(write, held);
    const Answer read = reader->acquire(kRead, lock_path());
    ASSERT_TRUE(await_nodes(3));
    ASSERT_TRUE(ours->acquire(kRead, lock_path()).yes());
    ASSERT_TRUE(await_nodes(4));
    const auto all = queue();
    const auto share = all.at(0) == held ? all.at(1) : all.at(0);
    EXPECT_EQ(share.substr(share.size() - 10), held.substr(held.size() - 10));
    ours->release(kWrite, lock_path()).fields();
    ASSERT_TRUE(await_nodes(3));
    expect_waiting(write, share);
    EXPECT_FALSE(read.done());
    ours->release(kRead, lock_path()).fields();
    EXPECT_TRUE(write.yes());
    EXPECT_FALSE(read.done());
    writer->release(kWrite, lock_path()).fields();
    EXPECT_TRUE(read.yes());
    reader->release(kRead, lock_path()).fields();
    EXPECT_TRUE(await_nodes(0));
}

TEST_P(DowngradeInteropTest, AReaderOfAPeerComesInWhenTheRestIsGivenUp) {
    const auto [peer, names] = GetParam();
    ZKRECIPES_NEEDS(peer);
    const auto ours = client(Who::cpp, names), reader = client(peer, names);
    ASSERT_TRUE(ours->acquire(kWrite, lock_path()).yes());
    const auto held = queue().at(0);
    const Answer read = reader->acquire(kRead, lock_path());
    ASSERT_TRUE(await_nodes(2));
    ASSERT_TRUE(ours->acquire(kRead, lock_path()).yes());
    expect_waiting(read, held);
    ours->release(kWrite, lock_path()).fields();
    EXPECT_TRUE(read.yes());
    reader->release(kRead, lock_path()).fields();
    ours->release(kRead, lock_path()).fields();
    EXPECT_TRUE(await_nodes(0));
}

INSTANTIATE_TEST_SUITE_P(Interop, DowngradeInteropTest,
                         ::testing::Values(Peers{Who::cpp, Names::curator}, Peers{Who::curator, Names::curator},
                                           Peers{Who::kazoo, Names::curator}, Peers{Who::cpp, Names::kazoo},
                                           Peers{Who::kazoo, Names::kazoo}),
                         [](const auto& peers) {
                             return std::string(to_string(peers.param.writer)) +
                                    (peers.param.names == Names::kazoo ? "InKazoosDialect" : "");
                         });

class DowngradeOfPeersTest : public InteropTest {};

TEST_F(DowngradeOfPeersTest, Curator54LetsAWriterInWhileItsShareIsHeldAndOursIsThatWriter) {
    // CURATOR-621, mended in 5.5: in 5.4, a share taken by who holds alone gets a number of its own, behind a writer
    // that waits. By the rule of the queue that writer is next, whoever it is; so there is nothing that we could do
    // about it.
    ZKRECIPES_NEEDS(Who::curator);
    const auto peer = client(Who::curator), ours = client(Who::cpp);
    ASSERT_TRUE(peer->acquire(kWrite, lock_path()).yes());
    const Answer write = ours->acquire(kWrite, lock_path());
    ASSERT_TRUE(await_nodes(2));
    const auto second = queue().at(1);
    ASSERT_TRUE(peer->acquire(kRead, lock_path()).yes());
    ASSERT_TRUE(await_nodes(3));
    const auto number = [](const std::string& node) { return node.substr(node.size() - 10); };
    const bool behind = number(queue().at(2)) > number(second);
    EXPECT_EQ(behind, peer->version() < std::pair(5, 5));
    peer->release(kWrite, lock_path()).fields();
    if (behind) {
        EXPECT_TRUE(write.yes());
        ours->release(kWrite, lock_path()).fields();
        peer->release(kRead, lock_path()).fields();
    } else {
        peer->release(kRead, lock_path()).fields();
        EXPECT_TRUE(write.yes());
        ours->release(kWrite, lock_path()).fields();
    }
}

TEST_F(DowngradeOfPeersTest, Curator54GoingDownWithNobodyBehindItKeepsUsOut) {
    ZKRECIPES_NEEDS(Who::curator);
    const auto peer = client(Who::curator), ours = client(Who::cpp);
    ASSERT_TRUE(peer->acquire(kWrite, lock_path()).yes());
    ASSERT_TRUE(peer->acquire(kRead, lock_path()).yes());
    peer->release(kWrite, lock_path()).fields();
    EXPECT_FALSE(ours->acquire(kWrite, lock_path(), 50ms).yes());
    EXPECT_TRUE(ours->acquire(kRead, lock_path(), kMaxWait).yes());
    ours->release(kRead, lock_path()).fields();
    peer->release(kRead, lock_path()).fields();
    EXPECT_TRUE(ours->acquire(kWrite, lock_path(), kMaxWait).yes());
}

}  // namespace
}  // namespace zkrecipes::test
