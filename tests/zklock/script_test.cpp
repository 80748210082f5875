// Ctrl-C, Ctrl-\ and Ctrl-Z in scripts, pipes and shells: the whole job does what it does without zklock.
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <zkrecipes/testenv/gate.hpp>

#include "zklock/on_terminal.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

/// Scripts whose first step is under a lock. Ctrl-C must end them as it does without zklock.
class ZklockScriptTest : public ZklockTerminalTest, public testing::WithParamInterface<const char*> {
protected:
    /// Runs the step in a loop, presses the key when the step shows "ready", and answers how the script ended.
    int interrupted(const std::string& step, const char* key = "\x03", const std::string& ready = "ready") {
        OnTerminal terminal({GetParam(), "-c", "for i in 1 2 3; do " + step + "; echo ne''xt; done; echo la''st"});
        EXPECT_TRUE(terminal.shows(ready));
        terminal.type(key);
        const int code = terminal.wait();
        EXPECT_THAT(terminal.seen(), testing::Not(HasSubstr("next")));
        EXPECT_THAT(terminal.seen(), testing::Not(HasSubstr("last")));
        return code;
    }
    std::vector<std::string> sleeper() const { return {lock(), "-c", "echo rea''dy; exec sleep 300"}; }
};
INSTANTIATE_TEST_SUITE_P(Shells, ZklockScriptTest, testing::Values("bash", "dash"));

