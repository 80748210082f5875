#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>
#include <zkrecipes/testenv/scratch.hpp>

#include "support/await.hpp"
#include "zklock/around/on_lost.hpp"

namespace zkrecipes::zklock {
namespace {

using test::await;
using testing::ContainsRegex;

class AfterLossTest : public testing::Test {
protected:
    AfterLossTest() {
        ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
        stderr_ = ::dup(STDERR_FILENO);
        const int file = ::open(said_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        ::dup2(file, STDERR_FILENO);
        ::close(file);
    }
    ~AfterLossTest() override {
        ::dup2(stderr_, STDERR_FILENO);
        ::close(stderr_);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    std::string said() const {
        std::ifstream stream(said_);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    static bool has_ended(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) == pid; }

    testenv::Scratch scratch_;
    std::string said_ = scratch_ / "said";
    int stderr_ = -1;
    sigset_t before_{};
};

TEST_F(AfterLossTest, InTheBackgroundItNeedsNoLockThatAnotherThreadHolds) {
    Options options;
    options.on_lost = "exit 3";
    options.json = true;
    const Inheritance inheritance = Inheritance::capture();
    Signals signals;
    Console console(options);
    EventLog events("");
    std::atomic<bool> enough{false};
    // They hold the mutex of the console nearly all the time.
    std::vector<std::jthread> talkers;
    for (int i = 0; i < 3; ++i) {
        talkers.emplace_back([&] {
            while (!enough) console.warning("x");
        });
    }
    for (int i = 0; i < 20; ++i) {
        const pid_t pid = after_loss_in_background(options, console, inheritance, events, signals, {"reason", 1, {}});
        ASSERT_GT(pid, 0);
        if (await([&] { return has_ended(pid); })) continue;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        ADD_FAILURE() << "it waits for ever";
        break;
    }
    enough = true;
    talkers.clear();
    EXPECT_THAT(said(), ContainsRegex("\"ts\":\"20[0-9-]+T[0-9:]+[.][0-9]+Z\",\"level\":\"warning\",\"message\":"
                                      "\"the command of --on-lost exited with 3\"}\n"));
}

}  // namespace
}  // namespace zkrecipes::zklock
