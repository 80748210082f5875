#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "bench/floors/client_lock.hpp"

namespace zkrecipes::bench {

/// Drives sessions of libzookeeper_st, which has no thread of its own, on the thread that calls turn(). Its mutex is
/// held during each call into the C client, also while the client calls back. Ends the program if a connection breaks.
class Loop {
public:
    using Clock = std::chrono::steady_clock;

    /// A session, and what the C client wants for it.
    struct Driven {
        explicit Driven(const std::string& hosts) : session(hosts, [this] { connected = true; }) {}
        bool connected = false;
        ClientSession session;
        int descriptor = -1;
        std::uint32_t events = 0;
        Clock::time_point deadline;
    };

    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// For the thread that calls turn(). Blocks until the session is connected.
    Driven& open(const std::string& hosts);

    /// Calls `requests`, which sends requests of this session. Any thread may call it, but no callback.
    template <class Requests>
    void send(Driven& driven, Requests&& requests) {
        const std::lock_guard guard(mutex_);
        requests();
        ask(driven);
    }

    /// Waits until a session has something to do, and does it.
    void turn();
    /// Ends the turn that waits. Any thread may call it, once.
    void wake() const;

private:
    int milliseconds_to_wait();
    // With the mutex locked:
    void ask(Driven& driven);
    void process(Driven& driven, std::uint32_t events);

    const int epoll_;
    const int wake_;
    std::mutex mutex_;
    std::deque<Driven> sessions_;
};

}  // namespace zkrecipes::bench
