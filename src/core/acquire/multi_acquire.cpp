#include "core/acquire/multi_acquire.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "client/zk_request.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

/// What `count` paths of `bytes` take in a budget that counts each path with four bytes more.
std::size_t budget_bytes(std::size_t bytes, std::size_t count) { return bytes + 4 * (count - 1); }

std::string prefix_of(const MultiQueueSpec& spec, std::size_t member, const std::string& identity) {
    return join_path(spec.members[member].directory, identity + spec.members[member].base);
}

/// As ZkRequest::wire_bytes counts the transaction.
std::size_t wire_bytes(const MultiQueue& queue, std::size_t payload_bytes) {
    constexpr std::size_t kHeader = 64;
    std::size_t acl_bytes = 0;
    for (const Acl& entry : queue.acl) acl_bytes += 12 + entry.scheme.size() + entry.id.size();
    std::size_t bytes = kHeader;
    const std::string identity(kIdentityChars, 'x');
    for (std::size_t i = 0; i < queue.queues.size(); ++i) {
        bytes += kHeader + prefix_of(queue.spec, i, identity).size() + payload_bytes + acl_bytes;
    }
    return bytes;
}

}  // namespace

std::shared_ptr<const MultiQueue> make_multi_queue(const SessionCore& core,
                                                   std::vector<std::shared_ptr<const Queue>> queues,
                                                   LockOptions options, const char* operation) {
    auto queue = std::make_shared<MultiQueue>();
    for (const auto& member : queues) {
        queue->spec.members.push_back({member->spec.directory, member->spec.base, member->rule.get()});
    }
    queue->spec.create_parents = options.create_parents;
    queue->name = queues.front()->user_path;
    if (queues.size() > 1) queue->name += " and " + std::to_string(queues.size() - 1) + " more";
    queue->acl = options.acl ? *options.acl : core.options().acl;
    queue->queues = std::move(queues);
    queue->options = std::move(options);
    const std::size_t payload_bytes = write_payload(queue->options, {}, operation, queue->name).size();
    if (const std::size_t bytes = wire_bytes(*queue, payload_bytes); bytes > kMaxRequestBytes) {
        throw Error(Errc::too_large, operation, queue->name,
                    "the transaction would have " + std::to_string(bytes) + " bytes and the servers take " +
                        std::to_string(kMaxRequestBytes) + "; use shorter paths or fewer of them");
    }
    return queue;
}

// ---- life ---------------------------------------------------------------------------------------------------------

MultiAcquireOp::MultiAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const MultiQueue> queue,
                               const char* operation, Patience patience, Done done)
    : core_(std::move(core)),
      queue_(std::move(queue)),
      operation_(operation),
      done_(std::move(done)),
      fsm_(*this, queue_->spec, patience) {}

void MultiAcquireOp::start(Deadline deadline) {
    self_ = shared_from_this();
    started_ = true;
    if (const Error* why = core_->closed_because()) {
        return fsm_.on_closed(why->errc(), why->errc() == Errc::closed ? "" : why->what());
    }
    if (stopped_early_) return fsm_.stop();
    core_->add_observer(*this);
    observing_ = true;
    if (!deadline.is_never()) {
        deadline_timer_ = core_->at(core_->runtime().instant(deadline), [this] {
            deadline_timer_ = 0;
            fsm_.deadline();
        });
    }
    fsm_.start();
}

void MultiAcquireOp::stop() {
    if (started_) {
        fsm_.stop();
    } else {
        stopped_early_ = true;
    }
}

void MultiAcquireOp::answer(Ended how, Errc error, std::string detail, std::optional<std::size_t> member) {
    AcquireAnswer answer;
    if (how == Ended::failed) {
        answer.error.emplace(error, operation_, member ? queue_->user_path(*member) : queue_->name, detail);
    }
    if (how == Ended::granted) {
        answer.share = std::make_shared<HoldRef>(core_, std::move(hold_), std::exchange(reserved_bytes_, 0));
    }
    std::exchange(done_, nullptr)(std::move(answer));
}

void MultiAcquireOp::finished() {
    if (observing_) core_->remove_observer(*this);
    if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
    if (reserved_bytes_ != 0) give_back_reservation(core_->weak_from_this(), reserved_in_, reserved_bytes_);
    // The core must not be destroyed under the session lock, where answers that nobody waits for may still be dropped.
    SessionCore& session = *core_;
    session.defer([self = std::move(self_), core = std::move(core_)] {});
}

