#include "core/local/local_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/paths.hpp"
#include "core/acquire/lock_delay.hpp"
#include "core/operation/watch_budget.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kLookForRoom = std::chrono::seconds(1);  // costs no request while there is none

LocalQueueTerms terms_of(const LockOptions& options) {
    return {std::max<std::uint32_t>(options.local_handovers, 1), options.local_turn, options.keep_for};
}

}  // namespace

std::string queue_key(const Queue& queue) {
    const LockOptions& options = queue.options;
    std::string key;
    const auto add = [&key](const std::string& part) { key += '\0' + part; };
    for (const auto& part : {queue.spec.directory, queue.spec.base, options.id, options.name}) add(part);
    for (const auto& [name, value] : options.labels) add(name), add(value);
    for (const auto& entry : queue.acl) add(entry.scheme), add(entry.id), add(std::to_string(entry.permissions));
    for (const auto number :
         {static_cast<long long>(options.create_parents), static_cast<long long>(options.dialect),
          static_cast<long long>(options.delay_after_loss.count()), static_cast<long long>(options.local_handovers),
          static_cast<long long>(options.local_turn.count()), static_cast<long long>(options.keep_for.count()),
          static_cast<long long>(options.max_hold.count())}) {
        add(std::to_string(number));
    }
    return key;
}

LocalQueue::LocalQueue(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, std::string key)
    : core_(std::move(core)), queue_(std::move(queue)), key_(std::move(key)), fsm_(*this, terms_of(queue_->options)) {}

std::shared_ptr<LocalQueue> LocalQueue::of(const std::shared_ptr<SessionCore>& core,
                                           std::shared_ptr<const Queue> queue) {
    std::string key = "local queue" + queue_key(*queue);
    std::shared_ptr<LocalQueue> out;
    core->run_locked([&] {
        out = std::static_pointer_cast<LocalQueue>(core->shared(key));
        if (out) return;
        std::shared_ptr<LocalQueue> inner(new LocalQueue(core, std::move(queue), key));
        LocalQueue* const object = inner.get();
        out = std::shared_ptr<LocalQueue>(object, [inner = std::move(inner)](LocalQueue*) mutable {
            const auto session = inner->core_;
            session->run_locked_or_post([inner = std::move(inner)] { inner->close(); });
        });
        object->user_ = out;
        core->share(key, out);
    });
    return out;
}

void LocalQueue::close() {
    fsm_.on_doubt();
    cancel_timer();
    stop_looking_for_room();
    stop_watching();
    if (!core_->shared(key_)) core_->share(key_, {});
}

// ---- waiters ------------------------------------------------------------------------------------------------------

void LocalQueue::arrive(WaiterId id, LocalWaiter& waiter) {
    const std::size_t before_all = place_ ? before_place_ : front_ != nullptr && !kept_ ? 1 : 0;
    const std::size_t before = before_all + waiters_.size();
    waiters_.emplace(id, &waiter);
    if (before > 0) waiter.in_front(before);
    fsm_.arrive(id);
}

void LocalQueue::leave(WaiterId id) {
    if (waiters_.erase(id) != 0) fsm_.leave(id);
    if (waiters_.empty()) stop_looking_for_room();
}

LocalWaiter& LocalQueue::take_waiter(WaiterId id) { return *waiters_.extract(id).mapped(); }

std::shared_ptr<HoldRef> LocalQueue::take_kept() {
    if (!fsm_.take_kept()) return nullptr;
    held_by(granted_);
    return std::exchange(granted_, nullptr);
}

std::shared_ptr<Acquisition> LocalQueue::make_try(Acquisition::Done done) {
    fsm_.begin_try();
    queue_->waiting.store(0, std::memory_order_relaxed);
    return make_place(Patience::try_once, std::move(done));
}

void LocalQueue::end_try(const std::shared_ptr<HoldRef>& share) {
    if (share) {
        // What this session had is gone then, whether it was told or not.
        fsm_.on_doubt();
        end_hold_before();
        held_by(share);
    }
    fsm_.end_try(share != nullptr);
}

