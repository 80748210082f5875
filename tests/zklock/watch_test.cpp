// The commands that measure, watch or change what others hold.
#include <sys/stat.h>

#include <fstream>

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

TEST_F(ZklockWatchTest, ANestedZklockFindsTheServersOfTheOuterOne) {
    const Outcome outcome = run({"--name", "outer", lock(), ZKLOCK_BINARY, "status", lock()});
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\"outer\""));
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    const Outcome variables = run({"--auth-file", credentials, "--acl", "creator", path("secret"), "env"});
    EXPECT_EQ(variables.code, 0) << variables.err;
    EXPECT_THAT(variables.out, HasSubstr("\nZKLOCK_SETTINGS={\"v\":1,\"settings\":{\"connect\":\"" + connect_string()));
    EXPECT_THAT(variables.out, testing::Not(HasSubstr(credentials)));
    EXPECT_THAT(variables.out, testing::Not(HasSubstr("creator")));
}

TEST_F(ZklockWatchTest, ANestedZklockWarnsIfItWaitsForItself) {
    const Outcome waits = run({lock(), ZKLOCK_BINARY, "-w", "300ms", lock(), "true"});
    EXPECT_EQ(waits.code, 75);
    EXPECT_THAT(waits.err, HasSubstr("warning: " + lock() + " is held by the zklock (pid "));
    EXPECT_THAT(waits.err, HasSubstr("waits for itself"));
    const Outcome hold = run({lock(), ZKLOCK_BINARY, "hold", "-w", "300ms", lock()});
    EXPECT_EQ(hold.code, 75);
    EXPECT_THAT(hold.err, HasSubstr("waits for itself"));
    const Outcome busy = run({lock(), ZKLOCK_BINARY, "-n", lock(), "true"});
    EXPECT_EQ(busy.code, 75);
    EXPECT_THAT(busy.err, testing::Not(HasSubstr("waits for itself")));
    const Outcome other = run({lock(), ZKLOCK_BINARY, "-w", "30", path("other"), "true"});
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_EQ(other.err, "");
}

TEST_F(ZklockWatchTest, ALockOfAZklockThatHasEndedIsNoReasonToWarn) {
    // The variable is still there after the outer zklock has ended, as in a daemon.
    const Outcome outer = run({lock(), "sh", "-c", "printf %s \"$ZKLOCK_SETTINGS\""});
    ZklockProcess::Setup daemon;
    daemon.environment = {"ZKLOCK_SETTINGS=" + outer.out};
    const Outcome later = zklock({lock(), "true"}, daemon);
    EXPECT_EQ(later.code, 0) << later.err;
    EXPECT_EQ(later.err, "");
}

}  // namespace
}  // namespace zkrecipes::zklock::test
