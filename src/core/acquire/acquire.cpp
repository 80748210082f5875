#include "core/acquire/acquire.hpp"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "core/operation/wait.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::chrono::hours kLongestDelay{366 * 24};  // far within what the clock can count

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
    if (options.delay_after_loss.count() > 0 && !base.takes_delay) {
        throw Error(
            Errc::unsupported, operation, path,
            "delay_after_loss is an option of ExclusiveMutex; let the resource compare fencing tokens, or write by "
            "Transaction");
    }
    if (data == NodeData::about_owner) write_payload(options, {}, operation, path);  // throws now, not in an acquire
    queue->spec.base = own_base;
    queue->spec.dialect = options.dialect;
    queue->spec.rule = rule.get();
    queue->persistent = options.delay_after_loss.count() > 0;
    queue->spec.create_parents = options.create_parents;
    queue->rule = std::move(rule);
    queue->user_path = path;
    queue->acl = options.acl ? *options.acl : core.options().acl;
    queue->options = std::move(options);
    queue->data = data;
    return queue;
}

std::string node_data(const SessionCore& core, const Queue& queue, const char* operation) {
    if (queue.data == NodeData::id_alone) return queue.options.id;
    try {
        return write_payload(queue.options, core.runtime().wall_now(), operation, queue.user_path);
    } catch (const Error&) {
        return "{\"v\":1}";  // it fitted when the queue was made; the host may have been given a longer name since
    }
}

// ---- life ---------------------------------------------------------------------------------------------------------

AcquireOp::AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Patience patience, Done done)
    : AcquireOp(std::move(core), std::move(queue), operation, std::move(done), [this, patience](AcquirePort& port) {
          return std::make_unique<AcquireFsm>(port, queue_->spec, patience);
      }) {}

AcquireOp::AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Done done, const MakeFsm& make)
    : core_(std::move(core)),
      queue_(std::move(queue)),
      operation_(operation),
      done_(std::move(done)),
      fsm_(make(*this)) {}

void AcquireOp::start(Deadline deadline) {
    self_ = shared_from_this();
    started_ = true;
    if (const Error* why = core_->closed_because()) {
        return fsm_->on_closed(why->errc(), why->errc() == Errc::closed ? "" : why->what());
    }
    if (stopped_early_) return fsm_->stop();
    core_->add_observer(*this);
    observing_ = true;
    if (!deadline.is_never()) {
        deadline_timer_ = core_->at(core_->runtime().instant(deadline), [this] {
            deadline_timer_ = 0;
            fsm_->deadline();
        });
    }
    fsm_->start();
}

void AcquireOp::stop() {
    if (started_) {
        fsm_->stop();
    } else {
        stopped_early_ = true;
    }
}

void AcquireOp::answer(Ended how, Errc error, std::string detail) {
    AcquireAnswer answer;
    if (how == Ended::failed) answer.error.emplace(error, operation_, queue_->user_path, detail);
    if (how == Ended::granted) {
        answer.share = std::make_shared<HoldRef>(core_, std::move(hold_), std::exchange(reserved_bytes_, 0));
    }
    std::exchange(done_, nullptr)(std::move(answer));
}

void AcquireOp::finished() {
    if (observing_) core_->remove_observer(*this);
    if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
    if (reserved_bytes_ != 0) give_back_reservation(core_->weak_from_this(), reserved_in_, reserved_bytes_);
    // Answers to reads that nobody waits for may still come and are ignored. But they are dropped under the session
    // lock, where the core must not be destroyed: it is let go here.
    SessionCore& session = *core_;
    session.defer([self = std::move(self_), core = std::move(core_)] {});
}

void AcquireOp::on_connected(bool) { fsm_->on_connected(); }
void AcquireOp::on_suspended() { fsm_->on_suspended(); }
void AcquireOp::on_session_lost() { fsm_->on_session_lost(); }
void AcquireOp::on_closed(const Error& why) {
    observing_ = false;
    fsm_->on_closed(why.errc(), why.errc() == Errc::closed ? "" : why.what());
}

// ---- facts --------------------------------------------------------------------------------------------------------

