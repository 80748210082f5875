#include "core/value/value_update.hpp"

#include <utility>

#include "base/paths.hpp"
#include "core/operation/wait.hpp"
#include "core/value/commit.hpp"

namespace zkrecipes::internal {
namespace {

using std::chrono::milliseconds;

/// Under the lock only clients that do not use it (yet) conflict: so soon again, and without a limit.
const RetryPolicy& locked_conflicts() {
    static const auto& policy = *new RetryPolicy(RetryPolicy::forever(milliseconds(1), milliseconds(50)));
    return policy;
}

TransactionPlan plan_of(std::shared_ptr<SessionCore> core, const ValuePlace& place, const ValueWrite& write) {
    TransactionPlan plan(std::move(core));
    MultiOp& op = plan.operations.emplace_back();
    op.path = place.path;
    op.data = write.data;
    if (write.how == ValueWrite::How::create) {
        op.kind = MultiOp::Kind::create;
        op.acl = place.acl;
        op.mode = CreateMode::persistent;
    } else {
        op.kind = MultiOp::Kind::set;
        op.version = write.how == ValueWrite::How::set ? write.version : Transaction::any_version;
    }
    plan.paths.push_back(place.user_path);
    plan.mark_directory = place.mark_directory;
    plan.mark_path = place.mark_path;
    return plan;
}

class ValueUpdateOp final : public Operation, public ValueUpdatePort {
public:
    /// Runs under the session lock, exactly once.
    using Done = std::function<void(ValueUpdateAnswer)>;

    ValueUpdateOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const ValuePlace> place,
                  std::shared_ptr<ValueUpdateRule> rule, const char* operation, Patience patience, Done done)
        : Operation(std::move(core), operation),
          place_(std::move(place)),
          rule_(std::move(rule)),
          once_(patience == Patience::try_once),
          done_(std::move(done)),
          fsm_(*this, *rule_, {place_->make_directories, once_}) {}

private:
    OperationFsm& machine() noexcept override { return fsm_; }

    std::optional<milliseconds> conflict_delay(const RetryState& state, bool locked) override {
        return (locked ? locked_conflicts() : place_->conflicts).next(state);
    }
    bool has_lock() const override { return place_->lock != nullptr; }
    bool lacks_marks() const override { return !place_->mark_directory.empty() && !place_->marks_made; }

    void look(Ticket ticket, bool fresh) override {
        const auto synced = std::make_shared<Rc>(Rc::ok);
        if (fresh) core_->sync(place_->path, [synced](Rc rc, Instant) { *synced = rc; });
        core_->get(place_->path,
                   answered([this, ticket, synced](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       const bool usable = *synced == Rc::ok || *synced == Rc::no_node;
                       fsm_.on_looked(ticket, usable ? rc : *synced, data, stat);
                   }));
    }
    void write(Ticket ticket, const ValueWrite& write) override {
        Deadline deadline = once_ ? Deadline::passed() : deadline_;
        const auto patience = patience_of(*core_, deadline);
        commit_ =
            make_commit(plan_of(core_, *place_, write), operation_, patience,
                        answered([this, ticket](CommitAnswer answer) { on_committed(ticket, std::move(answer)); }));
        const auto commit = commit_;
        commit->start(deadline);
    }
    void on_committed(Ticket ticket, CommitAnswer answer) {
        commit_.reset();
        WriteEnd end;
        if (answer.result) {
            end.how = WriteEnd::How::written;
            if (!answer.result->answer_lost) end.version = answer.result->operations.front().version;
        } else if (answer.error) {
            end.how = WriteEnd::How::failed;
            end.of_mark = !place_->mark_path.empty() && answer.error->path() == place_->mark_path;
            end.error = std::move(answer.error);
        }
        fsm_.on_written(ticket, std::move(end));
    }
    void make_directory(Ticket ticket, Directory which) override {
        const bool marks = which == Directory::of_marks;
        const std::string directory = marks ? place_->mark_directory : std::string(parent_path(place_->path));
        const auto& acl = marks ? core_->options().acl : place_->acl;  // the marks are the session's, too
        core_->make_directory(directory, acl, answered([this, ticket, marks](Rc rc, Instant) {
                                  if (marks && rc == Rc::ok) place_->marks_made = true;
                                  fsm_.on_directory(ticket, rc);
                              }),
                              // That of the marks is empty most of the time, and is to stay.
                              marks ? CreateMode::persistent : CreateMode::container);
    }

    void lock(Ticket ticket) override {
        acquire_ = std::make_shared<AcquireOp>(
            core_, place_->lock, operation_, Patience::wait,
            answered([this, ticket](AcquireAnswer answer) { on_acquired(ticket, std::move(answer)); }));
        const auto acquire = acquire_;
        acquire->start(deadline_);
    }
    void on_acquired(Ticket ticket, AcquireAnswer answer) {
        acquire_.reset();
        share_ = std::move(answer.share);
        fsm_.on_locked(ticket, {share_ != nullptr, std::move(answer.error)});
    }
    void unlock() override { std::exchange(share_, nullptr)->discard_inside(); }
    void stop_waiting() override {
        const auto commit = commit_;
        const auto acquire = acquire_;
        if (commit) commit->stop();
        if (acquire) acquire->stop();
    }

