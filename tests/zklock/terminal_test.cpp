#include <fcntl.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

/// A program on a terminal of its own.
class OnTerminal {
public:
    explicit OnTerminal(std::vector<std::string> argv) {
        std::vector<char*> pointers;
        for (std::string& text : argv) pointers.push_back(text.data());
        pointers.push_back(nullptr);
        const pid_t parent = ::getpid();
        pid_ = ::forkpty(&master_, nullptr, nullptr, nullptr);
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);
            ::setenv("PS1", "PROMPT> ", 1);
            ::setenv("TERM", "dumb", 1);
            ::execvp(pointers[0], pointers.data());
            ::_exit(99);
        }
        ::fcntl(master_, F_SETFD, FD_CLOEXEC);
        ::fcntl(master_, F_SETFL, O_NONBLOCK);
    }
    ~OnTerminal() {
        if (pid_ > 0) {
            close();
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        if (testing::Test::HasFailure()) std::fprintf(stderr, "--- terminal:\n%s---\n", seen_.c_str());
    }
    /// As when the window is closed: the kernel sends HUP to whom the terminal belongs.
    void close() { ::close(std::exchange(master_, -1)); }
    void type(const std::string& text) {
        mark_ = seen_.size();
        ASSERT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    /// Waits until this appears after what was typed last.
    bool shows(const std::string& text) {
        return await([&] {
            read_all();
            return seen_.find(text, mark_) != std::string::npos;
        });
    }
    int wait() {
        int status = 0;
        const bool ended = await([&] {
            read_all();
            return ::waitpid(pid_, &status, WNOHANG) == pid_;
        });
        if (!ended) return 1000;
        pid_ = -1;
        read_all();
        left_a_core_ = WIFSIGNALED(status) && WCOREDUMP(status);
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }
    bool left_a_core() const { return left_a_core_; }
    pid_t foreground() const { return ::tcgetpgrp(master_); }
    pid_t pid() const { return pid_; }
    const std::string& seen() const { return seen_; }

private:
    void read_all() {
        char buffer[4096];
        for (ssize_t size = 0; (size = ::read(master_, buffer, sizeof buffer)) > 0;) {
            seen_.append(buffer, static_cast<std::size_t>(size));
        }
    }

    pid_t pid_ = -1;
    int master_ = -1;
    std::string seen_;
    std::size_t mark_ = 0;
    bool left_a_core_ = false;
};

class ZklockTerminalTest : public ZklockTest {
protected:
    std::vector<std::string> command(std::vector<std::string> rest) const {
        rest = with(std::move(rest));
        rest.insert(rest.begin(), ZKLOCK_BINARY);
        return rest;
    }
    std::string command_line(std::vector<std::string> rest) const {
        std::string line;
        for (const std::string& word : command(std::move(rest))) line += (line.empty() ? "'" : " '") + word + "'";
        return line;
    }
};

TEST_F(ZklockTerminalTest, TheCommandReadsFromTheTerminalAndGetsCtrlC) {
    OnTerminal terminal(command(
        {lock(), "-c", "read line; echo got $line; trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done"}));
    terminal.type("hello\n");
    ASSERT_TRUE(terminal.shows("got hello"));
    ASSERT_TRUE(terminal.shows("ready"));
    EXPECT_NE(terminal.foreground(), terminal.pid()) << "the command has the terminal";
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), 9);
}

TEST_F(ZklockTerminalTest, CtrlCWhileWaitingEndsZklockAndRemovesTheWaitingLine) {
    const auto holder = hold_with_command({"--name", "deploy"});
    OnTerminal terminal(command({lock(), "true"}));
    ASSERT_TRUE(terminal.shows("position 2 of 2"));
    EXPECT_THAT(terminal.seen(), HasSubstr("zklock: waiting for " + lock().substr(0, 20)));
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), -SIGINT);
    EXPECT_EQ(queue_length(), 1u);
}

