#pragma once

#include <chrono>
#include <string>

#include "keeper.hpp"
#include "net.hpp"

namespace zkrecipes::testenv::internal {

/// A process that the keeper started. The destructor kills and reaps it.
class ChildProcess {
public:
    ChildProcess() = default;
    explicit ChildProcess(const Keeper::Spawn& what);
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ~ChildProcess();

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool running() const;
    void signal(int number) const;
    /// False if it has not ended by then.
    [[nodiscard]] bool wait_exit(Clock::time_point deadline) const;
    /// Stops all its threads (SIGSTOP) and returns when they are stopped.
    void freeze() const;
    void thaw() const;
    /// SIGKILL; the process has ended on return. No effect if there is none.
    void kill() noexcept;

private:
    pid_t pid_ = 0;
    UniqueFd handle_;  // pidfd
    Keeper* keeper_ = nullptr;
};

}  // namespace zkrecipes::testenv::internal
