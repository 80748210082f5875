// The commands that measure, watch or change what others hold.
#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ZklockWatchTest : public ZklockTest {};

TEST_F(ZklockWatchTest, PingMeasuresRoundTripsToTheServerAndToTheLeader) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    gate.delay(testenv::Direction::to_client, 40ms);
    const Outcome outcome = zklock({"ping", "--json", "--connect", gate.connect_string()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = Json::parse(outcome.out);
    for (const char* trips : {"round_trip_us", "leader_round_trip_us"}) {
        EXPECT_EQ(json[trips]["count"], 5) << trips;
        EXPECT_GT(json[trips]["min"], 39'999) << trips;
        EXPECT_GE(json[trips]["median"].number<std::int64_t>(), json[trips]["min"].number<std::int64_t>());
        EXPECT_GE(json[trips]["max"].number<std::int64_t>(), json[trips]["median"].number<std::int64_t>());
    }
    EXPECT_GE(gate.counts()[testenv::Opcode::sync], 5u);
    const Outcome text = zklock({"ping", "--connect", gate.connect_string()});
    EXPECT_THAT(text.out, HasSubstr("\nround trip to this server: 4"));
    EXPECT_THAT(text.out, HasSubstr(" ms (median of 5; "));
}

TEST_F(ZklockWatchTest, PingAsksASlowServerLessOften) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    gate.delay(testenv::Direction::to_client, 800ms);
    const auto json = Json::parse(zklock({"ping", "--json", "--connect", gate.connect_string()}).out);
    EXPECT_GT(json["round_trip_us"]["count"], 0);
    EXPECT_LT(json["round_trip_us"]["count"].number<int>(), 5);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
