// Locks in kazoo's dialect, shared with stock kazoo 2.8: its Lock, ReadLock and WriteLock. Who waits for whom, pair by
// pair, is tried beside Curator's dialect, in the other files.
#include "interop/interop_test.hpp"
#include "support/whole.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::MatchesRegex;

class KazooDialectTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS(Who::kazoo);
    }
    std::unique_ptr<Client> ours() { return client(Who::cpp, Names::kazoo); }
    std::unique_ptr<Client> kazoo() { return client(Who::kazoo, Names::kazoo); }
};

TEST_F(KazooDialectTest, TheNodesAreNamedAsKazooNamesThem) {
    const auto one = ours(), other = kazoo();
    for (const std::string kind : {"mutex", "write", "read"}) {
        for (const auto* client : {one.get(), other.get()}) {
            auto& each = const_cast<Client&>(*client);
            ASSERT_TRUE(each.acquire(kind, lock_path()).yes());
            EXPECT_THAT(queue().at(0), MatchesRegex(kind == "read" ? "[0-9a-f]{32}__rlock__[0-9]{10}"
                                                                   : "[0-9a-f]{32}__lock__[0-9]{10}"));
            each.release(kind, lock_path()).fields();
            ASSERT_TRUE(await_nodes(0));
        }
    }
}

TEST_F(KazooDialectTest, OneQueueForAllInTheOrderOfArrival) {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> acquires;
    for (int i = 0; i < 6; ++i) {
        clients.push_back(i % 2 == 0 ? kazoo() : ours());
        acquires.push_back(clients.back()->acquire("mutex", lock_path()));
        ASSERT_TRUE(await_nodes(clients.size()));
    }
    const auto all = queue();
    for (std::size_t i = 0; i < acquires.size(); ++i) {
        ASSERT_TRUE(acquires[i].yes());
        EXPECT_EQ(queue().front(), all[i]);
        for (std::size_t later = i + 1; later < acquires.size(); ++later) {
            expect_waiting(acquires[later], all[later - 1]);
            ASSERT_FALSE(HasFailure());
        }
        clients[i]->release("mutex", lock_path()).fields();
    }
}

TEST_F(KazooDialectTest, AMixedCrowdLosesNoUpdate) {
    const int rounds = share_of(250, 80);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 8; ++i) clients.push_back(i % 2 == 0 ? ours() : kazoo());
    const auto file = counter_file();
    std::vector<Answer> counts;
    for (const auto& each : clients) counts.push_back(each->count("mutex", lock_path(), rounds, file));
    for (const auto& count : counts) EXPECT_TRUE(count.fields().empty());
    EXPECT_EQ(counted(), rounds * static_cast<long>(clients.size()));
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(KazooDialectTest, WritersOfBothAndOurReadersShareOneQueue) {
    // Without kazoo's readers: beside writers they stand still for ever, see below.
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> answers;
    const auto file = counter_file();
    for (int i = 0; i < 9; ++i) {
        clients.push_back(i % 3 == 0 ? kazoo() : ours());
        answers.push_back(i % 3 == 2 ? clients.back()->look("read", lock_path(), 40, file)
                                     : clients.back()->count("write", lock_path(), 40, file));
    }
    for (const auto& answer : answers) EXPECT_TRUE(answer.fields().empty());
    EXPECT_EQ(counted(), 6 * 40);
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(KazooDialectTest, AReaderOfKazoo28WaitsForLaterWritersAndOursDoesNot) {
    // kazoo issue 649, in 2.8 and before: its reader looks for the last writer of all, not for the last one before it.
    // A writer that came after it waits for the reader, and so neither goes on: W1 R W2, and W1 leaves.
    const auto first = ours(), later = ours(), our_reader = ours(), reader = kazoo();
    const bool waits = reader->version() < std::pair(2, 9);
    ASSERT_TRUE(first->acquire("write", lock_path()).yes());
    const Answer read = reader->acquire("read", lock_path());
    ASSERT_TRUE(await_nodes(2));
    const Answer our_read = our_reader->acquire("read", lock_path());
    ASSERT_TRUE(await_nodes(3));
    const Answer write = later->acquire("write", lock_path(), 6s);
    ASSERT_TRUE(await_nodes(4));
    const auto last = queue().at(3);
    first->release("write", lock_path()).fields();
    EXPECT_TRUE(our_read.yes());
    our_reader->release("read", lock_path()).fields();
    if (waits) {
        expect_waiting(read, last);
        EXPECT_FALSE(write.yes());  // by its deadline: our writer waits for the earlier reader, as it must
        EXPECT_TRUE(read.yes());
        reader->release("read", lock_path()).fields();
    } else {
        EXPECT_TRUE(read.yes());
        reader->release("read", lock_path()).fields();
        EXPECT_TRUE(write.yes());
        later->release("write", lock_path()).fields();
    }
}

TEST_F(KazooDialectTest, UnderDifferentNamesNobodyIsKeptOut) {
    // What docs/interop.md warns of: the dialect belongs to the path, not to the client.
    const auto one = client(Who::cpp), other = kazoo();
    ASSERT_TRUE(one->acquire("mutex", lock_path()).yes());
    EXPECT_TRUE(other->acquire("mutex", lock_path(), kMaxWait).yes());
    EXPECT_TRUE(await_nodes(2));
}

TEST_F(KazooDialectTest, KazoosExtraPatternsWorkInOneDirectionOnly) {
    const auto one = client(Who::cpp), other = kazoo();
    ASSERT_TRUE(one->acquire("mutex", lock_path()).yes());
    EXPECT_FALSE(other->acquire("extra", lock_path(), 50ms).yes());
    one->release("mutex", lock_path()).fields();
    ASSERT_TRUE(await_nodes(0));
    ASSERT_TRUE(other->acquire("extra", lock_path()).yes());
    EXPECT_TRUE(one->acquire("mutex", lock_path(), kMaxWait).yes());
}

}  // namespace
}  // namespace zkrecipes::test
