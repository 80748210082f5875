#include "zklock/system/beside_signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace zkrecipes::zklock {
namespace {

class BesideSignalsTest : public testing::Test {
protected:
    void SetUp() override {
        ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
        signals_.emplace();
    }
    void TearDown() override {
        signals_.reset();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    static void wait_for(const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any().wait(lock, stop, [] { return false; });
    }

    sigset_t before_{};
    std::optional<Signals> signals_;
};

TEST_F(BesideSignalsTest, ASignalStopsTheWorkAndIsReturned) {
    const BesideSignals ended = run_beside_signals(*signals_, [](const std::stop_token& stop) {
        ::kill(::getpid(), SIGTERM);
        wait_for(stop);
    });
    EXPECT_EQ(ended.signal, SIGTERM);
    EXPECT_FALSE(ended.failure);
}

TEST_F(BesideSignalsTest, ASignalIsNotForgottenIfTheWorkFails) {
    const BesideSignals ended = run_beside_signals(*signals_, [](const std::stop_token& stop) {
        ::kill(::getpid(), SIGTERM);
        wait_for(stop);
        throw std::runtime_error("no");
    });
    EXPECT_EQ(ended.signal, SIGTERM);
    ASSERT_TRUE(ended.failure);
    EXPECT_THROW(std::rethrow_exception(ended.failure), std::runtime_error);
}

/// Whoever reads them does something with each, and meanwhile the next one comes.
TEST_F(BesideSignalsTest, SignalsThatComeWithoutEndLetOtherWorkHaveItsTurn) {
    for (int round = 0; round < 3; ++round) {
        ::kill(::getpid(), SIGUSR1);
        int taken = 0;
        while (taken < 100 && signals_->next()) {
            ++taken;
            ::kill(::getpid(), SIGUSR1);
        }
        EXPECT_EQ(taken, 1);
    }
    EXPECT_EQ(signals_->next(), SIGUSR1);  // the last of them
    EXPECT_EQ(signals_->next(), std::nullopt);
}

}  // namespace
}  // namespace zkrecipes::zklock
