#include "zklock/commands/lock_session.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>

#include "zklock/command_line/command_table.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/explain.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/result.hpp"
#include "zklock/report/text.hpp"
#include "zklock/system/reachability.hpp"

namespace zkrecipes::zklock {

using std::chrono::milliseconds;

namespace {

SessionOptions session_options(const Options& options, Console& console) {
    SessionOptions result;
    result.hosts = options.connect;
    result.timeout = options.session_timeout;
    result.server_tick = options.server_tick;
    result.path_prefix = options.prefix;
    result.acl = options.acl;
    result.auth = options.auth;
    result.tls = options.tls;
    result.sasl = options.sasl;
    result.close_timeout = milliseconds(1000);
    result.logger = console.logger();
    return result;
}

/// For servers that the command line does not name; otherwise empty.
std::string who_names_the_servers(const Options& options) {
    const auto origin = options.origins.find("connect");
    return origin == options.origins.end() ? "" : "the servers are named by " + origin->second;
}

/// Its locks exclude only those on the same servers and below the same prefix.
void warn_of_other_servers(const Options& options, Console& console) {
    const auto former = [&](const char* key) {
        const auto& values = options.handed.former;
        const auto found = values.find(key);
        return found == values.end() ? std::string() : found->second;
    };
    const std::string servers = former("connect"), prefix = former("prefix");
    const bool named_by_option = !options.origins.contains("connect");
    if (servers.empty() || named_by_option || (servers == options.connect && prefix == options.prefix)) return;
    console.warning(
        printable("the zklock in whose command this zklock was started has ended, so its settings do not "
                  "count: it used " +
                  servers + prefix + ", and this zklock uses " + options.connect + options.prefix +
                  "; name the servers by --connect"));
}

/// For who goes on waiting: it does not block, as why_not_connected() may for a second.
std::string silence(const Session& session) {
    const std::string problem = session.info().problem;
    return "no ZooKeeper server answers" + (problem.empty() ? "" : ": " + printable(problem));
}

}  // namespace

Session open_session(const Options& options, Console& console, RetryPolicy retry,
                     std::shared_ptr<SessionEvents> events) {
    warn_of_other_servers(options, console);
    if (const std::string origin = who_names_the_servers(options); !origin.empty()) console.info(origin);
    try {
        SessionOptions session = session_options(options, console);
        session.retry = std::move(retry);
        session.events = std::move(events);
        return Session(std::move(session));
    } catch (const Error& error) {
        throw failure_of(error, options);
    }
}

std::string why_not_connected(const Session& session, const Options& options) {
    const std::string problem = session.info().problem;
    std::string text = problem.empty() ? why_no_answer(options.connect) : problem;
    if (problem.empty() && options.tls) text += ", and that this is its TLS port (secureClientPort)";
    if (const std::string origin = who_names_the_servers(options); !origin.empty()) text += "; " + origin;
    return printable(text);
}

std::string why_no_answer_came(const Session& session, const Options& options) {
    if (session.state() == SessionState::connected) {
        return "the ZooKeeper servers did not answer in time: try zklock ping";
    }
    return "no ZooKeeper server answers: " + why_not_connected(session, options);
}

Failure not_connected_within(Nanoseconds limit, const Session& session, const Options& options) {
    const std::string why = why_not_connected(session, options);
    std::string time = format_duration(limit);
    // A silent server that was tried first may have taken a second.
    if (limit < std::chrono::seconds(3) && why.find(kAccepted) != std::string::npos) {
        time +=
            std::string(", which may be too short (") + (limit == options.wait_limit ? "-w)" : "--connect-timeout)");
    }
    return {kUnavailable, "no ZooKeeper server answered within " + time + ": " + why, "unavailable"};
}

LockSession::LockSession(const Options& options, Console& console, EventLog& events, Signals& signals)
    : options_(options),
      console_(console),
      events_(events),
      signals_(signals),
      loss_log_(std::make_shared<LossLog>(origin_of_tick(options))) {
    session_.emplace(open_session(options, console, {}, loss_log_));
    subscription_.emplace(
        session_->watch_state([event_queue = event_queue_](SessionState state) { event_queue->post_state(state); }));
    acquire_fn_ = acquire_fn(*session_, options);
}

LockSession::~LockSession() {
    stop_watching();
    on_lost_.reset();
    grant_.release();
    session_->close();
}

void LockSession::acquire() {
    connect();
    check_negotiated();
    do {
        wait_for_grant();
        // Lost again before zklock noticed the grant: nothing has started yet, so join the queue again.
    } while (!grant_.held());
    acquired_at_ = looked_at_ = BootClock::now();
    pause_ = Nanoseconds(0);
    token_ = grant_.token();
    nodes_ = grant_.nodes();
    timeout_ = session_->info().timeout;
    lease_seen_ = acquired_at_ + grant_.remaining_lease();
    grant_session_ = grant_.session_id();
    on_lost_.emplace(grant_.lost(), [event_queue = event_queue_] { event_queue->post_lost(); });
    stop_watching();
    const std::int64_t wait_ms = in_ms(waited());
    boost::json::object acquired = {{"token", token_}, {"wait_ms", wait_ms}};
    merge(acquired, lock_fields(options_, nodes_));
    events_.write("acquired", acquired);
    events_.require_written();
    console_.info("acquired " + options_.lock + ": node " + joined(nodes_) + ", fencing token " +
                  std::to_string(token_));
}

/// Waits for events, for a signal, or until the time. Throws Interrupted for a signal that would end zklock.
EventQueue::Batch LockSession::await(std::optional<Instant> until) {
    for (;;) {
        timespec left{};
        if (until) {
            const Nanoseconds wait = std::max(Nanoseconds(0), *until - BootClock::now());
            left.tv_sec = wait.count() / 1'000'000'000;
            left.tv_nsec = wait.count() % 1'000'000'000;
        }
        pollfd fds[2] = {{signals_.fd(), POLLIN, 0}, {event_queue_->fd(), POLLIN, 0}};
        ::ppoll(fds, 2, until ? &left : nullptr, nullptr);
        while (const auto signal = signals_.next_after_stops()) {
            if (Signals::ends(*signal)) throw Interrupted{*signal};
        }
        EventQueue::Batch batch = event_queue_->take();
        note_states(batch);
        const bool something = !batch.states.empty() || batch.acquired || batch.queue;
        if (something || (until && BootClock::now() >= *until)) return batch;
    }
}

void LockSession::note_states(const EventQueue::Batch& batch) {
    for (const StateChange& change : batch.states) {
        state_ = change.state;
        if (state_ != SessionState::connected) continue;
        // A session that was lost by our own clock may go on, and with it the place in the queue.
        const std::int64_t session = session_->info().session_id;
        if (waits_in_ != 0 && session != waits_in_) {
            console_.warning("the session ended while waiting for " + options_.lock +
                             ": zklock waits again, at the tail of the queue");
        }
        waits_in_ = session;
    }
    if (state_ != SessionState::closed) return;
    session_->wait_connected(Deadline::passed());  // throws what closed it
    throw Failure(kInternal, "the session was closed");
}

void LockSession::connect() {
    std::optional<Instant> until;
    if (options_.connect_timeout) until = started_at_ + *options_.connect_timeout;
    if (options_.wait_limit && !options_.nonblock) {
        const Instant limit = started_at_ + *options_.wait_limit;
        until = until ? std::min(*until, limit) : limit;
    }
    const Instant show_at = started_at_ + std::chrono::seconds(1);
    std::optional<Instant> warn_at = started_at_ + std::chrono::seconds(10);
    while (state_ != SessionState::connected) {
        const Instant now = BootClock::now();
        if (until && now >= *until) throw not_connected_within(*until - started_at_, *session_, options_);
        if (now >= show_at) console_.progress("zklock: " + silence(*session_));
        if (warn_at && now >= *warn_at) {
            console_.warning(silence(*session_) + "; zklock goes on trying, and zklock ping says more");
            warn_at.reset();
        }
        const Instant next = now + std::chrono::seconds(1);
        await(until ? std::min(*until, next) : next);
    }
    console_.progress("");
    const SessionInfo info = session_->info();
    events_.write(
        "connected",
        {{"server", info.server}, {"session", hex(info.session_id)}, {"session_timeout_ms", info.timeout.count()}});
    events_.require_written();
}

void LockSession::check_negotiated() const {
    const milliseconds timeout = session_->info().timeout;
    if (timeout.count() == 0) return;  // lost again already
    if (timeout != options_.session_timeout) {
        console_.warning("the servers changed the session timeout from " + format_duration(options_.session_timeout) +
                         " to " + format_duration(timeout));
    }
    if (options_.kill_after && *options_.kill_after >= timeout / 2) {
        throw Failure(kUsage, "--kill-after must be less than half the session timeout, which the servers limit to " +
                                  format_duration(timeout));
    }
}

void LockSession::wait_for_grant() {
    Deadline deadline = Deadline::never();
    if (options_.nonblock) {
        deadline = Deadline::passed();
    } else if (options_.wait_limit) {
        deadline = Deadline(*options_.wait_limit - (BootClock::now() - started_at_));
    }
    grant_ = Grant();
    acquire_fn_(deadline, stop_wait_.get_token(),
                [event_queue = event_queue_](AcquireResult result) { event_queue->post_acquired(std::move(result)); });
    if (!options_.nonblock && !queue_watch_.joinable()) watch_queue();
    try {
        for (;;) {
            EventQueue::Batch batch = await(std::nullopt);
            if (batch.queue) show_queue(*batch.queue);
            if (!batch.acquired) continue;
            if (batch.acquired->error) std::rethrow_exception(batch.acquired->error);
            grant_ = std::move(batch.acquired->value);
            if (grant_) return;
            give_up();
        }
    } catch (const Error& error) {
        explain(error);
    } catch (const Interrupted&) {
        // Leave the queue while the session lives. Closing the session would also remove the node.
        stop_wait_.request_stop();
        stop_watching();
        const Instant limit = BootClock::now() + std::chrono::seconds(1);
        try {
            while (BootClock::now() < limit && !await(limit).acquired) {
            }
        } catch (const Interrupted&) {  // a second signal: do not wait
        }
        throw;
    }
}

void LockSession::give_up() {
    stop_watching();
    if (grant_.missed() == Missed::unreachable) {
        throw Failure(kUnavailable, not_acquired() + ", and " + why_no_answer_came(*session_, options_), "unavailable");
    }
    const std::string after = options_.nonblock ? "" : " after " + format_duration(*options_.wait_limit);
    throw Failure(options_.conflict_exit_code, not_acquired() + after + holder_in_words(), "busy");
}

std::string LockSession::not_acquired() const {
    return options_.lock + (options_.locks.size() > 1 ? " were not acquired" : " was not acquired");
}

/// Called in the handler of a failed acquire. For a semaphore of another size it names the stored number.
void LockSession::explain(const Error& error) {
    if (options_.locks.front().mode != Mode::semaphore || error.errc() != Errc::bad_option) throw;
    std::int32_t agreed = 0;
    try {
        agreed = inspect_lock(*session_, options_.lock, Deadline(std::chrono::seconds(1)), false).leases;
    } catch (const Error&) {  // the message has no number then
    }
    if (agreed == 0 || agreed == options_.leases) throw failure_of(error, options_);
    throw Failure(kBadData, options_.lock + " has " + std::to_string(agreed) + " leases, not " +
                                std::to_string(options_.leases) + ": use -j " + std::to_string(agreed) +
                                ". To change the number, use zklock leases " + options_.lock + " N");
}

std::string LockSession::holder_in_words() {
    if (options_.quiet && options_.result.empty()) return {};
    try {
        for (const LockSpec& lock : options_.locks) {
            const LockView view = inspect_lock(*session_, lock.path, Deadline(std::chrono::seconds(1)), false);
            for (const Participant& participant : view.participants) {
                const bool beside_us = lock.mode == Mode::shared && participant.mode == "shared";
                // In a set, this client may still be first in one queue while it waits in another.
                const bool ourselves = participant.session_id == session_->info().session_id;
                if (ourselves || beside_us) continue;
                if (!participant.holder && lock.mode != Mode::shared) break;
                const std::string where = options_.together ? lock.path + " is " : "";
                return ": " + where + (participant.holder ? "held by " : "wanted exclusively by an earlier waiter, ") +
                       describe(participant, std::chrono::system_clock::now());
            }
        }
    } catch (const Error&) {  // only a courtesy
    }
    return {};
}

Instant LockSession::lease_until() noexcept {
    // Read the clock first: then the result is at worst too early, never too late.
    const Instant now = BootClock::now();
    const milliseconds left = grant_.remaining_lease();
    if (left.count() <= 0) return {};
    return lease_seen_ = now + left;
}

void LockSession::look() noexcept {
    const Instant now = BootClock::now();
    const Instant until = lease_until();
    if (now - looked_at_ >= timeout_ / 3) {
        pause_ = now - looked_at_;
        lease_after_pause_ = until;
    } else if (until > lease_after_pause_ + milliseconds(2)) {  // readings differ by a millisecond
        pause_ = Nanoseconds(0);
    }
    looked_at_ = now;
}

void LockSession::ask_now() {
    const auto ask = [this, event_queue = event_queue_] {
        const Instant asked = BootClock::now();
        const Deadline deadline(milliseconds(1000));
        const auto ours = [this](const Participant& participant) {
            return participant.token == token_ && participant.session_id == grant_session_;
        };
        try {
            for (const LockSpec& lock : options_.locks) {
                // inspect_lock begins with a sync, so later reads are up to date, too.
                std::vector<Participant> all = inspect_lock(*session_, lock.path, deadline).participants;
                if (lock.mode == Mode::leader) all = LeaderElection(*session_, lock.path).candidates(deadline);
                if (std::none_of(all.begin(), all.end(), ours)) return asks_.store(false);
            }
            event_queue->post_confirmed(asked);
        } catch (...) {  // not readable, no answer, no memory: the next check of the library must do
        }
        asks_ = false;
    };
    if (asks_.exchange(true)) return;  // waiting for an earlier thread would delay the checks of the lease
    try {
        asking_ = std::jthread(ask);
    } catch (const std::system_error&) {  // no thread to be had: the same
        asks_ = false;
    }
}

void LockSession::warn_of_stop(const std::string& who) {
    const Nanoseconds left = std::max(Nanoseconds(0), lease_until() - BootClock::now());
    console_.warning(who + " is stopped; the lock is lost unless it continues within " + format_duration(left));
}

std::string LockSession::unconfirmed_reason() const {
    const std::string cause = loss_log_->cause();
    if (pause_ == Nanoseconds(0)) {
        return "no server confirmed the lock in time" + (cause.empty() ? "" : ": " + printable(cause));
    }
    return "zklock did not run for " + format_duration(pause_) + ", so no server confirmed the lock in time";
}

std::string LockSession::loss_reason() {
    const bool slept = pause_ > Nanoseconds(0) && lease_after_pause_ == Instant() && lease_seen_ <= BootClock::now();
    if (slept) return unconfirmed_reason();
    switch (why_lost()) {
        case LossReason::node_gone:
            return (nodes_.size() == 1 ? "its node " : "one of its nodes ") + joined(nodes_) + " is gone";
        case LossReason::session_ended: return "the session expired";
        case LossReason::closed: return why_closed();
        case LossReason::lease_ended:
        case LossReason::suspended:  // this and the next: by options that zklock does not set
        case LossReason::max_hold: break;
    }
    return unconfirmed_reason();
}

std::string LockSession::why_closed() {
    try {
        session_->wait_connected(Deadline::passed());
    } catch (const Error& error) {
        return in_words(error, options_);
    }
    return "the session was closed";
}

void LockSession::release() {
    on_lost_.reset();
    if (!grant_) return;
    release_confirmed_ = session_->state() == SessionState::connected && grant_.release_and_wait(milliseconds(1000));
    grant_.release();
    const milliseconds timeout = session_->info().timeout;
    session_->close();
    asking_ = {};
    if (!release_confirmed_) {
        const std::string why = loss_log_->not_deleted();
        console_.warning(
            "the servers did not confirm the release of " + options_.lock +
            (why.empty() ? "" : " (" + printable(why) + ": give zklock READ and DELETE on the directory)") +
            "; it is free at the latest " + format_duration(timeout) + " after a majority of the servers works");
    }
}

void LockSession::watch_queue() {
    if (!console_.shows_progress() && !events_.observed() && options_.verbose == 0) return;
    queue_watch_ = std::jthread([this, event_queue = event_queue_](std::stop_token stop) {
        std::mutex mutex;
        std::condition_variable_any pause;
        milliseconds delay(300);  // most locks are free: print nothing before that
        while (!stop.stop_requested()) {
            std::unique_lock lock(mutex);
            pause.wait_for(lock, stop, delay, [] { return false; });
            if (stop.stop_requested()) return;
            delay = milliseconds(1000);
            try {
                QueueView queue = look_at_queues();
                if (queue.position > 0) event_queue->post_queue(std::move(queue));
            } catch (const Error& error) {  // shown again when a server answers
                if (error.errc() == Errc::unreachable) event_queue->post_queue({});
            }
        }
    });
}

/// Of several locks, looks at the first one that is not acquired yet. Runs beside the main thread.
QueueView LockSession::look_at_queues() {
    const Deadline deadline(milliseconds(800));
    const std::int64_t session = session_->info().session_id;
    QueueView queue;
    for (const LockSpec& lock : options_.locks) {
        const LockView view = inspect_lock(*session_, lock.path, deadline, false);
        queue = {};
        queue.total = static_cast<int>(view.participants.size());
        if (options_.together) queue.path = lock.path;
        bool waiting = false;
        for (std::size_t i = 0; i < view.participants.size(); ++i) {
            const Participant& participant = view.participants[i];
            if (participant.session_id == session) {
                queue.position = static_cast<int>(i) + 1;
                waiting = !participant.holder;
            } else if (participant.holder && queue.holder.empty()) {
                queue.holder = describe(participant, std::chrono::system_clock::now());
            }
        }
        if (waiting) break;
    }
    return queue;
}

void LockSession::show_queue(const QueueView& view) {
    const std::string waiting_for = "zklock: waiting for " + options_.lock + " – ";
    if (view.position == 0) {  // no answer
        if (state_ != SessionState::connected) console_.progress(waiting_for + silence(*session_));
        return;
    }
    std::string line = waiting_for;
    if (!view.path.empty()) line += view.path + ": ";
    line += "position " + std::to_string(view.position) + " of " + std::to_string(view.total);
    if (!view.holder.empty()) line += " – held by " + view.holder;
    console_.progress(line);
    if (view.position == shown_.position && view.path == shown_.path) return;
    if (shown_.position == 0) console_.info(line.substr(8));
    shown_ = view;
    boost::json::object waiting = {{"position", view.position}, {"total", view.total}};
    if (!view.path.empty()) waiting["path"] = view.path;
    events_.write("waiting", waiting);
}

void LockSession::stop_watching() {
    if (queue_watch_.joinable()) {
        queue_watch_.request_stop();
        queue_watch_.join();
    }
    console_.progress("");
}

}  // namespace zkrecipes::zklock
