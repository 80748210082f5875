#pragma once

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
    static int& depth() noexcept {
        thread_local int value = 0;
        return value;
    }
};

}  // namespace zkrecipes::internal
