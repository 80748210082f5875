#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/lock_options.hpp>

#include "core/acquire/acquire_fsm.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/operation/operation.hpp"
#include "core/queue/payload.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What the data of the own nodes say.
enum class NodeData { about_owner, id_alone };

/// What all calls of one recipe object have in common; outlives the object while calls are open.
struct Queue {
    QueueSpec spec;  // spec.rule points to *rule
    std::shared_ptr<const QueueRule> rule;
    std::string user_path;  // as the caller names the directory
    std::shared_ptr<const LockLabel> label;
    std::vector<Acl> acl;
    LockOptions options;
    std::optional<Payload> payload;               // none: the own nodes say the id alone
    bool persistent = false;                      // the directory must not be removed by the servers: it has data
    mutable std::atomic<bool> warned{false};      // that the sequence numbers run out
    mutable std::atomic<bool> met{false};         // the last call had to wait
    mutable std::atomic<std::size_t> waiting{0};  // calls of the session, beyond the one that asks for a node
};

/// What stands between the identity and the sequence in the names of the own nodes, in each dialect.
struct BaseName {
    constexpr BaseName(const char* curator_base, const char* kazoo_base = "",  // NOLINT: most have but the first
                       bool with_local = false, bool mutex = false)
        : curator(curator_base), kazoo(kazoo_base), takes_local(with_local), is_mutex(mutex) {}
    const char* curator;
    const char* kazoo;  // "": kazoo has no such recipe, or lays it out in another way
    bool takes_local;   // LockOptions::local_handovers, keep_for
    bool is_mutex;      // ExclusiveMutex: takes delay_after_loss, and is handed over fast
};

/// Checks path and options. Throws Error bad_path, bad_option or, for a dialect without this recipe, unsupported.
/// `operation`: the class, as it is named in errors and in what is counted. `child`: of the path, in which the queue
/// stands; empty: in the path itself.
std::shared_ptr<const Queue> make_queue(const SessionCore& core, const std::string& path, LockOptions options,
                                        const BaseName& base, std::shared_ptr<const QueueRule> rule,
                                        const char* operation, std::string_view child = {},
                                        NodeData data = NodeData::about_owner);

/// What a new node of ours says.
std::string node_data(const SessionCore& core, const Queue& queue);

/// How one acquire ended: also with an error.
struct AcquireAnswer : Acquired {
    std::optional<Error> error;

    /// *lock held*: nobody takes it.
    void discard() {
        if (share) share->discard_inside();
    }
};

Ended ended_as(const AcquireAnswer& answer) noexcept;

/// One acquire on its way, by whatever protocol.
class Acquisition : public Operation {
public:
    /// Runs under the session lock, exactly once.
    using Done = std::function<void(AcquireAnswer)>;
    ~Acquisition() override;

    /// Before start(): it is the call of a user, which the session counts and tells of.
    void measure() noexcept { measured_ = true; }
    /// Before start(): `told` runs under the session lock when so many are in front of it.
    void on_in_front(std::function<void(std::size_t)> told) { told_in_front_ = std::move(told); }

protected:
    Acquisition(std::shared_ptr<SessionCore> core, const char* operation, Done done)
        : Operation(std::move(core), operation), done_(std::move(done)) {}

    virtual const std::shared_ptr<const LockLabel>& label() const = 0;
    void show_in_front(std::size_t contenders);
    void deliver(AcquireAnswer answer);
    /// `granted`: with hold_ and its room in the budget. `token`: as HoldRef.
    void deliver(Ended how, Errc error, const std::string& user_path, std::string detail, std::int64_t token = 0);
    /// Before the caller knows of it.
    virtual void on_share(const std::shared_ptr<HoldRef>&) {}
    // OperationPort
    void outcome_left_open() override;
    void finished() override;

    std::shared_ptr<Hold> hold_;

private:
    void on_start() override;

    Done done_;
    std::function<void(std::size_t)> told_in_front_;
    bool measured_ = false;
    bool left_open_ = false;
    WaitRecord wait_;
};

/// One acquire in one queue.
class AcquireOp : public Acquisition, public AcquirePort {
public:
    AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
              Patience patience, Done done);

protected:
    using MakeFsm = std::function<std::unique_ptr<AcquireFsm>(AcquirePort& port)>;
    /// Another protocol that stands in the queue.
    AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation, Done done,
              const MakeFsm& make);

    AcquireFsm& machine() noexcept override { return *fsm_; }
    const std::shared_ptr<const LockLabel>& label() const override { return queue_->label; }
    void on_share(const std::shared_ptr<HoldRef>& share) override;
    std::string path_of(const std::string& name) const;
    std::size_t path_bytes(const std::string& name) const;  // of path_of()
    void answer(Ended how, Errc error, std::string detail) override;

    const std::shared_ptr<const Queue> queue_;

private:
    // AcquirePort
    void create(Ticket ticket, const std::string& prefix, ReadBehind read) override;
    void make_directory(Ticket ticket) override;
    void list(Ticket ticket) override;
    void sync(Ticket ticket) override;
    void look_at(Ticket ticket, const std::string& name) override;
    void watch(Ticket ticket, const std::string& name) override;
    void unwatch() override;
    void watch_second(Ticket ticket, const std::string& name) override;
    bool look_ahead(Ticket ticket) override;
    void watch_own(Ticket ticket, const std::string& name) override;
    void in_front(std::size_t contenders) override { show_in_front(contenders); }
    void is_next(const std::string& name) override;
    void renew_lease(Ticket ticket, const std::string& name) override;
    bool reserve_node(const std::string& prefix) override;
    bool may_watch(const std::string& name) override;
    void lease_committed(Instant sent_at) override;
    bool lease_is_fresh() const override { return core_->lease_clock().fresh(now()); }
    bool begin_hold(const std::string& name, std::int64_t czxid) override;
    void granted_on_event() override { core_->seen_by_event(); }
    void delete_node(const std::string& name) override;
    void delete_by_identity(const std::string& identity) override;
    bool met_queue() const override { return queue_->met.load(std::memory_order_relaxed); }
    void remember_queue(bool met) override { queue_->met.store(met, std::memory_order_relaxed); }
    void note(const char* what) override;
    void running_out() override;

    const std::unique_ptr<AcquireFsm> fsm_;
    void replace(SessionCore::WatchId& watch, SessionCore::WatchId by);

    SessionCore::WatchId watch_ = 0;
    SessionCore::WatchId second_ = 0;
    SessionCore::WatchId directory_ = 0;
    SessionCore::WatchId own_ = 0;
    std::string next_;  // the own node, while heartbeats keep the lease fresh for it
};

/// Makes what acquire_blocking and acquire_async start.
using MakeAcquisition = std::function<std::shared_ptr<Acquisition>(Patience, Acquisition::Done)>;
/// The same for the call of a user.
inline auto measured(const MakeAcquisition& make) {
    return [&make](Patience patience, Acquisition::Done done) {
        auto out = make(patience, std::move(done));
        out->measure();
        return out;
    };
}
/// An AcquireOp. Refers to its arguments.
MakeAcquisition queue_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                                  const char* operation);

/// Blocks the calling fiber or thread until the answer is there. Throws Error.
Acquired acquire_blocking(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, Deadline deadline,
                          std::stop_token stop);
Acquired acquire_blocking(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                          const char* operation, Deadline deadline, std::stop_token stop);

}  // namespace zkrecipes::internal
