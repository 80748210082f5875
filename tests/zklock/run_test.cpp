#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ZklockRunTest : public ZklockTest {};

TEST_F(ZklockRunTest, TheCommandsExitCodeIsPassedThrough) {
    for (const int code : {0, 1, 42, 75, 255}) {
        EXPECT_EQ(run({lock(), "sh", "-c", "exit " + std::to_string(code)}).code, code);
    }

    EXPECT_EQ(run({lock(), "-c", "kill -USR1 $$"}).code, 128 + SIGUSR1);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockRunTest, StdinStdoutAndStderrAreTheCommands) {
    ZklockProcess::Setup setup;
    setup.input = "hello\n";
    const Outcome outcome = run({lock(), "-c", "cat; echo oops >&2"}, setup);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "hello\n");
    EXPECT_EQ(outcome.err, "oops\n");
}

TEST_F(ZklockRunTest, WhatCannotRunIs126Or127AndTheLockIsFreeAgain) {
    Outcome outcome = run({lock(), "/nonexistent/command"});
    EXPECT_EQ(outcome.code, 127);
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/command"));
    EXPECT_EQ(run({lock(), "no-such-command-in-path"}).code, 127);
    EXPECT_EQ(run({"--min-hold", "60", lock(), "/etc/passwd"}).code, 126) << "it is given back at once";
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockRunTest, TheCommandLearnsAboutItsLockAndNotAboutSecrets) {
    std::ofstream(scratch_ / "auth") << "digest:ops:secret\n";
    ::chmod((scratch_ / "auth").c_str(), 0600);
    ZklockProcess::Setup setup;
    setup.environment = {"ZKLOCK_AUTH_FILE=" + (scratch_ / "auth"), "ZKLOCK_PID=1", "ZKLOCK_NODE=/outer"};
    const Outcome outcome = run({lock(), "-c", "env; echo PARENT=$PPID; ls -l /proc/self/fd"}, setup);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_HELD=1\n"));
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_PATH=" + lock() + "\n"));
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_NODE=" + lock() + "/_c_"));
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_MODE=exclusive\n"));
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_SESSION_ID=0x"));
    EXPECT_THAT(outcome.out, HasSubstr("ZKLOCK_SESSION_TIMEOUT_MS=10000\n"));
    EXPECT_THAT(outcome.out, testing::ContainsRegex("ZKLOCK_FENCING_TOKEN=[1-9][0-9]*\n"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("ZKLOCK_AUTH_FILE")));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("/outer")));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("socket:"))) << "the session's socket is open in the command";
    const auto value = [&](const std::string& name) {
        const std::size_t begin = outcome.out.find(name + "=") + name.size() + 1;
        return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
    };
    EXPECT_EQ(value("ZKLOCK_PID"), value("PARENT"));
}

TEST_F(ZklockRunTest, NoCoreOfZklockHoldsItsCredentialsAndTheCommandMayDumpItsOwn) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "AddressSanitizer traces zklock when it looks for leaks";
#endif
    ZklockProcess::Setup setup;
    setup.input = "digest:ops:secret\n";
    // As another user: /proc shows root as the owner of what must not be dumped.
    setup.launcher = {"setpriv", "--pdeathsig", "KILL", "--reuid", "65534", "--clear-groups"};
    const auto owners = [&](std::vector<std::string> options) {
        options.insert(options.end(), {lock(), "-c", "stat -c %u /proc/$ZKLOCK_PID/environ /proc/self/environ"});
        return run(std::move(options), setup);
    };
    const Outcome usual = owners({});
    if (usual.code != 0) GTEST_SKIP() << "needs the right to become another user, who can read " << ZKLOCK_BINARY;
    EXPECT_EQ(usual.out, "65534\n65534\n");
    const Outcome outcome = owners({"--auth-file", "fd:0"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "0\n65534\n");
}

TEST_F(ZklockRunTest, ItRefusesMoreRightsThanItsCallerHas) {
    ZklockProcess::Setup setup;  // as behind a set-user-id bit
    setup.launcher = {"setpriv", "--pdeathsig", "KILL", "--ruid", "65534"};
    if (::geteuid() != 0) GTEST_SKIP() << "needs the right to become another user";
    std::ofstream(scratch_ / "precious") << "root's";
    const Outcome outcome = run({"--result", scratch_ / "precious", lock(), "true"}, setup);
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.err, HasSubstr("set-user-id"));
    EXPECT_EQ(read_file(scratch_ / "precious"), "root's");
}