void MultiAcquireOp::on_connected(bool) { fsm_.on_connected(); }
void MultiAcquireOp::on_suspended() { fsm_.on_suspended(); }
void MultiAcquireOp::on_session_lost() { fsm_.on_session_lost(); }
void MultiAcquireOp::on_closed(const Error& why) {
    observing_ = false;
    fsm_.on_closed(why.errc(), why.errc() == Errc::closed ? "" : why.what());
}

// ---- facts --------------------------------------------------------------------------------------------------------

bool MultiAcquireOp::connected() const { return core_->connected(); }
std::uint64_t MultiAcquireOp::incarnation() const { return core_->incarnation().number; }
std::int64_t MultiAcquireOp::session_id() const { return core_->incarnation().session_id; }
Instant MultiAcquireOp::now() const { return core_->runtime().now(); }
std::uint64_t MultiAcquireOp::random() { return core_->runtime().random(); }
std::string MultiAcquireOp::new_uuid() { return random_uuid(core_->runtime()); }
std::optional<std::chrono::milliseconds> MultiAcquireOp::next_delay(const RetryState& state) {
    return core_->options().retry.next(state);
}

std::string MultiAcquireOp::path_of(std::size_t member, const std::string& name) const {
    return join_path(directory(member), name);
}

std::vector<std::string> MultiAcquireOp::paths_of(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!names[i].empty()) paths.push_back(path_of(i, names[i]));
    }
    return paths;
}

std::string MultiAcquireOp::payload() const {
    try {
        return write_payload(queue_->options, core_->runtime().wall_now(), operation_, queue_->name);
    } catch (const Error&) {
        return "{\"v\":1}";  // it fitted when the lock was made; the host may have been given a longer name since
    }
}

// ---- requests -----------------------------------------------------------------------------------------------------

void MultiAcquireOp::create(Ticket ticket, const std::string& identity) {
    const std::string data = payload();
    std::vector<MultiOp> ops(size());
    for (std::size_t i = 0; i < size(); ++i) {
        ops[i].kind = MultiOp::Kind::create;
        ops[i].path = prefix_of(queue_->spec, i, identity);
        ops[i].data = data;
        ops[i].acl = queue_->acl;
        ops[i].mode = CreateMode::ephemeral_sequential;
    }
    const auto self = shared_from_this();
    core_->multi(std::move(ops), [self, ticket](Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
        std::vector<std::string> paths(self->size());
        for (std::size_t i = 0; rc == Rc::ok && i < paths.size(); ++i) paths[i] = results[i].path;
        const auto refused = std::find_if(results.begin(), results.end(), [rc](const auto& r) { return r.rc == rc; });
        const auto member = results.size() == paths.size() ? refused - results.begin() : paths.size();
        self->fsm_.on_created(ticket, rc, paths, static_cast<std::size_t>(member), sent_at);
    });
    for (std::size_t i = 0; i < size(); ++i) {
        core_->exists(directory(i), [self, ticket, i](Rc rc, const NodeStat& stat, Instant) {
            self->fsm_.on_parent(ticket, i, rc, stat);
        });
    }
}

void MultiAcquireOp::make_directory(Ticket ticket, std::size_t member) {
    core_->make_directory(directory(member), queue_->acl, [self = shared_from_this(), ticket, member](Rc rc, Instant) {
        self->fsm_.on_directory(ticket, member, rc);
    });
}

void MultiAcquireOp::list(Ticket ticket, std::size_t member) {
    core_->children(directory(member), [self = shared_from_this(), ticket, member](
                                           Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
        self->fsm_.on_children(ticket, member, rc, names);
    });
}

void MultiAcquireOp::sync(Ticket ticket) {
    // Of one path is of all: the server catches up with the leader as a whole.
    core_->sync(directory(0),
                [self = shared_from_this(), ticket](Rc rc, Instant) { self->fsm_.on_synced(ticket, rc); });
}

void MultiAcquireOp::look_at_first(Ticket ticket, const std::string& name) {
    core_->exists(path_of(0, name), [self = shared_from_this(), ticket](Rc rc, const NodeStat& stat, Instant) {
        self->fsm_.on_own(ticket, rc, stat);
    });
}

