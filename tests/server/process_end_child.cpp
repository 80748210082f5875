// A program that ends, or forks, in a way that takes the library by surprise: see process_end_test.cpp.
//
//     process_end_child MODE CONNECT PATH
//
// Exit code 0: all was as it should be.

#include <sys/wait.h>
#include <unistd.h>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "server/process_end_fork.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using namespace std::chrono_literals;
using zkrecipes::Deadline;
using zkrecipes::Errc;
using zkrecipes::Error;
using zkrecipes::ExclusiveMutex;
using zkrecipes::Grant;
using zkrecipes::Session;
using zkrecipes::SessionOptions;

std::string g_connect;
std::string g_path;

Session open_session() {
    SessionOptions options;
    options.hosts = g_connect;
    options.timeout = 10s;
    options.close_timeout = 30s;
    return Session(std::move(options));
}

int static_session() {
    static Session session = open_session();
    session.wait_connected();
    ExclusiveMutex mutex(session, g_path);
    const std::lock_guard lock(mutex);
    return 0;
}

/// The grant is destroyed before its session.
int static_grant() {
    static Session session = open_session();
    static ExclusiveMutex mutex(session, g_path);
    static const Grant grant = mutex.acquire();
    return grant.held() ? 0 : 1;
}

/// The grant is destroyed last, when the session is closed.
int static_grant_outlives_session() {
    static Grant grant;
    static Session session = open_session();
    grant = ExclusiveMutex(session, g_path).acquire();
    return grant.held() ? 0 : 1;
}

/// What a destructor of a thread_local object sees, right before the lock is given back.
struct Witness {
    ~Witness() {
        if (mutex != nullptr && !mutex->held_by_caller()) std::_Exit(3);
    }
    ExclusiveMutex* mutex = nullptr;
};
thread_local std::unique_lock<ExclusiveMutex> t_lock;  // destroyed after Boost.Fiber's own data of the thread
thread_local Witness t_witness;

int thread_local_lock() {
    static Session session = open_session();
    static ExclusiveMutex first(session, g_path);
    static ExclusiveMutex second(session, g_path + "-2");
    const auto hold = [](ExclusiveMutex& mutex) {
        t_witness.mutex = nullptr;
        t_lock = std::unique_lock(mutex);
        t_witness.mutex = &mutex;
    };
    std::thread([&] { hold(first); }).join();
    hold(first);  // given back by the thread that has ended
    std::thread([&] { hold(second); }).join();
    return 0;
}

/// A lock that static destructors use from beginning to end.
struct UsedLate {
    ~UsedLate() {
        mutex->lock();
        if (!mutex->held_by_caller()) std::_Exit(3);
        mutex->unlock();
        try {
            mutex->acquire_async(Deadline::never(), {}, nullptr);
        } catch (const Error& error) {
            if (error.errc() == Errc::bad_option) return;
        }
        std::_Exit(4);
    }
    ExclusiveMutex* mutex = nullptr;
};

int static_destructor() {
    static UsedLate late;
    try {
        ExclusiveMutex(*std::make_unique<Session>(open_session()), "no path");
    } catch (const Error&) {  // what an error needs is made here, after `late`
    }
    static auto* const session = new Session(open_session());
    static auto* const mutex = new ExclusiveMutex(*session, g_path);
    late.mutex = mutex;
    const std::lock_guard lock(*mutex);
    return 0;
}

/// A session of its own, made and ended while static objects are destroyed.
struct SessionAtTheEnd {
    ~SessionAtTheEnd() {
        Session session = open_session();
        ExclusiveMutex mutex(session, g_path);
        const Grant grant = mutex.try_acquire_for(60s);
        if (!grant.held()) std::_Exit(3);
    }
};

int session_at_the_end() {
    static const SessionAtTheEnd at_the_end;
    return static_session();
}

[[noreturn]] void sleep_for_ever() {
    for (;;) ::pause();
}

/// Nobody closes the session: the servers end it.
int detached_holder() {
    static std::atomic<bool> holds{false};
    std::thread([] {
        Session session = open_session();
        ExclusiveMutex mutex(session, g_path);
        const Grant grant = mutex.acquire();
        holds = true;
        holds.notify_one();
        sleep_for_ever();
    }).detach();
    holds.wait(false);
    return 0;
}

/// For a thread that is still at work when the process has ended and leaks are looked for: what it is taking apart at
/// that moment is no leak.
void expect_no_leak_report_of_this_thread() {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_disable();
#endif
}

/// The session is closed under a thread that holds, and under one that waits.
int detached_threads_of_a_static_session() {
    static Session session = open_session();
    static ExclusiveMutex mutex(session, g_path);
    static std::atomic<int> there{0};
    const auto add = [] {
        ++there;
        there.notify_one();
    };
    std::thread([add] {
        const Grant grant = mutex.acquire();
        add();
        sleep_for_ever();
    }).detach();
    there.wait(0);
    std::thread([add] {
        expect_no_leak_report_of_this_thread();
        ExclusiveMutex waiting(session, g_path);
        add();
        try {
            const Grant grant = waiting.acquire();
        } catch (const Error&) {  // closed
        }
        sleep_for_ever();
    }).detach();
    there.wait(1);
    while (mutex.participants().size() < 2) std::this_thread::yield();
    return 0;
}

int forks() { return zkrecipes::test::fork_while_holding(g_connect, g_path); }

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string, int (*)()> modes{
        {"static-session", &static_session},
        {"static-grant", &static_grant},
        {"static-grant-outlives-session", &static_grant_outlives_session},
        {"thread-local-lock", &thread_local_lock},
        {"static-destructor", &static_destructor},
        {"session-at-the-end", &session_at_the_end},
        {"detached-holder", &detached_holder},
        {"detached-threads-of-a-static-session", &detached_threads_of_a_static_session},
        {"fork", &forks},
    };
    const auto mode = modes.find(argc == 4 ? argv[1] : "");
    if (mode == modes.end()) {
        std::cerr << "process_end_child MODE CONNECT PATH\n";
        return 64;
    }
    g_connect = argv[2];
    g_path = argv[3];
    return mode->second();
}
