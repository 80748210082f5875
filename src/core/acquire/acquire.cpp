#include "core/acquire/acquire.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/paths.hpp"
#include "core/operation/wait.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::chrono::hours kLongestDelay{366 * 24};  // far within what the clock can count

void check_local(const LockOptions& options, const BaseName& base, const char* operation, const std::string& path) {
    const bool keeps = options.keep_for.count() != 0;
    if (options.keep_for.count() < 0 || options.local_turn.count() < 0) {
        throw Error(Errc::bad_option, operation, path, "keep_for or local_turn is negative");
    }
    if (options.keep_for > kLongestDelay || options.local_turn > kLongestDelay) {
        throw Error(Errc::bad_option, operation, path,
                    "keep_for or local_turn is longer than a year; use at most 366 days");
    }
    if ((keeps || options.local_handovers > 0) && !base.takes_local) {
        throw Error(Errc::unsupported, operation, path,
                    "local_handovers and keep_for are options of ExclusiveMutex and ReadWriteLock");
    }
    if (keeps && options.delay_after_loss.count() > 0) {
        throw Error(
            Errc::bad_option, operation, path,
            "keep_for and delay_after_loss: a node without a holder would look like a holder that vanished; set "
            "only one of them");
    }
}

}  // namespace

std::shared_ptr<const Queue> make_queue(const SessionCore& core, const std::string& path, LockOptions options,
                                        const BaseName& base, std::shared_ptr<const QueueRule> rule,
                                        const char* operation, std::string_view child, NodeData data) {
    auto queue = std::make_shared<Queue>();
    queue->spec.directory = core.server_path(path, operation);
    if (path == "/") {
        throw Error(Errc::bad_path, operation, path,
                    "the root is full of other things; give the lock a directory of its own");
    }
    if (!child.empty()) queue->spec.directory = join_path(queue->spec.directory, child);
    if (options.acl && options.acl->empty()) {
        throw Error(Errc::bad_option, operation, path, "an empty access list would shut everybody out, us included");
    }
    const std::string own_base = options.dialect == Dialect::kazoo ? base.kazoo : base.curator;
    if (own_base.empty()) {
        throw Error(Errc::unsupported, operation, path,
                    "the kazoo dialect is that of ExclusiveMutex and ReadWriteLock; use Curator's, the default");
    }
    if (options.delay_after_loss.count() < 0) {
        throw Error(Errc::bad_option, operation, path, "delay_after_loss is negative");
    }
    if (options.delay_after_loss > kLongestDelay) {
        throw Error(Errc::bad_option, operation, path,
                    "delay_after_loss is longer than a year; a lock that nobody may have again without an operator is "
                    "better kept shut by a Barrier");
    }
    if (options.delay_after_loss.count() > 0 && !base.is_mutex) {
        throw Error(
            Errc::unsupported, operation, path,
            "delay_after_loss is an option of ExclusiveMutex; let the resource compare fencing tokens, or write by "
            "Transaction");
    }
    if (options.max_hold.count() < 0) throw Error(Errc::bad_option, operation, path, "max_hold is negative");
    if (options.max_hold > kLongestDelay) {
        throw Error(Errc::bad_option, operation, path, "max_hold is longer than a year; use at most 366 days");
    }
    check_local(options, base, operation, path);
    if (data == NodeData::about_owner) queue->payload.emplace(options, operation, path);
    queue->spec.base = own_base;
    queue->spec.dialect = options.dialect;
    queue->spec.rule = rule.get();
    queue->persistent = options.delay_after_loss.count() > 0;
    queue->spec.create_parents = options.create_parents;
    // With a delay the directory's data are read and written before the lock is used: there is nothing to gain.
    queue->spec.fast_handover = base.is_mutex && own_base == base.curator && options.delay_after_loss.count() == 0;
    const char* const mode = !child.empty()                         ? "semaphore"
                             : rule == rule_shared(options.dialect) ? "shared"
                                                                    : "exclusive";
    queue->label = core.label(operation, mode, path);
    queue->rule = std::move(rule);
    queue->user_path = path;
    queue->acl = options.acl ? *options.acl : core.options().acl;
    queue->options = std::move(options);
    return queue;
}

std::string node_data(const SessionCore& core, const Queue& queue) {
    if (!queue.payload) return queue.options.id;
    return queue.payload->at(core.runtime().wall_now(), queue.waiting.load(std::memory_order_relaxed));
}

// ---- begin and end ------------------------------------------------------------------------------------------------

Acquisition::~Acquisition() {
    if (core_) core_->forget(wait_);
}

void Acquisition::on_start() {
    if (measured_) core_->wait_begins(wait_, label());
}

void Acquisition::outcome_left_open() {
    left_open_ = true;
    core_->call_left_open();
}

void Acquisition::finished() {
    if (left_open_) core_->left_call_ended();
    Operation::finished();
}

void Acquisition::show_in_front(std::size_t contenders) {
    if (measured_) core_->in_front(wait_, contenders);
    if (told_in_front_) told_in_front_(contenders);
}

