#include "zklock/command_line/run_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

class RunOptionsTest : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name :
             {"ZK_HOSTS", "ZKHOSTS", "ZKLOCK_PREFIX", "ZKLOCK_SESSION_TIMEOUT", "ZKLOCK_SERVER_TICK",
              "ZKLOCK_AUTH_FILE", "ZKLOCK_ACL", "ZKLOCK_CONNECT_TIMEOUT", "ZKLOCK_CONFIG", "XDG_CONFIG_HOME"}) {
            ::unsetenv(name);
        }
        ::setenv("HOME", "/nonexistent", 1);
        ::setenv("ZKLOCK_CONNECT", "zk:2181", 1);
    }

    static Options parse(std::vector<const char*> arguments) {
        arguments.insert(arguments.begin(), "zklock");
        Options options;
        parse_options(static_cast<int>(arguments.size()), arguments.data(), options);
        return options;
    }
    /// The text of the refusal, which is a wrong usage.
    static std::string refusal(std::vector<const char*> arguments) {
        try {
            parse(std::move(arguments));
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.code, kUsage);
            return failure.what();
        }
        return "accepted";
    }
};

TEST_F(RunOptionsTest, OncePerTakesALockWithOneHolder) {
    EXPECT_FALSE(parse({"/l", "true"}).once_per);
    EXPECT_EQ(parse({"--once-per", "24h", "/l", "true"}).once_per, Nanoseconds(24h));
    EXPECT_EQ(parse({"--rw", "--once-per", "1s", "/l", "true"}).once_per, Nanoseconds(1s));
    EXPECT_TRUE(parse({"--once-per", "1h", "--retry-unknown", "/l", "true"}).retry_unknown);
    EXPECT_THAT(refusal({"--once-per", "0", "/l", "true"}), StartsWith("--once-per must be at least 1s"));
    EXPECT_THAT(refusal({"--once-per", "soon", "/l", "true"}), HasSubstr("not a duration"));
    EXPECT_THAT(refusal({"-s", "--once-per", "1h", "/l", "true"}), HasSubstr("cannot be combined with -s or -j"));
    EXPECT_THAT(refusal({"-j", "2", "--once-per", "1h", "/l", "true"}), HasSubstr("cannot be combined with -s or -j"));
    EXPECT_THAT(refusal({"--once-per", "1h", "-L", "/l", "--", "true"}), HasSubstr("cannot be combined with -L"));
    EXPECT_THAT(refusal({"--retry-unknown", "/l", "true"}), StartsWith("--retry-unknown needs --once-per"));
    EXPECT_THAT(refusal({"elect", "--once-per", "1h", "/l", "true"}), HasSubstr("it is an option of zklock run"));
}

TEST_F(RunOptionsTest, WholeTreeIsForCommands) {
    EXPECT_FALSE(parse({"/l", "true"}).whole_tree);
    EXPECT_TRUE(parse({"--whole-tree", "/l", "true"}).whole_tree);
    EXPECT_TRUE(parse({"elect", "--whole-tree", "/l", "true"}).whole_tree);
    EXPECT_THAT(refusal({"hold", "--whole-tree", "/l"}), HasSubstr("it is an option of zklock run, elect"));
}

TEST_F(RunOptionsTest, OnLostIsForAllThatHold) {
    EXPECT_EQ(parse({"--on-lost", "logger x", "/l", "true"}).on_lost, "logger x");
    EXPECT_EQ(parse({"hold", "--on-lost", "logger x", "/l"}).on_lost_timeout, Nanoseconds(30s));
    EXPECT_EQ(parse({"elect", "--on-lost", "x", "--on-lost-timeout", "2m", "/l", "true"}).on_lost_timeout,
              Nanoseconds(2min));
    EXPECT_THAT(refusal({"--on-lost", "", "/l", "true"}), StartsWith("--on-lost needs a command"));
    EXPECT_THAT(refusal({"--on-lost-timeout", "2", "/l", "true"}), StartsWith("--on-lost-timeout needs --on-lost"));
    EXPECT_THAT(refusal({"--on-lost", "x", "--on-lost-timeout", "0", "/l", "true"}), HasSubstr("more than 0"));
    EXPECT_THAT(refusal({"status", "--on-lost", "x", "/l"}), HasSubstr("it is an option of zklock run, hold, elect"));
}

TEST_F(RunOptionsTest, NotifyIsForAllThatHold) {
    EXPECT_FALSE(parse({"/l", "true"}).notify);
    EXPECT_TRUE(parse({"--notify", "/l", "true"}).notify);
    EXPECT_TRUE(parse({"hold", "--notify", "/l"}).notify);
    EXPECT_TRUE(parse({"elect", "--notify", "/l", "true"}).notify);
}

}  // namespace
}  // namespace zkrecipes::zklock
