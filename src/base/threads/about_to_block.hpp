#pragma once

#include <mutex>
#include <thread>

namespace zkrecipes::internal {

/// Whether this thread drives a loop (loop.hpp), on which other sessions depend.
bool drives_a_loop() noexcept;
/// Before code that may block, such as the user's: if this thread drives a loop, another one does so from now on.
void about_to_block() noexcept;

/// Locks a mutex under which user code may run, for example a log sink: whoever drives a loop does not wait for that.
class UserCodeLock {
public:
    explicit UserCodeLock(std::mutex& mutex) : mutex_(mutex) {
        if (drives_a_loop()) {
            for (int tries = 0; tries < kTries; ++tries) {
                if (mutex_.try_lock()) return;
                std::this_thread::yield();
            }
            about_to_block();
        }
        mutex_.lock();
    }
    ~UserCodeLock() { mutex_.unlock(); }
    UserCodeLock(const UserCodeLock&) = delete;
    UserCodeLock& operator=(const UserCodeLock&) = delete;

private:
    static constexpr int kTries = 100;  // usually, another thread is about to unlock it
    std::mutex& mutex_;
};

}  // namespace zkrecipes::internal
