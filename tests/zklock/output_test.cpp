// What becomes of zklock when nobody can be told what it does.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockOutputTest : public ZklockTest {
protected:
    /// stdout is `where`, as a shell writes it behind the command.
    static ZklockProcess::Setup stdout_to(const std::string& where) {
        ZklockProcess::Setup setup;
        setup.launcher = {"sh", "-c", "exec \"$@\" " + where, "sh"};
        setup.keep_input = true;
        return setup;
    }
    /// A subcommand, connected.
    std::vector<std::string> words(std::vector<std::string> command) const {
        command.insert(command.begin() + 1, {"--connect", connect_string()});
        return command;
    }
};

/// A pipe of which zklock inherits the end to write to.
struct Pipe {
    Pipe() {
        if (::pipe2(ends, O_CLOEXEC) == 0) ::fcntl(ends[1], F_SETFD, 0);
    }
    ~Pipe() {
        close_reader();
        ::close(ends[1]);
    }
    void close_reader() {
        if (ends[0] >= 0) ::close(std::exchange(ends[0], -1));
    }
    std::string writer() const { return std::to_string(ends[1]); }
    int ends[2] = {-1, -1};
};

TEST_F(ZklockOutputTest, StdoutThatCannotBeWrittenIs74InEverySubcommand) {
    const auto holder = hold_with_command();
    Pipe nobody;
    nobody.close_reader();
    const std::string election = path("election");
    ASSERT_EQ(run({"-j", "2", path("semaphore"), "true"}).code, 0);
    const std::vector<std::vector<std::string>> commands = {words({"status", lock()}),
                                                            words({"status", "--json", lock()}),
                                                            words({"ls", root()}),
                                                            words({"ls", "--json", root()}),
                                                            words({"ls", "--complete", root()}),
                                                            words({"break", lock(), "--holder", "--yes"}),
                                                            words({"leader", election}),
                                                            words({"leader", "--json", election}),
                                                            words({"leader", "--watch", election}),
                                                            words({"ping"}),
                                                            words({"ping", "--json"}),
                                                            words({"config"}),
                                                            words({"config", "--json"}),
                                                            words({"leases", path("semaphore")}),
                                                            words({"status", "--watch", lock()}),
                                                            words({"hold", path("other")}),
                                                            {"--help"},
                                                            {"run", "--help"},
                                                            {"status", "--help"},
                                                            {"--version"},
                                                            {"--version", "--json"}};
    for (const std::string& where : {std::string(">/dev/full"), std::string(">&-"), ">&" + nobody.writer()}) {
        for (const auto& command : commands) {
            const std::string what = command[0] + " " + where;
            const Outcome outcome = zklock(command, stdout_to(where));
            EXPECT_EQ(outcome.code, 74) << what;
            EXPECT_THAT(outcome.err, HasSubstr("cannot write to standard output: ")) << what;
        }
    }
    EXPECT_EQ(queue_length(), 1u) << "break has removed what it did not show";
    EXPECT_TRUE(
        testenv::RawClient(connect_string()).children(path("other")).value_or(std::vector<std::string>{}).empty())
        << "held, and nobody was told";
}

TEST_F(ZklockOutputTest, HoldTellsAReaderThatIsSlow) {
    Pipe slow;
    const int size = ::fcntl(slow.ends[1], F_SETPIPE_SZ, 4096);
    ASSERT_GT(size, 0);
    const std::string full(static_cast<std::size_t>(size), 'x');
    ASSERT_EQ(::write(slow.ends[1], full.data(), full.size()), size);
    ZklockProcess hold(words({"hold", lock()}), stdout_to(">&" + slow.writer()));
    ASSERT_TRUE(await([&] { return queue_length() == 1; }));
    std::string text(full.size(), '\0');
    ASSERT_EQ(::read(slow.ends[0], text.data(), text.size()), size);
    char line[512] = {};
    ASSERT_GT(::read(slow.ends[0], line, sizeof line - 1), 0) << "and waits for it";
    EXPECT_THAT(line, HasSubstr(lock() + "/_c_"));
    hold.end_input();
    EXPECT_EQ(hold.wait(), 0);
}

TEST_F(ZklockOutputTest, WithEventsThatCannotBeWrittenNothingIsStarted) {
    for (const std::string where : {"/dev/full", "/nonexistent/events"}) {
        for (const std::string command : {"run", "elect"}) {
            std::vector<std::string> whole = words({command, "--events", where, "--result", scratch_ / "result"});
            whole.insert(whole.end(), {lock(), "touch", scratch_ / "ran"});
            const Outcome refused = zklock(whole);
            EXPECT_EQ(refused.code, 74) << refused.err;
            EXPECT_THAT(refused.err, HasSubstr("--events " + where + ": "));
            EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["exit_code"], 74);
        }
        const Outcome hold = zklock(words({"hold", "--events", where, lock()}));
        EXPECT_EQ(hold.code, 74);
        EXPECT_EQ(hold.out, "");
    }
    EXPECT_FALSE(exists(scratch_ / "ran"));
    EXPECT_TRUE(await([&] { return queue_length() == 0; }));
}

