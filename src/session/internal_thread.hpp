#pragma once

#include <utility>

namespace zkrecipes::internal {

/// Marks a stretch of code that runs on a thread of ours, where waiting for that thread would never end.
class InternalThread {
public:
    InternalThread() noexcept { ++depth(); }
    ~InternalThread() { --depth(); }
    InternalThread(const InternalThread&) = delete;
    InternalThread& operator=(const InternalThread&) = delete;
    static bool here() noexcept { return depth() > 0; }

private:
    friend class InternalMarksAside;
    static int& depth() noexcept {
        thread_local int value = 0;
        return value;
    }
};

/// The same for the notifier lane, where user code runs, which may wait for the other lanes but not for its own.
class NotifierThread {
public:
    NotifierThread() noexcept { ++depth(); }
    ~NotifierThread() { --depth(); }
    NotifierThread(const NotifierThread&) = delete;
    NotifierThread& operator=(const NotifierThread&) = delete;
    static bool here() noexcept { return depth() > 0; }

private:
    friend class InternalMarksAside;
    static int& depth() noexcept {
        thread_local int value = 0;
        return value;
    }
};

/// For the simulation, which runs all threads of a run on one: puts the marks away while, in the middle of one
/// simulated thread, others run.
class InternalMarksAside {
public:
    InternalMarksAside() noexcept
        : internal_(std::exchange(InternalThread::depth(), 0)), notifier_(std::exchange(NotifierThread::depth(), 0)) {}
    ~InternalMarksAside() {
        InternalThread::depth() = internal_;
        NotifierThread::depth() = notifier_;
    }
    InternalMarksAside(const InternalMarksAside&) = delete;
    InternalMarksAside& operator=(const InternalMarksAside&) = delete;

private:
    const int internal_;
    const int notifier_;
};

}  // namespace zkrecipes::internal
