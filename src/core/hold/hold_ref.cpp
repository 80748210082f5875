#include "core/hold/hold_ref.hpp"

#include <utility>

#include "core/operation/waiting.hpp"

namespace zkrecipes::internal {

HoldRef::HoldRef(std::shared_ptr<SessionCore> core, std::shared_ptr<Hold> hold, std::size_t reserved_bytes,
                 std::int64_t token, std::uint64_t handovers)
    : core_(std::move(core)),
      hold_(std::move(hold)),
      reserved_bytes_(reserved_bytes),
      token_(token != 0 ? token : hold_->czxid()),
      handovers_(handovers) {}

std::stop_token HoldRef::revocation() {
    throw_if_inherited("revocation");
    if (!watches_revocation_.load(std::memory_order_relaxed)) {
        core_->run_locked([this] {
            if (watches_revocation_.load(std::memory_order_relaxed)) return;
            core_->watch_revocation(hold_);
            watches_revocation_.store(true, std::memory_order_relaxed);
        });
    }
    return hold_->revocation();
}

void HoldRef::throw_if_inherited(const char* operation) const {
    if (core_->inherited()) core_->throw_if_inherited(operation, core_->user_path(hold_->node()));
}

bool HoldRef::last_one_left() noexcept {
    // acq_rel: what any of them did while inside happens before the hold ends.
    return inside_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void HoldRef::end_hold_inside() {
    end_at_limit();
    if (node_ != NodeIs::own) return;  // its limit had passed
    stop_limit();
    if (heir_ && (heir_->stays(*this) || heir_->take_over(*this))) {
        node_ = NodeIs::of_others;
        core_->let_go(std::move(heir_));
        return;
    }
    delete_inside({});
}

void HoldRef::delete_inside(std::function<void(bool)> gone) {
    stop_limit();
    if (auto action = std::exchange(before_delete_, nullptr)) action(*core_);
    const std::size_t bytes = std::exchange(node_, NodeIs::deleted) == NodeIs::own ? reserved_bytes_ : 0;
    core_->end_hold(hold_, [weak = core_->weak_from_this(), bytes, incarnation = hold_->incarnation(),
                            heir = std::weak_ptr<HoldHeir>(heir_), gone = std::move(gone)](bool surely) {
        if (surely && bytes != 0) give_back_reservation(weak, incarnation, bytes);
        if (gone) gone(surely);
        const auto there = heir.lock();  // it must not keep the session that waits for this
        if (!there) return;
        there->node_gone();
        if (const auto core = weak.lock()) core->let_go(there);
    });
    if (const auto heir = std::exchange(heir_, nullptr)) {
        heir->given_back(*this);
        core_->let_go(heir);
    }
}

// ---- the limit ----------------------------------------------------------------------------------------------------

void HoldRef::limit_to(std::chrono::milliseconds max_hold) {
    if (max_hold.count() == 0) return;
    const Instant end = core_->runtime().now() + max_hold;
    hold_->limit_to(end);
    // By raw pointer: the timer is the session's. Neither it nor this object may be kept by the timer.
    limit_ = core_->at(end, [weak = weak_from_this(), core = core_.get(), hold = hold_, bytes = reserved_bytes_,
                             users = heir_ ? heir_->who_counts() : nullptr] {
        if (const auto self = weak.lock()) {
            self->limit_passed();
            return core->let_go(self);
        }
        // Its lock object was destroyed while it was held: nobody gives it back.
        const bool others = core->limit_passed(hold);  // false if they were lost
        if (users ? !users->was_last(*hold) : others) return core->leave_node(hold);
        core->end_hold(hold, [weak = core->weak_from_this(), bytes, incarnation = hold->incarnation()](bool surely) {
            if (surely) give_back_reservation(weak, incarnation, bytes);
        });
    });
}

void HoldRef::limit_passed() {
    limit_ = 0;
    core_->limit_passed(hold_);
    // Its owner has not said that its work is over, so the node is not given to others of this session, and a farewell
    // would be a lie.
    before_delete_ = nullptr;
    if (!heir_ || !heir_->stays(*this)) return delete_inside({});
    node_ = NodeIs::of_others;
    core_->let_go(std::move(heir_));
}

/// A release that comes between the end and its timer, for example after the machine slept: the end was first.
void HoldRef::end_at_limit() {
    if (limit_ == 0 || !hold_->limit_has_passed(core_->runtime().now())) return;
    stop_limit();
    limit_passed();
}

void HoldRef::stop_limit() {
    if (limit_ != 0) core_->cancel(std::exchange(limit_, 0));
}

/// For whoever waits until the node is gone.
bool HoldRef::node_stays() {
    end_at_limit();
    stop_limit();
    return node_ == NodeIs::of_others || (heir_ && heir_->stays(*this));
}

void HoldRef::discard_inside() { end_hold_inside(); }

void HoldRef::leave() noexcept {
    if (core_->inherited() || !last_one_left()) return;
    if (core_->may_lock()) return core_->run_locked_or_post([this] { end_hold_inside(); });
    core_->run_locked_or_post([self = shared_from_this()] { self->end_hold_inside(); });
}

bool HoldRef::leave_and_wait(Deadline deadline) {
    throw_if_inherited("release_and_wait");
    if (!core_->may_lock()) {
        leave();
        core_->run_locked([] {});  // throws
    }
    if (!last_one_left()) return true;
    struct Wait : CallWaiter {
        bool gone = false;
        TimerId timer = 0;
    };
    const auto wait = std::make_shared<Wait>();
    core_->run_locked([&] {
        SessionCore* const core = core_.get();
        const auto finish = [core, wait](bool gone) {
            if (wait->over()) return;
            wait->gone = gone;
            if (wait->timer != 0) core->cancel(wait->timer);
            wait->answer(*core);
        };
        if (node_stays()) return finish(true);
        delete_inside(finish);
        wait->begin(*core);
        if (wait->over() || deadline.is_never()) return;
        wait->timer = core->at(core->runtime().instant(deadline), [finish, wait] {
            wait->timer = 0;
            finish(false);
        });
    });
    return wait->wait() && wait->gone;
}

class HoldRef::Leaving final : public Waiting {
public:
    Leaving(std::shared_ptr<HoldRef> share, Patience patience, Done done)
        : Waiting(share->core_, "release_and_wait_async", patience, std::move(done)), share_(std::move(share)) {}

private:
    void begin() override {
        const auto share = std::exchange(share_, nullptr);
        if (!share) return;
        if (share->node_stays()) return tell(true);
        share->delete_inside(
            [self = std::static_pointer_cast<Leaving>(shared_from_this())](bool gone) { self->tell(gone); });
    }
    void at_end() override { begin(); }  // it is given back, however the wait ends
    void closed(Errc, std::string) override { begin(); }

    std::shared_ptr<HoldRef> share_;  // null: given back
};

void HoldRef::leave_later(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done) {
    throw_if_inherited("release_and_wait_async");
    if (!core_->may_lock()) {
        leave();
        core_->run_locked([] {});  // throws
    }
    if (!last_one_left()) return core_->notify([done = std::move(done)] { done({true, nullptr}); });
    const auto make = [this](Patience patience, Waiting::Done answer) {
        return std::make_shared<Leaving>(shared_from_this(), patience, std::move(answer));
    };
    try {
        wait_later(core_, make, deadline, std::move(stop), std::move(done));
    } catch (...) {  // for want of memory: it was not started, and nobody else gives the hold back
        core_->run_locked_or_post([self = shared_from_this()] { self->end_hold_inside(); });
        throw;
    }
}

}  // namespace zkrecipes::internal
