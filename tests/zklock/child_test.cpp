#include "zklock/process/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <zkrecipes/testenv/scratch.hpp>

#include "support/await.hpp"
#include "support/die_with.hpp"
#include "zklock/process/supervised_child.hpp"
#include "zklock/system/descriptors.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using test::await;

class ChildTest : public testing::Test {
protected:
    void SetUp() override { dead_man_.feed(BootClock::now() + 1h); }

    std::unique_ptr<SupervisedChild> start(std::vector<std::string> argv,
                                           std::vector<std::string> environment = {"PATH=/usr/bin:/bin"}) {
        const ChildSpec spec{std::move(argv), std::move(environment), -1};
        auto child = std::make_unique<SupervisedChild>(dead_man_, false);
        child->start(spec, inheritance_);
        return child;
    }
    static ExecResult result_of(SupervisedChild& child) {
        pollfd ready{child.exec_pipe(), POLLIN, 0};
        EXPECT_EQ(::poll(&ready, 1, static_cast<int>(test::kMaxWait.count())), 1);
        return child.take_exec_result();
    }
    static ExitStatus ended(SupervisedChild& child) {
        EXPECT_TRUE(await([&] {
            child.look();
            return child.finish_if_gone();
        }));
        return child.exited().value_or(ExitStatus{});
    }
    /// What a shell command prints, run as the command of zklock.
    std::string output_of(const std::string& command, std::vector<std::string> environment = {"PATH=/usr/bin:/bin"}) {
        const testenv::Scratch scratch;
        const std::string file = scratch / "output";
        auto child = start({"/bin/sh", "-c", "{ " + command + " ; } >" + file + " 2>&1"}, std::move(environment));
        result_of(*child);
        ended(*child);
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    Inheritance inheritance_ = Inheritance::capture();
    DeadMansSwitch dead_man_{false};
};

TEST_F(ChildTest, ExitCodesAndSignalsComeThrough) {
    auto child = start({"sh", "-c", "exit 42"});
    EXPECT_EQ(result_of(*child).stage, ExecResult::started);
    EXPECT_EQ(ended(*child).code(), 42);
    child = start({"sh", "-c", "kill -USR1 $$"});
    result_of(*child);
    EXPECT_EQ(ended(*child).code(), 128 + SIGUSR1);
}

TEST_F(ChildTest, WhatCannotBeExecutedIsReportedWithItsErrno) {
    auto child = start({"/nonexistent/command"});
    ExecResult result = result_of(*child);
    EXPECT_EQ(result.stage, ExecResult::exec);
    EXPECT_EQ(result.error, ENOENT);
    ended(*child);
    child = start({"/etc/passwd"});
    result = result_of(*child);
    EXPECT_EQ(result.stage, ExecResult::exec);
    EXPECT_EQ(result.error, EACCES);
    ended(*child);
}

TEST_F(ChildTest, TheCommandHasItsOwnGroupAndTheGivenEnvironment) {
    const std::string text = output_of("echo $$ $(ps -o pgid= -p $$) $HELLO", {"PATH=/usr/bin:/bin", "HELLO=world"});
    int pid = 0;
    int group = 1;
    char word[16] = {};
    ASSERT_EQ(std::sscanf(text.c_str(), "%d %d %15s", &pid, &group, word), 3) << text;
    EXPECT_EQ(pid, group);
    EXPECT_STREQ(word, "world");
}

TEST_F(ChildTest, DescriptorsThatZklockOpenedAreNotInherited) {
    const int null = ::open("/dev/null", O_RDWR);
    const int ours = ::fcntl(null, F_DUPFD, 83);  // as the C client's socket: without close-on-exec
    ::close(null);
    ASSERT_GE(ours, 0);
    const std::string text = output_of("ls /proc/self/fd");
    ::close(ours);
    EXPECT_EQ(text.find("83"), std::string::npos) << text;
    EXPECT_NE(text.find("1\n"), std::string::npos) << text;
}

TEST_F(ChildTest, DescriptorsThatZklockInheritedArePassedOn) {
    const int theirs = ::fcntl(::open("/dev/null", O_RDWR), F_DUPFD, 57);
    inheritance_ = Inheritance::capture();
    EXPECT_NE(output_of("ls /proc/self/fd").find("57"), std::string::npos);
    inheritance_.withhold(theirs);
    EXPECT_EQ(output_of("ls /proc/self/fd").find("57"), std::string::npos);
    ::close(theirs);
}

TEST_F(ChildTest, TheNumberOfADescriptorThatZklockHasReadIsNotPassedOn) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::fcntl(null, F_DUPFD, 57), 57);
    inheritance_ = Inheritance::capture();
    ::close(57);
    inheritance_.withhold_closed();
    ASSERT_EQ(::fcntl(null, F_DUPFD, 57), 57) << "as the C client's socket might";
    EXPECT_EQ(output_of("ls /proc/self/fd").find("57"), std::string::npos);
    ::close(57);
    ::close(null);
}

TEST_F(ChildTest, TheSignalMaskIsTheOneBeforeZklock) {
    sigset_t term;
    sigset_t before;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &term, &before);
    auto child = start({"sleep", "60"});
    EXPECT_EQ(result_of(*child).stage, ExecResult::started);
    child->signal(SIGTERM);
    EXPECT_EQ(ended(*child).code(), 128 + SIGTERM);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(ChildTest, TheGroupIsNotGoneWhileAGrandchildLives) {
    auto child = start({"sh", "-c", "sleep 60 & exit 3"});
    result_of(*child);
    EXPECT_TRUE(await([&] {
        child->look();
        return child->exited().has_value();
    }));
    EXPECT_FALSE(child->finish_if_gone());
    child->signal(SIGTERM);
    EXPECT_EQ(ended(*child).code(), 3);
}