// ---- the place ----------------------------------------------------------------------------------------------------

std::shared_ptr<Acquisition> LocalQueue::make_place(Patience patience, Acquisition::Done done) const {
    constexpr const char* operation = "acquire";
    if (queue_->options.delay_after_loss.count() > 0) {
        return make_delayed(core_, queue_, operation)(patience, std::move(done));
    }
    return std::make_shared<AcquireOp>(core_, queue_, operation, patience, std::move(done));
}

void LocalQueue::open_place() {
    stop_looking_for_room();
    queue_->waiting.store(fsm_.waiting() - 1, std::memory_order_relaxed);  // beyond the one whom it is for
    place_ = make_place(Patience::wait, [self = shared_from_this(), number = ++place_number_](AcquireAnswer answer) {
        self->on_place(number, std::move(answer));
    });
    before_place_ = front_ != nullptr ? 1 : 0;
    place_->on_in_front([weak = weak_from_this(), number = place_number_](std::size_t contenders) {
        const auto self = weak.lock();
        if (!self || number != self->place_number_) return;
        self->before_place_ = contenders;
        if (!self->waiters_.empty()) self->waiters_.begin()->second->in_front(contenders);
    });
    const auto place = place_;
    place->start(Deadline::never());
}

void LocalQueue::close_place() {
    ++place_number_;
    if (const auto place = std::exchange(place_, nullptr)) place->stop();
}

void LocalQueue::on_place(std::uint64_t number, AcquireAnswer answer) {
    if (number != place_number_) return answer.discard();
    place_.reset();
    if (answer.share) {
        granted_ = std::move(answer.share);
        return fsm_.on_granted();
    }
    refusal_ = answer.error ? std::move(*answer.error) : Error(Errc::closed, "acquire", path(), "the place was closed");
    fsm_.on_refused(refusal_->errc() == Errc::budget_exceeded);
}

void LocalQueue::grant(WaiterId id) {
    const auto share = std::exchange(granted_, nullptr);
    end_hold_before();
    held_by(share);
    take_waiter(id).granted(share);
}

/// Another one has been granted: its node is gone. Its owner may not have been told yet.
void LocalQueue::end_hold_before() {
    if (const auto before = front_hold_.lock()) core_->node_is_gone(before);
}

void LocalQueue::refuse(WaiterId id) { take_waiter(id).refused(*refusal_); }

void LocalQueue::discard() { drop(std::exchange(granted_, nullptr)); }

/// A hold that nobody has.
void LocalQueue::drop(const std::shared_ptr<HoldRef>& share) {
    share->set_heir(user_.lock());  // who is told when the node is gone
    share->discard_inside();
}

void LocalQueue::look_for_room_later() {
    if (room_at_ != 0) return;
    room_at_ = core_->at(core_->runtime().now() + kLookForRoom, [this] {
        room_at_ = 0;
        fsm_.on_time_to_look();
    });
}

void LocalQueue::stop_looking_for_room() {
    if (room_at_ != 0) core_->cancel(std::exchange(room_at_, 0));
}

// ---- the hold -----------------------------------------------------------------------------------------------------

void LocalQueue::held_by(const std::shared_ptr<HoldRef>& share) {
    share->set_heir(user_.lock());
    watch_for_loss(share);
}

void LocalQueue::watch_for_loss(const std::shared_ptr<HoldRef>& share) {
    front_ = &share->hold();
    front_hold_ = share->own_hold();
    core_->on_loss(share->own_hold(), [weak = weak_from_this(), lost = front_hold_] {
        const auto self = weak.lock();
        // The hold itself may be no more, if nobody has it.
        const bool other = !self || lost.owner_before(self->front_hold_) || self->front_hold_.owner_before(lost);
        if (other || self->front_ == nullptr) return;
        self->cancel_timer();
        self->front_ = nullptr;
        self->stop_watching();
        if (const auto kept = std::exchange(self->kept_, nullptr)) self->drop(kept);
        self->fsm_.on_hold_over();
        self->core_->let_go(self);
    });
}

