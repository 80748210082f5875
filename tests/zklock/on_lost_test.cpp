// zklock --on-lost: what follows a loss, and that it delays nothing.
#include <fstream>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ZklockOnLostTest : public FaultyWorld {
protected:
    ZklockOnLostTest() { mode_ = "-x"; }
    std::string told() const { return scratch_ / "told"; }
    /// Writes what it knows of the loss when the command is dead, whose processes hold a flock.
    std::string tell() const {
        return "flock -n " + (scratch_ / "alive") + " true && env | grep ^ZKLOCK_ >" + told() + ".new && mv " + told() +
               ".new " + told();
    }
    /// Goes on until the file `go` exists; ignores TERM, and dies with the test.
    std::string linger() const {
        return "trap '' TERM; touch " + (scratch_ / "lingers") + "; while kill -0 " + std::to_string(::getpid()) +
               " && [ ! -e " + (scratch_ / "go") + " ]; do sleep 0.05; done; touch " + (scratch_ / "lingered");
    }
    void break_lock() {
        const Outcome broken = zklock({"break", "--connect", connect_string(), lock(), "--holder", "--yes"});
        EXPECT_EQ(broken.code, 0) << broken.err;
    }
};

TEST_F(ZklockOnLostTest, ItRunsAfterTheCommandIsDeadAndKnowsTheReason) {
    const auto holder = hold({"--on-lost", tell()}, Kind::with_stubborn_grandchild);
    const std::string node = contenders().at(0);
    const auto next = rival();
    gate_->blackhole();
    EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    const std::string text = read_file(told());
    EXPECT_THAT(text, HasSubstr("ZKLOCK_LOST_REASON=no server confirmed the lock in time\n"));
    EXPECT_THAT(text, HasSubstr("ZKLOCK_LOST_PATH=" + lock() + "\n"));
    EXPECT_THAT(text, HasSubstr("ZKLOCK_LOST_NODE=" + lock() + "/" + node + "\n"));
    EXPECT_THAT(text, testing::ContainsRegex("ZKLOCK_LOST_TOKEN=[1-9][0-9]*\n"));
    for (const char* held : {"ZKLOCK_HELD", "ZKLOCK_PATH=", "ZKLOCK_NODE", "ZKLOCK_FENCING_TOKEN", "ZKLOCK_SESSION"}) {
        EXPECT_THAT(text, Not(HasSubstr(held)));
    }
}

TEST_F(ZklockOnLostTest, WithoutALossItDoesNotRun) {
    session_timeout_ = "20s";
    EXPECT_EQ(run({"--on-lost", "touch " + told(), lock(), "false"}).code, 1);
    EXPECT_EQ(run({"--on-lost", "touch " + told(), "--max-run", "100ms", lock(), "sleep", "300"}).code, 124);
    const auto holder = hold_with_command({"--on-lost", "touch " + told()});
    EXPECT_EQ(run({"--on-lost", "touch " + told(), "-n", lock(), "true"}).code, 75);
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 128 + SIGTERM);
    EXPECT_FALSE(exists(told()));
}

TEST_F(ZklockOnLostTest, ItIsKilledAtItsLimitAndItsFailureIsSaid) {
    session_timeout_ = "20s";
    auto holder = hold_with_command({"-k", "100ms", "--on-lost-timeout", "5s", "--on-lost", linger()});
    break_lock();
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_THAT(holder->err(), HasSubstr("the command of --on-lost ran longer than 5.0s"));
    EXPECT_TRUE(exists(scratch_ / "lingers"));
    EXPECT_FALSE(exists(scratch_ / "lingered"));
    ::unlink((scratch_ / "held").c_str());
    holder = hold_with_command({"-k", "100ms", "--on-lost", "echo said; cat; exit 3"});
    break_lock();
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_THAT(holder->err(), HasSubstr("said\n"));
    EXPECT_EQ(holder->out(), "");
    EXPECT_THAT(holder->err(), HasSubstr("the command of --on-lost exited with 3"));
}

TEST_F(ZklockOnLostTest, ASignalEndsItAndACandidateDoesNotStandAgain) {
    for (const std::string command : {"run", "elect"}) {
        const std::string file = scratch_ / ("started-" + command);
        ZklockProcess process({command, "--connect", connect_string(), "-k", "200ms", "--on-lost", linger(),
                               path(command), "-c", "echo x >>" + file + "; exec sleep 300"});
        ASSERT_TRUE(await([&] { return exists(file); })) << process.err();
        EXPECT_EQ(zklock({"break", "--connect", connect_string(), path(command), "--all", "--yes"}).code, 0);
        ASSERT_TRUE(await([&] { return exists(scratch_ / "lingers"); })) << process.err();
        process.signal(SIGTERM);
        EXPECT_EQ(process.wait(), command == "run" ? 79 : -SIGTERM) << process.err();
        EXPECT_FALSE(exists(scratch_ / "lingered")) << "it was not ended";
        EXPECT_EQ(read_file(file), "x\n") << "it has stood again";
        ::unlink((scratch_ / "lingers").c_str());
    }
}

TEST_F(ZklockOnLostTest, ACandidateStandsAgainAfterIt) {
    const std::string file = scratch_ / "terms";
    ZklockProcess process({"elect", "--connect", connect_string(), "-k", "200ms", "--on-lost", "echo lost >>" + file,
                           lock(), "-c", "echo leads >>" + file + "; exec sleep 300"});
    for (const std::string expected : {"leads\n", "leads\nlost\nleads\n"}) {
        ASSERT_TRUE(await([&] { return read_file(file) == expected; })) << process.err();
        break_lock();
    }
    EXPECT_TRUE(await([&] { return read_file(file) == "leads\nlost\nleads\nlost\nleads\n"; })) << process.err();
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 128 + SIGTERM);
}

TEST_F(ZklockOnLostTest, AHoldEndsAtOnceAndItRunsInTheBackground) {
    ZklockProcess::Setup setup;
    setup.keep_input = true;
    ZklockProcess holder({"hold", "--connect", connect_string(), "--result", scratch_ / "result", "--on-lost",
                          linger() + "; " + tell(), lock()},
                         setup);
    ASSERT_TRUE(await([&] { return !holder.out().empty(); })) << holder.err();
    break_lock();
    EXPECT_EQ(holder.wait(), 79) << "it waits for the command of --on-lost";
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "lost");
    EXPECT_TRUE(await([&] { return exists(scratch_ / "lingers"); }));
    EXPECT_FALSE(exists(scratch_ / "lingered"));
    std::ofstream(scratch_ / "go") << "";
    EXPECT_TRUE(await([&] { return read_file(told()).find("ZKLOCK_LOST_REASON=") != std::string::npos; }));
}

}  // namespace
}  // namespace zkrecipes::zklock::test
