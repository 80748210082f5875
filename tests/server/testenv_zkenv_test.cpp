// zkenv as a person or a script uses it.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "support/await.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using testenv::RawClient;

struct Outcome {
    int code = -1;
    std::string output;  // standard output
    std::string errors;
};

class ZkenvTest : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }
    void TearDown() override {
        (void)run("stop");
        (void)run("stop --name other");
    }

    /// In a shell of its own, which is gone afterwards. What it starts ends with this test.
    Outcome run(std::string arguments, const std::string& variables = "") {
        if (arguments.starts_with("start") && arguments.find("--pid") == std::string::npos) {
            arguments += " --pid " + std::to_string(::getpid());
        }
        const std::string errors = scratch_ / "errors";
        const std::string command = "XDG_RUNTIME_DIR='" + directory() + "' " + variables + " " + ZKRECIPES_ZKENV + " " +
                                    arguments + " 2>'" + errors + "'";
        Outcome outcome;
        FILE* pipe = ::popen(command.c_str(), "r");
        char buffer[4096];
        while (const auto got = ::fread(buffer, 1, sizeof buffer, pipe)) {
            outcome.output.append(buffer, got);
        }
        const int status = ::pclose(pipe);
        outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        std::ostringstream text;
        text << std::ifstream(errors).rdbuf();
        outcome.errors = text.str();
        std::filesystem::remove(errors);
        return outcome;
    }
    static std::string first_line(const Outcome& outcome) {
        return outcome.output.substr(0, outcome.output.find('\n'));
    }
    [[nodiscard]] bool left_behind() const { return !std::filesystem::is_empty(directory()); }
    [[nodiscard]] const std::string& directory() const { return scratch_.path(); }

    static std::string field(const std::string& json, const std::string& name) {
        const auto begin = json.find("\"" + name + "\":");
        const auto value = begin == std::string::npos ? "" : json.substr(begin + name.size() + 3);
        return value.substr(0, value.find_first_of(",}]"));
    }

private:
    testenv::Scratch scratch_;
};

TEST_F(ZkenvTest, StartedServerOutlivesItsShellAndStopLeavesNothingBehind) {
    const auto started = run("start");
    ASSERT_EQ(started.code, 0) << started.errors;
    RawClient(first_line(started)).create("/a");
    EXPECT_EQ(run("status").code, 0);
    const auto json = run("status --json").output;
    EXPECT_EQ(field(json, "running"), "true");
    EXPECT_EQ(field(json, "state"), "\"standalone\"");
    const int pid = std::stoi(field(json, "pid"));
    EXPECT_EQ(::kill(pid, 0), 0);
    const auto stopped = run("stop");
    EXPECT_EQ(stopped.code, 0) << stopped.errors;
    EXPECT_NE(::kill(pid, 0), 0);
    EXPECT_FALSE(left_behind());
    const auto after = run("status");
    EXPECT_EQ(after.code, 3);
    EXPECT_NE(after.output.find("(start it with: zkenv start)"), std::string::npos) << after.output;
    const auto other = run("status --name op");
    EXPECT_EQ(other.code, 3);
    EXPECT_NE(other.output.find("(start it with: zkenv start --name op)"), std::string::npos) << other.output;
    EXPECT_EQ(field(run("status --json").output, "running"), "false");
}

TEST_F(ZkenvTest, StartingTwiceAndStoppingTwiceSaySoAndAreFine) {
    const auto first = run("start");
    const auto second = run("start");
    EXPECT_EQ(second.code, 0);
    EXPECT_EQ(first.output, second.output);
    EXPECT_NE(second.errors.find("runs already"), std::string::npos);
    EXPECT_EQ(run("start --servers 3").code, 1);
    EXPECT_EQ(run("stop").code, 0);
    const auto again = run("stop");
    EXPECT_EQ(again.code, 0);
    EXPECT_NE(again.errors.find("does not run"), std::string::npos);
}

