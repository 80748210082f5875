#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_stats.hpp>

namespace zkrecipes {

/// Which call, or which hold, an event is about.
struct EventSubject {
    std::string recipe;  ///< the class, for example "ExclusiveMutex"
    std::string mode;    ///< "exclusive", "shared" or "semaphore"
    std::string path;    ///< as the recipe was given it
    /// When it happened. Events are told later than that, and in the order in which they happened.
    std::chrono::system_clock::time_point at{};
    /// The same for all events of one acquire and of the hold that it got; no other acquire of this Session has it.
    std::uint64_t id = 0;
};

/// What a session tells the program that uses it: for metrics, traces and audits. All functions do nothing by default.
///
/// They are called on the session's notifier thread, one at a time, as all callbacks: do not block in them. Events
/// are told up to 20 milliseconds after they happened, losses at once. If a function is too slow, events are dropped
/// when 1,024 are waiting, and SessionStats::events_dropped counts them; a loss is never dropped. What a function
/// throws is logged. Set by SessionOptions::events. The session keeps the object until its last callback has returned.
class ZKRECIPES_API SessionEvents {
public:
    SessionEvents() = default;
    SessionEvents(const SessionEvents&) = delete;
    SessionEvents& operator=(const SessionEvents&) = delete;
    virtual ~SessionEvents();

    /// A call waits, and has read the queue: so many are in front of it, the holder included. Told again when a later
    /// read shows another number.
    virtual void on_queued(const EventSubject& subject, std::int64_t in_front);
    virtual void on_acquired(const EventSubject& subject, FencingToken token, std::chrono::nanoseconds waited);
    /// Nothing was granted. `why`: as Grant::missed(), and never `none`.
    virtual void on_missed(const EventSubject& subject, Missed why, std::chrono::nanoseconds waited);
    virtual void on_failed(const EventSubject& subject, const Error& error, std::chrono::nanoseconds waited);
    virtual void on_released(const EventSubject& subject, FencingToken token, std::chrono::nanoseconds held_for);
    virtual void on_lost(const EventSubject& subject, FencingToken token, LossReason reason,
                         std::chrono::nanoseconds held_for);
    /// The state of the session has changed. Not dropped.
    virtual void on_state(SessionState state, const SessionInfo& info);
    /// An error that no call is told of, for example a refused heartbeat: the text of the log line.
    virtual void on_error(const std::string& text);
};

}  // namespace zkrecipes
