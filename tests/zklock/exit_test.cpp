// Exit codes that need a world of their own to come about; docs/hazards.md names the tests of all of them.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <zkrecipes/testenv/zk_server.hpp>

#include "zklock/nonsense_server.hpp"
#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testenv::Gate;
using testing::HasSubstr;

class ZklockExitTest : public ZklockTest {
protected:
    /// Started as another user, of whom nobody else runs a process, who may have so many.
    ZklockProcess::Setup with_processes(int limit) const {
        const std::string user = std::to_string(1'000'000 + ::getpid() % 1'000'000);
        ZklockProcess::Setup setup;
        setup.launcher = {"setpriv", "--pdeathsig",    "KILL",    "--reuid",
                          user,      "--clear-groups", "prlimit", "--nproc=" + std::to_string(limit)};
        return setup;
    }
};

TEST_F(ZklockExitTest, AnAnswerThatMakesNoSenseIs70) {
    const NonsenseServer server;
    const Outcome outcome = zklock(
        {"--connect", server.connect_string(), "--result", scratch_ / "result", "/x", "touch", scratch_ / "ran"});
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("unexpected answer"));
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "error");
    EXPECT_EQ(zklock({"status", "--connect", server.connect_string(), "/x"}).code, 70);
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockExitTest, ServersThatDemandCredentialsAre77AndNamed) {
    testenv::ServerOptions options;
    options.java_properties = {{"zookeeper.enforce.auth.enabled", "true"},
                               {"zookeeper.enforce.auth.schemes", "digest"}};
    const testenv::ZkServer server(options);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"/x", "true"}, {"-L", "/a", "-L", "/b", "--", "true"}, {"status", "/x"}}) {
        std::vector<std::string> words = command;
        words.insert(words.begin() + (words.front() == "status" ? 1 : 0), {"--connect", server.connect_string()});
        const Outcome outcome = zklock(words);
        EXPECT_EQ(outcome.code, 77) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("the servers demand credentials"));
    }
}

TEST_F(ZklockExitTest, AHostThatHasReachedMaxClientCnxnsIsToldSo) {
    testenv::ServerOptions options;
    options.config_lines = {"maxClientCnxns=1"};
    const testenv::ZkServer server(options);
    testenv::RawClient other(server.connect_string());
    const Outcome outcome = zklock({"--connect", server.connect_string(), "--connect-timeout", "6s", "/x", "true"});
    EXPECT_EQ(outcome.code, 69) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("maxClientCnxns"));
}

// The client notices a silent server later than the lease ends.
TEST_F(ZklockExitTest, AHoldWhoseServerFallsSilentIs79AndDoesNotBlameAnybodyForADeletion) {
    testenv::ZkServer server;
    const std::vector<std::vector<std::string>> wanted = {
        {"/a"}, {"-s", "/b"}, {"-j", "2", "/c"}, {"-L", "/d", "-L", "/e:shared"}, {"--json", "/f"}};
    ZklockProcess::Setup open;
    open.keep_input = true;
    std::vector<std::unique_ptr<ZklockProcess>> holders;
    const auto file = [&](const char* name, std::size_t i) { return (scratch_ / name) + std::to_string(i); };
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::vector<std::string> words = {"hold",     "--events",        file("events", i),
                                          "--result", file("result", i), "--session-timeout",
                                          "6s",       "--connect",       server.connect_string()};
        words.insert(words.end(), wanted[i].begin(), wanted[i].end());
        holders.push_back(std::make_unique<ZklockProcess>(words, open));
    }
    for (const auto& holder : holders) ASSERT_TRUE(await([&] { return !holder->out().empty(); })) << holder->err();
    server.freeze();
    for (std::size_t i = 0; i < holders.size(); ++i) {
        EXPECT_EQ(holders[i]->wait(), 79) << holders[i]->err();
        constexpr const char* kReason = "no server confirmed the lock in time";
        EXPECT_THAT(holders[i]->err(), HasSubstr(kReason));
        EXPECT_THAT(events_named(file("events", i), "lost").at(0)["reason"].text(), HasSubstr(kReason));
        EXPECT_THAT(Json::parse(read_file(file("result", i)))["reason"].text(), HasSubstr(kReason));
    }
}