    void answer(ValueUpdateEnd end) override {
        ValueUpdateAnswer answer;
        answer.how = static_cast<ValueUpdateAnswer::How>(end.how);
        if (end.how == ValueUpdateEnd::How::failed) {
            answer.error = end.ready ? std::move(end.ready)
                                     : Error(end.error, operation_, place_->user_path,
                                             core_->explained(end.error, std::move(end.detail)));
        }
        std::exchange(done_, nullptr)(std::move(answer));
    }

    const std::shared_ptr<const ValuePlace> place_;
    const std::shared_ptr<ValueUpdateRule> rule_;
    const bool once_;
    Done done_;
    ValueUpdateFsm fsm_;
    std::shared_ptr<Operation> commit_;
    std::shared_ptr<Operation> acquire_;
    std::shared_ptr<HoldRef> share_;
};

auto maker(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
           const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, ValueUpdateEnded inside) {
    return [core, place, rule, operation, inside = std::move(inside)](Patience patience, ValueUpdateOp::Done done) {
        return std::make_shared<ValueUpdateOp>(core, place, rule, operation, patience,
                                               [inside, done = std::move(done)](ValueUpdateAnswer answer) {
                                                   if (inside) inside(answer.how);
                                                   done(std::move(answer));
                                               });
    };
}

/// Missing directories on the way to a lock or a mark are made, some as containers, which the servers remove when empty
/// again: the node of the value must not be one of them.
void keep_off(const ValuePlace& place, const std::string& server_path, const std::string& user_path,
              const char* operation) {
    if (!is_at_or_below(server_path, place.path)) return;
    throw Error(Errc::bad_option, operation, user_path,
                "it lies at or below the node of the value, " + place.user_path + "; choose a path beside it");
}

}  // namespace

// ---- place --------------------------------------------------------------------------------------------------------

std::shared_ptr<const ValuePlace> make_value_place(const SessionCore& core, const std::string& path,
                                                   ValuePlaceOptions options, const char* operation) {
    auto place = std::make_shared<ValuePlace>();
    place->user_path = path;
    place->path = core.server_path(path, operation);
    if (path == "/") throw Error(Errc::bad_path, operation, path, "the root is no place for a value; choose another");
    if (options.acl && options.acl->empty()) {
        throw Error(Errc::bad_option, operation, path, "an empty access list would shut everybody out, us included");
    }
    place->acl = options.acl ? *options.acl : core.options().acl;
    place->make_directories = options.create_parents;
    if (!options.idempotent_in.empty()) {
        place->mark_path = options.idempotent_in;
        place->mark_directory = core.server_path(place->mark_path, operation);
        keep_off(*place, place->mark_directory, place->mark_path, operation);
    }
    if (!options.lock_path.empty()) {
        LockOptions of_lock;
        of_lock.acl = std::move(options.acl);
        of_lock.create_parents = options.create_parents;
        place->lock = make_queue(core, options.lock_path, std::move(of_lock), "lock-", rule_exclusive(), operation);
        keep_off(*place, place->lock->spec.directory, options.lock_path, operation);
    }
    place->conflicts = options.conflicts ? *std::move(options.conflicts)
                       : place->lock     ? RetryPolicy::exponential(5, milliseconds(1), milliseconds(50))
                                         : RetryPolicy::forever(milliseconds(1), milliseconds(100));
    return place;
}

void check_value_size(const std::shared_ptr<SessionCore>& core, const ValuePlace& place, const std::string& data,
                      const char* operation) {
    check_size(plan_of(core, place, {ValueWrite::How::create, data}), operation);
}

// ---- the two ways to wait for it ----------------------------------------------------------------------------------

std::optional<bool> change_blocking(const std::shared_ptr<SessionCore>& core,
                                    const std::shared_ptr<const ValuePlace>& place,
                                    const std::shared_ptr<ValueUpdateRule>& rule, const char* operation,
                                    Deadline deadline, std::stop_token stop, ValueUpdateEnded inside) {
    const auto answer = run_blocking<ValueUpdateAnswer>(core, maker(core, place, rule, operation, std::move(inside)),
                                                        deadline, std::move(stop));
    if (answer.how == ValueUpdateAnswer::How::nothing) return std::nullopt;
    return answer.how == ValueUpdateAnswer::How::changed;
}

void change_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
                  const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
                  std::stop_token stop, std::function<void(ValueUpdateAnswer)> done, ValueUpdateEnded inside) {
    run_later<ValueUpdateAnswer>(core, maker(core, place, rule, operation, std::move(inside)), deadline,
                                 std::move(stop), std::move(done));
}

}  // namespace zkrecipes::internal
