#include "zklock/process_table.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "support/await.hpp"

namespace zkrecipes::zklock {
namespace {

TEST(ProcessTableTest, KnowsThisProcessWhateverItIsCalled) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    std::vector<ProcessEntry> table(32768);
    table.resize(read_process_table(table));
    ::prctl(PR_SET_NAME, name);
    bool found = false;
    for (const ProcessEntry& process : table) {
        if (process.pid != ::getpid()) continue;
        found = true;
        EXPECT_EQ(process.parent, ::getppid());
        EXPECT_EQ(process.group, ::getpgrp());
        EXPECT_TRUE(process.alive());
    }
    EXPECT_TRUE(found);
}

TEST(ProcessTableTest, AFullTableIsNotOverrun) {
    std::vector<ProcessEntry> table(1);
    EXPECT_EQ(read_process_table(table), 1u);
    EXPECT_EQ(read_process_table({}), 0u);
}

TEST(ProcessTableTest, AZombieIsNotAlive) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::setpgid(0, 0);
        for (;;) ::pause();
    }
    ::setpgid(child, child);
    EXPECT_TRUE(group_alive(child));
    EXPECT_TRUE(has_children(::getpid()));
    ::kill(child, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(group_alive(child));
    reap_adopted(child, 0);
    EXPECT_TRUE(has_children(::getpid())) << "it was to be left alone";
    reap_adopted(0, 0);
    EXPECT_FALSE(has_children(::getpid()));
}

}  // namespace
}  // namespace zkrecipes::zklock
