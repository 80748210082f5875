#include "zklock/process/dead_man.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "support/await.hpp"
#include "support/die_with.hpp"
#include "zklock/process/child.hpp"
#include "zklock/process/supervised_child.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using test::await;

std::unique_ptr<SupervisedChild> start(DeadMansSwitch& dead_man, const std::string& command) {
    const ChildSpec spec{{"/bin/sh", "-c", command}, {"PATH=/usr/bin:/bin"}, -1};
    auto child = std::make_unique<SupervisedChild>(dead_man, false);
    child->start(spec, Inheritance::capture());
    pollfd ready{child->exec_pipe(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, static_cast<int>(test::kMaxWait.count())), 1);
    EXPECT_EQ(child->take_exec_result().stage, ExecResult::started);
    return child;
}

bool exited(SupervisedChild& child) {
    child.look();
    return child.exited().has_value();
}

TEST(DeadManTest, KillsTheGroupAtTheDeadlineWithoutHelp) {
    DeadMansSwitch dead_man(false);
    dead_man.feed(BootClock::now() + 1h);
    auto child = start(dead_man, "trap '' TERM; sleep 300 & sleep 300");
    const Instant deadline = BootClock::now() + 200ms;
    dead_man.feed(deadline);  // nothing is done here any more until the group is gone
    EXPECT_TRUE(await([&] { return exited(*child); }));
    EXPECT_GE(BootClock::now(), deadline);
    EXPECT_EQ(child->exited()->code(), 128 + SIGKILL);
    EXPECT_TRUE(await([&] { return child->finish_if_gone(); }));
    EXPECT_TRUE(dead_man.fired());
}

TEST(DeadManTest, WhileItIsFedItDoesNothing) {
    DeadMansSwitch dead_man(false);
    dead_man.feed(BootClock::now() + 10s);
    auto child = start(dead_man, "sleep 0.6");
    const Instant end = BootClock::now() + 500ms;
    while (BootClock::now() < end) {
        dead_man.feed(BootClock::now() + 10s);
        std::this_thread::sleep_for(5ms);
    }
    EXPECT_TRUE(await([&] { return exited(*child); }));
    EXPECT_EQ(child->exited()->code(), 0);
    EXPECT_TRUE(await([&] { return child->finish_if_gone(); }));
    EXPECT_FALSE(dead_man.fired());
}

TEST(DeadManTest, AfterItFiredNoCommandStarts) {
    DeadMansSwitch dead_man(false);
    dead_man.feed(BootClock::now());
    EXPECT_TRUE(await([&] { return dead_man.fired(); }));
    dead_man.feed(BootClock::now() + 1h);
    EXPECT_FALSE(dead_man.board().claim(12345));
}

TEST(DeadManTest, ADisarmedSwitchKillsNobody) {
    DeadMansSwitch dead_man(false);
    dead_man.feed(BootClock::now() + 1h);
    ASSERT_TRUE(dead_man.board().claim(::getpgrp()));  // it would hit this very test
    dead_man.disarm();
    dead_man.feed(BootClock::now());
    EXPECT_TRUE(await([&] { return dead_man.fired(); }));
}

TEST(DeadManTest, ItFindsThoseWhoLeftTheGroup) {
    // In a process of its own, because whole_tree means all descendants.
    const pid_t tester = ::getpid();
    const pid_t parent = ::fork();
    if (parent == 0) {
        test::die_with(tester);
        // As zklock does: otherwise init inherits those whose parent was killed first, and nobody finds them there.
        if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) ::_exit(6);
        DeadMansSwitch dead_man(true);
        dead_man.feed(BootClock::now() + 1h);
        auto child = start(dead_man, "setsid sh -c 'trap \"\" TERM; setsid sleep 300 & sleep 300' & sleep 300");
        ProcessTable processes;
        const auto descendants = [&] {
            const auto table = processes.read();
            const std::size_t count = table.size();
            std::size_t sleeping = 0;
            for (std::size_t i = 0; i < count; ++i)
                sleeping += table[i].group != child->group() && table[i].parent > 1 && table[i].alive() && [&] {
                    for (pid_t up = table[i].parent; up > 1;) {
                        if (up == child->group()) return true;
                        pid_t next = 0;
                        for (std::size_t j = 0; j < count; ++j) {
                            if (table[j].pid == up) next = table[j].parent;
                        }
                        up = next;
                    }
                    return false;
                }();
            return sleeping;
        };
        if (!await([&] { return descendants() >= 3; })) ::_exit(2);
        dead_man.feed(BootClock::now());
        if (!await([&] { return dead_man.board().fired.load() == 1; })) ::_exit(3);
        if (!await([&] { return exited(*child) && child->finish_if_gone(); })) ::_exit(4);
        ::_exit(descendants() == 0 ? 0 : 5);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(parent, &status, 0), parent);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DeadManTest, ItIsReplacedWhenSomebodyKillsIt) {
    DeadMansSwitch dead_man(false);
    EXPECT_FALSE(dead_man.revive());
    dead_man.feed(BootClock::now() + 1h);
    const pid_t first = dead_man.pid();
    auto child = start(dead_man, "sleep 300");
    ::kill(first, SIGKILL);
    EXPECT_TRUE(await([&] { return dead_man.revive(); }));
    EXPECT_NE(dead_man.pid(), first);
    dead_man.feed(BootClock::now());
    EXPECT_TRUE(await([&] { return exited(*child); }));
    EXPECT_TRUE(await([&] { return child->finish_if_gone(); }));
}

