#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/result.hpp>

#include "core/operation/reservation.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

class HoldRef;

/// Takes over the node of a hold when its owner gives it back. *Lock held.*
class HoldHeir {
public:
    virtual ~HoldHeir() = default;
    /// True: others hold by the same node. The hold was ended, and the node stays, whatever the owner asks for.
    virtual bool stays(HoldRef&) { return false; }
    /// True: the node is the heir's from now on. False: it is deleted.
    virtual bool take_over(HoldRef& share) = 0;
    /// The node is being deleted.
    virtual void given_back(HoldRef& share) = 0;
    /// After given_back(): the node is gone, and with it what it took of the session's budget.
    virtual void node_gone() {}
    /// What knows the others who hold by the node. A timer of the session keeps it, so it must not keep the session.
    virtual std::shared_ptr<HoldHeir> who_counts() { return nullptr; }
    /// Of a hold whose lock object was destroyed, and whose time is over. True: nobody else holds by the node.
    virtual bool was_last(const Hold&) { return true; }
};

/// One hold, shared by all who entered it: the grants that Grant::again() made, or lock() without a grant. The last one
/// to leave gives it back. Usable from any thread. Under a session lock (a retry policy) leave() takes effect soon
/// afterwards.
///
/// A share that is destroyed while entered is not given back: that is a mutex object that was destroyed while held.
class HoldRef : public std::enable_shared_from_this<HoldRef> {
public:
    /// Entered once. `reserved_bytes` of the session's budget for ephemeral nodes go back with the node. `token`: the
    /// fencing token where it is not the czxid of the node.
    HoldRef(std::shared_ptr<SessionCore> core, std::shared_ptr<Hold> hold, std::size_t reserved_bytes,
            std::int64_t token = 0, std::uint64_t handovers = 0);
    HoldRef(const HoldRef&) = delete;
    HoldRef& operator=(const HoldRef&) = delete;

    const Hold& hold() const noexcept { return *hold_; }
    std::shared_ptr<const Hold> shared_hold() const noexcept { return hold_; }
    const std::shared_ptr<SessionCore>& core() const noexcept { return core_; }
    std::int64_t token() const noexcept { return token_; }
    std::uint64_t handovers() const noexcept { return handovers_; }

    /// What the nodes say of their owner. Null: his id alone. To be set as before_delete.
    void describe(std::shared_ptr<const LockOptions> options) { options_ = std::move(options); }
    const std::shared_ptr<const LockOptions>& options() const noexcept { return options_; }

    /// Asks the session to watch for it, the first time.
    std::stop_token revocation();

    /// Once more. Only by somebody inside.
    void enter() noexcept { inside_.fetch_add(1, std::memory_order_relaxed); }
    bool entered() const noexcept { return inside_.load(std::memory_order_relaxed) > 0; }
    void leave() noexcept;
    /// leave(), and block until the servers have confirmed that the node is gone. At once when others are still inside.
    bool leave_and_wait(Deadline deadline);
    /// The same without blocking: `done` is called on the notifier lane.
    void leave_later(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    /// *lock held*, before the caller knows of it, and after set_heir() where others may join: the hold ends so long
    /// after now, and its node is deleted then, also if nobody leaves. Zero: no limit. A `before_delete` does not run
    /// then: it is for an owner who has given back.
    void limit_to(std::chrono::milliseconds max_hold);

    /// Runs once under the session lock, right before the node is deleted, whatever the reason. To be set before
    /// anybody else knows the share.
    void before_delete(std::function<void(SessionCore&)> action) { before_delete_ = std::move(action); }
    /// To be set as before_delete.
    void set_heir(std::shared_ptr<HoldHeir> heir) { heir_ = std::move(heir); }
    /// *lock held*: what the heir's share of the same node starts with: its room in the budget and its
    /// farewell.
    const std::shared_ptr<Hold>& own_hold() const noexcept { return hold_; }
    std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }
    std::function<void(SessionCore&)> take_farewell() { return std::exchange(before_delete_, nullptr); }
    /// *lock held*: gives back a hold that nobody came to know of.
    void discard_inside();

private:
    class Leaving;
    enum class NodeIs : std::uint8_t { own, deleted, of_others };

    void throw_if_inherited(const char* operation) const;
    bool last_one_left() noexcept;
    void end_hold_inside();
    void delete_inside(std::function<void(bool)> gone);
    void limit_passed();
    void end_at_limit();
    void stop_limit();
    bool node_stays();

    const std::shared_ptr<SessionCore> core_;
    const std::shared_ptr<Hold> hold_;
    const std::size_t reserved_bytes_;
    const std::int64_t token_;
    const std::uint64_t handovers_;  // of the node, before this hold
    std::atomic<int> inside_{1};
    std::atomic<bool> watches_revocation_{false};  // set under the session lock
    // Under the session lock.
    NodeIs node_ = NodeIs::own;
    TimerId limit_ = 0;
    std::shared_ptr<const LockOptions> options_;
    std::function<void(SessionCore&)> before_delete_;
    std::shared_ptr<HoldHeir> heir_;
};

// Of a hold that may be missing (null).
inline bool is_held(const std::shared_ptr<HoldRef>& share) noexcept { return share && share->hold().held(); }
inline FencingToken token_of(const std::shared_ptr<HoldRef>& share) noexcept { return share ? share->token() : 0; }
inline std::stop_token lost_of(const std::shared_ptr<HoldRef>& share) noexcept {
    return share ? share->hold().lost() : std::stop_token();
}

/// How an acquire ended, if not with an error: with a share that has been entered once, or without one.
struct Acquired {
    std::shared_ptr<HoldRef> share;
    Missed missed = Missed::none;  // why there is no share

    explicit operator bool() const noexcept { return share != nullptr; }
};
inline Grant to_grant(Acquired acquired) noexcept { return Grant(std::move(acquired.share), acquired.missed); }

/// The way from a public Grant to what it stands for.
struct GrantAccess {
    static const std::shared_ptr<HoldRef>& share(const Grant& grant) { return grant.share_; }
};

}  // namespace zkrecipes::internal