// The servers answer all the time, and the reason says why that is not enough.
TEST_F(ZklockExitTest, ALossByAnAccessListOfItsOwnNamesTheOption) {
    // The lock directory itself may be read: from 3.9.2 on, servers demand that of each acquire.
    ASSERT_EQ(zklock({"--connect", connect_string(), lock(), "true"}).code, 0);
    const Outcome lost = zklock({"--connect", connect_string(), "--session-timeout", "6s", "--result",
                                 scratch_ / "result", "--acl", "world:anyone:cd", lock(), "--", "sleep", "300"});
    EXPECT_EQ(lost.code, 79) << lost.err;
    const std::string reason = Json::parse(read_file(scratch_ / "result"))["reason"].text();
    EXPECT_THAT(reason, HasSubstr("the servers refuse its checks (not permitted): give zklock READ"));
    EXPECT_THAT(reason, HasSubstr("--acl"));
    EXPECT_THAT(lost.err, HasSubstr(reason));
}

TEST_F(ZklockExitTest, AReleaseThatAnAccessListForbidsNamesTheRight) {
    const Outcome outcome = zklock({"--connect", connect_string(), "--acl", "world:anyone:rc", lock(), "true"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("did not confirm the release of " + lock()));
    EXPECT_THAT(outcome.err, HasSubstr("delete was answered 'not permitted': give zklock READ and DELETE"));
}

TEST_F(ZklockExitTest, ALossByATickThatIsTooLongNamesTheTick) {
    testenv::ServerOptions options;
    options.tick_time = std::chrono::seconds(30);
    options.min_session_timeout = std::chrono::seconds(1);
    options.config_lines = {"4lw.commands.whitelist=srvr,conf"};
    const testenv::ZkServer server(options);
    const auto run_with = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"--connect", server.connect_string(), "--session-timeout", "6s", "--result",
                                     scratch_ / "result"});
        return zklock(words);
    };
    // A server is asked once, and not for long: again, where the machine is slow.
    EXPECT_TRUE(await([&] {
        const Outcome lost = run_with({"-q", "/x", "--", "sleep", "300"});
        EXPECT_EQ(lost.code, 79) << lost.err;
        return Json::parse(read_file(scratch_ / "result"))["reason"].text().find(
                   "in time: the servers granted a timeout of 6000 ms, which is too short for their tickTime of 30000 "
                   "ms: no lock can be held for sure. Ask for a longer --session-timeout") != std::string::npos;
    }));
    const Outcome stated = run_with({"--server-tick", "45s", "/x", "--", "sleep", "300"});
    EXPECT_EQ(stated.code, 79);
    EXPECT_THAT(Json::parse(read_file(scratch_ / "result"))["reason"].text(),
                HasSubstr("too short for the tickTime of 45000 ms that --server-tick states"));
    EXPECT_THAT(stated.err, HasSubstr("or correct --server-tick"));
}

TEST_F(ZklockExitTest, ACommandForWhichThereIsNoProcessIs71AndTheLockIsFreeAgain) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own, and the count does not fit";
#endif
    // The threads of zklock while its command runs, the switch, and the command.
    const Outcome usual = run({lock(), "-c", "set -- /proc/$ZKLOCK_PID/task/*; echo $#"}, with_processes(1000));
    if (usual.code != 0) GTEST_SKIP() << "needs the right to become another user, who can read " << ZKLOCK_BINARY;
    // A thread that was about to end may have been counted: then there is room for the command, which fails by itself.
    int threads = std::stoi(usual.out);
    const auto touch = [&] { return run({lock(), "touch", scratch_ / "ran"}, with_processes(threads + 1)); };
    Outcome outcome = touch();
    while (outcome.code == 1 && --threads > 0) outcome = touch();
    EXPECT_EQ(outcome.code, 71);
    EXPECT_THAT(outcome.err, HasSubstr("cannot start the command: Resource temporarily unavailable"));
    EXPECT_EQ(queue_length(), 0u);
    EXPECT_FALSE(exists(scratch_ / "ran"));
    EXPECT_EQ(run({lock(), "true"}, with_processes(threads + 2)).code, 0) << "it was this limit";
}