TEST(DeadManTest, ItHoldsNothingOpen) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    DeadMansSwitch dead_man(false);
    ::close(ends[1]);
    pollfd end{ends[0], POLLIN, 0};
    ASSERT_EQ(::poll(&end, 1, static_cast<int>(test::kMaxWait.count())), 1);
    char c = 0;
    EXPECT_EQ(::read(ends[0], &c, 1), 0);
    ::close(ends[0]);
    EXPECT_TRUE(await([&] { return ::getsid(dead_man.pid()) == dead_man.pid(); })) << "the terminal's signals reach it";
}

std::string proc_file(pid_t pid, const char* name) {
    std::ostringstream read;  // no exception if the process ends meanwhile
    read << std::ifstream("/proc/" + std::to_string(pid) + "/" + name).rdbuf();
    std::string text = read.str();
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
}

TEST(DeadManTest, PsShowsWhatItIsAndNotZklock) {
    DeadMansSwitch dead_man(false);
    const auto arguments = [&] { return proc_file(dead_man.pid(), "cmdline"); };
    EXPECT_TRUE(await([&] { return arguments().starts_with("zkl-switch: "); })) << arguments();
    EXPECT_NE(arguments().find("process " + std::to_string(::getpid()) + " "), std::string::npos) << arguments();
    const std::string text = arguments() + proc_file(dead_man.pid(), "comm");
    EXPECT_EQ(text.find("zklock"), std::string::npos)
        << "pkill, or pkill -f, that is meant for zklock hits it: " << text;
}

TEST(DeadManTest, NoSignalThatCanBeBlockedKeepsItFromItsWork) {
    DeadMansSwitch dead_man(false);
    dead_man.feed(BootClock::now() + 1h);
    auto child = start(dead_man, "sleep 300");
    ASSERT_EQ(proc_file(dead_man.pid(), "comm"), "zkl-switch\n");
    for (int signal = 1; signal < NSIG; ++signal) {
        if (signal != SIGKILL && signal != SIGSTOP) ::kill(dead_man.pid(), signal);
    }
    dead_man.feed(BootClock::now());
    EXPECT_TRUE(await([&] { return exited(*child); }));
    EXPECT_TRUE(await([&] { return child->finish_if_gone(); }));
    EXPECT_FALSE(dead_man.revive()) << "a signal has ended it";
}

TEST(DeadManTest, ItLocksItsMemoryForAnyUser) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the memory of the sanitizers is larger than any limit";
#endif
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_max < 4 << 20) GTEST_SKIP() << "hardly any memory may be locked here";
    const pid_t tester = ::getpid();
    const pid_t user = ::fork();
    if (user == 0) {
        const rlimit usual{8 << 20, 8 << 20};
        if (limit.rlim_max > usual.rlim_max) ::setrlimit(RLIMIT_MEMLOCK, &usual);
        if (::getuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
        test::die_with(tester);
        DeadMansSwitch dead_man(false);
        // With more than its stack: the program, too.
        const auto locked = [&] {
            const std::string status = proc_file(dead_man.pid(), "status");
            return std::atoi(status.c_str() + status.find("VmLck:") + 6);
        };
        ::_exit(await([&] { return locked() > 1024; }) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(user, &status, 0), user);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace zkrecipes::zklock