TEST_F(ZklockRunTest, AHeldLockIs75AtOnceOrAfterTheLimit) {
    const auto holder = hold_with_command({"--name", "deploy"});
    Outcome outcome = run({"-n", lock(), "true"});
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.err, HasSubstr("\"deploy\""));
    EXPECT_EQ(run({"-q", "-w", "0", "--result", scratch_ / "result", lock(), "true"}).err, "");
    EXPECT_THAT(Json::parse(read_file(scratch_ / "result"))["message"].text(), HasSubstr("\"deploy\""));
    EXPECT_EQ(run({"-n", "-E", "3", lock(), "true"}).code, 3);
    outcome = run({"-n", "-E", "0", lock(), "true"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "") << "cron would mail it";
    EXPECT_THAT(run({"-v", "-n", "-E", "0", lock(), "true"}).err, HasSubstr("\"deploy\""));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run({"-w", "6s", lock(), "true"}).code, 75);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_TRUE(await([&] { return queue_length() == 1; })) << "those who gave up left something behind";
}

TEST_F(ZklockRunTest, ASharedRequestThatAWaiterBlocksNamesTheWaiter) {
    const auto holder = hold_with_command({"-s", "--name", "reader"});
    const auto writer = start({"--name", "writer", lock(), "true"});
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const Outcome outcome = run({"-s", "-n", lock(), "true"});
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.err, HasSubstr(lock() + " was not acquired: wanted exclusively by an earlier waiter, "));
    EXPECT_THAT(outcome.err, HasSubstr("\"writer\""));
    EXPECT_THAT(run({"-n", lock(), "true"}).err, HasSubstr("\"reader\""));
}

TEST_F(ZklockRunTest, SharesAreHeldBesideEachOtherAndNeverBesideWhoIsAlone) {
    for (const std::string held_by : {"-x", "--rw", "-s"}) {
        auto holder = hold_with_command({held_by});
        for (const std::string tried_by : {"-x", "--rw", "-s"}) {
            const bool both = held_by == "-s" && tried_by == "-s";
            EXPECT_EQ(run({"-n", tried_by, lock(), "true"}).code, both ? 0 : 75) << held_by << " and " << tried_by;
            EXPECT_EQ(run({"-w", both ? "30s" : "6s", tried_by, lock(), "true"}).code, both ? 0 : 75);
        }
        holder->signal(SIGTERM);
        EXPECT_EQ(holder->wait(), 128 + SIGTERM);
        ::unlink((scratch_ / "held").c_str());
        EXPECT_EQ(queue_length(), 0u);
    }
}

TEST_F(ZklockRunTest, WhoSharesWaitsForWhoCameEarlierAndWantsItAlone) {
    for (const std::string alone : {"-x", "--rw"}) {
        const std::string order = scratch_ / "order" + alone;
        auto holder = hold_with_command({"-s"});
        auto first = start({alone, lock(), "-c", "echo alone >>" + order});
        ASSERT_TRUE(await([&] { return queue_length() == 2; }));
        EXPECT_EQ(run({"-n", "-s", lock(), "true"}).code, 75) << "past somebody who waits";
        auto second = start({"-s", lock(), "-c", "echo $ZKLOCK_MODE >>" + order});
        ASSERT_TRUE(await([&] { return queue_length() == 3; }));
        holder->signal(SIGTERM);
        EXPECT_EQ(first->wait(), 0);
        EXPECT_EQ(second->wait(), 0);
        EXPECT_EQ(read_file(order), "alone\nshared\n");
        ::unlink((scratch_ / "held").c_str());
    }
}

TEST_F(ZklockRunTest, ManyInAllModesAtOnceNeverHoldWhatExcludesThem) {
    // Each notes when it begins and ends; whoever is alone must find nobody, and a share nobody who is alone.
    const std::string command =
        "d=" + (scratch_ / "in") +
        "; mkdir -p $d; touch $d/$ZKLOCK_MODE.$$; sleep 0.05; others=$(ls $d | grep -v \\.$$'$'); "
        "rm $d/$ZKLOCK_MODE.$$; case $ZKLOCK_MODE:$others in exclusive:?*|*:*exclusive.*) echo "
        "$ZKLOCK_MODE beside $others; exit 9;; esac";
    std::vector<std::unique_ptr<ZklockProcess>> all;
    for (int i = 0; i < 12; ++i) {
        const char* const modes[] = {"-s", "-x", "-s", "--rw"};
        all.push_back(start({"-q", modes[i % 4], lock(), "sh", "-c", command}));
    }
    for (const auto& process : all) EXPECT_EQ(process->wait(), 0) << process->out();
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockRunTest, AWaiterRunsWhenTheHolderIsDone) {
    auto holder = hold_with_command();
    auto waiter = start({"--events", scratch_ / "events", lock(), "-c", "echo mine"});
    EXPECT_TRUE(await([&] { return queue_length() == 2; }));
    EXPECT_TRUE(await([&] { return !events_named(scratch_ / "events", "waiting").empty(); }));
    EXPECT_EQ(events_named(scratch_ / "events", "waiting")[0]["position"], 2);
    EXPECT_EQ(waiter->out(), "");
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 128 + SIGTERM);
    EXPECT_EQ(waiter->wait(), 0);
    EXPECT_EQ(waiter->out(), "mine\n");
}

