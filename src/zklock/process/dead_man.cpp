#include "zklock/process/dead_man.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <system_error>

#include "zklock/system/descriptors.hpp"
#include "zklock/system/process_table.hpp"
#include "zklock/system/process_title.hpp"
#include "zklock/system/resident.hpp"

namespace zkrecipes::zklock {
namespace {

/// The switch locks its memory when nothing has happened for so long. That costs half a millisecond, as much as a short
/// command, and what has just been used is in memory anyway.
constexpr int kSettlingMs = 20;

void kill_target(SwitchBoard& board, pid_t zklock, bool whole_tree, ProcessTable& table) noexcept {
    std::int64_t target = board.target.load();
    if (target == SwitchBoard::kNobody) board.target.compare_exchange_strong(target, SwitchBoard::kClosed);
    // The command registered just before: `target` holds its group.
    if (target > 0 && board.target.compare_exchange_strong(target, -target)) {
        const pid_t group = static_cast<pid_t>(target);
        ::kill(-group, SIGKILL);
        ::kill(group, SIGKILL);  // it registers before it makes the group
        // Kills processes that left the group by setsid. Each round may find processes that were forked during the
        // previous one. While zklock lives, its number is not used again, so there may be many rounds.
        const pid_t root = whole_tree ? zklock : group;
        const int rounds = whole_tree ? 500 : 20;
        for (int round = 0; round < rounds; ++round) {
            if (whole_tree && ::getppid() != zklock) break;
            if (kill_descendants(root, ::getpid(), table) == 0) break;
            const timespec pause{0, 2'000'000};
            ::nanosleep(&pause, nullptr);
        }
    }
    board.fired.store(1);
}

/// Hides the switch from commands that select zklock by name or arguments: pkill, pkill -f, killall, pidof.
void take_another_name(pid_t zklock) noexcept {
    ::prctl(PR_SET_NAME, "zkl-switch");
    char title[64] = "zkl-switch: kills the command of process ";
    const std::size_t length = std::strlen(title);
    *std::to_chars(title + length, title + sizeof title - 1, zklock).ptr = '\0';
    std::strncat(title, " in time", sizeof title - std::strlen(title) - 1);
    set_process_title(title);
}

/// The main function of the switch process. Only async-signal-safe calls.
[[noreturn]] void watch(SwitchBoard& board, int pipe, pid_t zklock, bool whole_tree,
                        std::span<const Memory> essential) noexcept {
    // The switch must not keep pipes or sockets of others open, least of all that of the ZooKeeper session.
    if (::dup2(pipe, 3) < 0) ::_exit(1);
    if (!close_from(4)) ::_exit(1);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    if (null > 3) ::close(null);
    ::setsid();
    const std::uint64_t all_signals = ~std::uint64_t{0};  // glibc's own two as well, which sigfillset leaves out
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all_signals, nullptr, sizeof all_signals);
    take_another_name(zklock);
    ::prctl(PR_SET_PDEATHSIG, 0);
    ProcessTable table(4096);
    bool resident = false;
    const int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (timer < 0) ::_exit(1);
    board.ready.store(1);
    for (;;) {
        // The clock first: if this process is held up between the two, a renewal of that time still counts.
        const std::int64_t now = BootClock::now().time_since_epoch().count();
        const std::int64_t deadline = board.deadline_ns.load();
        if (!board.fired.load() && now >= deadline) {
            kill_target(board, zklock, whole_tree, table);
        }
        itimerspec when{};
        if (!board.fired.load() && deadline != INT64_MAX) {
            when.it_value.tv_sec = deadline / 1'000'000'000;
            when.it_value.tv_nsec = deadline % 1'000'000'000;
            if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0) when.it_value.tv_nsec = 1;
        }
        ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
        pollfd fds[2] = {{3, POLLIN, 0}, {timer, POLLIN, 0}};
        const int ready = ::poll(fds, 2, resident ? -1 : kSettlingMs);
        if (ready == 0) {  // zklock may be late because the machine swaps
            const Memory own[] = {std::as_bytes(std::span(&board, 1)), table.memory()};
            stay_resident(own);
            stay_resident(essential);
            resident = true;
        }
        if (ready <= 0) continue;
        if (fds[0].revents) {
            char kicks[64];
            const ssize_t size = ::read(3, kicks, sizeof kicks);
            if (size == 0) {  // zklock has died, and nothing renews the lock
                if (!board.fired.load()) kill_target(board, zklock, false, table);
                ::_exit(0);
            }
        }
    }
}

}  // namespace

DeadMansSwitch::DeadMansSwitch(bool whole_tree) : whole_tree_(whole_tree) {
    void* memory = ::mmap(nullptr, sizeof(SwitchBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    board_ = new (memory) SwitchBoard;
    start();
}

DeadMansSwitch::~DeadMansSwitch() {
    dismiss();
    if (pid_ > 0) ::waitpid(pid_, nullptr, __WALL);
    ::munmap(board_, sizeof(SwitchBoard));
}

void DeadMansSwitch::start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    UniqueFd read_end(ends[0]);
    kick_ = UniqueFd(ends[1]);
    const std::vector<Memory> essential = essential_memory();
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t zklock = ::getpid();
    board_->ready.store(0);
    // No signal tells of its end. So waitid() takes it for another kind of child, and live_child() leaves it out.
    const pid_t pid = static_cast<pid_t>(::syscall(SYS_clone, 0L, nullptr, nullptr, nullptr, 0L));
    const int error = errno;
    if (pid == 0) {
        ::close(ends[1]);  // otherwise it would never see the end of the pipe
        watch(*board_, read_end.get(), zklock, whole_tree_, essential);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) throw std::system_error(error, std::generic_category(), "fork");
    pid_ = pid;
    ::fcntl(kick_.get(), F_SETFL, O_NONBLOCK);
}

void DeadMansSwitch::feed(Instant deadline) noexcept {
    if (dismissed_) return;
    const std::int64_t at = deadline.time_since_epoch().count();
    const std::int64_t before = board_->deadline_ns.exchange(at);
    if (at >= before) return;  // it looks again at the earlier deadline
    const char kick = 0;
    while (::write(kick_.get(), &kick, 1) < 0 && errno == EINTR) {
    }
}

void DeadMansSwitch::await_ready() {
    while (!board_->ready.load() && BootClock::now() < board_->deadline()) {
        revive();
        const timespec pause{0, 100'000};
        ::nanosleep(&pause, nullptr);
    }
}

bool DeadMansSwitch::fired() const noexcept { return board_->fired.load() != 0 || board_->target.load() < 0; }

bool DeadMansSwitch::disarm() noexcept {
    std::int64_t target = board_->target.load();
    if (target >= 0 && board_->target.compare_exchange_strong(target, SwitchBoard::kNobody)) return true;
    // The switch is killing the group: let it finish, unless it has died meanwhile.
    for (int i = 0; i < 1000 && !board_->fired.load() && ::kill(pid_, 0) == 0; ++i) {
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    return false;
}

void DeadMansSwitch::dismiss() noexcept {
    board_->target.store(SwitchBoard::kNobody);
    dismissed_ = true;
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

bool DeadMansSwitch::revive() {
    if (dismissed_) return false;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != pid_)
        return false;
    pid_ = -1;
    start();
    return true;
}

}  // namespace zkrecipes::zklock
