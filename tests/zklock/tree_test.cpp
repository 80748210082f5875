// What zklock believes of a tree: nodes that it may not read, nodes that no session ends, and nodes of other software;
// and trees that take longer than one answer.
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "zklock/on_terminal.hpp"
#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testenv::RawClient;
using testing::HasSubstr;
using testing::Not;

class ZklockTreeTest : public ZklockTest {
protected:
    Outcome tool(std::vector<std::string> words) const {
        words.insert(words.begin() + 1, {"--connect", connect_string()});
        return zklock(words);
    }
    static std::string node(int number) {
        std::string digits = std::to_string(number);
        digits.insert(0, 10 - digits.size(), '0');
        return "/_c_00000000-0000-4000-8000-000000000001-lock-" + digits;
    }
    /// A zklock whose nodes nobody else may read, in directories that everybody may use. The command runs until the
    /// hold ends.
    std::unique_ptr<ZklockProcess> hold_secretly(std::vector<std::string> mode, const std::string& lock) {
        std::vector<std::string> first = mode;
        first.insert(first.end(), {lock, "true"});
        EXPECT_EQ(run(first).code, 0);
        const std::string credentials = scratch_ / "auth";
        std::ofstream(credentials) << "digest:ops:secret\n";
        EXPECT_EQ(::chmod(credentials.c_str(), 0600), 0);
        const std::string held = scratch_ / ("held" + std::to_string(++holders_));
        mode.insert(mode.end(),
                    {"--auth-file", credentials, "--acl", "creator", lock, "-c", "touch " + held + "; exec sleep 300"});
        auto process = start(std::move(mode));
        EXPECT_TRUE(await([&] { return exists(held); })) << process->err();
        return process;
    }

    int holders_ = 0;
};

TEST_F(ZklockTreeTest, AHolderThatMayNotBeReadIsShownAndCanBeRemoved) {
    const std::vector<std::vector<std::string>> modes = {{}, {"-j", "2"}, {"elect"}};
    for (const auto& mode : modes) {
        const std::string lock = path(mode.empty() ? "mutex" : "x" + mode.front());
        const auto holder = hold_secretly(mode, lock);
        const std::string note = " (not readable: an access list forbids it)";
        const Outcome status = tool({"status", lock});
        EXPECT_EQ(status.code, 75);
        EXPECT_THAT(status.out, HasSubstr(note));
        EXPECT_THAT(status.out, Not(HasSubstr("token")));
        const auto json = Json::parse(tool({"status", "--json", lock}).out);
        EXPECT_EQ(json["holders"][0]["readable"], false);
        EXPECT_TRUE(json["holders"][0]["fencing_token"].is_null());
        EXPECT_THAT(tool({"ls", lock}).out, HasSubstr(note));
        EXPECT_THAT(tool({"top", "--once", lock}).out, HasSubstr(note));
        const Outcome broken = tool({"break", "--holder", "--yes", lock});
        EXPECT_EQ(broken.code, 0) << broken.err;
        EXPECT_THAT(broken.out, HasSubstr("\nremoved " + lock));
        EXPECT_TRUE(await([&] { return holder->err().find(" is gone; ") != std::string::npos; }));
    }
}

TEST_F(ZklockTreeTest, ALeaderThatMayNotBeReadLeadsAllTheSame) {
    const auto holder = hold_secretly({"elect"}, lock());
    const std::string note = " (not readable: an access list forbids it)";
    EXPECT_THAT(tool({"leader", lock()}).out, HasSubstr(note));
    const auto leader = Json::parse(tool({"leader", "--json", lock()}).out)["leader"];
    EXPECT_TRUE(leader.contains("id") && leader["id"].is_null());
    const ZklockProcess watching({"leader", "--watch", "--connect", connect_string(), lock()});
    EXPECT_TRUE(await([&] { return watching.out().find(note) != std::string::npos; }));
}

