#pragma once

#include <utility>

namespace zkrecipes::internal {

/// Marks a stretch of code on this thread.
template <class What>
class ThreadMark {
public:
    ThreadMark() noexcept { ++depth(); }
    ~ThreadMark() { --depth(); }
    ThreadMark(const ThreadMark&) = delete;
    ThreadMark& operator=(const ThreadMark&) = delete;
    static bool here() noexcept { return depth() > 0; }

private:
    friend class InternalMarksAside;
    static int& depth() noexcept {
        thread_local int value = 0;
        return value;
    }
};

/// Runs on a thread of the library, where waiting for that thread would never end.
using InternalThread = ThreadMark<struct OnInternalThread>;
/// The same for the notifier lane, where user code runs, which may wait for the other lanes but not for its own.
using NotifierThread = ThreadMark<struct OnNotifierThread>;
/// A retry policy is being asked: the one code of the user's that runs under a session lock. It may take no session
/// lock: not this one, which it would wait for itself, and no other, whose owner may be waiting for this one.
using PolicyCall = ThreadMark<struct InPolicyCall>;

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
