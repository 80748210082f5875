// Loaded into the programs of the tests before everything else (LD_PRELOAD; scripts/test --hesitate), and into the
// servers that they start: each thread stops for a moment now and then, where it sends, receives, waits for news of a
// socket, or takes or leaves a mutex. So what happens in one order on a quiet machine happens in every order that a
// busy one can bring about: a request is executed long after the one that was sent with it, an answer meets the news
// behind it, a callback the call that it belongs to. A test that fails only then has a race, or what it tests has.
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace {

/// Each thread its own; a run cannot be repeated, since the order of threads cannot.
std::uint32_t random_number() {
    static thread_local std::uint64_t state = 0;
    if (state == 0) {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = static_cast<std::uint64_t>(now.tv_nsec) * 2654435761u + reinterpret_cast<std::uintptr_t>(&state);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::uint32_t>(state >> 16);
}

void stop_for_up_to(std::uint32_t nanoseconds) {
    const timespec time{0, static_cast<long>(random_number() % nanoseconds)};
    nanosleep(&time, nullptr);
}

/// How often of so many times a thread stops for a short time, and once of them for a long one.
struct Habit {
    std::uint32_t of, short_times, short_most, long_most;  // the last two in nanoseconds
};
/// There are several of these in each answer. The long time is longer than two requests that are sent together are
/// apart even on a busy machine.
constexpr Habit kAtSockets{200, 7, 1'000'000, 25'000'000};
/// There are hundreds of these for each answer.
constexpr Habit kAtMutexes{2000, 19, 100'000, 5'000'000};

void hesitate(const Habit& habit) {
    const int error = errno;
    const std::uint32_t chance = random_number() % habit.of;
    if (chance == 0) {
        stop_for_up_to(habit.long_most);
    } else if (chance <= habit.short_times) {
        stop_for_up_to(habit.short_most);
    }
    errno = error;
}

template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t send(int socket, const void* data, size_t size, int flags) {
    static auto* const next = real<decltype(send)>("send");
    hesitate(kAtSockets);
    return next(socket, data, size, flags);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    static auto* const next = real<decltype(sendmsg)>("sendmsg");
    hesitate(kAtSockets);
    return next(socket, message, flags);
}

ssize_t recv(int socket, void* data, size_t size, int flags) {
    static auto* const next = real<decltype(recv)>("recv");
    const ssize_t received = next(socket, data, size, flags);
    hesitate(kAtSockets);
    return received;
}

int poll(pollfd* files, nfds_t count, int timeout) {
    static auto* const next = real<decltype(poll)>("poll");
    const int ready = next(files, count, timeout);
    hesitate(kAtSockets);
    return ready;
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
    static auto* const next = real<decltype(epoll_wait)>("epoll_wait");
    const int ready = next(epoll, events, most, timeout);
    hesitate(kAtSockets);
    return ready;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = real<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
    hesitate(kAtMutexes);
    return next(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = real<decltype(pthread_mutex_unlock)>("pthread_mutex_unlock");
    const int result = next(mutex);
    hesitate(kAtMutexes);
    return result;
}

}  // extern "C"