TEST_F(ZklockExitTest, WithoutDescriptorsItIs71BeforeItHasDoneAnything) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers need a descriptor themselves";
#endif
    ZklockProcess::Setup few;
    // One more than whoever runs the tests leaves open: enough for the loader and its libraries, and for nothing else.
    Outcome outcome;
    int limit = 3;
    do {
        few.launcher = {"prlimit", "--nofile=" + std::to_string(++limit)};
        outcome = run({"--connect-timeout", "1s", lock(), "touch", scratch_ / "ran"}, few);
    } while (outcome.code == 127 && limit < 64);
    EXPECT_EQ(outcome.code, 71);
    EXPECT_THAT(outcome.err, HasSubstr("Too many open files"));
    // With more of them zklock gets further, at last to the ZooKeeper client.
    bool client_refused = false;
    while (outcome.err.find("Too many open files") != std::string::npos && limit < 64) {
        EXPECT_EQ(outcome.code, 71) << outcome.err;
        client_refused |= outcome.err.find("cannot make a handle") != std::string::npos;
        EXPECT_FALSE(exists(scratch_ / "ran"));
        few.launcher = {"prlimit", "--nofile=" + std::to_string(++limit)};
        outcome = run({"--connect-timeout", "1s", lock(), "true"}, few);
    }
    EXPECT_TRUE(client_refused);
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockExitTest, AQuotaIs73) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::ServerOptions options;
    options.java_properties["zookeeper.enforceQuota"] = "true";
    const testenv::ZkServer strict(options);
    testenv::RawClient client(strict.connect_string());
    client.create("/locks");
    client.make_path("/zookeeper/quota/locks");
    client.create("/zookeeper/quota/locks/zookeeper_stats", "count=1,bytes=0");
    client.create("/zookeeper/quota/locks/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1");
    const Outcome outcome = zklock({"--connect", strict.connect_string(), "/locks/a", "touch", scratch_ / "ran"});
    EXPECT_EQ(outcome.code, 73) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("quota"));
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockExitTest, ARequestThatNoServerTakesIs65) {
    std::ofstream config(scratch_ / "zklock.conf");
    config << "acl = \"digest:o:w4PIv8/Wzcq4qj4/MfEQ8pvUSS4=:r";
    for (int i = 0; i < 50'000; ++i) config << ",digest:o:w4PIv8/Wzcq4qj4/MfEQ8pvUSS4=:r";
    config << "\"\n";
    config.close();
    const Outcome outcome = run({"--config", scratch_ / "zklock.conf", lock(), "touch", scratch_ / "ran"});
    EXPECT_EQ(outcome.code, 65) << outcome.err.substr(0, 500);
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockExitTest, WhatTheAccessListForbidsIs77) {
    std::ofstream(scratch_ / "auth") << "digest:ops:secret\n";
    std::ofstream(scratch_ / "bad") << "nosuchscheme:x\n";
    ::chmod((scratch_ / "auth").c_str(), 0600);
    ::chmod((scratch_ / "bad").c_str(), 0600);
    EXPECT_EQ(run({"--auth-file", scratch_ / "auth", "--acl", "creator", path("private"), "true"}).code, 0);
    const Outcome outcome = run({path("private"), "touch", scratch_ / "ran"});
    EXPECT_EQ(outcome.code, 77) << outcome.err;
    EXPECT_EQ(run({"--auth-file", scratch_ / "bad", lock(), "touch", scratch_ / "ran"}).code, 77);
    std::ofstream(scratch_ / "bad") << "digest:ops:mistyped\n";
    const Outcome mistyped = run({"--auth-file", scratch_ / "bad", path("private"), "touch", scratch_ / "ran"});
    EXPECT_EQ(mistyped.code, 77);
    EXPECT_THAT(mistyped.err, HasSubstr("check the password in the auth file, which no server checks"));
    EXPECT_FALSE(exists(scratch_ / "ran"));
    EXPECT_EQ(run({"--auth-file", scratch_ / "auth", "--acl", "creator", "-n", path("private"), "true"}).code, 0);
}

TEST_F(ZklockExitTest, AServerThatSaysNothingIs69) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    Gate gate(server().endpoint());
    gate.blackhole();
    const Outcome outcome =
        zklock(with({"--connect-timeout", "3s", lock(), "touch", scratch_ / "ran"}, gate.connect_string()));
    EXPECT_EQ(outcome.code, 69);
    EXPECT_THAT(outcome.err, HasSubstr("within 3.0s: "));
    EXPECT_THAT(outcome.err, HasSubstr(gate.connect_string() + ": accepts connections but gives no session"));
    EXPECT_FALSE(exists(scratch_ / "ran"));
    const Outcome hasty = zklock(with({"-w", "0.0001", lock(), "true"}, gate.connect_string()));
    EXPECT_EQ(hasty.code, 69);
    EXPECT_THAT(hasty.err, HasSubstr("within 0ms, which may be too short (-w): "));
    const Outcome look = zklock({"status", "--connect", gate.connect_string(), "--connect-timeout", "1ms", lock()});
    EXPECT_EQ(look.code, 69);
    EXPECT_THAT(look.err, HasSubstr("within 1ms, which may be too short (--connect-timeout): "));
}

}  // namespace
}  // namespace zkrecipes::zklock::test
