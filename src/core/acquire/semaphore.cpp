#include "core/acquire/semaphore.hpp"

#include <algorithm>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "core/operation/read_op.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"
#include "session/common/budget.hpp"

namespace zkrecipes::internal {
namespace {

std::shared_ptr<const QueueRule> queue_rule() {
    static const auto& rule = *new std::shared_ptr<const QueueRule>(
        std::make_shared<const PredecessorRule>(std::vector<PredecessorRule::Kind>{{"lock-", true}}));
    return rule;
}

/// Which operation it was that the servers refused: the first with this answer, since those after it say something else
/// and those before it "ok".
TakingStep refused_step(Rc rc, const std::vector<MultiResult>& results, std::size_t leases) {
    const auto first = static_cast<std::size_t>(std::ranges::find(results, rc, &MultiResult::rc) - results.begin());
    if (first == 0) return TakingStep::terms;
    if (first == 1) return TakingStep::place;
    return first == 2 + leases && first < results.size() ? TakingStep::data : TakingStep::leases;
}

/// One acquire of leases: gives a SemaphoreFsm what AcquireOp does not have.
class SemaphoreOp final : private LeasePort, public AcquireOp {
public:
    SemaphoreOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const SemaphorePlace> place, const char* operation,
                Patience patience, std::int32_t wanted, Done done)
        : AcquireOp(std::move(core), place->queue, operation, std::move(done),
                    [&](AcquirePort& port) {
                        return std::make_unique<SemaphoreFsm>(port, static_cast<LeasePort&>(*this), place->queue->spec,
                                                              patience, *place->terms, wanted);
                    }),
          place_(std::move(place)),
          fsm_(static_cast<SemaphoreFsm&>(machine())) {}

private:
    std::string lease_path(const std::string& name) const { return join_path(place_->leases, name); }
    std::vector<std::string> lease_paths(const std::vector<std::string>& names) const {
        std::vector<std::string> paths;
        for (const auto& name : names) paths.push_back(lease_path(name));
        return paths;
    }

    // ---- requests
    void look(Ticket ticket) override {
        core_->get(place_->leases, answered([this, ticket](Rc rc, const std::string& data, const NodeStat& stat,
                                                           Instant) { fsm_.on_look(ticket, rc, data, stat); }));
    }
    void make_leases(Ticket ticket) override {
        core_->make_directory(place_->leases, queue_->acl,
                              answered([this, ticket](Rc rc, Instant) { fsm_.on_leases_made(ticket, rc); }));
    }
    void watch_leases(Ticket ticket) override {
        // By raw pointer, as in AcquireOp::watch.
        SessionCore::WatchListener listener;
        listener.ready = [this, ticket](Rc rc, const std::string&, const NodeStat& stat) {
            fsm_.on_leases_watched(ticket, rc, stat);
        };
        listener.fired = [this, ticket](WatchEventType) { fsm_.on_leases_changed(ticket); };
        watch_ = core_->watch_children(place_->leases, std::move(listener));
    }
    void unwatch_leases() override {
        if (watch_ != 0) core_->unwatch(std::exchange(watch_, 0));
    }
    void guard_leases(std::int64_t czxid) override { core_->guard(place_->leases, czxid); }
    std::int64_t guarded_leases() const override { return core_->guarded(place_->leases); }
    void take(Ticket ticket, const LeaseRequest& taking) override;
    void sync_leases(Ticket ticket) override {
        core_->sync(place_->leases, answered([this, ticket](Rc rc, Instant) { fsm_.on_leases_synced(ticket, rc); }));
    }
    void find_lease(Ticket ticket, const std::string& name) override {
        core_->exists(lease_path(name), answered([this, ticket](Rc rc, const NodeStat& stat, Instant) {
                          fsm_.on_lease(ticket, rc, stat);
                      }));
    }
    void renew_leases(Ticket ticket, const std::vector<std::string>& names) override {
        core_->renew_lease(lease_paths(names),
                           answered([this, ticket](Rc rc, Instant) { fsm_.on_leases_renewed(ticket, rc); }));
    }

