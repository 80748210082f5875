#include "core/hold/owner_id.hpp"

#include <gtest/gtest.h>

#include <boost/fiber/all.hpp>
#include <set>
#include <thread>

namespace zkrecipes::internal {
namespace {

TEST(AgentTest, AThreadIsOneAgentForItsLife) {
    const OwnerId mine = this_owner();
    EXPECT_NE(mine, 0u);
    EXPECT_EQ(this_owner(), mine);
    OwnerId other = 0;
    std::thread([&] { other = this_owner(); }).join();
    EXPECT_NE(other, mine);
    EXPECT_NE(other, 0u);
}

TEST(AgentTest, EveryFiberIsAnAgentOfItsOwnAcrossItsSuspensions) {
    std::set<OwnerId> seen = {this_owner()};
    for (int i = 0; i < 100; ++i) {
        boost::fibers::fiber([&] {
            const OwnerId mine = this_owner();
            boost::this_fiber::yield();
            EXPECT_EQ(this_owner(), mine);
            EXPECT_TRUE(seen.insert(mine).second);  // never one that a dead fiber had
        }).join();
    }
    EXPECT_EQ(seen.size(), 101u);
}

TEST(AgentTest, ThreadsThatFollowEachOtherAreDifferent) {
    std::set<OwnerId> seen;
    for (int i = 0; i < 50; ++i) std::thread([&] { seen.insert(this_owner()); }).join();
    EXPECT_EQ(seen.size(), 50u);
}

TEST(AgentTest, AThreadIsTheSameAgentAfterBoostFiberHasTakenItsDataDown) {
    struct Late {
        ~Late() {
            if (at_end != nullptr) *at_end = this_owner();
        }
        OwnerId* at_end = nullptr;
    };
    OwnerId at_first = 0;
    OwnerId at_end = 0;
    std::thread([&] {
        static thread_local Late late;  // made before Boost.Fiber's data of the thread, so destroyed after them
        late.at_end = &at_end;
        at_first = this_owner();
    }).join();
    EXPECT_NE(at_first, 0u);
    EXPECT_EQ(at_end, at_first);
}

}  // namespace
}  // namespace zkrecipes::internal
