#include "zklock/look/live.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>

#include "zklock/commands/lock_session.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/explain.hpp"
#include "zklock/system/signals.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

using std::chrono::milliseconds;

/// Waits for one of them.
enum class Event { signal, end, neither };
Event wait_for(const Signals& signals, const UniqueFd& end, int timeout_ms) {
    pollfd fds[2] = {{signals.fd(), POLLIN, 0}, {end.get(), POLLIN, 0}};
    ::poll(fds, 2, timeout_ms);
    if (fds[1].revents != 0) return Event::end;
    return fds[0].revents != 0 ? Event::signal : Event::neither;
}

/// The signal that ends zklock; empty: the work has ended.
std::optional<int> await_signal_or_end(Signals& signals, const UniqueFd& end) {
    for (;;) {
        const Event event = wait_for(signals, end, -1);
        if (event == Event::end) return std::nullopt;
        while (const auto signal = signals.next_after_stops()) {
            if (Signals::ends(*signal)) return signal;
        }
    }
}

}  // namespace

void Live::pause(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    waking_.wait_for(lock, stop_, time, [] { return false; });
}

void run_live(const Options& options, Console& console, const std::function<void(Live&)>& work) {
    Signals signals;  // before the session starts its threads
    Session session = open_session(options, console, Answers::patience(Live::kLimit));
    const UniqueFd end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!end) throw std::system_error(errno, std::generic_category(), "eventfd");
    std::exception_ptr failure;
    std::jthread worker([&](std::stop_token stop) {
        try {
            if (await_connection(session, options, stop)) {
                Live live(session, stop);
                work(live);
            }
        } catch (...) {
            failure = std::current_exception();
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t size = ::write(end.get(), &one, sizeof one);
    });
    if (const auto signal = await_signal_or_end(signals, end)) {
        worker.request_stop();
        session.close();  // ends calls that wait for servers
        // The work may be waiting for a reader of standard output, for ever.
        if (wait_for(signals, end, 1000) != Event::end) Signals::die_of(*signal);
        worker.join();
        throw Interrupted{*signal};
    }
    worker.join();
    if (failure) std::rethrow_exception(failure);
}

milliseconds Setbacks::failed(const Error& error) {
    if (error.errc() == Errc::closed || error.errc() == Errc::auth_failed) throw error;
    if (failures_ == 0) console_.warning(in_words(error, options_) + "; zklock tries again");
    constexpr milliseconds kFirst(500);
    constexpr unsigned kMostDoublings = 4;
    return kFirst * (1 << std::min(failures_++, kMostDoublings));
}

void Setbacks::succeeded() {
    if (failures_ > 0) console_.warning("reading works again");
    failures_ = 0;
}

}  // namespace zkrecipes::zklock
