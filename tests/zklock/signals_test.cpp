// What signals do to a zklock that waits, holds or runs a command.
#include <csignal>
#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockSignalsTest : public ZklockTest {};

TEST_F(ZklockSignalsTest, StoppedWhileWaitingItDiesOfTheSignalAndLeavesNoNode) {
    const auto holder = hold_with_command();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO,
                             SIGPWR, SIGSTKFLT, SIGRTMIN, SIGRTMAX}) {
        auto waiter = start({"--result", scratch_ / "result", lock(), "touch", scratch_ / "ran"});
        ASSERT_TRUE(await([&] { return queue_length() == 2; }));
        waiter->signal(signal);
        EXPECT_EQ(waiter->wait(), -signal) << waiter->err();
        EXPECT_EQ(queue_length(), 1u) << "its node outlives it";
        EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "interrupted");
    }
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockSignalsTest, SignalsGoToTheCommandAndTheLockIsKeptUntilItEnds) {
    auto holder = start({lock(), "-c",
                         "trap 'while [ ! -e " + (scratch_ / "go") + " ]; do sleep 0.05; done; exit 7' TERM; touch " +
                             (scratch_ / "held") + "; while :; do sleep 0.05; done"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    holder->signal(SIGTERM);
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 75);
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), 7);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockSignalsTest, ASignalThatIsNotPassedOnEndsTheCommandFirstAndThenZklock) {
    for (const int signal : {SIGALRM, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGRTMIN, SIGRTMAX}) {
        const std::string alive = scratch_ / "alive", held = scratch_ / "held";
        // The command ignores what stops it, and holds a flock as long as anybody of it lives.
        auto holder =
            start({"-k", "200ms", "--result", scratch_ / "result", "--events", scratch_ / "events", lock(), "-c",
                   "exec 9>" + alive + "; flock 9; trap '' TERM; touch " + held + "; while :; do sleep 0.05; done"});
        ASSERT_TRUE(await([&] { return exists(held); }));
        holder->signal(signal);
        EXPECT_EQ(holder->wait(), -signal) << holder->err();
        EXPECT_EQ(std::system(("flock -n " + alive + " true").c_str()), 0) << "the command outlives zklock";
        EXPECT_EQ(queue_length(), 0u) << "its node outlives it";
        const auto result = Json::parse(read_file(scratch_ / "result"));
        EXPECT_EQ(result["outcome"], "interrupted");
        EXPECT_EQ(result["signal"], signal);
        EXPECT_EQ(result["exit_code"], 128 + signal);
        EXPECT_EQ(result["child"]["signal"], SIGKILL);
        EXPECT_EQ(events_named(scratch_ / "events", "released").size(), 1u);
        for (const char* const file : {"held", "events"}) ::unlink((scratch_ / file).c_str());
    }
}

TEST_F(ZklockSignalsTest, AHoldThatIsEndedByASignalGivesTheLockBackFirst) {
    for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGXCPU, SIGRTMIN}) {
        ZklockProcess::Setup setup;
        setup.keep_input = true;
        std::vector<std::string> arguments = with({"--result", scratch_ / "result", lock()});
        arguments.insert(arguments.begin(), "hold");
        ZklockProcess hold(arguments, setup);
        ASSERT_TRUE(await([&] { return !hold.out().empty(); }));
        hold.signal(signal);
        const int code = signal == SIGTERM || signal == SIGHUP ? 0 : -signal;
        EXPECT_EQ(hold.wait(), code);
        EXPECT_EQ(queue_length(), 0u);
        const auto result = Json::parse(read_file(scratch_ / "result"));
        EXPECT_EQ(result["outcome"], "released");
        EXPECT_EQ(result["exit_code"], code == 0 ? 0 : 128 + signal);
        EXPECT_EQ(result["signal"], signal);
    }
}

TEST_F(ZklockSignalsTest, TheCommandHasTheSignalsAsTheyWereBeforeZklock) {
    ZklockProcess::Setup setup;
    setup.ignored_signals = {SIGALRM, SIGUSR2};
    const std::string show = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    const Outcome outcome = run({lock(), "sh", "-c", show}, setup);
    EXPECT_EQ(outcome.code, 0);
    std::istringstream lines(outcome.out);
    std::string name;
    std::uint64_t blocked = 1, ignored = 0;
    lines >> name >> std::hex >> blocked >> name >> ignored;
    EXPECT_EQ(blocked, 0u) << outcome.out;
    EXPECT_EQ(ignored, (1u << (SIGALRM - 1)) | (1u << (SIGUSR2 - 1))) << outcome.out;
}

