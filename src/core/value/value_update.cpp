#include "core/value/value_update.hpp"

#include <utility>

#include "base/paths.hpp"
#include "core/operation/wait.hpp"
#include "core/value/commit.hpp"

namespace zkrecipes::internal {
namespace {

using std::chrono::milliseconds;

/// Under the lock only those come between who do not use it, or have not come as far yet: soon again, and for ever.
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

/// Gives a ValueUpdateFsm its connection, commits, lock and timers. Kept alive by what is on its way.
class ValueUpdateOp final : public ValueUpdatePort,
                            public SessionObserver,
                            public std::enable_shared_from_this<ValueUpdateOp> {
public:
    /// Runs under the session lock, exactly once.
    using Done = std::function<void(ValueUpdateAnswer)>;

    ValueUpdateOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const ValuePlace> place,
                  std::shared_ptr<ValueUpdateRule> rule, const char* operation, bool once, Done done)
        : core_(std::move(core)),
          place_(std::move(place)),
          rule_(std::move(rule)),
          operation_(operation),
          once_(once),
          done_(std::move(done)),
          fsm_(*this, *rule_, {place_->make_directories, once}) {}

    // *lock held*:
    void start(Deadline deadline) {
        self_ = shared_from_this();
        started_ = true;
        deadline_ = once_ ? Deadline::never() : deadline;  // the one attempt is its own limit
        if (const Error* why = core_->closed_because()) return fsm_.on_closed(why->errc(), words_of(*why));
        if (stopped_early_) return fsm_.stop();
        core_->add_observer(*this);
        observing_ = true;
        if (!deadline_.is_never()) {
            deadline_timer_ = core_->at(core_->runtime().instant(deadline_), [this] {
                deadline_timer_ = 0;
                fsm_.deadline();
            });
        }
        fsm_.start();
    }
    void stop() {
        if (!core_) return;
        started_ ? fsm_.stop() : void(stopped_early_ = true);
    }

private:
    static std::string words_of(const Error& why) { return why.errc() == Errc::closed ? "" : why.what(); }

    // SessionObserver
    void on_connected(bool) override { fsm_.on_connected(); }
    void on_suspended() override {}  // what was sent will be answered
    void on_session_lost() override {}
    void on_closed(const Error& why) override {
        observing_ = false;
        fsm_.on_closed(why.errc(), words_of(why));
    }

    // ValueUpdatePort
    bool connected() const override { return core_->connected(); }
    std::uint64_t incarnation() const override { return core_->incarnation().number; }
    Instant now() const override { return core_->runtime().now(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    std::optional<milliseconds> next_delay(const RetryState& state) override {
        return core_->options().retry.next(state);
    }
    std::optional<milliseconds> conflict_delay(const RetryState& state, bool locked) override {
        return (locked ? locked_conflicts() : place_->conflicts).next(state);
    }
    bool has_lock() const override { return place_->lock != nullptr; }
    bool lacks_marks() const override { return !place_->mark_directory.empty() && !place_->marks_made; }

    void look(Ticket ticket, bool fresh) override {
        const auto synced = std::make_shared<Rc>(Rc::ok);
        if (fresh) core_->sync(place_->path, [synced](Rc rc, Instant) { *synced = rc; });
        core_->get(place_->path, [self = shared_from_this(), ticket, synced](Rc rc, const std::string& data,
                                                                             const NodeStat& stat, Instant) {
            const bool usable = *synced == Rc::ok || *synced == Rc::no_node;
            if (self->core_) self->fsm_.on_looked(ticket, usable ? rc : *synced, data, stat);
        });
    }
    void write(Ticket ticket, const ValueWrite& write) override {
        Deadline deadline = once_ ? Deadline::passed() : deadline_;
        commit_ = make_commit(plan_of(core_, *place_, write), operation_, deadline,
                              [self = shared_from_this(), ticket](CommitAnswer answer) {
                                  self->on_committed(ticket, std::move(answer));
                              });
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
        core_->make_directory(
            directory, acl,
            [self = shared_from_this(), ticket, marks](Rc rc, Instant) {
                if (!self->core_) return;
                if (marks && rc == Rc::ok) self->place_->marks_made = true;
                self->fsm_.on_directory(ticket, rc);
            },
            // That of the marks is empty most of the time, and is to stay.
            marks ? CreateMode::persistent : CreateMode::container);
    }

    void lock(Ticket ticket) override {
        acquire_ = std::make_shared<AcquireOp>(core_, place_->lock, operation_, Patience::wait,
                                               [self = shared_from_this(), ticket](AcquireAnswer answer) {
                                                   self->on_acquired(ticket, std::move(answer));
                                               });
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

    void start_timer(milliseconds delay) override {
        timer_ = core_->at(core_->runtime().now() + delay, [this] {
            timer_ = 0;
            fsm_.on_timer();
        });
    }
    void stop_timer() override {
        if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
    }
    void answer(ValueUpdateEnd end) override {
        if (observing_) core_->remove_observer(*this);
        if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
        ValueUpdateAnswer answer;
        answer.how = static_cast<ValueUpdateAnswer::How>(end.how);
        if (end.how == ValueUpdateEnd::How::failed) {
            answer.error = end.ready ? std::move(end.ready)
                                     : Error(end.error, operation_, place_->user_path, std::move(end.detail));
        }
        std::exchange(done_, nullptr)(std::move(answer));
        // As AcquireOp::finished: an answer may still come, but the core must not be destroyed under its own lock.
        SessionCore& session = *core_;
        session.defer([self = std::move(self_), core = std::move(core_)] {});
    }

    std::shared_ptr<SessionCore> core_;  // null when it has ended
    const std::shared_ptr<const ValuePlace> place_;
    const std::shared_ptr<ValueUpdateRule> rule_;
    const char* const operation_;
    const bool once_;
    Done done_;
    ValueUpdateFsm fsm_;
    Deadline deadline_;
    std::shared_ptr<ValueUpdateOp> self_;
    std::shared_ptr<PendingCommit> commit_;
    std::shared_ptr<Acquisition> acquire_;
    std::shared_ptr<HoldRef> share_;
    TimerId deadline_timer_ = 0;
    TimerId timer_ = 0;
    bool started_ = false;
    bool stopped_early_ = false;
    bool observing_ = false;
};

auto maker(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
           const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
           ValueUpdateEnded inside) {
    const bool once = deadline.is_passed(core->runtime().steady_now());
    return [core, place, rule, operation, once, inside = std::move(inside)](ValueUpdateOp::Done done, Deadline&) {
        return std::make_shared<ValueUpdateOp>(core, place, rule, operation, once,
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
    const auto answer = run_blocking<ValueUpdateAnswer>(
        core, maker(core, place, rule, operation, deadline, std::move(inside)), deadline, std::move(stop));
    if (answer.error) throw *answer.error;
    if (answer.how == ValueUpdateAnswer::How::nothing) return std::nullopt;
    return answer.how == ValueUpdateAnswer::How::changed;
}

void change_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
                  const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
                  std::stop_token stop, std::function<void(ValueUpdateAnswer)> done, ValueUpdateEnded inside) {
    run_later<ValueUpdateAnswer>(core, maker(core, place, rule, operation, deadline, std::move(inside)), deadline,
                                 std::move(stop), std::move(done));
}

}  // namespace zkrecipes::internal