TEST_P(ZklockScriptTest, CtrlCEndsTheScriptAndNotOnlyTheCommand) {
    std::vector<std::string> words = sleeper();
    words.insert(words.begin(), {"--result", scratch_ / "result", "--events", scratch_ / "events"});
    EXPECT_EQ(interrupted(command_line(words)), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
    const auto result = Json::parse(read_file(scratch_ / "result"));
    EXPECT_EQ(result["outcome"], "signalled");
    EXPECT_EQ(result["exit_code"], 128 + SIGINT);
    EXPECT_EQ(events_named(scratch_ / "events", "released").size(), 1u);
}

TEST_P(ZklockScriptTest, CtrlCEndsTheScriptThroughNestedLocks) {
    std::string line = command_line({path("outer"), "--"});
    EXPECT_EQ(interrupted(line + " " + command_line(sleeper())), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_P(ZklockScriptTest, CtrlCEndsTheScriptWhereTheTerminalIsNotTheCommands) {
    EXPECT_EQ(interrupted(command_line({lock(), "-c", "echo rea''dy >/dev/tty; exec sleep 300"}) + " | cat"), -SIGINT);
    EXPECT_TRUE(await([&] { return queue_length() == 0; })) << "the shell may end when cat has, before zklock";
}

TEST_P(ZklockScriptTest, CtrlCWhileWaitingEndsTheScript) {
    const auto holder = hold_with_command();
    EXPECT_EQ(interrupted(command_line({lock(), "true"}), "\x03", "position 2 of 2"), -SIGINT);
    EXPECT_EQ(queue_length(), 1u);
}

TEST_P(ZklockScriptTest, CtrlCEndsTheScriptThatHoldsOrLeads) {
    std::string line = command_line({"--result", scratch_ / "result", lock()});
    line.insert(line.find(' '), " hold");
    EXPECT_EQ(interrupted(line, "\x03", lock() + "/_c_"), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "released");
    line = command_line(sleeper());
    line.insert(line.find(' '), " elect");
    EXPECT_EQ(interrupted(line), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_P(ZklockScriptTest, ACommandThatHandlesCtrlCDoesNotEndTheScript) {
    OnTerminal terminal(
        {GetParam(), "-c",
         command_line({lock(), "-c", "trap \"exit 9\" INT; echo rea''dy; while :; do sleep 0.05; done"}) +
             "; echo code=$?"});
    ASSERT_TRUE(terminal.shows("ready"));
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), 0);
    EXPECT_THAT(terminal.seen(), HasSubstr("code=9"));
}

TEST_P(ZklockScriptTest, CtrlZWhereNoShellCouldContinueTheJobFreezesNobody) {
    OnTerminal terminal(
        {GetParam(), "-c", command_line({lock(), "-c", "echo rea''dy; read line; echo got $line"}) + "; echo next"});
    ASSERT_TRUE(terminal.shows("ready"));
    terminal.type("\x1a");
    ASSERT_TRUE(terminal.shows("the lock is lost unless it continues within"));
    terminal.type("one\n");
    ASSERT_TRUE(terminal.shows("got one"));
    EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(ZklockTerminalTest, CtrlCEndsTheLoopOfAnInteractiveShell) {
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; for i in 1 2 3; do " + command_line({lock(), "-c", "echo rea''dy; exec sleep 300"}) +
               "; echo next; done\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("\x03");
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("echo co''de=$?\n");
    ASSERT_TRUE(shell.shows("code=130"));
    EXPECT_THAT(shell.seen(), testing::Not(HasSubstr("next\r")));
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTerminalTest, CtrlBackslashEndsZklockBySigquitWithoutACore) {
    OnTerminal terminal(command({lock(), "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(terminal.shows("ready"));
    ASSERT_TRUE(await([&] {  // bash ignores SIGQUIT itself
        std::ifstream comm("/proc/" + std::to_string(terminal.foreground()) + "/comm");
        std::string name;
        return std::getline(comm, name) && name == "sleep";
    }));
    terminal.type("\x1c");
    EXPECT_EQ(terminal.wait(), -SIGQUIT);
    EXPECT_FALSE(terminal.left_a_core());
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTerminalTest, AfterFgTheCommandGoesOnWithoutWaitingForTheNextHeartbeat) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    session_timeout_ = "60s";  // one each ten seconds
    testenv::Gate gate(server().endpoint());
    for (const std::string form : {"run", "elect"}) {
        OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
        ASSERT_TRUE(shell.shows("PROMPT> "));
        std::string line = ZKLOCK_BINARY;
        for (const std::string& word : with(
                 {path(form), "-c", "echo rea''dy; while read line; do echo got $line; done"}, gate.connect_string())) {
            line += " '" + word + "'";
        }
        line.insert(line.find(' '), " " + form);
        shell.type("stty -echo; " + line + "\n");
        ASSERT_TRUE(shell.shows("ready"));
        shell.type("\x1a");
        ASSERT_TRUE(shell.shows("Stopped"));
        const auto heartbeats = [&] { return gate.counts()[testenv::Opcode::multi]; };
        const auto before = heartbeats();
        shell.type("fg\n");
        shell.type("two\n");
        ASSERT_TRUE(shell.shows("got two"));
        EXPECT_EQ(heartbeats(), before) << form;
        shell.type("\x04");
        ASSERT_TRUE(shell.shows("PROMPT> "));
    }
}

/// `zklock LOCK -- command | cat`: the terminal stays with zklock's group.
class ZklockPipeTest : public ZklockTerminalTest {
protected:
    void start(OnTerminal& shell) {
        ASSERT_TRUE(shell.shows("PROMPT> "));
        shell.type("stty -echo; set -o pipefail; " +
                   command_line({"--events", scratch_ / "events", lock(), "-c",
                                 "trap \"touch " + (scratch_ / "continued") + "\" CONT; echo rea''dy; until test -e " +
                                     (scratch_ / "go") + "; do sleep 0.02; done; echo do''ne"}) +
                   " | cat\n");
        ASSERT_TRUE(shell.shows("ready"));
        shell.type("\x1a");
        ASSERT_TRUE(shell.shows("the lock is lost unless it continues within"));
        ASSERT_TRUE(shell.shows("Stopped"));
    }
    static bool is_stopped(const std::string& pid) {
        const std::string process = "/proc/" + pid;
        const std::string stat = read_file(process + "/stat");
        if (stat.find(") T ") != std::string::npos) return true;
        // Some shells begin a command by vfork(). If that is stopped before its exec(), they wait for it in state D.
        std::istringstream children(read_file(process + "/task/" + pid + "/children"));
        std::string child;
        return stat.find(") D ") != std::string::npos && children >> child && is_stopped(child);
    }
    bool command_stops() {
        const int pid = events_named(scratch_ / "events", "child_started").at(0)["pid"].number<int>();
        return await([&] { return is_stopped(std::to_string(pid)); });
    }
};

TEST_F(ZklockPipeTest, CtrlZStopsTheCommandAndFgContinuesIt) {
    session_timeout_ = "60s";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    start(shell);
    EXPECT_TRUE(command_stops());
    std::ofstream(scratch_ / "go") << "";
    EXPECT_FALSE(exists(scratch_ / "continued"));
    shell.type("fg\n");
    ASSERT_TRUE(shell.shows("done"));
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("echo co''de=$?\n");
    EXPECT_TRUE(shell.shows("code=0"));
    EXPECT_EQ(events_named(scratch_ / "events", "resumed").size(), 1u);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockPipeTest, AfterCtrlZForTooLongTheCommandIsKilledAndNeverContinued) {
    session_timeout_ = "9s";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    start(shell);
    ASSERT_EQ(run({lock(), "true"}).code, 0) << "the lock is free after the session timeout";
    shell.type("fg\n");
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("echo co''de=$?\n");
    EXPECT_TRUE(shell.shows("code=79"));
    EXPECT_FALSE(exists(scratch_ / "continued"));
    EXPECT_THAT(shell.seen(), HasSubstr("zklock did not run for"));
}

TEST_F(ZklockTerminalTest, CtrlZStopsAWaiterAndAHoldAsAnyProgram) {
    session_timeout_ = "60s";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    std::string hold = command_line({lock()});
    hold.insert(hold.find(' '), " hold");
    shell.type("stty -echo; " + hold + "\n");
    ASSERT_TRUE(shell.shows("/_c_"));
    shell.type("\x1a");
    ASSERT_TRUE(shell.shows("zklock is stopped; the lock is lost unless it continues within"));
    ASSERT_TRUE(shell.shows("Stopped"));
    shell.type("bg; kill %1; wait %1; echo co''de=$?\n");
    EXPECT_TRUE(shell.shows("code=0"));
    EXPECT_EQ(queue_length(), 0u);
    const auto holder = hold_with_command();
    shell.type(command_line({lock(), "true"}) + "\n");
    ASSERT_TRUE(shell.shows("position 2 of 2"));
    shell.type("\x1a");
    ASSERT_TRUE(shell.shows("Stopped"));
    shell.type("bg; kill %1; wait %1; echo co''de=$?\n");
    EXPECT_TRUE(shell.shows("code=143"));
    EXPECT_EQ(queue_length(), 1u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
