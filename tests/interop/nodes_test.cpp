// Groups and barriers with members in C++ and in Curator 5.4 (GroupMember, DistributedBarrier,
// DistributedDoubleBarrier).
#include <atomic>

#include <zkrecipes/barrier.hpp>
#include <zkrecipes/group_member.hpp>

#include "interop/interop_test.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NodesInteropTest : public InteropTest {
protected:
    Session session() { return connected_session(connect_string(), kTimeout); }
    std::vector<std::string> inside() { return nodes(); }  // of lock_path()
};

TEST_F(NodesInteropTest, MembersOfOneGroupSeeEachOtherAndTheirPayloads) {
    ZKRECIPES_NEEDS(Who::curator);
    auto s = session();
    const auto theirs = client(Who::curator);
    GroupMember ours(s, lock_path(), "ours", "1");
    ASSERT_TRUE(ours.wait_joined(kMaxWait));
    std::atomic<int> told{0};
    std::mutex mutex;
    GroupMembers seen;
    const auto subscription = ours.observe([&](const GroupMembers& members) {
        const std::lock_guard lock(mutex);
        seen = members;
        ++told;
    });
    const auto await_ours = [&](const GroupMembers& wanted) {
        return await([&] {
            const std::lock_guard lock(mutex);
            return seen == wanted;
        });
    };
    const auto await_theirs = [&](const std::vector<std::string>& wanted) {
        return await([&] { return theirs->ask({"group_members", lock_path()}).fields() == wanted; });
    };
    theirs->ask({"group_join", lock_path(), "theirs", "2"}).fields();
    EXPECT_TRUE(await_ours({{"ours", "1"}, {"theirs", "2"}}));
    EXPECT_TRUE(await_theirs({"ours=1", "theirs=2"}));
    ours.set_payload("11");
    EXPECT_TRUE(await_theirs({"ours=11", "theirs=2"}));
    theirs->ask({"group_payload", lock_path(), "22"}).fields();
    EXPECT_TRUE(await_ours({{"ours", "11"}, {"theirs", "22"}}));
    EXPECT_EQ(ours.members(kMaxWait), (GroupMembers{{"ours", "11"}, {"theirs", "22"}}));
    EXPECT_TRUE(ours.leave_and_wait(kMaxWait));
    EXPECT_TRUE(await_theirs({"theirs=22"}));
    theirs->ask({"group_leave", lock_path()}).fields();
    EXPECT_TRUE(await_ours({}));
}

TEST_F(NodesInteropTest, ABarrierIsClosedByOneAndOpenedByTheOther) {
    ZKRECIPES_NEEDS(Who::curator);
    auto s = session();
    const auto theirs = client(Who::curator), waits = client(Who::curator);
    Barrier ours(s, lock_path());
    const auto await_watched = [&] {
        if (uses_outside_ensemble()) return true;
        return await([&] { return server().four_letter("wchp").find(lock_path()) != std::string::npos; });
    };
    theirs->ask({"barrier_set", lock_path()}).fields();
    EXPECT_FALSE(ours.wait(50ms));
    std::atomic<bool> passed{false};
    ours.wait_async(kMaxWait, {}, [&](const BarrierResult& result) { passed = result.value; });
    ASSERT_TRUE(await_watched());
    theirs->ask({"barrier_remove", lock_path()}).fields();
    EXPECT_TRUE(await([&] { return passed.load(); }));
    ours.set(kMaxWait);
    const Answer wait = waits->ask({"barrier_wait", lock_path()});
    ASSERT_TRUE(await_watched());
    EXPECT_FALSE(wait.done());
    ours.remove(kMaxWait);
    EXPECT_THAT(wait.fields(), IsEmpty());
}

TEST_F(NodesInteropTest, TwoOfOursAndTwoOfTheirsEnterTogetherAndLeaveTogether) {
    ZKRECIPES_NEEDS(Who::curator);
    auto s = session();
    const std::unique_ptr<Client> theirs[] = {client(Who::curator), client(Who::curator)};
    for (int round = 0; round < 4; ++round) {
        DoubleBarrier ours[] = {DoubleBarrier(s, lock_path(), 4), DoubleBarrier(s, lock_path(), 4)};
        std::atomic<int> entered{0}, left{0};
        const auto counting = [](std::atomic<int>& counter) {
            return [&counter](const BarrierResult& result) { counter += result.value ? 1 : 100; };
        };
        std::vector<Answer> answers;
        const auto enters = [&](int who) {
            if (who < 2) return ours[who].enter_async(kMaxWait, {}, counting(entered));
            answers.push_back(theirs[who - 2]->ask({"double_enter", lock_path(), "4"}));
        };
        for (int i = 0; i < 3; ++i) enters((i + round) % 4);  // each is the last one once
        ASSERT_TRUE(await([&] { return inside().size() == 3; }));
        EXPECT_EQ(entered, 0);
        for (const auto& answer : answers) EXPECT_FALSE(answer.done());
        enters((3 + round) % 4);
        for (const auto& answer : answers) EXPECT_THAT(answer.fields(), IsEmpty());
        ASSERT_TRUE(await([&] { return entered == 2; }));
        answers.clear();
        const auto leaves = [&](int who) {
            if (who < 2) return ours[who].leave_async(kMaxWait, {}, counting(left));
            answers.push_back(theirs[who - 2]->ask({"double_leave", lock_path()}));
        };
        for (int i = 0; i < 3; ++i) leaves((i + 2 * round + 1) % 4);
        EXPECT_EQ(left, 0);
        leaves((3 + 2 * round + 1) % 4);
        for (const auto& answer : answers) EXPECT_THAT(answer.fields(), IsEmpty());
        ASSERT_TRUE(await([&] { return left == 2; }));
        ASSERT_TRUE(await([&] { return inside().empty(); }));
    }
}

}  // namespace
}  // namespace zkrecipes::test