TEST_F(ZkenvTest, TwoEnvironmentsLiveSideBySide) {
    const auto one = run("start");
    const auto other = run("start --name other");
    EXPECT_EQ(other.code, 0) << other.errors;
    EXPECT_NE(one.output, other.output);
    EXPECT_EQ(run("stop --name other").code, 0);
    EXPECT_EQ(run("status").code, 0);
}

TEST_F(ZkenvTest, EnsembleLosesAMemberAndGetsItBack) {
    const auto started = run("start --servers 3");
    ASSERT_EQ(started.code, 0) << started.errors;
    RawClient(first_line(started)).create("/a");
    EXPECT_EQ(run("kill 1").code, 0);
    EXPECT_NE(run("status --json").output.find("\"state\":\"down\""), std::string::npos);
    EXPECT_EQ(run("freeze 1").code, 1);
    EXPECT_EQ(run("revive 1").code, 0);
    EXPECT_TRUE(await([&] {
        const auto json = run("status --json").output;
        return json.find("down") == std::string::npos && json.find("not serving") == std::string::npos;
    }));
    EXPECT_TRUE(RawClient(first_line(started)).exists("/a"));
}

TEST_F(ZkenvTest, FreezesAndThaws) {
    ASSERT_EQ(run("start").code, 0);
    EXPECT_EQ(run("freeze 1").code, 0);
    EXPECT_NE(run("status").output.find("frozen"), std::string::npos);
    EXPECT_EQ(run("thaw 1").code, 0);
    EXPECT_TRUE(await([&] { return run("status").output.find("standalone") != std::string::npos; }));
}

TEST_F(ZkenvTest, WrongUsageAndFailuresHaveCodesOfTheirOwn) {
    EXPECT_EQ(run("").code, 2);
    EXPECT_EQ(run("start --servers 2").code, 2);
    EXPECT_EQ(run("kill").code, 2);
    EXPECT_EQ(run("kill 1").code, 3);
    EXPECT_EQ(run("start --name ../x").code, 1);
    const auto help = run("--help");
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.output.find("Exit codes"), std::string::npos);
    const auto missing = run("start", "PATH=/nowhere JAVA_HOME= ZK_JAVA=");
    EXPECT_EQ(missing.code, 1);
    EXPECT_NE(missing.errors.find("apt-get install"), std::string::npos);
}

TEST_F(ZkenvTest, AKeeperThatCannotStartIsTheReasonThatIsTold) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "/proc is passed over by those who may not write there";
    }
    const auto outcome = run("start", "ZKRECIPES_TESTENV_DIR=/proc");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.errors.find("cannot make a directory in /proc"), std::string::npos) << outcome.errors;
}

TEST_F(ZkenvTest, EndsWithTheProcessThatItIsToldAndLeavesNothingBehind) {
    const pid_t patron = ::fork();
    if (patron == 0) {
        for (;;) {
            ::pause();
        }
    }
    const auto started = run("start --pid " + std::to_string(patron));
    EXPECT_EQ(started.code, 0) << started.errors;
    const int server = std::stoi(field(run("status --json").output, "pid"));
    ::kill(patron, SIGKILL);
    EXPECT_TRUE(await([&] { return ::kill(server, 0) != 0; }));
    ::waitpid(patron, nullptr, 0);
    EXPECT_TRUE(await([&] { return !left_behind(); }));
    EXPECT_EQ(run("start --pid " + std::to_string(patron)).code, 1) << "it has ended already";
}

TEST_F(ZkenvTest, StartsAgainAfterItsSupervisorWasKilled) {
    const auto started = run("start");
    ASSERT_EQ(started.code, 0);
    const int server = std::stoi(field(run("status --json").output, "pid"));
    const int supervisor = std::stoi(field(run("status --json").output, "supervisor"));
    ::kill(supervisor, SIGKILL);
    EXPECT_TRUE(await([&] { return ::kill(server, 0) != 0; }));
    EXPECT_TRUE(await([&] { return run("status").code == 3; }));
    const auto again = run("start");
    EXPECT_EQ(again.code, 0) << again.errors;
    EXPECT_NE(RawClient(first_line(again)).session_id(), 0);
}

}  // namespace
}  // namespace zkrecipes::test