bool AcquireOp::connected() const { return core_->connected(); }
std::uint64_t AcquireOp::incarnation() const { return core_->incarnation().number; }
std::int64_t AcquireOp::session_id() const { return core_->incarnation().session_id; }
Instant AcquireOp::now() const { return core_->runtime().now(); }
std::uint64_t AcquireOp::random() { return core_->runtime().random(); }
std::string AcquireOp::new_uuid() { return random_uuid(core_->runtime()); }
std::optional<std::chrono::milliseconds> AcquireOp::next_delay(const RetryState& state) {
    return core_->options().retry.next(state);
}
std::string AcquireOp::path_of(const std::string& name) const { return join_path(queue_->spec.directory, name); }

// ---- requests -----------------------------------------------------------------------------------------------------

void AcquireOp::create(Ticket ticket, const std::string& prefix) {
    const auto self = shared_from_this();
    core_->create(path_of(prefix), node_data(*core_, *queue_, operation_), queue_->acl,
                  CreateMode::ephemeral_sequential,
                  [self, ticket](Rc rc, const std::string& path, const NodeStat& stat, Instant sent_at) {
                      self->fsm_->on_created(ticket, rc, path, stat, sent_at);
                  });
    core_->exists(queue_->spec.directory,
                  [self, ticket](Rc rc, const NodeStat& stat, Instant) { self->fsm_->on_parent(ticket, rc, stat); });
}

void AcquireOp::make_directory(Ticket ticket) {
    core_->make_directory(
        queue_->spec.directory, queue_->acl,
        [self = shared_from_this(), ticket](Rc rc, Instant) { self->fsm_->on_directory(ticket, rc); },
        // kazoo looks for its directory once, and does not expect that the servers remove it.
        queue_->spec.dialect == Dialect::kazoo || queue_->persistent ? CreateMode::persistent : CreateMode::container);
}

void AcquireOp::list(Ticket ticket) {
    core_->children(queue_->spec.directory,
                    [self = shared_from_this(), ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&,
                                                        Instant) { self->fsm_->on_children(ticket, rc, names); });
}

void AcquireOp::sync(Ticket ticket) {
    core_->sync(queue_->spec.directory,
                [self = shared_from_this(), ticket](Rc rc, Instant) { self->fsm_->on_synced(ticket, rc); });
}

void AcquireOp::look_at(Ticket ticket, const std::string& name) {
    core_->exists(path_of(name), [self = shared_from_this(), ticket](Rc rc, const NodeStat& stat, Instant) {
        self->fsm_->on_own(ticket, rc, stat);
    });
}

void AcquireOp::watch(Ticket ticket, const std::string& name) {
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object, and ten thousand
    // waiters should not cost two allocations each.
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket](Rc rc, const std::string&, const NodeStat&) { fsm_->on_watching(ticket, rc); };
    listener.fired = [this, ticket](WatchEventType type) { fsm_->on_watch_fired(ticket, type); };
    watch_ = core_->watch_node(path_of(name), std::move(listener));
}

void AcquireOp::unwatch() {
    if (watch_ != 0) core_->unwatch(std::exchange(watch_, 0));
}

void AcquireOp::renew_lease(Ticket ticket, const std::string& name) {
    core_->renew_lease({path_of(name)}, [self = shared_from_this(), ticket](Rc rc, Instant) {
        self->fsm_->on_lease_renewed(ticket, rc);
    });
}

// ---- budgets, lease, cleaning up ----------------------------------------------------------------------------------

bool AcquireOp::reserve_node(const std::string& prefix) {
    const auto present = core_->incarnation().number;
    if (reserved_bytes_ != 0 && reserved_in_ == present) return true;
    const std::size_t bytes = path_of(prefix).size() + kSequenceChars;
    if (!core_->reserve_ephemeral(bytes)) return false;
    reserved_bytes_ = bytes;
    reserved_in_ = present;
    return true;
}

bool AcquireOp::may_watch(const std::string& name) { return core_->reserve_watch_possible(path_of(name).size()); }

void AcquireOp::lease_committed(Instant sent_at) { core_->lease_committed(sent_at); }

bool AcquireOp::begin_hold(const std::string& name, std::int64_t czxid) {
    hold_ = core_->begin_hold(path_of(name), czxid);
    return hold_ != nullptr;
}

std::function<void(bool)> AcquireOp::reservation_release() {
    if (reserved_bytes_ == 0) return {};
    return [weak = core_->weak_from_this(), incarnation = reserved_in_,
            bytes = std::exchange(reserved_bytes_, 0)](bool gone) {
        if (gone) give_back_reservation(weak, incarnation, bytes);
    };
}