TEST_F(ZklockSignalsTest, AfterASignalThatIsPassedOnTheLockIsFreeAndTheExitStatusTells) {
    for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT}) {
        const std::string events = scratch_ / ("events" + std::to_string(signal));
        auto holder = start({"--result", scratch_ / "result", "--events", events, lock(), "sleep", "300"});
        ASSERT_TRUE(await([&] { return events_named(events, "child_started").size() == 1; }));
        holder->signal(signal);
        EXPECT_EQ(holder->wait(), signal == SIGINT || signal == SIGQUIT ? -signal : 128 + signal) << holder->err();
        EXPECT_NE(::kill(events_named(events, "child_started").at(0)["pid"].number<pid_t>(), 0), 0)
            << "it outlives zklock";
        EXPECT_EQ(queue_length(), 0u) << "its node outlives it";
        std::vector<std::string> names;
        for (const auto& event : read_events(events)) names.push_back(event["event"].text());
        EXPECT_THAT(names, testing::ElementsAre("connected", "acquired", "child_started", "child_exited", "released"));
        const auto result = Json::parse(read_file(scratch_ / "result"));
        EXPECT_EQ(result["outcome"], "signalled");
        EXPECT_EQ(result["exit_code"], 128 + signal);
    }
}

TEST_F(ZklockSignalsTest, ASecondCtrlCThatHasToKillTheCommandEndsZklockBySigint) {
    auto holder = start(
        {"-k", "200ms", lock(), "-c", "trap '' INT; touch " + (scratch_ / "held") + "; while :; do sleep 1; done"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    const auto pending = [&] {
        return read_file("/proc/" + std::to_string(holder->pid()) + "/status").find("ShdPnd:\t0000000000000000") ==
               std::string::npos;
    };
    holder->signal(SIGINT);
    ASSERT_TRUE(await([&] { return !pending(); })) << "two that come at once are one";
    holder->signal(SIGINT);
    EXPECT_EQ(holder->wait(), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockSignalsTest, ASecondTermArmsTheKill) {
    auto holder = start({"-k", "200ms", lock(), "-c",
                         "trap '' TERM INT; touch " + (scratch_ / "held") + "; while :; do sleep 1; done"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    holder->signal(SIGTERM);
    ASSERT_TRUE(await([&] { return holder->running(); }));
    holder->signal(SIGINT);
    EXPECT_EQ(holder->wait(), 128 + SIGKILL);
}

TEST_F(ZklockSignalsTest, SigkillOfZklockKillsTheCommandAndItsGroup) {
    session_timeout_ = "6s";
    auto holder = start({lock(), "-c",
                         "exec 9>" + (scratch_ / "alive") + "; flock 9; (trap '' TERM HUP; sleep 300) & touch " +
                             (scratch_ / "held") + "; sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    const std::string probe = "flock -n " + (scratch_ / "alive") + " true";
    EXPECT_NE(std::system(probe.c_str()), 0);
    holder->signal(SIGKILL);
    EXPECT_EQ(holder->wait(), -SIGKILL);
    EXPECT_TRUE(await([&] { return std::system(probe.c_str()) == 0; })) << "somebody of the group lives on";
    EXPECT_TRUE(await([&] { return queue_length() == 0; })) << "the servers end the session after its timeout";
}

TEST_F(ZklockSignalsTest, WhatIsIgnoredStaysIgnored) {
    ZklockProcess::Setup nohup;
    nohup.ignored_signals = {SIGHUP};
    auto holder = start({lock(), "-c",
                         "touch " + (scratch_ / "held") + "; while [ ! -e " + (scratch_ / "go") +
                             " ]; do sleep 0.05; done; kill -HUP $$; echo survived"},
                        nohup);
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    holder->signal(SIGHUP);
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), 0);
    EXPECT_EQ(holder->out(), "survived\n");
}

TEST_F(ZklockSignalsTest, AStopWhileConnectingIsASignalToo) {
    ZklockProcess process({"--connect", "127.0.0.1:1", "--connect-timeout", "0", "-v", lock(), "true"});
    // Signals are blocked before the session is made; from then on this must hold.
    ASSERT_TRUE(await([&] {
        return read_file("/proc/" + std::to_string(process.pid()) + "/status").find("SigBlk:\t0000000000000000") ==
               std::string::npos;
    }));
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), -SIGTERM);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