TEST_F(ZklockTerminalTest, BreakRemovesOnlyWhatItHasShown) {
    testenv::RawClient other(connect_string());
    other.make_path(lock());
    const std::string node = other
                                 .create(lock() + "/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", "10.0.0.7",
                                         testenv::CreateMode::ephemeral_sequential)
                                 .path;
    const std::vector<std::string> words = {ZKLOCK_BINARY, "break", "--connect", connect_string(), lock(), "--holder"};
    {
        OnTerminal terminal(words);
        ASSERT_TRUE(terminal.shows("[y/N]"));
        terminal.type("n\n");
        EXPECT_EQ(terminal.wait(), 0);
        EXPECT_EQ(queue_length(), 1u);
    }
    {
        OnTerminal terminal(words);
        ASSERT_TRUE(terminal.shows("[y/N]"));
        other.set(node, "10.0.0.8");
        terminal.type("y\n");
        EXPECT_EQ(terminal.wait(), 65);
        EXPECT_EQ(queue_length(), 1u);
    }
    OnTerminal terminal(words);
    ASSERT_TRUE(terminal.shows("[y/N]"));
    terminal.type("y\n");
    EXPECT_EQ(terminal.wait(), 0);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTerminalTest, CtrlZAndFgStopAndContinueCommandAndLock) {
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " +
               command_line({lock(), "-c", "echo rea''dy; while read line; do echo got $line; done; echo en''ded"}) +
               "\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("one\n");
    ASSERT_TRUE(shell.shows("got one"));
    shell.type("\x1a");
    ASSERT_TRUE(shell.shows("may be lost while the command is stopped"));
    ASSERT_TRUE(shell.shows("Stopped"));
    shell.type("fg\n");
    shell.type("two\n");
    ASSERT_TRUE(shell.shows("got two"));
    shell.type("\x04");
    ASSERT_TRUE(shell.shows("ended"));
    shell.type("echo code=$?\n");
    EXPECT_TRUE(shell.shows("code=0"));
}

TEST_F(ZklockTerminalTest, AfterCtrlZForTooLongTheCommandIsNotContinued) {
    session_timeout_ = "1s";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " + command_line({lock(), "-c", "echo rea''dy; while read line; do echo got $line; done"}) +
               "\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("\x1a");
    ASSERT_TRUE(shell.shows("Stopped"));
    ASSERT_EQ(run({lock(), "true"}).code, 0) << "the lock is free after the session timeout";
    shell.type("fg\n");
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("echo code=$?\n");
    EXPECT_TRUE(shell.shows("code=79"));
}

TEST_F(ZklockTerminalTest, InTheBackgroundItDoesNotTakeTheTerminal) {
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " + command_line({lock(), "-c", "touch " + (scratch_ / "held") + "; exec sleep 300"}) +
               " & \n");
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    EXPECT_EQ(shell.foreground(), shell.pid());
    shell.type("kill %1; wait %1; echo code=$?\n");
    EXPECT_TRUE(shell.shows("code=143"));
}

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
    const auto result = nlohmann::json::parse(read_file(scratch_ / "result"));
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
    EXPECT_EQ(queue_length(), 0u);
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
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch_ / "result"))["outcome"], "released");
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
    terminal.type("\x1c");
    EXPECT_EQ(terminal.wait(), -SIGQUIT);
    EXPECT_FALSE(terminal.left_a_core());
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTerminalTest, CtrlCEndsTheHoldThatOutlivesTheCommand) {
    const std::string events = scratch_ / "events";
    OnTerminal terminal(command({"--min-hold", "1h", "--events", events, lock(), "true"}));
    ASSERT_TRUE(await([&] { return events_named(events, "child_exited").size() == 1; }));
    EXPECT_EQ(terminal.foreground(), terminal.pid());
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), -SIGINT);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockTerminalTest, TheTerminalIsForWhoReadsTheOutput) {
    const std::string done = scratch_ / "done";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " +
               command_line({lock(), "-c", "echo one; until test -e " + done + "; do sleep 0.05; done"}) +
               " | sh -c \"read line; echo rea''dy; read answer </dev/tty; echo got \\$answer; touch " + done + "\"\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("hello\n");
    EXPECT_TRUE(shell.shows("got hello"));
    EXPECT_TRUE(shell.shows("PROMPT> "));
}