TEST_F(ZklockRunTest, TheLockIsKeptWhileAnyoneOfTheGroupLives) {
    auto holder = start({lock(), "-c", "sleep 300 & touch " + (scratch_ / "held") + "; exit 3"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    EXPECT_EQ(run({"-w", "6s", lock(), "true"}).code, 75);
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 3);
}

TEST_F(ZklockRunTest, MaxRunIs124AlsoForACommandThatIgnoresTerm) {
    ZklockProcess::Setup deaf;  // from its first instruction on
    deaf.ignored_signals = {SIGTERM};
    const Outcome outcome =
        run({"--max-run", "200ms", "-k", "200ms", "--events", scratch_ / "events", lock(), "sleep", "300"}, deaf);
    EXPECT_EQ(outcome.code, 124);
    EXPECT_THAT(outcome.err, HasSubstr("longer than 200ms"));
    EXPECT_EQ(events_named(scratch_ / "events", "stopping").at(0)["signal"], SIGTERM);
    EXPECT_EQ(events_named(scratch_ / "events", "child_exited").at(0)["signal"], SIGKILL);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockRunTest, MinHoldKeepsTheLockAfterAFastCommand) {
    auto holder = start({"--min-hold", "60", lock(), "touch", scratch_ / "ran"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "ran"); }));
    EXPECT_EQ(run({"-w", "6s", lock(), "true"}).code, 75);
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 0);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockRunTest, EventsAndResultTellTheWholeStory) {
    const Outcome outcome =
        run({"--events", scratch_ / "events", "--result", scratch_ / "result", lock(), "-c", "exit 75"});
    EXPECT_EQ(outcome.code, 75);
    std::vector<std::string> names;
    for (const auto& event : read_events(scratch_ / "events")) {
        EXPECT_EQ(event["v"], 1);
        EXPECT_TRUE(event.contains("ts"));
        names.push_back(event["event"].text());
    }
    EXPECT_THAT(names, testing::ElementsAre("connected", "acquired", "child_started", "child_exited", "released"));
    EXPECT_EQ(events_named(scratch_ / "events", "child_exited")[0]["code"], 75);
    const auto result = Json::parse(read_file(scratch_ / "result"));
    EXPECT_EQ(result["outcome"], "exited");
    EXPECT_EQ(result["child"]["code"], 75);
    EXPECT_EQ(result["exit_code"], 75);
    EXPECT_EQ(result["token"], events_named(scratch_ / "events", "acquired")[0]["token"]);
    EXPECT_THAT(result["node"].text(), HasSubstr(lock() + "/_c_"));
    const auto holder = hold_with_command();
    EXPECT_EQ(run({"--result", scratch_ / "result", "-n", lock(), "true"}).code, 75);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "busy");
}

TEST_F(ZklockRunTest, TheResultTellsWhyNothingRanWhateverTheExitCodeIs) {
    const auto result_of = [&](const Outcome& outcome) {
        const auto result = Json::parse_or_null(read_file(scratch_ / "result"));
        EXPECT_EQ(result["exit_code"], outcome.code);
        std::ofstream(scratch_ / "result") << R"({"outcome":"exited","exit_code":0})";  // of yesterday
        return result;
    };
    const std::string result = scratch_ / "result";
    const auto never = [&](std::vector<std::string> options) {
        options.insert(options.begin(), {"--result", result});
        options.insert(options.end(), {lock(), "touch", scratch_ / "ran"});
        return result_of(run(std::move(options)));
    };
    EXPECT_EQ(never({"-s", "-x"})["message"], "-s cannot be combined with -x or --rw");
    EXPECT_EQ(never({"--bogus"})["outcome"], "error");
    EXPECT_EQ(never({"--config", "/nonexistent"})["exit_code"], 78);
    EXPECT_THAT(never({"--events", "99"})["message"].text(), HasSubstr("no such descriptor"));
    for (const std::string command : {"run", "elect", "hold"}) {
        std::vector<std::string> arguments = {command,    "--connect", "127.0.0.1:1", "--connect-timeout",
                                              "100ms",    "-E",        "69",          "-q",
                                              "--result", result,      lock()};
        if (command != "hold") arguments.emplace_back("true");
        EXPECT_EQ(result_of(zklock(arguments))["outcome"], "unavailable") << command;
    }
    const Outcome missing = run({"-q", "--result", result, lock(), "/nonexistent/command"});
    const auto not_started = result_of(missing);
    EXPECT_EQ(missing.err, "");
    EXPECT_EQ(not_started["outcome"], "not_started");
    EXPECT_THAT(not_started["message"].text(), HasSubstr("/nonexistent/command"));
    EXPECT_FALSE(exists(scratch_ / "ran"));
    EXPECT_EQ(run({"--result", result, lock(), "test", "!", "-e", result}).code, 0) << "while it runs, there is none";
}

