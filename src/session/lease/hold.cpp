#include "session/lease/hold.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {

Hold::Hold(std::shared_ptr<Runtime> runtime, std::shared_ptr<const LeaseView> lease, std::vector<std::string> nodes,
           std::int64_t czxid, std::int64_t session_id, std::uint64_t incarnation)
    : runtime_(std::move(runtime)),
      lease_(std::move(lease)),
      nodes_(std::move(nodes)),
      czxid_(czxid),
      session_id_(session_id),
      incarnation_(incarnation) {}

Hold::Hold(const std::shared_ptr<const Hold>& another)
    : first_(another->first_ ? another->first_ : another),
      runtime_(another->runtime_),
      lease_(another->lease_),
      czxid_(another->czxid_),
      session_id_(another->session_id_),
      incarnation_(another->incarnation_) {}

Nanoseconds Hold::remaining_lease() const noexcept {
    if (process_.inherited()) return Nanoseconds::zero();
    // First the lease, which can only have grown since, then the clock, which can only have advanced: a pause between
    // the two reads makes the answer smaller, never larger. The flag comes last: the session, when it extends a lease
    // that had passed sets it before, so that a reader of the new lease sees it.
    const std::int64_t until = lease_->ends_at_ns.load(std::memory_order_acquire);
    const std::int64_t now = runtime_->now().time_since_epoch().count();
    if (over_.load(std::memory_order_acquire)) return Nanoseconds::zero();
    // Nothing to remember: the limit never moves.
    if (now >= limit_ns_) return Nanoseconds::zero();
    if (now < until) return Nanoseconds(std::min(until, limit_ns_) - now);
    over_.store(true, std::memory_order_release);  // sticky: a later renewal does not revive this hold
    lease_->end_seen.store(true, std::memory_order_release);
    return Nanoseconds::zero();
}

bool Hold::held() const noexcept { return remaining_lease() > Nanoseconds::zero(); }

std::stop_token Hold::lost() const noexcept {
    if (!process_.inherited()) return lost_source_.get_token();
    std::stop_source over;
    over.request_stop();
    return over.get_token();
}

bool Hold::mark_lost() noexcept {
    over_.store(true, std::memory_order_release);
    return !loss_reported_.exchange(true, std::memory_order_acq_rel);
}

void Hold::mark_ended() noexcept {
    over_.store(true, std::memory_order_release);
    loss_reported_.store(true, std::memory_order_release);
}

void Hold::succeeded_by(Hold& next) {
    if (!tenure_) tenure_ = std::make_shared<Tenure>();
    next.tenure_ = tenure_;
    tenure_->holder = &next;
}

}  // namespace zkrecipes::internal
