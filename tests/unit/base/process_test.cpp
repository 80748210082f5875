// What a process knows of its forks.
#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace zkrecipes::internal {
namespace {

bool true_in_a_child(const std::function<bool()>& condition) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(condition() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ProcessTest, AChildKnowsWhatItHasInherited) {
    const ProcessMark mark;
    EXPECT_FALSE(mark.inherited());
    EXPECT_TRUE(true_in_a_child([&] { return mark.inherited() && !ProcessMark().inherited(); }));
    EXPECT_FALSE(mark.inherited());
}

TEST(ProcessTest, AChildGetsOneOfItsOwnOfWhatEachProcessHasOnce) {
    static PerProcess<std::string> one;
    one.get() = "the parent's";
    EXPECT_EQ(one.get(), "the parent's");
    EXPECT_TRUE(true_in_a_child([] { return one.get().empty() && &one.get() == &one.get(); }));
    EXPECT_EQ(one.get(), "the parent's");
}

}  // namespace
}  // namespace zkrecipes::internal
