#include "base/process.hpp"

#include <pthread.h>

#include <new>

namespace zkrecipes::internal {

constinit std::atomic<std::uint64_t> ProcessMark::forks_{0};

ProcessMark::ProcessMark() : made_in_(forks_.load(std::memory_order_relaxed)) {
    static const bool watched =
        pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); }) == 0;
    if (!watched) throw std::bad_alloc();
}

}  // namespace zkrecipes::internal
