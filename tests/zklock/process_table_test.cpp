#include "zklock/system/process_table.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "support/await.hpp"
#include "support/die_with.hpp"
#include "zklock/process/children.hpp"

namespace zkrecipes::zklock {
namespace {

using test::await;

TEST(ProcessTableTest, KnowsThisProcessWhateverItIsCalled) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    ProcessTable table;
    const auto processes = table.read();
    ::prctl(PR_SET_NAME, name);
    bool found = false;
    for (const ProcessEntry& process : processes) {
        if (process.pid != ::getpid()) continue;
        found = true;
        EXPECT_EQ(process.parent, ::getppid());
        EXPECT_EQ(process.group, ::getpgrp());
        EXPECT_TRUE(process.alive());
    }
    EXPECT_TRUE(found);
}

TEST(ProcessTableTest, ItGrowsUntilAllProcessesAreInIt) {
    ProcessTable table(1);
    const auto processes = table.read();
    EXPECT_TRUE(table.complete());
    for (const pid_t pid : {::getpid(), ::getppid()}) {
        EXPECT_EQ(std::count_if(processes.begin(), processes.end(),
                                [pid](const ProcessEntry& process) { return process.pid == pid; }),
                  1);
    }
}

TEST(ProcessTableTest, WithoutADescriptorToReadItAGroupCountsAsAlive) {
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_NOFILE, &none);
        ::_exit(group_alive(::getpgrp()) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "its lock would be given back while it runs";
}

TEST(ProcessTableTest, ALaterProcessWithTheNumberOfAnEarlierOneIsNotKilled) {
    const pid_t tester = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        test::die_with(tester);
        for (;;) ::pause();
    }
    ProcessTable table;
    ProcessEntry entry;
    for (const ProcessEntry& process : table.read()) {
        if (process.pid == child) entry = process;
    }
    ASSERT_EQ(entry.pid, child);
    EXPECT_GT(entry.started, 0u);
    ProcessEntry earlier = entry;
    --earlier.started;
    kill_process(earlier);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT), 0);
    EXPECT_EQ(info.si_pid, 0) << "a stranger was killed";
    kill_process(entry);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessTableTest, AZombieIsNotAlive) {
    const pid_t tester = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        test::die_with(tester);
        ::setpgid(0, 0);
        for (;;) ::pause();
    }
    ::setpgid(child, child);
    EXPECT_TRUE(group_alive(child));
    EXPECT_TRUE(has_children());
    ::kill(child, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(group_alive(child));
    cleaning_adopted(child, 0);
    EXPECT_TRUE(has_children()) << "it was to be left alone";
    cleaning_adopted(0, 0);
    EXPECT_FALSE(has_children());
}

TEST(ProcessTableTest, AProcessIsAliveWithoutItsFirstThread) {
    const pid_t tester = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        test::die_with(tester);
        ::setpgid(0, 0);
        std::thread([] {
            for (;;) ::pause();
        }).detach();
        ::syscall(SYS_exit, 0);
    }
    ::setpgid(child, child);
    ProcessTable table;
    const auto entry = [&] {
        const auto processes = table.read();
        return *std::find_if(processes.begin(), processes.end(),
                             [child](const ProcessEntry& process) { return process.pid == child; });
    };
    EXPECT_TRUE(await([&] { return entry().state == 'Z'; }));
    EXPECT_GE(entry().threads, 2);
    EXPECT_TRUE(group_alive(child));
    EXPECT_EQ(kill_descendants(::getpid(), 0, table), 1u);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_FALSE(group_alive(child));
}

TEST(ProcessTableTest, ForksAreCounted) {
    const std::uint64_t before = fork_count();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    EXPECT_GT(before, 0u);
    EXPECT_GT(fork_count(), before);
    ::waitpid(child, nullptr, 0);
}

/// What count_reliably answers when the table holds `seen` and the machine has started `forks` processes, the last of
/// each for ever; and how often the table was read.
std::pair<int, std::size_t> counted(const std::vector<int>& seen, const std::vector<std::uint64_t>& forks) {
    std::size_t scans = 0;
    std::size_t looks = 0;
    const int found = count_reliably([&] { return seen[std::min(scans++, seen.size() - 1)]; },
                                     [&] { return forks[std::min(looks++, forks.size() - 1)]; });
    return {found, scans};
}

TEST(ProcessTableTest, NobodyIsBelievedWhenNobodyWasStartedMeanwhile) {
    using Answer = std::pair<int, std::size_t>;
    EXPECT_EQ(counted({2}, {7, 8}), Answer(2, 1));
    EXPECT_EQ(counted({0, 1}, {7}), Answer(0, 1));
    EXPECT_EQ(counted({0, 1}, {7, 8}), Answer(1, 2)) << "the child of the last one, which had been passed over";
    EXPECT_EQ(counted({0, 0, 1}, {7, 8, 8}), Answer(0, 2));
    EXPECT_EQ(counted({0}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), Answer(0, kEmptyScans)) << "on a busy machine it ends, too";
    EXPECT_EQ(counted({0, 0, 1}, {0}), Answer(1, 3)) << "a count that is not known proves nothing";
}

TEST(ProcessIdentityTest, AProcessHasEndedAlsoIfNobodyHasReapedIt) {
    EXPECT_FALSE(has_ended(this_process()));
    const pid_t tester = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        test::die_with(tester);
        for (;;) ::pause();
    }
    const auto entry = read_process(child);
    ASSERT_TRUE(entry);
    const ProcessIdentity identity{child, entry->started, this_process().where};
    EXPECT_FALSE(has_ended(identity));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(await([&] { return has_ended(identity); }));
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(has_ended(identity));
}

}  // namespace
}  // namespace zkrecipes::zklock