    // ---- budgets, lease, cleaning up
    bool reserve_leases(const std::vector<std::string>& names) override {  // they are as long each time
        std::size_t bytes = 0;
        for (const auto& name : names) bytes += Budget::cost(lease_path(name).size());
        bytes -= Budget::cost(0);  // is added by the budget, once
        return reserved_leases_.reserve(*core_, bytes);
    }
    bool may_watch_leases() override { return core_->reserve_watch_possible(place_->leases.size()); }
    void left_queue() override {
        reserved_.release(*core_);
        reserved_ = std::exchange(reserved_leases_, {});
    }
    bool begin_lease_hold(const std::vector<std::string>& names, std::int64_t czxid) override {
        hold_ = core_->begin_hold(lease_paths(names), czxid);
        return hold_ != nullptr;
    }
    void delete_leases(const std::vector<std::string>& names) override {
        core_->delete_nodes(lease_paths(names), reserved_.release_when_gone(*core_), DeletedFor::giving_up);
    }
    void delete_leases_by_identity(const std::string& identity) override {
        core_->delete_by_identity(place_->leases, identity, reserved_leases_.release_when_gone(*core_),
                                  DeletedFor::giving_up);
    }
    void finished() override {
        reserved_leases_.release(*core_);
        AcquireOp::finished();
    }

    const std::shared_ptr<const SemaphorePlace> place_;
    SemaphoreFsm& fsm_;
    SessionCore::WatchId watch_ = 0;
    Reservation reserved_leases_;
};

void SemaphoreOp::take(Ticket ticket, const LeaseRequest& taking) {
    std::vector<MultiOp> ops(2);
    ops[0].kind = taking.terms.empty() ? MultiOp::Kind::check : MultiOp::Kind::set;
    ops[0].path = place_->leases;
    ops[0].data = taking.terms;
    ops[0].version = taking.version;
    ops[1].kind = MultiOp::Kind::remove;
    ops[1].path = path_of(taking.place);
    const auto data = node_data(*core_, *queue_);
    for (const auto& name : taking.leases) {
        MultiOp& create = ops.emplace_back();
        create.kind = MultiOp::Kind::create;
        create.path = lease_path(name);
        create.data = data;
        create.acl = queue_->acl;
        create.mode = CreateMode::ephemeral;
    }
    if (taking.told) {
        MultiOp tell;
        tell.kind = MultiOp::Kind::set;
        tell.path = ops[2].path;
        tell.data = std::exchange(ops[2].data, {});  // nobody sees the lease without them
        ops.push_back(std::move(tell));
    }
    const auto on_answer = [this, ticket, leases = taking.leases.size()](Rc rc, const std::vector<MultiResult>& results,
                                                                         Instant sent_at) {
        const bool told = rc == Rc::ok && results.size() == 2 + leases + 1;
        fsm_.on_taken(ticket, rc, refused_step(rc, results, leases), told ? results.back().stat : NodeStat{}, sent_at);
    };
    core_->multi(std::move(ops), answered(on_answer));
    if (!taking.told) find_lease(ticket, taking.leases.front());
}

/// Reads how many leases are agreed on, and changes it if asked to.
class TermsOp final : public ReadOp {
public:
    TermsOp(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const SemaphorePlace> place,
            std::int32_t wanted)
        : ReadOp(std::move(core), operation, place->queue->user_path), place_(std::move(place)), wanted_(wanted) {}

    std::int32_t limit = 0;

private:
    void begin() override {
        core().get(place_->leases, guard([this](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       if (!usable(rc, "get", place_->leases)) return;
                       rc == Rc::ok ? on_read(data, stat) : on_missing();
                   }));
    }

    void on_read(const std::string& data, const NodeStat& stat) {
        auto& terms = *place_->terms;
        const auto written = data.empty() ? std::optional(terms.limit) : read_limit(data);
        if (!written) return fail(Errc::bad_data, "the node of the leases holds something else than their number");
        limit = *written;
        if (wanted_ == 0 || (limit == wanted_ && !data.empty())) {
            // The caller asked for this number, and so agrees with it.
            if (wanted_ != 0) agree(stat);
            return done();
        }
        write(stat);
    }

    void on_missing() {
        if (wanted_ == 0) {
            limit = place_->terms->limit;
            return done();
        }
        if (!place_->queue->options.create_parents) {
            return fail(Errc::no_parent, "the semaphore does not exist, and the options forbid to make it");
        }
        core().make_directory(place_->leases, place_->queue->acl, guard([this](Rc rc, Instant) {
                                  if (usable(rc, "making", place_->leases)) begin();
                              }));
    }