void Acquisition::deliver(AcquireAnswer answer) {
    if (measured_) {
        if (answer.share) {
            core_->granted(wait_, answer.share->own_hold()->record(), answer.share->token());
        } else if (answer.error) {
            core_->failed(wait_, *answer.error);
        } else {
            core_->missed(wait_, answer.missed);
        }
    }
    std::exchange(done_, nullptr)(std::move(answer));
}

namespace {

Missed missed_by(Ended how) noexcept {
    switch (how) {
        case Ended::busy: return Missed::busy;
        case Ended::unreachable: return Missed::unreachable;
        case Ended::stopped: return Missed::stopped;
        case Ended::granted:
        case Ended::failed: break;
    }
    return Missed::none;
}

}  // namespace

Ended ended_as(const AcquireAnswer& answer) noexcept {
    if (answer.error) return Ended::failed;
    for (const Ended how : {Ended::busy, Ended::unreachable, Ended::stopped}) {
        if (missed_by(how) == answer.missed) return how;
    }
    return Ended::granted;
}

void Acquisition::deliver(Ended how, Errc error, const std::string& user_path, std::string detail, std::int64_t token) {
    AcquireAnswer answer;
    answer.missed = missed_by(how);
    if (how == Ended::failed)
        answer.error.emplace(error, operation_, user_path, core_->explained(error, std::move(detail)));
    if (how == Ended::granted) {
        answer.share = std::make_shared<HoldRef>(core_, std::move(hold_), reserved_.take(), token);
        on_share(answer.share);
    }
    deliver(std::move(answer));
}

AcquireOp::AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Patience patience, Done done)
    : AcquireOp(std::move(core), std::move(queue), operation, std::move(done), [this, patience](AcquirePort& port) {
          return std::make_unique<AcquireFsm>(port, queue_->spec, patience);
      }) {}

AcquireOp::AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Done done, const MakeFsm& make)
    : Acquisition(std::move(core), operation, std::move(done)), queue_(std::move(queue)), fsm_(make(*this)) {}

void AcquireOp::answer(Ended how, Errc error, std::string detail) {
    deliver(how, error, queue_->user_path, std::move(detail));
}

void AcquireOp::on_share(const std::shared_ptr<HoldRef>& share) {
    if (queue_->payload) share->describe({queue_, &queue_->options});
    // With a delay it is not granted yet.
    if (queue_->options.delay_after_loss.count() == 0) share->limit_to(queue_->options.max_hold);
}

std::string AcquireOp::path_of(const std::string& name) const { return join_path(queue_->spec.directory, name); }
std::size_t AcquireOp::path_bytes(const std::string& name) const {
    return queue_->spec.directory.size() + 1 + name.size();
}

// ---- requests -----------------------------------------------------------------------------------------------------

void AcquireOp::create(Ticket ticket, const std::string& prefix, ReadBehind read) {
    core_->create(path_of(prefix), node_data(*core_, *queue_), queue_->acl, CreateMode::ephemeral_sequential,
                  answered([this, ticket](Rc rc, const std::string& path, const NodeStat& stat, Instant sent_at) {
                      fsm_->on_created(ticket, rc, path, stat, sent_at);
                  }));
    if (read == ReadBehind::names) return list(ticket);
    core_->exists(queue_->spec.directory, answered([this, ticket](Rc rc, const NodeStat& stat, Instant) {
                      fsm_->on_parent(ticket, rc, stat);
                  }));
}

void AcquireOp::make_directory(Ticket ticket) {
    core_->make_directory(
        queue_->spec.directory, queue_->acl,
        answered([this, ticket](Rc rc, Instant) { fsm_->on_directory(ticket, rc); }),
        // kazoo looks for its directory once, and does not expect that the servers remove it.
        queue_->spec.dialect == Dialect::kazoo || queue_->persistent ? CreateMode::persistent : CreateMode::container);
}

void AcquireOp::list(Ticket ticket) {
    core_->list(queue_->spec.directory,
                answered([this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                    fsm_->on_children(ticket, rc, names);
                }));
}

void AcquireOp::sync(Ticket ticket) {
    core_->sync(queue_->spec.directory, answered([this, ticket](Rc rc, Instant) { fsm_->on_synced(ticket, rc); }));
}

void AcquireOp::look_at(Ticket ticket, const std::string& name) {
    core_->exists(path_of(name),
                  answered([this, ticket](Rc rc, const NodeStat& stat, Instant) { fsm_->on_own(ticket, rc, stat); }));
}

void AcquireOp::watch(Ticket ticket, const std::string& name) {
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object, and ten thousand
    // waiters should not cost two allocations each.
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket](Rc rc, const std::string&, const NodeStat& stat) {
        fsm_->on_watching(ticket, rc, stat.ephemeral_owner);
    };
    listener.fired = [this, ticket](WatchEventType type) { fsm_->on_watch_fired(ticket, type); };
    replace(watch_, core_->watch_node(path_of(name), std::move(listener)));
}

