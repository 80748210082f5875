#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/result.hpp>

#include "base/wait_event.hpp"
#include "core/node/persistent_node_fsm.hpp"
#include "core/operation/continuous_operation.hpp"
#include "core/operation/latest.hpp"
#include "session/common/subscriber.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Gives a PersistentNodeFsm its session, and the calls that wait for it their answers. Owns itself from start() until
/// nothing of it is open any more.
class PersistentNodeOp final : public PersistentNodePort, public ContinuousOperation {
public:
    using StateListener = Subscriber<Latest<PersistentNodeState>>;

    /// Throws Error bad_option, too_large.
    PersistentNodeOp(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string path,
                     PersistentNodeOptions options);

    /// Throws Error closed.
    void start();
    PersistentNodeState state() const noexcept { return state_.load(std::memory_order_acquire); }
    const std::string& user_path() const noexcept { return user_path_; }

    // From any thread, not under the session lock, while `core` lives:
    /// Throws Error. False: timed out or stopped.
    bool wait_present(SessionCore& core, const char* operation, Deadline deadline, std::stop_token stop);
    void set_data(SessionCore& core, const char* operation, std::string data);  // throws Error too_large, closed
    std::string data(SessionCore& core) const;
    Subscription watch_state(const std::shared_ptr<SessionCore>& core, PersistentNode::Listener listener);
    void close(SessionCore& core) noexcept;
    bool close_and_wait(SessionCore& core, Deadline deadline);
    /// As wait_present() and close_and_wait(); `done` is called on the notifier lane. Throws Error closed, bad_option.
    enum class Until { present, gone };
    void wait_later(const std::shared_ptr<SessionCore>& core, const char* operation, Until until, Deadline deadline,
                    std::stop_token stop, std::function<void(Result<bool>)> done);

private:
    class LaterWaiter;
    /// One call that blocks: until the node is there, or until it is gone for good.
    struct Waiter {
        Waiter(SessionCore& session, const char* what, bool end) : core(session), operation(what), for_the_end(end) {}
        SessionCore& core;  // the caller has it
        const char* const operation;
        const bool for_the_end;
        bool answered = false;
        bool answer = false;
        std::optional<Error> error{};
        TimerId timer = 0;
        WaitEvent event{};
        std::function<void(const Waiter&)> tell{};  // beside the event, if it is set
    };

    std::shared_ptr<PersistentNodeOp> self() { return std::static_pointer_cast<PersistentNodeOp>(shared_from_this()); }

    // ContinuousOperation
    ContinuousFsm& machine() noexcept override { return fsm_; }
    void remove_watches() override { unwatch(); }
    void on_closed(const Error& why) override;
    void answer_all_closed();

    // PersistentNodePort
    std::int64_t session_id() const override { return core_->incarnation().session_id; }
    bool reserve() override;
    void create(Ticket ticket, const std::string& data) override;
    void make_parent(Ticket ticket) override;
    bool watch(Ticket ticket) override;
    void unwatch() override { ContinuousOperation::unwatch(watch_); }
    void set(Ticket ticket, const std::string& data, std::int32_t version) override;
    void remove(Ticket ticket, std::int32_t version) override;
    void give_back() override;
    void note(const char* what) override;
    void refused(const std::string& words, int times) override;
    void changed() override;
    void finished() override;

    void check_size(const char* operation, const std::string& data) const;
    std::function<void(bool)> when_given_back();
    bool wait(const std::shared_ptr<Waiter>& waiter, Deadline deadline, std::stop_token stop);
    bool may_answer(Waiter& waiter) const;
    void answer(const std::shared_ptr<Waiter>& waiter);
    void answer_those_who_may();
    Error closed_error(const char* operation) const;

    const std::weak_ptr<SessionCore> weak_core_;
    const char* const operation_;
    const std::string user_path_;
    const std::string path_;
    const std::vector<Acl> acl_;
    std::atomic<PersistentNodeState> state_{PersistentNodeState::missing};
    PersistentNodeFsm fsm_;
    SessionCore::WatchId watch_ = 0;
    std::uint64_t reserved_in_ = 0;  // incarnation; 0: not
    bool giving_back_ = false;
    bool ended_ = false;  // closed, and gone or with a session that is over
    std::optional<Error> why_closed_;
    std::string why_refused_;
    std::list<std::shared_ptr<Waiter>> waiters_;
    std::vector<std::weak_ptr<StateListener>> listeners_;
};

}  // namespace zkrecipes::internal
