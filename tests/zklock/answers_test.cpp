// How long calls that only read are repeated.
#include "zklock/report/answers.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;

TEST(AnswersTest, ACallThatIsAnsweredInVainIsGivenUpAfterMoreThanTheLimitOfASilentServer) {
    const RetryPolicy patience = Answers::patience(10s);
    EXPECT_TRUE(patience.next({.failures = 100, .elapsed = 14999ms}));
    EXPECT_FALSE(patience.next({.failures = 1, .elapsed = 15s}));
}

}  // namespace
}  // namespace zkrecipes::zklock