/// First the new one: it may watch the same node, and then there is nothing to take away.
void AcquireOp::replace(SessionCore::WatchId& watch, SessionCore::WatchId by) {
    if (watch != 0) core_->unwatch(watch);
    watch = by;
}

void AcquireOp::is_next(const std::string& name) {
    if (!next_.empty()) return;
    next_ = path_of(name);
    core_->is_next(next_, [this, name](Rc rc) {
        next_.clear();  // the session has forgotten it
        fsm_->on_next_refused(name, rc);
    });
}

void AcquireOp::unwatch() {
    if (!next_.empty()) core_->no_longer_next(std::exchange(next_, {}));
    if (hold_ != nullptr) {
        // Granted on the event: what changed the directory is told in a moment. An end of the own node is the hold's.
        core_->watch_table().abandon(std::exchange(directory_, 0));
        if (own_ != 0) core_->take_watch(hold_, std::exchange(own_, 0));
    }
    for (auto* watch : {&watch_, &second_, &directory_, &own_}) replace(*watch, 0);
}

void AcquireOp::watch_second(Ticket ticket, const std::string& name) {
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket](Rc rc, const std::string&, const NodeStat&) { fsm_->on_second(ticket, rc); };
    listener.fired = [this, ticket](WatchEventType type) { fsm_->on_second_fired(ticket, type); };
    replace(second_, core_->watch_node(path_of(name), std::move(listener)));
}

bool AcquireOp::look_ahead(Ticket ticket) {
    SessionCore::WatchListener listener;
    listener.listed = [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&) {
        fsm_->on_looked_ahead(ticket, rc, names);
    };
    listener.fired = [this, ticket](WatchEventType) { fsm_->on_directory_fired(ticket); };
    replace(directory_, core_->watch_children(queue_->spec.directory, std::move(listener)));
    return directory_ != 0;
}

void AcquireOp::watch_own(Ticket ticket, const std::string& name) {
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket](Rc rc, const std::string&, const NodeStat& stat) {
        fsm_->on_own_watched(ticket, rc, stat);
    };
    listener.fired = [this, ticket](WatchEventType type) { fsm_->on_own_fired(ticket, type); };
    replace(own_, core_->watch_node(path_of(name), std::move(listener)));
}

void AcquireOp::renew_lease(Ticket ticket, const std::string& name) {
    core_->renew_lease({path_of(name)},
                       answered([this, ticket](Rc rc, Instant) { fsm_->on_lease_renewed(ticket, rc); }));
}

// ---- budgets, lease, cleaning up ----------------------------------------------------------------------------------

bool AcquireOp::reserve_node(const std::string& prefix) {
    return reserved_.reserve(*core_, path_bytes(prefix) + kSequenceChars);
}

bool AcquireOp::may_watch(const std::string& name) { return core_->reserve_watch_possible(path_bytes(name)); }

void AcquireOp::lease_committed(Instant sent_at) { core_->lease_committed(sent_at); }

bool AcquireOp::begin_hold(const std::string& name, std::int64_t czxid) {
    hold_ = core_->begin_hold(path_of(name), czxid);
    return hold_ != nullptr;
}

void AcquireOp::delete_node(const std::string& name) {
    // A second node of the same create has no reservation of its own.
    const bool own = fsm_->node().empty() || fsm_->node() == name;
    core_->delete_node(path_of(name), own ? reserved_.release_when_gone(*core_) : std::function<void(bool)>(),
                       DeletedFor::giving_up);
}

void AcquireOp::delete_by_identity(const std::string& identity) {
    core_->delete_by_identity(queue_->spec.directory, identity, reserved_.release_when_gone(*core_),
                              DeletedFor::giving_up);
}

void AcquireOp::note(const char* what) {
    core_->log().warn("{} {}: {} (session {:#x}, node {})", operation_, queue_->user_path, what,
                      printable(session_id()), fsm_->node().empty() ? "none" : fsm_->node());
}

void AcquireOp::running_out() {
    if (queue_->warned.exchange(true, std::memory_order_relaxed)) return;
    note("more than half of the sequence numbers of this lock directory are used up; delete it while nobody uses it");
}

// ---- waiting for it -----------------------------------------------------------------------------------------------

MakeAcquisition queue_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                                  const char* operation) {
    return [&core, &queue, operation](Patience patience, Acquisition::Done done) {
        return std::make_shared<AcquireOp>(core, queue, operation, patience, std::move(done));
    };
}

Acquired acquire_blocking(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                          const char* operation, Deadline deadline, std::stop_token stop) {
    return acquire_blocking(core, queue_acquisition(core, queue, operation), deadline, std::move(stop));
}

Acquired acquire_blocking(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, Deadline deadline,
                          std::stop_token stop) {
    return run_blocking<AcquireAnswer>(core, measured(make), deadline, std::move(stop));
}

}  // namespace zkrecipes::internal
