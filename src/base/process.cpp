#include "base/process.hpp"

#include <pthread.h>

#include <new>

namespace zkrecipes::internal {

constinit std::atomic<std::uint64_t> ProcessMark::forks_{0};

namespace {
constinit std::atomic<bool> handles_fork{false};
}

// The first mark has forks counted. Two threads may both do that, then each fork counts twice. A static variable of
// this function would not do: the child of a fork during its initialization would wait for a thread that it has not.
ProcessMark::ProcessMark() : made_in_(forks_.load(std::memory_order_relaxed)) {
    if (handles_fork.load(std::memory_order_acquire)) return;
    const auto count = [] { forks_.fetch_add(1, std::memory_order_relaxed); };
    if (pthread_atfork(nullptr, nullptr, count) != 0) throw std::bad_alloc();
    handles_fork.store(true, std::memory_order_release);
}

}  // namespace zkrecipes::internal