TEST_F(ZklockRunTest, ADescriptorOfZklocksOwnIsNoPlaceForEvents) {
    ZklockProcess::Setup closed;
    closed.launcher = {"sh", "-c", "exec 3>&-; exec \"$@\"", "sh"};
    const Outcome outcome = run({"--events", "3", lock(), "true"}, closed);
    EXPECT_EQ(outcome.code, 64);
    EXPECT_THAT(outcome.err, HasSubstr("no such descriptor"));
}

TEST_F(ZklockRunTest, EventsOnADescriptorAreNotTheCommands) {
    const std::string file = scratch_ / "events";
    ZklockProcess::Setup setup;
    setup.launcher = {"sh", "-c", "exec 5>" + file + "; exec \"$@\"", "sh"};
    EXPECT_EQ(run({"--events", "5", lock(), "-c", "[ ! -e /proc/self/fd/5 ]"}, setup).code, 0);
    EXPECT_EQ(events_named(file, "released").size(), 1u);
}

TEST_F(ZklockRunTest, NoServerIs69AndNoConfigurationIs78) {
    EXPECT_EQ(zklock({"--connect", "127.0.0.1:1", "--connect-timeout", "300ms", lock(), "true"}).code, 69);
    EXPECT_EQ(zklock({"status", "--connect", "127.0.0.1:1", "--connect-timeout", "300ms", lock()}).code, 69);
    EXPECT_EQ(zklock({"--connect", "127.0.0.1:1", "-w", "300ms", lock(), "true"}).code, 69);
    ZklockProcess::Setup nothing;
    nothing.environment = {"HOME=/nonexistent"};
    EXPECT_EQ(zklock({lock(), "true"}, nothing).code, 78);
    EXPECT_EQ(zklock({"--connect", "a:b:c:99999", lock(), "true"}).code, 64);
    EXPECT_EQ(zklock({"--bogus", lock(), "true"}).code, 64);
    EXPECT_EQ(run({"/a//b", "true"}).code, 64);
}

TEST_F(ZklockRunTest, TheServersMayComeFromAFileOrTheEnvironment) {
    std::ofstream(scratch_ / "zklock.conf") << "connect = " << connect_string() << "\nprefix = " << root() << "/p\n";
    EXPECT_EQ(zklock({"--config", scratch_ / "zklock.conf", "/x", "true"}).code, 0);
    ZklockProcess::Setup setup;
    setup.environment = {"ZKLOCK_CONNECT=" + connect_string(), "ZKLOCK_CONFIG=" + (scratch_ / "zklock.conf")};
    EXPECT_EQ(zklock({"/x", "-c", "[ $ZKLOCK_PATH = /x ]"}, setup).code, 0);
    EXPECT_TRUE(testenv::RawClient(connect_string()).exists(root() + "/p/x")) << "the prefix was not used";
}

TEST_F(ZklockRunTest, AMissingDirectoryThatMayNotBeMadeIs73) {
    EXPECT_EQ(run({"--no-create", path("a/b"), "true"}).code, 73);
    EXPECT_EQ(run({path("a/b"), "true"}).code, 0);
}

TEST_F(ZklockRunTest, WithoutProcItRefusesToStart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers need /proc themselves";
#endif
    const std::string unshare = "unshare -m sh -c 'umount -l /proc' 2>/dev/null";
    if (std::system(unshare.c_str()) != 0) GTEST_SKIP() << "needs the right to make a mount namespace";
    ZklockProcess::Setup setup;
    setup.launcher = {"unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"};
    const Outcome outcome = run({"--result", scratch_ / "result", lock(), "true"}, setup);
    EXPECT_EQ(outcome.code, 71);
    EXPECT_THAT(outcome.err, HasSubstr("check that it is mounted"));
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["exit_code"], 71);
}

TEST_F(ZklockRunTest, ASessionTimeoutThatTheServersChangedIsSaid) {
    session_timeout_ = "2h";  // the server gives one
    EXPECT_THAT(run({lock(), "true"}).err, HasSubstr("the servers changed the session timeout from"));
    const Outcome outcome = run({"-k", "40m", lock(), "true"});
    EXPECT_EQ(outcome.code, 64) << outcome.err;
}

}  // namespace
}  // namespace zkrecipes::zklock::test