    /// A child that comes and goes within the same transaction is never counted, and wakes all who watch the leases:
    /// our waiters, and Curator's, to whom the data say nothing.
    void write(const NodeStat& stat) {
        std::vector<MultiOp> ops(3);
        ops[0].kind = MultiOp::Kind::set;
        ops[0].path = place_->leases;
        ops[0].data = write_limit(wanted_);
        ops[0].version = stat.version;
        ops[1].kind = MultiOp::Kind::create;
        ops[1].path = join_path(place_->leases, make_identity(random_uuid(core().runtime())) + "change");
        ops[1].acl = place_->queue->acl;
        ops[1].mode = CreateMode::ephemeral;
        ops[2].kind = MultiOp::Kind::remove;
        ops[2].path = ops[1].path;
        core().multi(std::move(ops), guard([this](Rc rc, const std::vector<MultiResult>& results, Instant) {
                         if (!usable(rc, "changing", place_->leases)) return;
                         if (rc != Rc::ok) return begin();  // somebody else has changed it, or deleted the directory
                         limit = wanted_;
                         agree(results.front().stat);  // it may have been made anew since it was read
                         done();
                     }));
    }

    void agree(const NodeStat& stat) {
        place_->terms->limit = wanted_;
        place_->terms->directory = stat.czxid;
    }

    const std::shared_ptr<const SemaphorePlace> place_;
    const std::int32_t wanted_;  // 0: read only
};

Steps<bool> write(std::shared_ptr<TermsOp> op) {
    co_await op;
    co_return true;
}

}  // namespace

std::shared_ptr<const SemaphorePlace> make_semaphore(const SessionCore& core, const std::string& path,
                                                     LockOptions options, std::int32_t limit, bool follows,
                                                     const char* operation) {
    auto place = std::make_shared<SemaphorePlace>();
    place->queue = make_queue(core, path, std::move(options), "lock-", queue_rule(), operation, kSemaphoreQueue);
    if (limit < 1) {
        throw Error(Errc::bad_option, operation, path, std::to_string(limit) + " leases: a semaphore has at least one");
    }
    place->leases = join_path(core.server_path(path, operation), kSemaphoreLeases);
    place->terms = std::make_shared<SemaphoreTerms>();
    place->terms->limit = limit;
    place->terms->follows = follows;
    return place;
}

MakeAcquisition lease_acquisition(const std::shared_ptr<SessionCore>& core,
                                  const std::shared_ptr<const SemaphorePlace>& place, const char* operation,
                                  std::int32_t wanted) {
    if (wanted < 1 || wanted > kMostLeasesAtOnce) {
        throw Error(Errc::bad_option, operation, place->queue->user_path,
                    std::to_string(wanted) + " leases at once: take 1 to " + std::to_string(kMostLeasesAtOnce));
    }
    return [core, place, operation, wanted](Patience patience, Acquisition::Done done) {
        return std::make_shared<SemaphoreOp>(core, place, operation, patience, wanted, std::move(done));
    };
}

Steps<std::int32_t> read_terms(const std::shared_ptr<SessionCore>& core,
                               const std::shared_ptr<const SemaphorePlace>& place, const char* operation) {
    return found_by(std::make_shared<TermsOp>(core, operation, place, 0), &TermsOp::limit);
}

Steps<bool> write_terms(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const SemaphorePlace>& place,
                        std::int32_t limit, const char* operation) {
    if (limit < 1) {
        throw Error(Errc::bad_option, operation, place->queue->user_path,
                    std::to_string(limit) + " leases: a semaphore has at least one");
    }
    return write(std::make_shared<TermsOp>(core, operation, place, limit));
}

Steps<std::vector<Participant>> read_semaphore(std::shared_ptr<SessionCore> core,
                                               std::shared_ptr<const SemaphorePlace> place, const char* operation) {
    const auto& path = place->queue->user_path;
    // The queue first: a contender that gets its leases in between is seen twice rather than not at all.
    auto waiting =
        co_await read_queue(core, operation, join_path(path, kSemaphoreQueue), place->queue->spec.directory, false);
    auto leases = co_await read_leases(core, operation, join_path(path, kSemaphoreLeases), place->leases);
    co_return with_waiters(std::move(leases.participants), std::move(waiting.participants));
}

}  // namespace zkrecipes::internal