TEST_F(ChildTest, ACommandIsNotStartedWhenTheLockIsOver) {
    dead_man_.feed(BootClock::now() - 1s);
    auto child = start({"true"});
    EXPECT_EQ(result_of(*child).stage, ExecResult::too_late);
    ended(*child);
}

/// Nobody answers the kernel's question whether the file may be executed, as with a file server that does not answer.
UniqueFd hold_back(const std::string& program) {
    UniqueFd listener(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY));
    if (listener && ::fanotify_mark(listener.get(), FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, program.c_str()) != 0)
        listener.reset();
    return listener;
}

TEST_F(ChildTest, AProgramThatTheFileSystemDoesNotDeliverIsNotStarted) {
    const testenv::Scratch scratch;
    const std::string program = scratch / "program";
    std::filesystem::copy_file("/bin/true", program);
    UniqueFd listener = hold_back(program);
    if (!listener) GTEST_SKIP() << "needs fanotify, which only root may use";
    dead_man_.feed(BootClock::now() + 3s);  // so late that the start itself is in time
    auto child = start({program});
    EXPECT_EQ(result_of(*child).stage, ExecResult::too_late);
    EXPECT_TRUE(ended(*child).signalled);
    EXPECT_TRUE(child->ended_by_the_switch());
    // It is the file system that decides, and not the deadline.
    listener.reset();
    DeadMansSwitch another(false);
    another.feed(BootClock::now() + 1h);
    SupervisedChild started(another, false);
    started.start({{program}, {"PATH=/bin"}}, inheritance_);
    EXPECT_EQ(result_of(started).stage, ExecResult::started);
    EXPECT_EQ(ended(started).code(), 0);
}

TEST_F(ChildTest, NothingIsStartedBeforeTheSwitchHasItsOwnName) {
    ASSERT_TRUE(await([this] { return dead_man_.board().ready.load() != 0; }));
    dead_man_.board().ready.store(0);
    dead_man_.feed(BootClock::now() + 300ms);
    auto child = start({"/bin/true"});
    EXPECT_EQ(result_of(*child).stage, ExecResult::too_late);
}

/// As on a kernel that does not have it: close_range fails, in this process and its children.
bool forbid_close_range() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(filter), filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/// Kills a process that runs a command, and looks whether the command and what it started die, too. `prepare` is called
/// in that process; false: it cannot be done here, and the answer is empty.
template <class Prepare>
std::optional<bool> command_dies_with_its_parent(Prepare prepare) {
    int ends[2];
    if (::pipe(ends) != 0) return std::nullopt;
    const pid_t tester = ::getpid();
    const pid_t parent = ::fork();
    if (parent == 0) {
        test::die_with(tester);
        ::close(ends[0]);
        if (!prepare()) ::_exit(1);
        DeadMansSwitch dead_man(false);
        dead_man.feed(BootClock::now() + 1h);
        // The command holds the pipe's other end open as long as it lives, and so does its grandchild.
        const ChildSpec spec{
            {"/bin/sh", "-c", "trap '' TERM HUP; sleep 300 & echo ready $! >&" + std::to_string(ends[1]) + "; wait"},
            {"PATH=/usr/bin:/bin"},
            -1};
        const Child child = spawn(spec, Inheritance::capture(), dead_man.board());
        for (;;) ::pause();
    }
    ::close(ends[1]);
    char text[32] = {};
    const bool ready = ::read(ends[0], text, sizeof text - 1) > 0;
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
    pollfd end{ends[0], POLLIN, 0};
    const bool ended = ready && ::poll(&end, 1, static_cast<int>(test::kMaxWait.count())) == 1;
    int grandchild = 0;
    if (ready && !ended && std::sscanf(text, "ready %d", &grandchild) == 1) ::kill(grandchild, SIGKILL);
    const bool all = ended && ::read(ends[0], text, sizeof text) == 0;
    ::close(ends[0]);
    return ready ? std::optional(all) : std::nullopt;
}

TEST_F(ChildTest, TheCommandDiesWithItsParent) {
    EXPECT_EQ(command_dies_with_its_parent([] { return true; }), true) << "somebody of the group still lives";
}

TEST_F(ChildTest, TheCommandDiesWithItsParentWithoutCloseRangeToo) {
    const auto died = command_dies_with_its_parent(forbid_close_range);
    if (!died) GTEST_SKIP() << "no filter of system calls can be installed here";
    EXPECT_TRUE(*died) << "somebody of the group still lives";
}

TEST_F(ChildTest, DescriptorsAreClosedWithoutCloseRangeToo) {
    const pid_t child = ::fork();
    if (child == 0) {
        const int null = ::open("/dev/null", O_RDWR);
        const int low = ::fcntl(null, F_DUPFD, 40);
        const int high = ::fcntl(null, F_DUPFD, 60);
        if (!forbid_close_range()) ::_exit(77);
        if (!close_on_exec(40, 59)) ::_exit(1);
        if (::fcntl(low, F_GETFD) != FD_CLOEXEC || ::fcntl(high, F_GETFD) != 0) ::_exit(2);
        if (!close_from(41)) ::_exit(3);
        ::_exit(::fcntl(low, F_GETFD) == FD_CLOEXEC && ::fcntl(high, F_GETFD) < 0 ? 0 : 4);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filter of system calls can be installed here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace zkrecipes::zklock
