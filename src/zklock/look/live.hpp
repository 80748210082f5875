#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>

#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/answers.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// The session of a command that prints until a signal ends it.
class Live {
public:
    Live(Session& session, std::stop_token stop) : session_(session), stop_(std::move(stop)) {}

    Session& session() noexcept { return session_; }
    bool stopped() const noexcept { return stop_.stop_requested(); }
    const std::stop_token& stop() const noexcept { return stop_; }
    /// The deadline of one request: the user learns after this time that no server answers.
    static Deadline answer_by() { return Deadline(kLimit); }
    /// For calls that may send many requests.
    Answers answers(Console& console) { return {session_, console, kLimit, stop_}; }
    /// Returns early after a stop.
    void pause(std::chrono::nanoseconds time);

    static constexpr std::chrono::seconds kLimit{3};

private:
    Session& session_;
    const std::stop_token stop_;
    std::mutex mutex_;
    std::condition_variable_any waking_;
};

/// Calls `work` on a thread of its own, with a session that is connected. Returns when it returns. A signal that ends
/// processes stops it, closes the session, and throws Interrupted. Throws what `work` throws. Main thread only.
void run_live(const Options& options, Console& console, const std::function<void(Live&)>& work);

/// Tells the user that reading has failed, and how long to wait before the next attempt: longer after each failure.
class Setbacks {
public:
    Setbacks(const Options& options, Console& console) : options_(options), console_(console) {}

    /// Prints the reason once until the next success. Rethrows an error after which nothing can succeed.
    std::chrono::milliseconds failed(const Error& error);
    void succeeded();

private:
    const Options& options_;
    Console& console_;
    unsigned failures_ = 0;
};

}  // namespace zkrecipes::zklock
