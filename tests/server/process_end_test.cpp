// How processes end that hold locks in static, thread_local and detached places, and what a forked child may do.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <vector>
#include <zkrecipes/testenv/raw_client.hpp>

#include "support/whole.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;

class ProcessEndTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        raw_.emplace(connect_string());
        raw_->make_path(root());
    }

    /// Runs the program, and expects exit code 0.
    void run(const std::string& mode, const std::string& lock) {
        std::vector<std::string> words{ZKRECIPES_PROCESS_END_CHILD, mode, connect_string(), lock};
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        pid_t pid = 0;
        ASSERT_EQ(::posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ), 0);
        int status = 0;
        const bool ended = await([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }, scaled(120s));
        if (!ended) {
            ::kill(pid, SIGABRT);
            ::waitpid(pid, &status, 0);
        }
        EXPECT_TRUE(ended) << mode << " hangs";
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << mode << ": status " << status;
    }
    /// The program, 50 times or a share of them.
    void run_often(const std::string& mode) {
        std::vector<std::string> locks;
        for (int i = 0; i < share_of(50, 5) && !HasFailure(); ++i) {
            locks.push_back(path(std::to_string(i)));
            run(mode, locks.back());
        }
        // Where nobody closed the session, the servers end it at its timeout.
        for (const auto& lock : locks) {
            for (const char* second : {"", "-2"}) EXPECT_TRUE(await([&] { return is_empty(lock + second); })) << lock;
        }
    }
    bool is_empty(const std::string& lock) {
        const auto nodes = raw_->children(lock);
        return !nodes || nodes->empty();
    }

    std::optional<testenv::RawClient> raw_;
};

TEST_F(ProcessEndTest, AStaticSessionThatWasUsedInMain) { run_often("static-session"); }
TEST_F(ProcessEndTest, AStaticGrant) { run_often("static-grant"); }
TEST_F(ProcessEndTest, AStaticGrantThatOutlivesItsSession) { run_often("static-grant-outlives-session"); }
TEST_F(ProcessEndTest, AThreadLocalLock) { run_often("thread-local-lock"); }
TEST_F(ProcessEndTest, AStaticDestructorThatLocks) { run_often("static-destructor"); }
TEST_F(ProcessEndTest, ASessionThatAStaticDestructorMakes) { run_often("session-at-the-end"); }
TEST_F(ProcessEndTest, ADetachedThreadThatSleepsWhileItHolds) { run_often("detached-holder"); }
TEST_F(ProcessEndTest, DetachedThreadsOfAStaticSession) { run_often("detached-threads-of-a-static-session"); }

TEST_F(ProcessEndTest, AForkedChildIsRefusedWhatBelongsToItsParentWhoseHoldGoesOn) {
    for (int i = 0; i < share_of(10, 1) && !HasFailure(); ++i) run("fork", path("fork" + std::to_string(i)));
}

}  // namespace
}  // namespace zkrecipes::test
