#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "net.hpp"

namespace zkrecipes::testenv::internal {

/// The thread of all gates of a process. Its mutex guards everything that gates own, and it holds the mutex while it
/// calls handlers. It lives as long as a shared pointer to it.
class Loop {
public:
    /// An object that wants to be called at certain times.
    class Timed {
    public:
        virtual ~Timed() = default;
        [[nodiscard]] virtual Clock::time_point next_due() const = 0;
        virtual void on_due(Clock::time_point now) = 0;
    };
    using Handler = std::function<void(std::uint32_t events)>;

    static std::shared_ptr<Loop> shared();
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    [[nodiscard]] std::mutex& mutex() { return mutex_; }

    // All of these with the mutex held. A token is never used twice, so an event that was reported just before its
    // descriptor was closed cannot reach the descriptor's next owner.
    [[nodiscard]] std::uint64_t watch(int fd, std::uint32_t events, Handler handler);
    void change(std::uint64_t token, int fd, std::uint32_t events);
    void unwatch(std::uint64_t token, int fd);
    void add(Timed* timed) { timed_.insert(timed); }
    void remove(Timed* timed) { timed_.erase(timed); }
    /// Reads next_due() again.
    void wake();

private:
    void run();
    void set_timer(Clock::time_point due);

    std::mutex mutex_;
    UniqueFd epoll_;
    UniqueFd wake_;
    UniqueFd timer_;
    Clock::time_point timer_due_ = Clock::time_point::max();  // max: it is off
    std::map<std::uint64_t, std::shared_ptr<Handler>> handlers_;
    std::set<Timed*> timed_;
    std::uint64_t next_token_ = 2;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace zkrecipes::testenv::internal
