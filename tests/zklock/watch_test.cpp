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
        EXPECT_GT(json[trips]["count"], 0) << trips;
        EXPECT_GT(json[trips]["min"], 39'999) << trips;
        EXPECT_GE(json[trips]["median"].number<std::int64_t>(), json[trips]["min"].number<std::int64_t>());
        EXPECT_GE(json[trips]["max"].number<std::int64_t>(), json[trips]["median"].number<std::int64_t>());
    }
    EXPECT_EQ(gate.counts()[testenv::Opcode::sync], json["leader_round_trip_us"]["count"].number<std::uint64_t>());
    const Outcome text = zklock({"ping", "--connect", gate.connect_string()});
    EXPECT_THAT(text.out, testing::ContainsRegex("\nround trip to this server: [0-9.]+ ms \\(median of [1-5]; "));
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
    const Outcome waits = run({lock(), ZKLOCK_BINARY, "-w", "6s", lock(), "true"});
    EXPECT_EQ(waits.code, 75);
    EXPECT_THAT(waits.err, HasSubstr("warning: " + lock() + " is held by the zklock (pid "));
    EXPECT_THAT(waits.err, HasSubstr("waits for itself"));
    const Outcome hold = run({lock(), ZKLOCK_BINARY, "hold", "-w", "6s", lock()});
    EXPECT_EQ(hold.code, 75);
    EXPECT_THAT(hold.err, HasSubstr("waits for itself"));
    const Outcome looks = run({lock(), ZKLOCK_BINARY, "wait", "-w", "6s", lock()});
    EXPECT_EQ(looks.code, 75);
    EXPECT_THAT(looks.err, HasSubstr("waits for itself"));
    const Outcome busy = run({lock(), ZKLOCK_BINARY, "-n", lock(), "true"});
    EXPECT_EQ(busy.code, 75);
    EXPECT_THAT(busy.err, testing::Not(HasSubstr("waits for itself")));
    const Outcome other = run({lock(), ZKLOCK_BINARY, "-w", "30", path("other"), "true"});
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_EQ(other.err, "");
}

TEST_F(ZklockWatchTest, WhatAZklockThatHasEndedHandedOnDoesNotCount) {
    // The variable is still there after the outer zklock has ended, as in a daemon.
    const Outcome outer = run({lock(), "sh", "-c", "printf %s \"$ZKLOCK_SETTINGS\""});
    EXPECT_THAT(outer.out, HasSubstr(connect_string()));
    std::ofstream(scratch_ / "zklock.conf") << "connect = file:1\n";
    ZklockProcess::Setup daemon;
    daemon.environment = {"ZKLOCK_SETTINGS=" + outer.out, "XDG_CONFIG_HOME=" + scratch_.path()};
    EXPECT_THAT(zklock({"config"}, daemon).out, HasSubstr("file:1"));
    const Outcome later = run({lock(), "true"}, daemon);
    EXPECT_EQ(later.code, 0) << later.err;
    EXPECT_EQ(later.err, "");
    std::ofstream(scratch_ / "zklock.conf") << "connect = " << connect_string() << "\nprefix = /other\n";
    EXPECT_THAT(zklock({lock(), "true"}, daemon).err,
                HasSubstr("it used " + connect_string() + ", and this zklock uses " + connect_string() + "/other"));
}

class ZklockLeasesTest : public ZklockTest {
protected:
    Outcome leases(std::vector<std::string> rest) const {
        rest.insert(rest.begin(), {"leases", "--connect", connect_string()});
        return zklock(rest);
    }
    /// A zklock that holds a lease.
    std::unique_ptr<ZklockProcess> take(const std::string& count, const std::string& mark) const {
        return start({"-j", count, lock(), "-c", "touch " + (scratch_ / mark) + "; exec sleep 300"});
    }
};

TEST_F(ZklockLeasesTest, AWaiterGetsALeaseThatIsAdded) {
    const auto holder = take("1", "first");
    ASSERT_TRUE(await([&] { return exists(scratch_ / "first"); }));
    const auto waiter = take("1", "second");
    ASSERT_TRUE(await([&] { return leases({lock()}).out == lock() + ": 1 lease, 1 held, 1 waiting\n"; }));
    const Outcome changed = leases({"--json", lock(), "2"});
    EXPECT_EQ(changed.code, 0) << changed.err;
    const auto json = Json::parse(changed.out);
    EXPECT_EQ(json["count"], 2);
    EXPECT_EQ(json["before"], 1);
    EXPECT_EQ(json["waiting"], 1);
    EXPECT_TRUE(await([&] { return exists(scratch_ / "second"); }));
    EXPECT_EQ(leases({lock()}).out, lock() + ": 2 leases, 2 held, 0 waiting\n");
    const Outcome wrong = run({"-n", "-j", "1", lock(), "true"});
    EXPECT_EQ(wrong.code, 65);
    EXPECT_THAT(wrong.err, HasSubstr("use -j 2. To change the number, use zklock leases " + lock() + " N"));
}