void AcquireOp::delete_node(const std::string& name) {
    // A second node of the same create has no reservation of its own.
    const bool own = fsm_->node().empty() || fsm_->node() == name;
    core_->delete_node(path_of(name), own ? reservation_release() : std::function<void(bool)>());
}

void AcquireOp::delete_by_identity(const std::string& identity) {
    core_->delete_by_identity(queue_->spec.directory, identity, reservation_release());
}

void AcquireOp::start_timer(std::chrono::milliseconds delay) {
    retry_timer_ = core_->at(core_->runtime().now() + delay, [this] {
        retry_timer_ = 0;
        fsm_->on_timer();
    });
}

void AcquireOp::stop_timer() {
    if (retry_timer_ != 0) core_->cancel(std::exchange(retry_timer_, 0));
}

void AcquireOp::note(const char* what) {
    core_->log().warn("{} {}: {} (session {:#x}, node {})", operation_, queue_->user_path, what,
                      printable(session_id()), fsm_->node().empty() ? "none" : fsm_->node());
}

void AcquireOp::running_out() {
    if (queue_->warned.exchange(true, std::memory_order_relaxed)) return;
    note("more than half of the sequence numbers of this lock directory are used up; delete it while nobody uses it");
}

// ---- the two ways to wait for it ----------------------------------------------------------------------------------

namespace {

std::shared_ptr<Acquisition> make_with(const SessionCore& core, const MakeAcquisition& make, Deadline& deadline,
                                       Acquisition::Done done) {
    auto patience = Patience::wait;
    if (deadline.is_passed(core.runtime().steady_now())) {
        patience = Patience::try_once;
        deadline = Deadline::never();  // the one attempt is its own limit
    }
    return make(patience, std::move(done));
}

MakeAcquisition queue_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                                  const char* operation) {
    return [&core, &queue, operation](Patience patience, Acquisition::Done done) {
        return std::make_shared<AcquireOp>(core, queue, operation, patience, std::move(done));
    };
}

}  // namespace

std::shared_ptr<HoldRef> acquire_blocking(const std::shared_ptr<SessionCore>& core,
                                          const std::shared_ptr<const Queue>& queue, const char* operation,
                                          Deadline deadline, std::stop_token stop) {
    return acquire_blocking(core, queue_acquisition(core, queue, operation), deadline, std::move(stop));
}

std::shared_ptr<HoldRef> acquire_blocking(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make,
                                          Deadline deadline, std::stop_token stop) {
    // As run_blocking, but whoever does not wait any more (a fiber that is destroyed) must not leave a hold behind.
    struct Waiter : CallWaiter {
        AcquireAnswer answer;    // written under the session lock, before the event
        bool abandoned = false;  // under the session lock
    };
    const auto waiter = std::make_shared<Waiter>();
    const auto op = make_with(*core, make, deadline, [core = core.get(), waiter](AcquireAnswer answer) {
        if (waiter->abandoned || waiter->over()) {
            if (answer.share) answer.share->discard_inside();
            return;
        }
        waiter->answer = std::move(answer);
        waiter->CallWaiter::answer(*core);
    });
    try {
        // Before the start, so that a stop that was requested already sends nothing.
        const std::stop_callback on_stop(std::move(stop), [&] { core->run_locked_or_post([op] { op->stop(); }); });
        core->run_locked([&] {
            op->start(deadline);
            waiter->begin(*core);
        });
        waiter->wait(*core);
    } catch (...) {
        core->run_locked([&] {
            waiter->abandoned = true;
            core->remove_observer(*waiter);
            if (waiter->answer.share) waiter->answer.share->discard_inside();
            op->stop();
        });
        throw;
    }
    if (waiter->answer.error) throw *waiter->answer.error;
    return std::move(waiter->answer.share);
}

void acquire_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                   const char* operation, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireAnswer)> done) {
    acquire_later(core, queue_acquisition(core, queue, operation), deadline, std::move(stop), std::move(done));
}

void acquire_later(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, Deadline deadline,
                   std::stop_token stop, std::function<void(AcquireAnswer)> done) {
    const auto make_op = [&](Acquisition::Done answered, Deadline& until) {
        return make_with(*core, make, until, std::move(answered));
    };
    run_later<AcquireAnswer>(core, make_op, deadline, std::move(stop), std::move(done));
}

}  // namespace zkrecipes::internal
