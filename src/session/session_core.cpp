#include "session/session_core.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "base/paths.hpp"
#include "base/wait_event.hpp"
#include "session/stats/session_log.hpp"

namespace zkrecipes::internal {

namespace {

/// A forked child must not destroy what it inherited: the end of a session waits for threads that the child does not
/// have, and tells the servers that the parent's session is over.
void keep_for_ever(std::shared_ptr<SessionLock> session) noexcept {
    struct Kept {
        std::shared_ptr<SessionLock> session;
        Kept* next;
    };
    static std::atomic<Kept*> newest{nullptr};
    auto* const kept = new Kept{std::move(session), newest.load()};
    while (!newest.compare_exchange_weak(kept->next, kept)) {
    }
}

}  // namespace

void check_usable(const SessionCore* core, const char* object, const char* operation, const std::string& user_path) {
    if (core == nullptr) {
        throw Error(Errc::closed, operation, {}, std::string("this ") + object + " object was moved from");
    }
    core->throw_if_inherited(operation, user_path);
}

/// Called when the last pointer of the recipes is gone. It lets go of the object then: weak pointers keep this longer.
struct SessionCore::LastPointer {
    void operator()(SessionCore* core) noexcept {
        const auto last = std::move(self);
        core->inherited() ? keep_for_ever(last) : core->core_is_gone();
    }
    std::shared_ptr<SessionLock> self;
};

std::shared_ptr<SessionCore> SessionCore::open(SessionOptions options, Environment environment) {
    CheckedOptions checked = check_options(options);
    options.tls = std::move(checked.tls);
    options.sasl = std::move(checked.sasl);
    // The probes ask the servers in clear text. With TLS, the client itself finds one that answers.
    if (options.tls) {
        environment.probe = nullptr;
        environment.settings = nullptr;
    }
    auto events = options.events ? std::make_shared<EventQueue>(environment.runtime, options.events) : nullptr;
    auto logger = logger_of(options, events);
    auto* const core = new SessionCore(std::move(options), std::move(checked), std::move(environment),
                                       std::move(events), std::move(logger));
    // Two counts for one object. This one says how long it lives; shared_from_this() is to know nothing of it.
    const std::shared_ptr<SessionLock> self(static_cast<SessionLock*>(core));
    core->kept_by(self);
    // This one says how long the session is open. When what follows throws, it cleans up.
    std::shared_ptr<SessionCore> out(core, LastPointer{self});
    core->run_locked([&] {
        SessionActions actions = core->fsm().start();
        // The first handle is opened in the user's own call: what is wrong with it is thrown to the user.
        core->open_handle(actions.front().handle);
        actions.erase(actions.begin());
        core->apply(actions);
    });
    return out;
}

SessionCore::SessionCore(SessionOptions options, CheckedOptions checked, Environment environment,
                         std::shared_ptr<EventQueue> events, std::shared_ptr<spdlog::logger> logger)
    : SessionLock(std::move(environment.runtime), std::move(logger)),
      SessionMeter(shared_runtime(), options, std::move(events)),
      Connection(*this, *this, std::move(options), std::move(checked.hosts), std::move(environment.clients)),
      Requests(*this, *this, *this, *this, environment.lists_at_once),
      Watches(*this, *this),
      NodeDeletion(*this, *this, *this),
      LeaseKeeper(*this, *this, *this, *this, *this, *this),
      LeaseRenewal(*this, *this, *this, *this),
      prefix_(std::move(checked.prefix)),
      search_(*this, *this, std::move(environment.probe)),
      settings_(*this, *this, std::move(environment.settings),
                [this](std::chrono::milliseconds tick) {
                    const bool attainable = lease_clock().attainable();
                    assume_tick(tick);
                    if (attainable) tell_of_unattainable_leases();
                }),
      notifier_(shared_runtime(), shared_log()) {
    failure_.emplace(kStepFailed, "session", this->options().hosts, "an internal step failed; make a new Session");
}

std::string SessionCore::server_path(const std::string& path, const char* operation) const {
    check_path(path, operation);
    std::string out = join_path(prefix_, path);
    check_lock_path(out, operation);
    return out;
}

std::string SessionCore::user_path(const std::string& server_path) const {
    if (prefix_.empty() || !is_at_or_below(server_path, prefix_)) return server_path;
    return server_path.size() == prefix_.size() ? "/" : server_path.substr(prefix_.size());
}

namespace {

/// As whom the servers know the session: never with a password.
std::string identity_of(const SessionOptions& options) {
    std::string who;
    if (options.sasl) who = "is authenticated as sasl:" + options.sasl->user;
    if (options.tls) who = "presents the certificate " + options.tls->certificate_file;
    for (const Auth& auth : options.auth) {
        who += (who.empty() ? "is authenticated as " : ", ") + auth.scheme;
        if (auth.scheme == "digest") who += ":" + auth.credential.substr(0, auth.credential.find(':'));
    }
    return who.empty() ? "presents no credentials" : who;
}

}  // namespace

std::string SessionCore::explained(Errc error, std::string detail) const {
    const MissingRight& missing = last_missing_right();
    if (error != Errc::no_permission || *missing.right == '\0') return detail;
    if (!detail.empty()) detail += "; ";
    return detail + "the access list of " + missing.path + " does not grant the right '" + missing.right +
           "' to this session, which " + identity_of(options()) +
           "; change the list, or present other credentials (SessionOptions::auth)";
}

void SessionCore::add_observer(SessionObserver& observer) {
    if (closed_because() == nullptr) observers_.add(observer);
}
void SessionCore::add_waiter(SessionObserver& waiter) { observers_.add(waiter); }
void SessionCore::remove_observer(SessionObserver& observer) { observers_.remove(observer); }

std::shared_ptr<void> SessionCore::shared(const std::string& name) const {
    const auto found = shared_.find(name);
    return found == shared_.end() ? nullptr : found->second.lock();
}

void SessionCore::share(const std::string& name, std::weak_ptr<void> object) {
    object.expired() ? void(shared_.erase(name)) : void(shared_[name] = std::move(object));
}

std::string SessionCore::leftovers() {
    std::string text;
    if (!observers_.empty()) text += " an observer";
    if (!connect_waiters_.empty()) text += " a waiter";
    if (has_timers()) text += " a timer";
    if (!watch_table().unused()) text += " a watch";
    if (node_cleaner().pending() != 0) text += " a node to delete";
    for (const LockStats& counted : stats().locks) {
        const std::uint64_t ended = std::accumulate(counted.lost.begin(), counted.lost.end(), counted.released);
        const bool even = counted.waiting == 0 && counted.held == 0 && counted.acquired == ended &&
                          counted.wait.count() == counted.acquired && counted.hold.count() == ended;
        if (!even) text += " a miscount of " + counted.recipe;
    }
    if (!lists_nothing()) text += " a list";
    if (given_up_now() != 0) text += " a call that gave up";
    if (reserved_bytes() != 0) text += " " + std::to_string(reserved_bytes()) + " reserved bytes";
    return text;
}

// ---- waiting for the connection ------------------------------------------------------------------------------------

struct SessionCore::ConnectWaiter {
    WaitEvent event;
    TimerId timer = 0;
    // Set under the session lock before the event.
    bool connected = false;
    bool closed = false;  // closed_because() answers, and never changes
};

void SessionCore::wake_connect_waiters() {
    // They stay in the list until all of them are woken: what throws here is followed by a second call.
    for (const auto& waiter : connect_waiters_) {
        cancel(waiter->timer);
        waiter->connected = connected();
        waiter->closed = closed_because() != nullptr;
        const bool at_once = failed_ && fibers_work_here();  // memory may be short
        at_once ? waiter->event.set() : wake({waiter, &waiter->event});
    }
    connect_waiters_.clear();
}

bool SessionCore::wait_connected(Deadline deadline, std::stop_token stop) {
    throw_if_inherited("wait_connected", {});
    const auto waiter = std::make_shared<ConnectWaiter>();
    const auto give_up = [this, waiter] {
        wake({waiter, &waiter->event});
        std::erase(connect_waiters_, waiter);
    };
    bool waits = false;
    run_locked([&] {
        waiter->closed = closed_because() != nullptr;
        waiter->connected = connected();
        if (waiter->closed || waiter->connected) return;
        const Instant until = runtime().instant(deadline);
        if (until <= runtime().now() || stop.stop_requested()) return;
        waits = true;
        connect_waiters_.push_back(waiter);
        waiter->timer = at(until, give_up);
    });
    if (waits) {
        const std::stop_callback on_stop(stop, [this, &waiter, &give_up] {
            run_locked_or_post([this, waiter, give_up] {
                cancel(waiter->timer);
                give_up();
            });
        });
        waiter->event.wait();
    }
    if (waiter->closed) throw Error(closed_because()->errc(), "wait_connected", options().hosts, closed_detail_);
    return waiter->connected;
}

Subscription SessionCore::watch_state(std::function<void(SessionState)> listener) {
    throw_if_inherited("watch_state", {});
    if (!listener) throw Error(Errc::bad_option, "watch_state", {}, "the listener is empty; pass a callable");
    Subscription out;
    run_locked([&] { out = notifier_.subscribe(std::move(listener), fsm().state()); });
    return out;
}

std::vector<HoldInfo> SessionCore::holds() {
    std::vector<HoldInfo> out;
    run_locked([&] {
        const Instant now = runtime().now();
        hold_table().each([&](const Hold& hold) {
            const HoldRecord& record = hold.record();
            if (!record.label) return;  // nobody was granted it: a kept node
            out.push_back({record.label->recipe, record.label->mode, record.label->path, hold.nodes(), record.token,
                           now - record.since, hold.remaining_lease()});
        });
    });
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.held_for > b.held_for; });
    return out;
}

}  // namespace zkrecipes::internal
