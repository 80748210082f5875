#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace zkrecipes::internal {

/// The process in which an object was made. fork() copies the object into the child, but not the threads that serve it,
/// and the child shares the parent's connections; so the copy must not be used there.
class ProcessMark {
public:
    ProcessMark();
    /// True in a child process that inherited the object by fork(). Lock-free, without a system call: Grant::held()
    /// asks each time.
    bool inherited() const noexcept { return made_in_ != forks_.load(std::memory_order_relaxed); }

private:
    static std::atomic<std::uint64_t> forks_;  // from the first ancestor that made a mark down to this process
    const std::uint64_t made_in_;
};

/// One T for the whole process, never destroyed. A child that was forked gets a new one: a thread of the parent may
/// have held a lock of the inherited one, and no thread would ever give it back.
template <class T>
class PerProcess {
public:
    T& get() {
        Entry* present = newest_.load(std::memory_order_acquire);
        while (present == nullptr || present->mark.inherited()) {
            auto entry = std::make_unique<Entry>(present);
            if (newest_.compare_exchange_strong(present, entry.get(), std::memory_order_acq_rel)) {
                present = entry.release();
            }
        }
        return present->value;
    }

private:
    struct Entry {
        explicit Entry(Entry* former) : inherited(former) {}
        ProcessMark mark;
        T value;
        Entry* const inherited;  // so that nothing counts as leaked
    };
    std::atomic<Entry*> newest_{nullptr};
};

}  // namespace zkrecipes::internal
