#include "zklock/process/children.hpp"

#include <sys/wait.h>

namespace zkrecipes::zklock {
namespace {

// Without WEXITED the kernel skips zombies and reports ECHILD if there is no other child.
constexpr int kAlive = WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT;

}  // namespace

bool has_children() noexcept {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, kAlive | WEXITED | __WALL) == 0;
}

bool live_child() noexcept {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, kAlive) == 0;
}

bool live_child_in(pid_t group) noexcept {
    siginfo_t info{};
    return ::waitid(P_PGID, static_cast<id_t>(group), &info, kAlive) == 0;
}

}  // namespace zkrecipes::zklock