TEST_F(ZklockLeasesTest, NoHolderLosesItsLeaseWhenTheNumberShrinks) {
    const auto first = take("2", "first");
    const auto second = take("2", "second");
    ASSERT_TRUE(await([&] { return exists(scratch_ / "first") && exists(scratch_ / "second"); }));
    const Outcome changed = leases({lock(), "1"});
    EXPECT_EQ(changed.code, 0);
    EXPECT_EQ(changed.out, lock() + ": 1 lease (before: 2 leases), 2 held, 0 waiting\n");
    EXPECT_THAT(changed.err, HasSubstr("no holder loses its lease"));
    EXPECT_EQ(run({"-n", "-j", "1", lock(), "true"}).code, 75);
    EXPECT_TRUE(first->running());
    EXPECT_TRUE(second->running());
}

TEST_F(ZklockLeasesTest, WhatIsNotASemaphoreIsRefused) {
    Outcome outcome = leases({path("nothing"), "3"});
    EXPECT_EQ(outcome.code, 65);
    EXPECT_THAT(outcome.err, HasSubstr("does not exist"));
    EXPECT_FALSE(testenv::RawClient(connect_string()).exists(path("nothing")));
    const auto holder = hold_with_command();
    outcome = leases({lock(), "3"});
    EXPECT_EQ(outcome.code, 65);
    EXPECT_THAT(outcome.err, HasSubstr(lock() + " is not a semaphore"));
    EXPECT_EQ(queue_length(), 1u);
    testenv::RawClient kazoo(connect_string());
    const std::string semaphore = path("kazoo");
    kazoo.create(semaphore, "4");
    kazoo.create(semaphore + "/0f8fad5bd9cb469fa16570867728950e", "", testenv::CreateMode::ephemeral);
    EXPECT_EQ(leases({semaphore}).out, semaphore + ": 4 leases, 1 held, 0 waiting\n");
    outcome = leases({semaphore, "3"});
    EXPECT_EQ(outcome.code, 65);
    EXPECT_THAT(outcome.err, HasSubstr("a semaphore of kazoo"));
    EXPECT_FALSE(kazoo.exists(semaphore + "/leases"));
}

TEST_F(ZklockLeasesTest, WithoutTheRightTheNumberStays) {
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    // Everybody may read, and only ops may write. The hash is that of ops:secret.
    const std::string acl = "world:anyone:r,digest:ops:w4PIv8/Wzcq4qj4/MfEQ8pvUSS4=:rwcda";
    const auto holder = start({"--auth-file", credentials, "--acl", acl, "-j", "2", lock(), "-c",
                               "touch " + (scratch_ / "held") + "; exec sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); })) << holder->err();
    const Outcome refused = leases({lock(), "3"});
    EXPECT_EQ(refused.code, 77);
    EXPECT_THAT(refused.err, HasSubstr("does not grant the right"));
    EXPECT_EQ(leases({lock()}).out, lock() + ": 2 leases, 1 held, 0 waiting\n");
    EXPECT_EQ(leases({"--auth-file", credentials, lock(), "3"}).code, 0);
}

TEST_F(ZklockLeasesTest, WithoutAnAnswerTheUserLearnsThatTheNumberMayHaveChanged) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    ASSERT_EQ(run({"-j", "2", lock(), "true"}).code, 0);
    testenv::Gate gate(server().endpoint());
    const auto set = gate.hold_reply(testenv::Match::op(testenv::Opcode::multi));
    const Outcome outcome = zklock({"leases", "--connect", gate.connect_string(), lock(), "3"});
    EXPECT_TRUE(set.reached());
    EXPECT_EQ(outcome.code, 69);
    EXPECT_THAT(outcome.err, HasSubstr("the number may have been changed: look at zklock leases " + lock()));
    EXPECT_EQ(leases({lock()}).out, lock() + ": 3 leases, 0 held, 0 waiting\n");
}

}  // namespace
}  // namespace zkrecipes::zklock::test
