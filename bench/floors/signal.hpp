#pragma once

#include <semaphore.h>

#include <cerrno>

namespace zkrecipes::bench {

/// Wakes a thread. The semaphores of C++ try again and again before they sleep, which takes processor time.
class Signal {
public:
    Signal() { ::sem_init(&semaphore_, 0, 0); }
    ~Signal() { ::sem_destroy(&semaphore_); }
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;

    void post() { ::sem_post(&semaphore_); }
    void wait() {
        while (::sem_wait(&semaphore_) != 0 && errno == EINTR) {
        }
    }

private:
    sem_t semaphore_;
};

}  // namespace zkrecipes::bench
