#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/error.hpp>

#include "core/acquire/acquire.hpp"
#include "core/local/local_queue_fsm.hpp"

namespace zkrecipes::internal {

/// What must be the same for two calls of a session to share a node.
std::string queue_key(const Queue& queue);

/// Who is told what a local queue has for it.
class LocalWaiter {
public:
    virtual void granted(std::shared_ptr<HoldRef> share) = 0;
    virtual void refused(const Error& why) = 0;
    virtual void in_front(std::size_t contenders) = 0;  // for people

protected:
    ~LocalWaiter() = default;
};

/// Gives a LocalQueueFsm its session. *Lock held*, but for of().
class LocalQueue final : public HoldHeir,
                         private LocalQueuePort,
                         private SessionObserver,
                         public std::enable_shared_from_this<LocalQueue> {
public:
    /// Anywhere, also without the lock: that of this session for what `queue` says of path, mode, dialect, access list,
    /// data and options. All that ask for the same share it. When the last of them lets it go, a kept node is given
    /// back.
    static std::shared_ptr<LocalQueue> of(const std::shared_ptr<SessionCore>& core, std::shared_ptr<const Queue> queue);

    const std::shared_ptr<const LockLabel>& label() const noexcept { return queue_->label; }
    const std::string& path() const noexcept { return queue_->user_path; }
    WaiterId next_id() noexcept { return ++last_id_; }
    /// `waiter` is told, perhaps at once, unless it leaves before.
    void arrive(WaiterId id, LocalWaiter& waiter);
    void leave(WaiterId id);
    /// What a try finds without a request: the kept node, which is entered once; or that somebody has the lock or waits
    /// for it; or nothing: then it asks the servers by make_try, and end_try follows.
    std::shared_ptr<HoldRef> take_kept();
    bool busy() const noexcept { return fsm_.busy(); }
    std::shared_ptr<Acquisition> make_try(Acquisition::Done done);
    void end_try(const std::shared_ptr<HoldRef>& share);
    /// What keeps a waiter waiting is another hold, here or elsewhere, as far as the servers' answers tell.
    bool is_taken() const { return fsm_.held() || (place_ && place_->is_busy()); }
    std::uint64_t grants() const noexcept { return fsm_.grants(); }

private:
    LocalQueue(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, std::string key);

    // HoldHeir
    bool take_over(HoldRef& share) override;
    void given_back(HoldRef& share) override;
    void node_gone() override { fsm_.on_node_gone(); }

    // LocalQueuePort
    Instant now() const override { return core_->runtime().now(); }
    void open_place() override;
    void close_place() override;
    void grant(WaiterId id) override;
    void refuse(WaiterId id) override;
    void discard() override;
    bool pass_on(WaiterId id) override;
    bool keep(Instant until) override;
    MayTake may_take_kept() override;
    void give_up_kept() override;
    void look_for_room_later() override;

    // SessionObserver
    void on_connected(bool) override {}
    void on_suspended() override { fsm_.on_doubt(); }
    void on_session_lost() override {}
    void on_closed(const Error&) override {}

    std::shared_ptr<Acquisition> make_place(Patience patience, Acquisition::Done done) const;
    void on_place(std::uint64_t number, AcquireAnswer answer);
    LocalWaiter& take_waiter(WaiterId id);
    void held_by(const std::shared_ptr<HoldRef>& share);
    void watch_for_loss(const std::shared_ptr<HoldRef>& share);
    void end_hold_before();
    void drop(const std::shared_ptr<HoldRef>& share);
    /// Entered once, on the same node. Null: that must not be.
    std::shared_ptr<HoldRef> successor_of(HoldRef& share);
    void watch_others();
    void cancel_timer();
    void stop_watching();
    void stop_looking_for_room();
    void close();

    const std::shared_ptr<SessionCore> core_;
    const std::shared_ptr<const Queue> queue_;
    const std::string key_;
    std::weak_ptr<LocalQueue> user_;  // as of() has given it away
    LocalQueueFsm fsm_;
    std::map<WaiterId, LocalWaiter*> waiters_;
    WaiterId last_id_ = 0;
    std::shared_ptr<Acquisition> place_;
    std::uint64_t place_number_ = 0;
    std::size_t before_place_ = 0;      // contenders, as far as it is known
    std::shared_ptr<HoldRef> granted_;  // on its way to a waiter
    std::optional<Error> refusal_;
    const Hold* front_ = nullptr;  // what fsm_ knows as held or kept
    std::weak_ptr<Hold> front_hold_;
    HoldRef* leaving_ = nullptr;  // within take_over()
    std::shared_ptr<HoldRef> kept_;
    TimerId kept_until_ = 0;
    TimerId room_at_ = 0;
    SessionCore::WatchId watch_ = 0;
    bool others_known_ = false;  // the watch is set, and there was nobody else
};

/// An acquire in the local queue. Refers to its arguments.
MakeAcquisition local_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<LocalQueue>& local,
                                  const char* operation);

}  // namespace zkrecipes::internal