void MultiAcquireOp::watch(Ticket ticket, std::size_t member, const std::string& name) {
    if (watches_.empty()) watches_.resize(size());
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket, member](Rc rc, const std::string&, const NodeStat&) {
        if (rc != Rc::ok) watches_[member] = 0;
        fsm_.on_watching(ticket, member, rc);
    };
    listener.fired = [this, ticket, member](WatchEventType type) {
        watches_[member] = 0;
        fsm_.on_watch_fired(ticket, member, type);
    };
    watches_[member] = core_->watch_node(path_of(member, name), std::move(listener));
}

void MultiAcquireOp::unwatch() {
    for (auto& watch : watches_) {
        if (watch != 0) core_->unwatch(std::exchange(watch, 0));
    }
}

void MultiAcquireOp::renew_lease(Ticket ticket, const std::vector<std::string>& names) {
    core_->renew_lease(paths_of(names), [self = shared_from_this(), ticket](Rc rc, Instant) {
        self->fsm_.on_lease_renewed(ticket, rc);
    });
}

// ---- budgets, lease, cleaning up ----------------------------------------------------------------------------------

bool MultiAcquireOp::reserve_nodes(const std::string& identity) {
    const auto present = core_->incarnation().number;
    if (reserved_bytes_ != 0 && reserved_in_ == present) return true;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < size(); ++i) bytes += prefix_of(queue_->spec, i, identity).size() + kSequenceChars;
    bytes = budget_bytes(bytes, size());
    if (!core_->reserve_ephemeral(bytes)) return false;
    reserved_bytes_ = bytes;
    reserved_in_ = present;
    return true;
}

bool MultiAcquireOp::may_watch(const std::vector<std::string>& names) {
    const auto paths = paths_of(names);
    std::size_t bytes = 0;
    for (const auto& path : paths) bytes += path.size();
    return paths.empty() || core_->reserve_watch_possible(budget_bytes(bytes, paths.size()));
}

void MultiAcquireOp::lease_committed(Instant sent_at) { core_->lease_committed(sent_at); }

bool MultiAcquireOp::begin_hold(const std::vector<std::string>& names, std::int64_t czxid) {
    hold_ = core_->begin_hold(paths_of(names), czxid);
    return hold_ != nullptr;
}

std::function<void(bool)> MultiAcquireOp::reservation_release() {
    if (reserved_bytes_ == 0) return {};
    return [weak = core_->weak_from_this(), incarnation = reserved_in_,
            bytes = std::exchange(reserved_bytes_, 0)](bool gone) {
        if (gone) give_back_reservation(weak, incarnation, bytes);
    };
}

void MultiAcquireOp::delete_nodes(const std::vector<std::string>& names) {
    auto paths = paths_of(names);
    if (!paths.empty()) core_->delete_nodes(std::move(paths), reservation_release());
}

void MultiAcquireOp::cleaner_stray(std::size_t member, const std::string& name) {
    core_->delete_node(path_of(member, name));
}

void MultiAcquireOp::delete_by_identity(const std::string& identity) {
    struct Rest {
        std::size_t open;
        bool all_gone;
        std::function<void(bool)> done;
    };
    const auto rest = std::make_shared<Rest>(Rest{size(), true, reservation_release()});
    for (std::size_t i = 0; i < size(); ++i) {
        core_->delete_by_identity(directory(i), identity, [rest](bool gone) {
            rest->all_gone = rest->all_gone && gone;
            if (--rest->open == 0 && rest->done) rest->done(rest->all_gone);
        });
    }
}

void MultiAcquireOp::start_timer(std::chrono::milliseconds delay) {
    retry_timer_ = core_->at(core_->runtime().now() + delay, [this] {
        retry_timer_ = 0;
        fsm_.on_timer();
    });
}

void MultiAcquireOp::stop_timer() {
    if (retry_timer_ != 0) core_->cancel(std::exchange(retry_timer_, 0));
}

void MultiAcquireOp::note(const char* what) {
    core_->log().warn("{} {}: {} (session {:#x}, node {})", operation_, queue_->name, what, printable(session_id()),
                      fsm_.nodes().front().empty() ? "none" : path_of(0, fsm_.nodes().front()));
}

void MultiAcquireOp::running_out(std::size_t member) {
    if (queue_->queues[member]->warned.exchange(true, std::memory_order_relaxed)) return;
    core_->log().warn(
        "{} {}: more than half of the sequence numbers of this lock directory are used up; delete it while nobody "
        "uses it",
        operation_, queue_->user_path(member));
}

}  // namespace zkrecipes::internal