TEST_F(ZklockTreeTest, ALockNodeThatNoSessionEndsIsNamedAsSuch) {
    RawClient client(connect_string());
    client.make_path(path("limit/leases"));
    client.make_path(path("limit/locks"));
    client.create(path("limit/leases") + "/_c_00000000-0000-4000-8000-000000000001-lease-0000000000", "backup");
    client.make_path(lock());
    client.create(lock() + node(0), "backup");
    const std::string note = "\"backup\" for ";
    const std::string remedy = " (not ephemeral: no session ends it; remove it with zklock break --node)";
    for (const std::string& about : {lock(), path("limit")}) {
        for (const std::string command : {"status", "ls", "leader"}) {
            if (command == "leader" && about != lock()) continue;
            const Outcome outcome = tool({command, about});
            EXPECT_THAT(outcome.out, HasSubstr(note)) << command;
            EXPECT_THAT(outcome.out, HasSubstr(remedy)) << command;
        }
        EXPECT_THAT(tool({"top", "--once", about}).out, HasSubstr(remedy));
        EXPECT_THAT(tool({"wait", "-w", "0", about}).err, HasSubstr(remedy));
        EXPECT_EQ(Json::parse(tool({"status", "--json", about}).out)["holders"][0]["ephemeral"], false);
    }
    for (const std::vector<std::string>& how : {std::vector<std::string>{"-n"}, {"-w", "6s"}}) {
        std::vector<std::string> words = how;
        words.insert(words.end(), {lock(), "true"});
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 75);
        EXPECT_THAT(outcome.err, HasSubstr(remedy));
    }
    const auto waiter = start({"-v", lock(), "true"});
    EXPECT_TRUE(await([&] { return waiter->err().find(remedy) != std::string::npos; }));
    const Outcome broken = tool({"break", "--holder", "--yes", lock()});
    EXPECT_EQ(broken.code, 0) << broken.err;
    EXPECT_THAT(broken.out, HasSubstr(remedy));
    EXPECT_THAT(broken.out, Not(HasSubstr("not a zkrecipes client"))) << "there is no client";
    EXPECT_EQ(waiter->wait(), 0);
    EXPECT_EQ(tool({"break", "--holder", "--yes", path("limit")}).code, 0);
}

TEST_F(ZklockTreeTest, WhatHasChildrenIsNoLockNodeAndStays) {
    RawClient client(connect_string());
    client.make_path(lock() + node(0) + "/data");
    const std::string remedy = "; remove it with zkCli.sh deleteall)";
    EXPECT_THAT(tool({"status", lock()}).out, HasSubstr(remedy));
    EXPECT_THAT(tool({"ls", lock()}).out, HasSubstr(remedy));
    EXPECT_THAT(tool({"leader", lock()}).out, HasSubstr(remedy));
    EXPECT_THAT(tool({"top", "--once", lock()}).out, HasSubstr(remedy));
    EXPECT_THAT(tool({"wait", "-w", "0", lock()}).err, HasSubstr(remedy));
    EXPECT_THAT(run({"-n", lock(), "true"}).err, HasSubstr(remedy));
    const Outcome below = tool({"break", "--all", "--yes", "--prefix", root(), lock().substr(root().size())});
    EXPECT_THAT(below.err, HasSubstr("zkCli.sh deleteall " + lock() + node(0) + "\n"));
    const Outcome broken = tool({"break", "--all", "--yes", lock()});
    EXPECT_EQ(broken.code, 65);
    EXPECT_THAT(broken.err, HasSubstr("has nodes below it, so it is no lock node of a client"));
    EXPECT_TRUE(client.exists(lock() + node(0)));
}

TEST_F(ZklockTreeTest, TheNodeOfAContenderIsNoLock) {
    const auto holder = hold_with_command();
    const std::string node = lock() + "/" + contenders().front();
    const std::vector<std::vector<std::string>> looks = {
        {"status"}, {"leader"}, {"wait"}, {"break", "--holder", "--yes"}, {"leases"}};
    for (std::vector<std::string> words : looks) {
        words.push_back(node);
        const Outcome outcome = tool(words);
        EXPECT_EQ(outcome.code, 64) << words.front();
        EXPECT_THAT(outcome.err, HasSubstr("it is the ephemeral node of a contender or member, or below one"));
    }
    EXPECT_EQ(run({"-n", node, "true"}).code, 64);
    EXPECT_EQ(queue_length(), 1u);
}