bool LocalQueue::take_over(HoldRef& share) {
    if (front_ != &share.hold()) return false;
    leaving_ = &share;
    const bool taken = fsm_.take_over();
    leaving_ = nullptr;
    return taken;
}

void LocalQueue::given_back(HoldRef& share) {
    if (front_ != &share.hold()) return;
    front_ = nullptr;
    stop_watching();
    fsm_.on_given_back();
}

std::shared_ptr<HoldRef> LocalQueue::successor_of(HoldRef& share) {
    auto hold = core_->pass_on(share.own_hold());
    if (!hold) return nullptr;
    auto next =
        std::make_shared<HoldRef>(core_, std::move(hold), share.reserved_bytes(), share.token(), share.handovers() + 1);
    next->describe(share.options());
    next->before_delete(share.take_farewell());
    return next;
}

bool LocalQueue::pass_on(WaiterId id) {
    const auto next = successor_of(*leaving_);
    if (!next) return false;
    next->limit_to(queue_->options.max_hold);
    held_by(next);
    take_waiter(id).granted(next);
    return true;
}

// ---- a node that is kept ------------------------------------------------------------------------------------------

bool LocalQueue::keep(Instant until) {
    if (watch_ == 0) watch_others();
    if (watch_ == 0) return false;  // over the budget
    kept_ = successor_of(*leaving_);
    if (!kept_) return false;
    watch_for_loss(kept_);
    core_->on_asked_to_give_way(kept_->own_hold(), [weak = weak_from_this(), asked = front_] {
        const auto self = weak.lock();
        if (!self || self->front_ != asked) return;
        self->fsm_.on_doubt();
        self->core_->let_go(self);
    });
    kept_until_ = core_->at(until, [this] {
        kept_until_ = 0;
        fsm_.on_doubt();
    });
    return true;
}

LocalQueue::MayTake LocalQueue::may_take_kept() {
    if (watch_ == 0 || !core_->connected()) return MayTake::no;
    if (!others_known_) return MayTake::asked;
    granted_ = successor_of(*kept_);
    if (!granted_) return MayTake::no;
    granted_->limit_to(queue_->options.max_hold);
    cancel_timer();
    kept_.reset();
    front_hold_.reset();
    return MayTake::yes;
}

void LocalQueue::cancel_timer() {
    if (kept_until_ != 0) core_->cancel(std::exchange(kept_until_, 0));
}

void LocalQueue::give_up_kept() {
    cancel_timer();
    front_ = nullptr;
    stop_watching();
    drop(std::exchange(kept_, nullptr));
}

/// Whether there are others is known when the watch is set: until then the node is kept, and nobody may take it.
void LocalQueue::watch_others() {
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    SessionCore::WatchListener listener;
    listener.listed = [this](Rc rc, const std::vector<std::string>& names, const NodeStat&) {
        if (rc != Rc::ok) core_->unwatch(std::exchange(watch_, 0));  // also one that waits for a directory
        // An only child may be that of another client, if somebody has deleted our node.
        others_known_ =
            rc == Rc::ok && names.size() == 1 && front_ != nullptr && names.front() == base_name(front_->node());
        others_known_ ? fsm_.on_nobody_else() : fsm_.on_doubt();
    };
    listener.fired = [this](WatchEventType) {
        watch_ = 0;
        others_known_ = false;
        fsm_.on_doubt();
    };
    watch_ = core_->watch_directory(queue_->spec.directory, std::move(listener));
    if (watch_ != 0) core_->add_observer(*this);
}

void LocalQueue::stop_watching() {
    core_->remove_observer(*this);
    others_known_ = false;
    if (watch_ != 0) core_->unwatch(std::exchange(watch_, 0));
}

}  // namespace zkrecipes::internal
