#include "core/agent.hpp"

#include <gtest/gtest.h>

#include <boost/fiber/all.hpp>
#include <set>
#include <thread>

namespace zkrecipes::internal {
namespace {

TEST(AgentTest, AThreadIsOneAgentForItsLife) {
    const AgentId mine = this_agent();
    EXPECT_NE(mine, 0u);
    EXPECT_EQ(this_agent(), mine);
    AgentId other = 0;
    std::thread([&] { other = this_agent(); }).join();
    EXPECT_NE(other, mine);
    EXPECT_NE(other, 0u);
}

TEST(AgentTest, EveryFiberIsAnAgentOfItsOwnAcrossItsSuspensions) {
    std::set<AgentId> seen = {this_agent()};
    for (int i = 0; i < 100; ++i) {
        boost::fibers::fiber([&] {
            const AgentId mine = this_agent();
            boost::this_fiber::yield();
            EXPECT_EQ(this_agent(), mine);
            EXPECT_TRUE(seen.insert(mine).second);  // never one that a dead fiber had
        }).join();
    }
    EXPECT_EQ(seen.size(), 101u);
}

TEST(AgentTest, ThreadsThatFollowEachOtherAreDifferent) {
    std::set<AgentId> seen;
    for (int i = 0; i < 50; ++i) std::thread([&] { seen.insert(this_agent()); }).join();
    EXPECT_EQ(seen.size(), 50u);
}

TEST(AgentTest, AThreadIsTheSameAgentAfterBoostFiberHasTakenItsDataDown) {
    struct Late {
        ~Late() {
            if (at_end != nullptr) *at_end = this_agent();
        }
        AgentId* at_end = nullptr;
    };
    AgentId at_first = 0;
    AgentId at_end = 0;
    std::thread([&] {
        static thread_local Late late;  // made before Boost.Fiber's data of the thread, so destroyed after them
        late.at_end = &at_end;
        at_first = this_agent();
    }).join();
    EXPECT_NE(at_first, 0u);
    EXPECT_EQ(at_end, at_first);
}

}  // namespace
}  // namespace zkrecipes::internal
