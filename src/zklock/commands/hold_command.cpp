#include "zklock/commands/hold_command.hpp"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "zklock/around/on_lost.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"
#include "zklock/report/result.hpp"

namespace zkrecipes::zklock {
namespace {

/// Whether stdin is the terminal and another group is in the foreground (`zklock hold LOCK &`). Input then belongs to
/// that group.
bool in_background() {
    const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
    return foreground >= 0 && foreground != ::getpgrp();
}

/// Discards the input on stdin. False: stdin has ended.
bool stdin_goes_on() {
    char buffer[4096];
    const ssize_t size = ::read(STDIN_FILENO, buffer, sizeof buffer);
    // EIO: zklock was put into the background at this moment. SIGTTIN, which would stop it, is blocked.
    return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && in_background())));
}

std::string hold_text(const Options& options, const LockSession& lock) {
    std::string line;
    for (const std::string& node : lock.nodes()) line += node + " " + std::to_string(lock.token()) + "\n";
    if (options.json) {
        boost::json::object object = {{"v", 1},
                                      {"fencing_token", lock.token()},
                                      {"session", hex(lock.grant().session_id())},
                                      {"session_timeout_ms", lock.info().timeout.count()}};
        merge(object, lock_fields(options, lock.nodes()));
        line = dump(object) + "\n";
    }
    return line;
}

/// The output that tells the caller of the lock. Does not wait for a slow reader, because zklock must watch the lock.
class Announcement {
public:
    explicit Announcement(std::string text) : rest_(std::move(text)) {}
    bool pending() const noexcept { return !rest_.empty(); }
    /// Throws Failure if the output cannot be written.
    void write() {
        if (!pending()) return;
        const Written written = write_ready(STDOUT_FILENO, rest_);
        rest_.erase(0, written.size);
        if (written.error != 0) cannot_print(written.error);
        if (!pending()) finish_printing();
    }

private:
    std::string rest_;
};

/// Reports that the connection broke, and that it works again: a check on a new connection has succeeded, as in
/// Supervisor.
class Suspension {
public:
    Suspension(LockSession& lock, EventLog& events) : lock_(lock), events_(events) {}

    void note(const StateChange& change) {
        if (change.state == SessionState::connecting) return;
        verify_after_ = Instant::max();
        if (change.state == SessionState::connected) {
            verify_after_ = change.at;
        } else if (!std::exchange(suspended_, true)) {
            const Nanoseconds left = std::max(Nanoseconds(0), lock_.lease_until() - BootClock::now());
            events_.write("suspended", {{"lease_left_ms", in_ms(left)}});
        }
    }
    void look() {
        const Nanoseconds lease = Nanoseconds(lock_.info().timeout) * 2 / 3;
        if (!suspended_ || lock_.lease_until() - lease < verify_after_) return;
        suspended_ = false;
        events_.write("resumed", {});
    }

private:
    LockSession& lock_;
    EventLog& events_;
    Instant verify_after_ = Instant::max();  // not connected
    bool suspended_ = false;
};

/// Why the hold ended.
struct End {
    bool lost = false;
    int signal = 0;  // 0: stdin ended
    /// The signal of which zklock dies: it ends the script, or concerns zklock alone. 0: none.
    int death() const { return signal == SIGINT || signal == SIGQUIT || !Signals::passed_on(signal) ? signal : 0; }
};

End hold_on(LockSession& lock, Signals& signals, EventLog& events, Announcement& announcement) {
    const UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    Suspension suspension(lock, events);
    for (;;) {
        // The caller must hear of the loss when the lock is no longer guaranteed, not when another client has it.
        const bool held = lock.lease_until() > BootClock::now();
        // If the lease has not passed, the event of the loss is on its way, and with it the reason.
        const Instant until = lock.lease_before_loss();
        if (!held && until <= BootClock::now()) return {.lost = true};
        if (held) announcement.write();
        const Instant look = std::min(until, BootClock::now() + Nanoseconds(lock.info().timeout) / 12);
        itimerspec when{};
        when.it_value.tv_sec = look.time_since_epoch().count() / 1'000'000'000;
        when.it_value.tv_nsec = look.time_since_epoch().count() % 1'000'000'000 + 0;
        ::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &when, nullptr);
        pollfd fds[] = {{in_background() ? -1 : STDIN_FILENO, POLLIN, 0},
                        {signals.fd(), POLLIN, 0},
                        {lock.event_queue().fd(), POLLIN, 0},
                        {timer.get(), POLLIN, 0},
                        {held && announcement.pending() ? STDOUT_FILENO : -1, POLLOUT, 0}};
        ::poll(fds, std::size(fds), -1);
        lock.look();  // before anything is concluded: we may have been stopped for long
        while (const auto signal = signals.next()) {
            if (*signal == SIGTSTP) {
                lock.warn_of_stop("zklock");
                Signals::stop(false);
            }
            if (Signals::ends(*signal)) return {.signal = *signal};
        }
        const EventQueue::Batch batch = lock.event_queue().take();
        if (batch.lost) return {.lost = true};
        for (const StateChange& change : batch.states) suspension.note(change);
        suspension.look();
        if ((fds[0].revents & (POLLERR | POLLNVAL)) || (fds[0].revents && !stdin_goes_on())) return {};
    }
}

std::chrono::milliseconds held_so_far(const LockSession& lock) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(BootClock::now() - lock.acquired_at());
}

void give_back(LockSession& lock, EventLog& events) {
    const std::chrono::milliseconds held = held_so_far(lock);
    lock.release();
    events.write("released", {{"held_ms", held.count()}, {"confirmed", lock.release_confirmed()}});
}

/// How zklock has to end after hold() has released the lock.
struct Ended {
    int code = 0;
    int death = 0;  ///< the signal of which zklock dies; 0: none
    std::optional<Loss> loss;
};

Ended hold(const Options& options, Console& console, EventLog& events, Signals& signals) {
    LockSession lock(options, console, events, signals);
    lock.acquire();
    const End end = [&] {
        try {
            Announcement announcement(hold_text(options, lock));
            const End how = hold_on(lock, signals, events, announcement);
            if (!how.lost && how.signal == 0 && announcement.pending()) cannot_print(EAGAIN);
            return how;
        } catch (const Failure&) {  // the caller does not know of the lock
            give_back(lock, events);
            throw;
        }
    }();
    const std::string reason = end.lost ? lock.loss_reason() : "";
    const std::chrono::milliseconds held = held_so_far(lock);
    const int code = end.lost ? options.lost_exit_code : end.death() != 0 ? kSignalBase + end.death() : kOk;
    if (end.lost) {
        events.write("lost", {{"reason", reason}});
        console.error("lost " + options.lock + ": " + reason);
    }
    give_back(lock, events);
    boost::json::object object = result_object(options, end.lost ? "lost" : "released", code, lock.nodes());
    merge(object, {{"token", lock.token()}, {"held_ms", held.count()}, {"confirmed", lock.release_confirmed()}});
    if (!reason.empty()) object["reason"] = reason;
    if (end.signal != 0) object["signal"] = end.signal;
    const int concluded = conclude(options, console, events, std::move(object));
    Ended ended{concluded, end.death(), {}};
    if (end.lost) ended.loss = Loss{reason, lock.token(), lock.nodes()};
    return ended;
}

}  // namespace

int hold_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                 Signals& signals) {
    const Ended ended = hold(options, console, events, signals);
    if (ended.loss) after_loss_in_background(options, console, inheritance, events, signals, *ended.loss);
    if (ended.death != 0) Signals::die_of(ended.death);
    return ended.code;
}

}  // namespace zkrecipes::zklock
