#include <unistd.h>

#include <fstream>

#include "zklock/on_terminal.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

TEST_F(ZklockTerminalTest, BreakShowsWhatItAsksAboutAndSaysThatItWasDeclined) {
    const auto holder = hold_with_command({"--name", "deploy"});
    for (const char* quiet : {"-q", "-v"}) {
        OnTerminal terminal({ZKLOCK_BINARY, "break", quiet, "--connect", connect_string(), lock(), "--holder"});
        ASSERT_TRUE(terminal.shows("Remove this node? [y/N] "));
        EXPECT_THAT(terminal.seen(), HasSubstr("\"deploy\""));
        EXPECT_THAT(terminal.seen(), HasSubstr(lock() + "/_c_"));
        terminal.type("n\n");
        EXPECT_EQ(terminal.wait(), 1);
        EXPECT_EQ(queue_length(), 1u);
    }
    OnTerminal terminal({ZKLOCK_BINARY, "break", "-q", "--connect", connect_string(), lock(), "--holder"});
    ASSERT_TRUE(terminal.shows("Remove this node? [y/N] "));
    terminal.type("y\n");
    EXPECT_EQ(terminal.wait(), 0);
    EXPECT_EQ(queue_length(), 0u);
}

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
        EXPECT_EQ(terminal.wait(), 1);
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
    session_timeout_ = "60s";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    shell.type("stty -echo; " +
               command_line({lock(), "-c", "echo rea''dy; while read line; do echo got $line; done; echo en''ded"}) +
               "\n");
    ASSERT_TRUE(shell.shows("ready"));
    shell.type("one\n");
    ASSERT_TRUE(shell.shows("got one"));
    shell.type("\x1a");
    ASSERT_TRUE(shell.shows("the lock is lost unless it continues within"));
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
    session_timeout_ = "9s";
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
    const std::string done = scratch_ / "done", held = scratch_ / "held";
    OnTerminal shell({"bash", "--norc", "--noprofile", "-i"});
    ASSERT_TRUE(shell.shows("PROMPT> "));
    std::string line = command_line({lock()});
    line.insert(line.find(' '), " hold");
    shell.type("stty -echo; " + line + " >" + held + " &\n");
    ASSERT_TRUE(await([&] { return !read_file(held).empty(); }));
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

TEST_F(ZklockTerminalTest, WhoWaitsForServersIsToldWhatIsWrong) {
    const std::vector<std::string> words = {"--connect", "127.0.0.1:1", "--connect-timeout", "0", lock(), "true"};
    ZklockProcess unseen(words);
    std::vector<std::string> seen = words;
    seen.insert(seen.begin(), ZKLOCK_BINARY);
    OnTerminal terminal(seen);
    EXPECT_TRUE(terminal.shows("zklock: no ZooKeeper server answers"));
    const std::string warning = "zklock: warning: no ZooKeeper server answers";
    EXPECT_TRUE(await([&] { return unseen.err().find(warning) != std::string::npos; }));
    EXPECT_THAT(unseen.err(), HasSubstr("; zklock goes on trying"));
    EXPECT_TRUE(terminal.shows(warning));
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), -SIGINT);
}

TEST_F(ZklockTerminalTest, AWaiterIsToldThatNoServerAnswers) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    session_timeout_ = "60s";
    const auto holder = hold_with_command();
    testenv::Gate gate(server().endpoint());
    std::vector<std::string> words = with({lock(), "true"}, gate.connect_string());
    words.insert(words.begin(), ZKLOCK_BINARY);
    OnTerminal terminal(words);
    const std::string waiting = "zklock: waiting for " + lock() + " – ";
    ASSERT_TRUE(terminal.shows(waiting + "position 2 of 2"));
    gate.refuse();
    gate.reset_all();
    EXPECT_TRUE(terminal.shows(waiting + "no ZooKeeper server answers"));
    terminal.mark();
    gate.pass();
    EXPECT_TRUE(terminal.shows(waiting + "position 2 of 2"));
}

}  // namespace
}  // namespace zkrecipes::zklock::test
