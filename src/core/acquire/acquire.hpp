#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/lock_options.hpp>

#include "core/acquire/acquire_fsm.hpp"
#include "core/hold/hold_ref.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What the data of the own nodes say.
enum class NodeData { about_owner, id_alone };

/// What all calls of one recipe object have in common; outlives the object while calls are open.
struct Queue {
    QueueSpec spec;  // spec.rule points to *rule
    std::shared_ptr<const QueueRule> rule;
    std::string user_path;  // as the caller names the directory
    std::vector<Acl> acl;
    LockOptions options;
    NodeData data = NodeData::about_owner;
    bool persistent = false;                  // the directory must not be removed by the servers: it has data
    mutable std::atomic<bool> warned{false};  // that the sequence numbers run out
};

/// What stands between the identity and the sequence in the names of the own nodes, in each dialect.
struct BaseName {
    constexpr BaseName(const char* curator_base, const char* kazoo_base = "",  // NOLINT: most have but the first
                       bool with_delay = false)
        : curator(curator_base), kazoo(kazoo_base), takes_delay(with_delay) {}
    const char* curator;
    const char* kazoo;  // "": kazoo has no such recipe, or lays it out in another way
    bool takes_delay;   // LockOptions::delay_after_loss
};

/// Checks path and options. Throws Error bad_path, bad_option or, for a dialect without this recipe, unsupported.
/// `child`: of the path, in which the queue stands; empty: in the path itself.
std::shared_ptr<const Queue> make_queue(const SessionCore& core, const std::string& path, LockOptions options,
                                        const BaseName& base, std::shared_ptr<const QueueRule> rule,
                                        const char* operation, std::string_view child = {},
                                        NodeData data = NodeData::about_owner);

/// What a new node of ours says.
std::string node_data(const SessionCore& core, const Queue& queue, const char* operation);

/// How one acquire ended: with a share that has been entered once; with an error; or with neither (timed out, stopped).
struct AcquireAnswer {
    std::shared_ptr<HoldRef> share;
    std::optional<Error> error;
};

/// One acquire on its way, by whatever protocol. Owns itself until nothing of it is open any more, which may be later
/// than its answer.
class Acquisition {
public:
    /// Runs under the session lock, exactly once.
    using Done = std::function<void(AcquireAnswer)>;

    Acquisition() = default;
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;
    virtual ~Acquisition() = default;

    // *lock held*:
    virtual void start(Deadline deadline) = 0;
    virtual void stop() = 0;  // also before start()
};

/// Gives an AcquireFsm its connection, timers and budgets.
class AcquireOp : public Acquisition,
                  public AcquirePort,
                  public SessionObserver,
                  public std::enable_shared_from_this<AcquireOp> {
public:
    AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
              Patience patience, Done done);

    void start(Deadline deadline) override;
    void stop() override;

protected:
    using MakeFsm = std::function<std::unique_ptr<AcquireFsm>(AcquirePort& port)>;
    /// Another protocol that stands in the queue.
    AcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation, Done done,
              const MakeFsm& make);

    // AcquirePort
    bool connected() const override;
    std::uint64_t incarnation() const override;
    std::int64_t session_id() const override;
    Instant now() const override;
    std::uint64_t random() override;
    std::string new_uuid() override;
    std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) override;
    void create(Ticket ticket, const std::string& prefix) override;
    void make_directory(Ticket ticket) override;
    void list(Ticket ticket) override;
    void sync(Ticket ticket) override;
    void look_at(Ticket ticket, const std::string& name) override;
    void watch(Ticket ticket, const std::string& name) override;
    void unwatch() override;
    void renew_lease(Ticket ticket, const std::string& name) override;
    bool reserve_node(const std::string& prefix) override;
    bool may_watch(const std::string& name) override;
    void lease_committed(Instant sent_at) override;
    bool begin_hold(const std::string& name, std::int64_t czxid) override;
    void delete_node(const std::string& name) override;
    void delete_by_identity(const std::string& identity) override;
    void start_timer(std::chrono::milliseconds delay) override;
    void stop_timer() override;
    void note(const char* what) override;
    void running_out() override;
    void answer(Ended how, Errc error, std::string detail) override;
    void finished() override;
    // SessionObserver
    void on_connected(bool same_session) override;
    void on_suspended() override;
    void on_session_lost() override;
    void on_closed(const Error& why) override;

    AcquireFsm& fsm() const noexcept { return *fsm_; }
    std::string path_of(const std::string& name) const;
    std::function<void(bool)> reservation_release();

    std::shared_ptr<SessionCore> core_;  // null when finished
    const std::shared_ptr<const Queue> queue_;
    const char* const operation_;
    std::shared_ptr<Hold> hold_;
    std::size_t reserved_bytes_ = 0;
    std::uint64_t reserved_in_ = 0;  // incarnation

private:
    Done done_;
    const std::unique_ptr<AcquireFsm> fsm_;
    std::shared_ptr<AcquireOp> self_;
    SessionCore::WatchId watch_ = 0;
    TimerId deadline_timer_ = 0;
    TimerId retry_timer_ = 0;
    bool started_ = false;
    bool stopped_early_ = false;
    bool observing_ = false;
};

/// Makes what the two functions below start.
using MakeAcquisition = std::function<std::shared_ptr<Acquisition>(Patience, Acquisition::Done)>;

/// Blocks the calling fiber or thread until the answer is there. Throws Error. Null: timed out or stopped.
std::shared_ptr<HoldRef> acquire_blocking(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make,
                                          Deadline deadline, std::stop_token stop);
std::shared_ptr<HoldRef> acquire_blocking(const std::shared_ptr<SessionCore>& core,
                                          const std::shared_ptr<const Queue>& queue, const char* operation,
                                          Deadline deadline, std::stop_token stop);

/// `done` gets the answer on the notifier lane, exactly once, with a share that it must leave.
void acquire_later(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, Deadline deadline,
                   std::stop_token stop, std::function<void(AcquireAnswer)> done);
void acquire_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                   const char* operation, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireAnswer)> done);

}  // namespace zkrecipes::internal
