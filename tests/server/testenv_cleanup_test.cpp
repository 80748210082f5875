// No server outlives its test, whatever happens to the test.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/zk_server_test.hpp"
#include "testenv/src/keeper.hpp"
#include "testenv/src/unique_fd.hpp"

extern char** environ;  // NOLINT

namespace zkrecipes::test {
namespace {

using testenv::ZkServer;
using testenv::internal::Keeper;
using testenv::internal::UniqueFd;

/// Gone, or a dead one that its parent has not collected.
bool gone(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto end_of_name = text.rfind(')');
    return end_of_name == std::string::npos || text[end_of_name + 2] == 'Z' || text[end_of_name + 2] == 'X';
}

/// What a victim tells about itself.
struct Victim {
    pid_t process = 0;
    pid_t keeper = 0;
    pid_t server = 0;
    pid_t other = 0;  // a child of the victim
    std::string address;
    std::string keeper_directory;
    UniqueFd output;  // its standard output
};

/// Runs testenv_victim in one of its ways until it has told all. Its keeper has its files in `root`, and sweeps there.
Victim run_victim(const std::string& way, const char* root = std::getenv("ZKRECIPES_TESTENV_DIR")) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Victim victim;
    victim.output.reset(ends[0]);
    UniqueFd theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
    std::string command[] = {"env", std::string("ZKRECIPES_TESTENV_DIR=") + (root == nullptr ? "" : root),
                             ZKRECIPES_TESTENV_VICTIM, way};
    char* arguments[] = {command[0].data(), command[1].data(), command[2].data(), command[3].data(), nullptr};
    EXPECT_EQ(::posix_spawnp(&victim.process, "env", &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    theirs.reset();
    std::string text;
    char byte = 0;
    while (text.find("READY\n") == std::string::npos && ::read(victim.output.get(), &byte, 1) == 1) {
        text.push_back(byte);
    }
    const auto begin = text.find("VICTIM ");
    EXPECT_NE(begin, std::string::npos) << text;
    if (begin != std::string::npos) {
        std::istringstream words(text.substr(begin + 7));
        words >> victim.keeper >> victim.server >> victim.other >> victim.address >> victim.keeper_directory;
    }
    return victim;
}

class CleanUpTest : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }

    static void expect_all_gone(const Victim& victim) {
        EXPECT_TRUE(await([&] { return gone(victim.server); }));
        EXPECT_TRUE(await([&] { return !std::filesystem::exists(victim.keeper_directory); }));
        EXPECT_TRUE(await([&] { return gone(victim.keeper); }));
        EXPECT_TRUE(Keeper::instance().claim(victim.address));
        Keeper::instance().release(victim.address);
    }
    static void kill_and_collect(const Victim& victim) {
        EXPECT_FALSE(gone(victim.server));
        EXPECT_FALSE(Keeper::instance().claim(victim.address));
        ::kill(victim.process, SIGKILL);
        ::waitpid(victim.process, nullptr, 0);
    }
};

TEST_F(CleanUpTest, KilledTestLeavesNothingBehind) {
    const Victim victim = run_victim("server");
    kill_and_collect(victim);
    expect_all_gone(victim);
}

TEST_F(CleanUpTest, KilledTestLeavesNoFrozenServerBehind) {
    const Victim victim = run_victim("frozen-server");
    kill_and_collect(victim);
    expect_all_gone(victim);
}

TEST_F(CleanUpTest, KilledTestLeavesNothingBehindThoughAForkedChildLives) {
    const Victim victim = run_victim("forked-child");
    kill_and_collect(victim);
    EXPECT_FALSE(gone(victim.other));
    expect_all_gone(victim);
    ::kill(victim.other, SIGKILL);
}

TEST_F(CleanUpTest, TestThatExitsAtOnceLeavesNothingBehind) {
    const Victim victim = run_victim("exit");
    ::waitpid(victim.process, nullptr, 0);
    expect_all_gone(victim);
}

// Both killed, as by somebody who kills everything: the kernel kills the server with its keeper, and the next keeper
// removes the files.
TEST_F(CleanUpTest, NextKeeperSweepsWhatAKilledKeeperLeft) {
    const testenv::Scratch root;  // no keeper of another test program sweeps here
    const Victim victim = run_victim("server", root.path().c_str());
    ::kill(victim.keeper, SIGKILL);
    EXPECT_TRUE(await([&] { return gone(victim.server); }));
    ::kill(victim.process, SIGKILL);
    ::waitpid(victim.process, nullptr, 0);
    EXPECT_TRUE(std::filesystem::exists(victim.keeper_directory));
    const Victim next = run_victim("exit", root.path().c_str());
    EXPECT_FALSE(std::filesystem::exists(victim.keeper_directory));
    ::waitpid(next.process, nullptr, 0);
    expect_all_gone(next);
}

TEST_F(CleanUpTest, OutputOfAKilledTestEndsWithIt) {
    const Victim victim = run_victim("server");
    kill_and_collect(victim);
    char byte = 0;
    ssize_t got = 1;
    while (got > 0) {
        got = ::read(victim.output.get(), &byte, 1);  // would block while anybody holds the other end
    }
    EXPECT_EQ(got, 0);
    expect_all_gone(victim);
}

TEST_F(CleanUpTest, TestMayWaitForAnyChildOfItsOwn) {
    const ZkServer server;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST_F(CleanUpTest, ForkedChildLeavesItsParentsServerAlone) {
    std::optional<ZkServer> server;
    server.emplace();
    const pid_t child = ::fork();
    if (child == 0) {
        server.reset();
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(server->serving());
    EXPECT_TRUE(std::filesystem::exists(server->directory()));
}

}  // namespace
}  // namespace zkrecipes::test
