// zklock --whole-tree: descendants that left the command's group keep the lock, and are dead before another holds it.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockTreeTest : public FaultyWorld {
protected:
    /// Runs while this test does, until the file `go` exists.
    std::string while_waiting() const {
        return "while kill -0 " + std::to_string(::getpid()) + " && [ ! -e " + (scratch_ / "go") + " ]; do ";
    }
    void write_script(const std::string& name, const std::string& text) const {
        std::ofstream(scratch_ / name) << "#!/bin/sh\n" << text;
        ::chmod((scratch_ / name).c_str(), 0755);
    }
    /// A zklock behind the gate. Its command has ended with 7 on return, and a daemon in a session of its own, whose
    /// parent is dead, has the lock file and goes on.
    std::unique_ptr<ZklockProcess> daemon(std::vector<std::string> options) {
        write_script("daemon", "trap '' TERM INT HUP\ntouch " + (scratch_ / "held") + "\n" + while_waiting() +
                                   "sleep 0.05; done\ntouch " + (scratch_ / "ended") + "\n");
        write_script("command", "exec 9>" + (scratch_ / "alive") + "\nflock 9\n(setsid " + (scratch_ / "daemon") +
                                    " &)\nwhile [ ! -e " + (scratch_ / "held") + " ]; do sleep 0.02; done\nexit 7\n");
        std::vector<std::string> arguments = {"--events", scratch_ / "events"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.insert(arguments.end(), {lock(), scratch_ / "command"});
        auto process = std::make_unique<ZklockProcess>(with(arguments, gate_->connect_string()));
        EXPECT_TRUE(await([&] { return exists(scratch_ / "held"); })) << process->err();
        return process;
    }
    void finish() const { std::ofstream(scratch_ / "go") << ""; }
};

TEST_F(ZklockTreeTest, ADaemonKeepsTheLockAndTheCommandsExitCodeStands) {
    session_timeout_ = "20s";
    const auto holder = daemon({"--whole-tree"});
    EXPECT_EQ(run({"-w", "6s", lock(), "true"}).code, 75);
    EXPECT_TRUE(events_named(scratch_ / "events", "child_exited").empty());
    holder->signal(SIGTERM);  // reaches the group, of which nobody is left
    EXPECT_EQ(run({"-w", "6s", lock(), "true"}).code, 75);
    finish();
    EXPECT_EQ(holder->wait(), 7) << holder->err();
    EXPECT_TRUE(exists(scratch_ / "ended"));
    EXPECT_EQ(events_named(scratch_ / "events", "child_exited").at(0)["code"], 7);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTreeTest, WithoutTheOptionADaemonDoesNotKeepTheLock) {
    session_timeout_ = "20s";
    const auto holder = daemon({});
    EXPECT_EQ(holder->wait(), 7) << holder->err();
    EXPECT_FALSE(exists(scratch_ / "ended"));
    finish();
    EXPECT_TRUE(await([&] { return exists(scratch_ / "ended"); }));
}

TEST_F(ZklockTreeTest, ADaemonIsDeadBeforeAnotherHoldsTheLock) {
    const auto holder = daemon({"--whole-tree"});
    const auto next = rival();
    gate_->blackhole();
    EXPECT_EQ(next->wait(), 0) << "the daemon was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_FALSE(exists(scratch_ / "ended"));
}

TEST_F(ZklockTreeTest, ADaemonIsDeadBeforeAnotherHoldsTheLockWhileZklockIsStopped) {
    const auto holder = daemon({"--whole-tree"});
    const auto next = rival();
    holder->signal(SIGSTOP);
    EXPECT_EQ(next->wait(), 0) << "the daemon was alive when the next one held the lock";
    holder->signal(SIGCONT);
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_F(ZklockTreeTest, ASecondTermKillsTheDaemon) {
    session_timeout_ = "20s";
    const auto holder = daemon({"--whole-tree", "-k", "100ms"});
    holder->signal(SIGTERM);
    holder->signal(SIGTERM);
    EXPECT_TRUE(await([&] {
        holder->signal(SIGTERM);  // two that come at once may be one
        return !holder->running();
    }));
    EXPECT_THAT(holder->wait(), testing::AnyOf(7, 128 + SIGTERM)) << "the first TERM may have been in time";
    EXPECT_FALSE(exists(scratch_ / "ended"));
    EXPECT_EQ(run({"-n", lock(), "flock", "-n", scratch_ / "alive", "true"}).code, 0);
}

TEST_F(ZklockTreeTest, ProcessesThatForkAllTheTimeAreKilledToo) {
    // Each lives for a moment, in a session of its own, and is gone when its successor has started.
    write_script("hop", "exec 9>>" + (scratch_ / "alive") + "\nkill -0 " + std::to_string(::getpid()) + " && [ ! -e " +
                            (scratch_ / "go") + " ] || exit\necho x >>" + (scratch_ / "hops") + "\nsetsid " +
                            (scratch_ / "hop") + " &\n");
    auto holder = start({"--whole-tree", "--max-run", "5s", "-k", "100ms", lock(), scratch_ / "hop"});
    ASSERT_TRUE(await([&] { return read_file(scratch_ / "hops").size() > 20; }));
    EXPECT_EQ(holder->wait(), 124) << holder->err();
    const std::size_t hops = read_file(scratch_ / "hops").size();
    EXPECT_EQ(run({"-w", "30", lock(), "sleep", "0.2"}).code, 0);
    EXPECT_EQ(read_file(scratch_ / "hops").size(), hops) << "one has survived";
    finish();
}

TEST_F(ZklockTreeTest, TheFreezeOfAnOuterZklockDoesNotStopTheSwitchOfAnInnerOne) {
    // The outer one pauses its command; the inner one, which is frozen with it, loses its own lock.
    const std::string inner = path("inner");
    const auto outer = std::make_unique<ZklockProcess>(std::vector<std::string>{
        "--connect", gate_->connect_string(), "--session-timeout", "30s", "--on-suspend", "pause", "--whole-tree",
        lock(), ZKLOCK_BINARY, "--connect", connect_string(), "--session-timeout", "6s", inner, "-c",
        "exec 9>" + (scratch_ / "alive") + "; flock 9; touch " + (scratch_ / "held") +
            "; trap '' TERM; while :; do sleep 1; done"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); })) << outer->err();
    ZklockProcess next(
        {"--connect", connect_string(), "--session-timeout", "30", inner, "flock", "-n", scratch_ / "alive", "true"});
    ASSERT_TRUE(await([&] { return testenv::RawClient(connect_string()).children(inner)->size() == 2; }));
    gate_->refuse();
    gate_->reset_all();
    EXPECT_EQ(next.wait(), 0) << "the inner command was alive when the next one held the inner lock";
    gate_->pass();
    EXPECT_EQ(outer->wait(), 79) << "the exit code of the inner one";
}

TEST_F(ZklockTreeTest, ZklockThatAlreadyHasChildrenRefuses) {
    ZklockProcess::Setup setup;
    setup.launcher = {"sh", "-c", "(" + while_waiting() + "sleep 0.05; done) & exec \"$@\"", "sh"};
    const Outcome outcome = run({"--whole-tree", lock(), "touch", scratch_ / "ran"}, setup);
    finish();
    EXPECT_EQ(outcome.code, 64);
    EXPECT_THAT(outcome.err, HasSubstr("run zklock without exec"));
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

}  // namespace
}  // namespace zkrecipes::zklock::test
