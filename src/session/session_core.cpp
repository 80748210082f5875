#include "session/session_core.hpp"

#include <atomic>
#include <utility>

#include "base/paths.hpp"
#include "session/options_check.hpp"
#include "session/session_impl.hpp"

namespace zkrecipes::internal {

namespace {

/// A forked child must not destroy what it inherited: the end of a session waits for threads that the child does not
/// have, and tells the servers that the parent's session is over.
void keep_for_ever(std::shared_ptr<SessionImpl> impl) noexcept {
    struct Kept {
        std::shared_ptr<SessionImpl> impl;
        Kept* next;
    };
    static std::atomic<Kept*> newest{nullptr};
    auto* const kept = new Kept{std::move(impl), newest.load()};
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

std::shared_ptr<SessionCore> SessionCore::open(SessionOptions options, Environment environment) {
    CheckedOptions checked = check_options(options);
    auto impl = std::make_shared<SessionImpl>(std::move(options), std::move(checked.hosts), std::move(checked.prefix),
                                              std::move(environment));
    const std::shared_ptr<SessionCore> core(new SessionCore(std::move(impl)));
    core->impl_->start();  // when it throws, the destructor cleans up
    return core;
}

SessionCore::SessionCore(std::shared_ptr<SessionImpl> impl) : impl_(std::move(impl)) {}
SessionCore::~SessionCore() { inherited() ? keep_for_ever(impl_) : impl_->core_is_gone(); }

void SessionCore::run_locked(const std::function<void()>& work) {
    throw_if_inherited("session", {});
    const auto keep = impl_;  // `work` may drop the last reference to this core
    keep->inside(work);
}
void SessionCore::run_locked_or_post(std::function<void()> work) noexcept {
    if (inherited()) return;
    const auto keep = impl_;
    keep->run_locked_or_post(std::move(work));
}
bool SessionCore::may_lock() const noexcept { return impl_->may_lock(); }
void SessionCore::defer(std::function<void()> action) { impl_->deferred_.push_back(std::move(action)); }
void SessionCore::lose_when_suspended(const Hold& hold) { impl_->lose_when_suspended(hold); }
void SessionCore::watch_revocation(const std::shared_ptr<Hold>& hold) { impl_->watch_revocation(hold); }

void SessionCore::notify(std::function<void()> callback) { impl_->notify(std::move(callback)); }

Runtime& SessionCore::runtime() const noexcept { return *impl_->runtime_; }
const std::shared_ptr<Runtime>& SessionCore::shared_runtime() const noexcept { return impl_->runtime_; }
const std::shared_ptr<spdlog::logger>& SessionCore::shared_log() const noexcept { return impl_->logger_; }
spdlog::logger& SessionCore::log() const noexcept { return *impl_->logger_; }
const SessionOptions& SessionCore::options() const noexcept { return impl_->options_; }
bool SessionCore::inherited() const noexcept { return impl_->process_.inherited(); }
SessionState SessionCore::state() const noexcept { return inherited() ? SessionState::closed : impl_->state(); }
SessionInfo SessionCore::info() const {
    if (!inherited()) return impl_->info();
    SessionInfo out;
    out.state = SessionState::closed;
    return out;
}
bool SessionCore::connected() const { return impl_->connected(); }
const Incarnation& SessionCore::incarnation() const { return impl_->fsm_.incarnation(); }
const Error* SessionCore::closed_because() const { return impl_->closed_because(); }

std::optional<Error> SessionCore::closed_error(const char* operation, const std::string& user_path) const {
    const Error* why = closed_because();
    if (why == nullptr) return std::nullopt;
    const bool by_us = why->errc() == Errc::closed;
    return Error(why->errc(), operation, user_path, by_us ? "make a new Session" : why->what());
}

void SessionCore::throw_if_inherited(const char* operation, const std::string& user_path) const {
    if (!inherited()) return;
    throw Error(Errc::closed, operation, user_path,
                "this session belongs to the parent process; make a new Session in this process, after the fork");
}

void SessionCore::throw_if_closed(const char* operation, const std::string& user_path) {
    throw_if_inherited(operation, user_path);
    if (state() != SessionState::closed) return;
    std::optional<Error> error;
    run_locked([&] { error = closed_error(operation, user_path); });
    if (error) throw *std::move(error);
}

std::string SessionCore::server_path(const std::string& path, const char* operation) const {
    check_path(path, operation);
    std::string out = join_path(impl_->prefix_, path);
    check_lock_path(out, operation);
    return out;
}

std::string SessionCore::user_path(const std::string& server_path) const {
    const std::string& prefix = impl_->prefix_;
    if (prefix.empty() || !is_at_or_below(server_path, prefix)) return server_path;
    return server_path.size() == prefix.size() ? "/" : server_path.substr(prefix.size());
}

void SessionCore::add_observer(SessionObserver& observer) {
    if (impl_->closed_because() == nullptr) impl_->observers_.add(observer);
}
void SessionCore::add_waiter(SessionObserver& waiter) { impl_->observers_.add(waiter); }
void SessionCore::remove_observer(SessionObserver& observer) { impl_->observers_.remove(observer); }
TimerId SessionCore::at(Instant when, std::function<void()> work) { return impl_->at(when, std::move(work)); }
bool SessionCore::cancel(TimerId timer) { return impl_->cancel(timer); }

void SessionCore::create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                         Done<std::string, const NodeStat&> done) {
    impl_->create(path, data, acl, mode, std::move(done));
}
void SessionCore::remove(const std::string& path, std::int32_t version, Done<> done) {
    impl_->remove(path, version, std::move(done));
}
void SessionCore::exists(const std::string& path, Done<const NodeStat&> done) { impl_->exists(path, std::move(done)); }
void SessionCore::get(const std::string& path, Done<std::string, const NodeStat&> done) {
    impl_->get(path, false, std::move(done));
}
void SessionCore::set(const std::string& path, const std::string& data, std::int32_t version,
                      Done<const NodeStat&> done) {
    impl_->set(path, data, version, std::move(done));
}
void SessionCore::children(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done) {
    impl_->children(path, false, std::move(done));
}
void SessionCore::multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done) {
    impl_->multi(std::move(ops), std::move(done));
}
void SessionCore::sync(const std::string& path, Done<> done) { impl_->sync(path, std::move(done)); }

WatchId SessionCore::watch_node(const std::string& path, WatchListener listener) {
    return impl_->watches_.add(path, std::move(listener));
}
WatchId SessionCore::watch_existence(const std::string& path, WatchListener listener) {
    return impl_->watches_.add(path, std::move(listener), WatchKind::existence);
}
WatchId SessionCore::watch_children(const std::string& path, WatchListener listener) {
    return impl_->watches_.add(path, std::move(listener), WatchKind::children);
}
WatchId SessionCore::watch_directory(const std::string& path, WatchListener listener) {
    return impl_->watches_.add(path, std::move(listener), WatchKind::directory);
}
void SessionCore::unwatch(WatchId watch) { impl_->watches_.remove(watch); }

bool SessionCore::reserve_ephemeral(std::size_t path_bytes) { return impl_->ephemerals_.reserve(path_bytes); }
void SessionCore::release_ephemeral(std::size_t path_bytes) { impl_->ephemerals_.release(path_bytes); }
bool SessionCore::reserve_watch_possible(std::size_t path_bytes) const { return impl_->watches_.room_for(path_bytes); }

void SessionCore::lease_committed(Instant sent_at) { impl_->lease_committed(sent_at); }
void SessionCore::renew_lease(std::vector<std::string> nodes, Done<> done) {
    impl_->renew_lease(std::move(nodes), std::move(done));
}
std::shared_ptr<Hold> SessionCore::begin_hold(std::vector<std::string> nodes, std::int64_t czxid) {
    return impl_->begin_hold(std::move(nodes), czxid);
}
std::shared_ptr<Hold> SessionCore::begin_hold(std::string node, std::int64_t czxid) {
    return impl_->begin_hold({std::move(node)}, czxid);
}
void SessionCore::end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone) {
    impl_->end_hold(hold, std::move(gone));
}
void SessionCore::delete_node(std::string node, std::function<void(bool)> done) {
    impl_->delete_node(std::move(node), std::move(done));
}
void SessionCore::delete_nodes(std::vector<std::string> nodes, std::function<void(bool)> done) {
    impl_->delete_nodes(std::move(nodes), std::move(done));
}
void SessionCore::delete_if_owned(std::string node, std::function<void(bool)> done) {
    impl_->delete_if_owned(std::move(node), std::move(done));
}
void SessionCore::delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool)> done) {
    impl_->delete_by_identity(std::move(directory), std::move(name_prefix), std::move(done));
}
void SessionCore::make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done, CreateMode mode) {
    impl_->make_directory(path, acl, std::move(done), mode);
}

bool SessionCore::wait_connected(Deadline deadline, std::stop_token stop) {
    throw_if_inherited("wait_connected", {});
    return impl_->wait_connected(deadline, std::move(stop));
}
Subscription SessionCore::watch_state(std::function<void(SessionState)> listener) {
    throw_if_inherited("watch_state", {});
    return impl_->watch_state(std::move(listener));
}
void SessionCore::close() noexcept {
    if (inherited()) return;
    const auto keep = impl_;
    keep->close();
}

}  // namespace zkrecipes::internal