TEST_F(ZklockTreeTest, EphemeralNodesOfOtherSoftwareHideNoLock) {
    const auto holder = hold_with_command();
    RawClient client(connect_string());
    client.make_path(path("ids"));
    for (const std::string& other : {path("web1"), path("ids/0")}) {
        client.create(other, "python", testenv::CreateMode::ephemeral);
    }
    for (const std::vector<std::string>& look : {std::vector<std::string>{"ls"}, {"top", "--once"}, {"ls", "--json"}}) {
        std::vector<std::string> words = look;
        words.push_back(root());
        const Outcome outcome = tool(words);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr(lock().substr(root().size())));
        EXPECT_EQ(outcome.err, "");
    }
}

TEST_F(ZklockTreeTest, NodesOfOtherSoftwareAreNoLocks) {
    RawClient client(connect_string());
    for (const char* name : {"block-0000000000", "clock-0000000000", "unlock-0000000000", "slatch-0000000000"}) {
        client.make_path(lock() + "/" + name);
    }
    client.make_path(path("app/leases/release-12"));
    client.make_path(path("app/other/lease-12"));
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 0);
    EXPECT_EQ(tool({"status", lock()}).code, 0);
    EXPECT_EQ(tool({"ls", root()}).out, "");
    EXPECT_THAT(tool({"top", "--once", root()}).out, HasSubstr(": 0 locks"));
    EXPECT_EQ(tool({"break", "--all", "--yes", lock()}).code, 0);
    EXPECT_TRUE(client.exists(lock() + "/block-0000000000"));
}

/// A tree behind a proxy.
class ZklockSlowTreeTest : public ZklockTreeTest {
protected:
    void SetUp() override {
        ZklockTreeTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        gate_ = std::make_unique<testenv::Gate>(server().endpoint());
    }

    std::unique_ptr<testenv::Gate> gate_;
};

TEST_F(ZklockSlowTreeTest, ALongQueueIsReadToItsEndWhileTheServersAnswer) {
    constexpr int kWaiters = 700;  // 64 requests at a time, one second each: more than 10 s in all
    RawClient client(connect_string());
    client.make_path(lock());
    for (int i = 0; i < kWaiters; ++i) client.create(lock() + node(i), "");
    gate_->delay(testenv::Direction::to_client, std::chrono::seconds(1));
    OnTerminal terminal({ZKLOCK_BINARY, "status", "--connect", gate_->connect_string(), lock()});
    EXPECT_TRUE(terminal.shows("zklock: reading, "));
    EXPECT_EQ(terminal.wait(), 75);
    EXPECT_TRUE(terminal.shows("waiter " + std::to_string(kWaiters - 1)));
}

TEST_F(ZklockSlowTreeTest, WhatWasFoundIsPrintedWhenTheServersAnswerNoMore) {
    RawClient client(connect_string());
    for (const char* name : {"a", "b", "c"}) client.make_path(path(name) + node(0));
    // After two locks were read completely.
    const auto silent = gate_->hold_reply(testenv::Match::op(testenv::Opcode::get_data).nth(3));
    ZklockProcess listing({"ls", "--json", "--connect", gate_->connect_string(), root()});
    ASSERT_TRUE(silent.wait_reached());
    gate_->refuse();  // a new connection would get answers
    EXPECT_EQ(listing.wait(), 69);
    EXPECT_THAT(listing.err(), HasSubstr("the list is incomplete: reading ended early"));
    const auto json = Json::parse(listing.out());
    EXPECT_EQ(json["complete"], false);
    EXPECT_EQ(json["locks"].size(), 2u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
