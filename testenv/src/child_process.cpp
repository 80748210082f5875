#include "child_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <csignal>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <zkrecipes/testenv/error.hpp>

namespace zkrecipes::testenv::internal {

namespace {

// Whether all threads of the process are stopped (T, t) or dead (Z, X). SIGSTOP takes effect asynchronously, thread by
// thread.
bool stands_still(pid_t pid) {
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
        std::ifstream file(task.path() / "stat");
        std::string text;
        std::getline(file, text);
        const auto end_of_name = text.rfind(')');
        if (end_of_name != std::string::npos && end_of_name + 2 < text.size() &&
            std::string("TtZX").find(text[end_of_name + 2]) == std::string::npos) {
            return false;
        }
    }
    return true;
}

// The processes of a group: java, and a launcher before it.
bool group_stands_still(pid_t group) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        const pid_t pid = std::stoi(name);
        if (::getpgid(pid) == group && !stands_still(pid)) {
            return false;
        }
    }
    return true;
}

}  // namespace

ChildProcess::ChildProcess(const Keeper::Spawn& what) : keeper_(&Keeper::instance()) {
    pid_ = keeper_->spawn(what);
    handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U)));
    if (!handle_) {
        throw Error(std::string("pidfd_open: ") + std::strerror(errno));
    }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), handle_(std::move(other.handle_)), keeper_(other.keeper_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(handle_, other.handle_);
    std::swap(keeper_, other.keeper_);
    return *this;
}

ChildProcess::~ChildProcess() { kill(); }

bool ChildProcess::running() const {
    pollfd watched{handle_.get(), POLLIN, 0};
    return pid_ != 0 && ::poll(&watched, 1, 0) == 0;
}

void ChildProcess::signal(int number) const {
    // Signals the whole group. Its number cannot be reused: the process is not reaped before kill() asks the keeper to
    // do so.
    if (pid_ != 0) {
        ::kill(-pid_, number);
    }
}

bool ChildProcess::wait_exit(Clock::time_point deadline) const {
    while (running()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            return false;
        }
        pollfd watched{handle_.get(), POLLIN, 0};
        ::poll(&watched, 1, static_cast<int>(std::min<long>(left, 1'000'000)));
    }
    return true;
}

void ChildProcess::freeze() const {
    signal(SIGSTOP);
    while (running() && !group_stands_still(pid_)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void ChildProcess::thaw() const { signal(SIGCONT); }

void ChildProcess::kill() noexcept {
    if (pid_ == 0 || keeper_->served() != ::getpid()) {
        return;
    }
    signal(SIGKILL);
    try {
        keeper_->reap(pid_);
    } catch (const Error&) {
        // The keeper has ended, and the process with it.
    }
    pid_ = 0;
    handle_.reset();
}

}  // namespace zkrecipes::testenv::internal