TEST_F(ZklockOutputTest, EventsThatFailLaterAre74UnlessTheCommandFails) {
    for (const int code : {0, 5}) {
        Pipe events;
        const std::string go = scratch_ / ("go" + std::to_string(code));
        const auto process = start({"--events", events.writer(), "--result", scratch_ / "result", lock(), "-c",
                                    "while [ ! -e " + go + " ]; do sleep 0.05; done; exit " + std::to_string(code)});
        std::string text;
        while (text.find("child_started") == std::string::npos) {
            char some[512];
            const ssize_t size = ::read(events.ends[0], some, sizeof some);
            ASSERT_GT(size, 0);
            text.append(some, static_cast<std::size_t>(size));
        }
        events.close_reader();
        std::ofstream(go) << "";
        EXPECT_EQ(process->wait(), code == 0 ? 74 : code);
        EXPECT_THAT(process->err(), HasSubstr("--events " + events.writer() + ": Broken pipe"));
        const auto result = Json::parse(read_file(scratch_ / "result"));
        EXPECT_EQ(result["exit_code"], code == 0 ? 74 : code);
        EXPECT_EQ(result["outcome"], "exited");
        EXPECT_EQ(result["child"]["code"], code);
    }
}

TEST_F(ZklockOutputTest, AFileThatMayNotGrowIsAnErrorAndNotTheEndBySigxfsz) {
    ZklockProcess::Setup small;
    small.launcher = {"prlimit", "--fsize=10"};
    const Outcome outcome = run({"--events", scratch_ / "events", lock(), "touch", scratch_ / "ran"}, small);
    EXPECT_EQ(outcome.code, 74) << outcome.err;
    EXPECT_FALSE(exists(scratch_ / "ran")) << "the caller was not told of the lock";
}

TEST_F(ZklockOutputTest, WhereNoResultCanBeWrittenNothingIsStarted) {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"/nonexistent/result", "No such file or directory"},
        {"/dev/full", "No space left on device"},
        {scratch_ / ".", "Is a directory"}};
    for (const std::string command : {"run", "elect", "hold"}) {
        for (const auto& [file, why] : wrong) {
            std::vector<std::string> whole = words({command, "-q", "--result", file, lock()});
            if (command != "hold") whole.insert(whole.end(), {"touch", scratch_ / "ran"});
            const Outcome outcome = zklock(whole);
            EXPECT_EQ(outcome.code, 74) << command;
            EXPECT_THAT(outcome.err, testing::StartsWith("zklock: --result " + file + ": " + why + "\n"));
            EXPECT_EQ(outcome.out, "");
        }
    }
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockOutputTest, AResultThatIsNotWrittenIs74UnlessTheCommandFails) {
    // A file that may have ten bytes: an empty one can be made at the start.
    ZklockProcess::Setup small;
    small.launcher = {"prlimit", "--fsize=10"};
    const std::string result = scratch_ / "result";
    const auto with_full_disk = [&](std::vector<std::string> rest) {
        rest.insert(rest.begin(), {"--result", result});
        return run(std::move(rest), small);
    };
    EXPECT_EQ(with_full_disk({lock(), "true"}).code, 74);
    EXPECT_EQ(with_full_disk({lock(), "-c", "exit 5"}).code, 5);
    EXPECT_EQ(zklock(words({"elect", "--result", result, path("election"), "true"}), small).code, 74);
    const auto holder = hold_with_command();
    EXPECT_EQ(with_full_disk({"-n", "-E", "0", lock(), "true"}).code, 74) << "not acquired, and nobody is told";
    EXPECT_EQ(with_full_disk({"-n", lock(), "true"}).code, 75);
}

TEST_F(ZklockOutputTest, AConfirmedReleaseIsSaid) {
    const std::string events = scratch_ / "events", result = scratch_ / "result";
    const auto confirmed = [&] {
        EXPECT_EQ(events_named(events, "released").back()["confirmed"], true);
        EXPECT_EQ(Json::parse(read_file(result))["confirmed"], true);
    };
    EXPECT_EQ(run({"--events", events, "--result", result, lock(), "true"}).code, 0);
    confirmed();
    EXPECT_EQ(zklock(words({"hold", "--events", events, "--result", result, lock()})).code, 0);
    confirmed();
    EXPECT_EQ(events_named(events, "released").size(), 2u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