TEST_F(ZklockTerminalTest, ACommandWhoseInputIsSomethingElseGetsTheTerminalWhenItAsks) {
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " + command_line({lock(), "-c", "echo rea''dy; read answer </dev/tty; echo got $answer"}) +
               " </dev/null; echo code=$?\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("hello\n");
    EXPECT_TRUE(shell.shows("got hello"));
    EXPECT_TRUE(shell.shows("code=0"));
}

TEST_F(ZklockTerminalTest, WhoReadsTheOutputGetsTheTerminalBackFromACommandThatAskedForIt) {
    const std::string done = scratch_ / "done";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " +
               command_line({lock(), "-c",
                             "echo pass''word >/dev/tty; read word </dev/tty; echo $word; until test -e " + done +
                                 "; do sleep 0.05; done; read word </dev/tty; echo $word"}) +
               " | sh -c 'read line; echo piped $line; read answer </dev/tty; echo got $answer; touch " + done +
               "; cat'\n");
    ASSERT_TRUE(shell.shows("password"));
    shell.type("secret\n");
    ASSERT_TRUE(shell.shows("piped secret"));
    shell.type("hello\n");
    EXPECT_TRUE(shell.shows("got hello"));
    shell.type("again\n");
    EXPECT_TRUE(shell.shows("again"));
    EXPECT_TRUE(shell.shows("PROMPT> "));
}

TEST_F(ZklockTerminalTest, AReaderInTheBackgroundIsStoppedAsInAnyJob) {
    const std::string reader = scratch_ / "reader", passed = scratch_ / "passed";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " +
               command_line({lock(), "-c",
                             "trap \"touch " + passed + "\" WINCH; echo $ZKLOCK_PID; until test -e " + reader +
                                 ".done; do sleep 0.05; done"}) +
               " | sh -c 'read zklock; echo $zklock $$ >" + reader + ".new; mv " + reader + ".new " + reader +
               "; read answer </dev/tty; echo got $answer; touch " + reader + ".done' &\n");
    ASSERT_TRUE(await([&] { return exists(reader); }));
    pid_t locking = 0, reading = 0;
    std::ifstream(reader) >> locking >> reading;
    ASSERT_TRUE(await(
        [&] { return read_file("/proc/" + std::to_string(reading) + "/stat").find(") T ") != std::string::npos; }));
    // Passed on later than what the reader's stop made of it: of two signals zklock takes the one with the lower
    // number.
    ::kill(locking, SIGWINCH);
    ASSERT_TRUE(await([&] { return exists(passed); }));
    EXPECT_EQ(shell.foreground(), shell.pid());
    shell.type("fg\n");
    ASSERT_TRUE(shell.shows("read answer")) << "what is in the foreground now";
    shell.type("hello\n");
    EXPECT_TRUE(shell.shows("got hello"));
    EXPECT_TRUE(shell.shows("PROMPT> "));
}

TEST_F(ZklockTerminalTest, AHoldInTheBackgroundIsNotStoppedByWhatIsTyped) {
    const std::string done = scratch_ / "done";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    std::string line = command_line({lock()});
    line.insert(line.find(' '), " hold");
    shell.type("stty -echo; " + line + " &\n");
    ASSERT_TRUE(await([&] { return queue_length() == 1; }));
    shell.type("echo lo''op; until test -e " + done + "; do sleep 0.05; done; kill -TERM $!; wait $!; echo code=$?\n");
    ASSERT_TRUE(shell.shows("loop"));
    shell.type("true\n");  // stays unread until the loop has ended
    std::ofstream(done).put('\n');
    EXPECT_TRUE(shell.shows("code=0"));
}

TEST_F(ZklockTerminalTest, WhenTheTerminalGoesAwayTheCommandGetsHup) {
    {
        OnTerminal terminal(
            command({lock(), "-c",
                     "trap 'touch " + (scratch_ / "hup") + "; exit 1' HUP; echo ready; while :; do sleep 0.05; done"}));
        ASSERT_TRUE(terminal.shows("ready"));
        terminal.close();
        EXPECT_TRUE(await([&] { return exists(scratch_ / "hup"); }));
        EXPECT_EQ(terminal.wait(), 1);
    }
    EXPECT_EQ(queue_length(), 0u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
