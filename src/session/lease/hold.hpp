#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/runtime.hpp"
#include "session/stats/lock_label.hpp"

namespace zkrecipes::internal {

/// What Curator's Revoker, and request_revocation(), write into a lock node to ask its owner to give way.
inline constexpr std::string_view kRevocationRequest = "__REVOKE__";

/// Until when the present incarnation is guaranteed, readable without a lock. Written under the session lock.
struct LeaseView {
    std::atomic<std::int64_t> ends_at_ns{0};  // BootTime since its epoch; 0: not at all
    /// Some reader has seen its hold end. If the session extends the lease at that moment without having seen the end
    /// itself, that hold is over and its owner would not be told.
    mutable std::atomic<bool> end_seen{false};
};

/// One or more nodes of this session, made by one transaction, that are held together under the lease: when one of them
/// is gone the hold is lost. The lost flag is sticky: it is set by the first that sees the end (the session, or a
/// reader whose clock has passed the lease), and nothing ever clears it. In a forked child it is not held.
///
/// It may have a limit, too: a time at which it ends although its lease goes on.
class Hold {
public:
    /// `nodes`: at least one.
    Hold(std::shared_ptr<Runtime> runtime, std::shared_ptr<const LeaseView> lease, std::vector<std::string> nodes,
         std::int64_t czxid, std::int64_t session_id, std::uint64_t incarnation);
    /// On the nodes of `another`, beside it.
    explicit Hold(const std::shared_ptr<const Hold>& another);

    bool held() const noexcept;                    // anywhere, lock-free
    Nanoseconds remaining_lease() const noexcept;  // anywhere, lock-free
    bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
    std::stop_token lost() const noexcept;
    std::stop_token revocation() const noexcept { return revocation_source_.get_token(); }
    const std::string& node() const noexcept { return nodes().front(); }
    const std::vector<std::string>& nodes() const noexcept { return first().nodes_; }
    /// The one whose nodes they were first. All who hold by the same nodes at the same time have the same.
    const Hold& first() const noexcept { return first_ ? *first_ : *this; }
    std::int64_t czxid() const noexcept { return czxid_; }
    std::int64_t session_id() const noexcept { return session_id_; }
    std::uint64_t incarnation() const noexcept { return incarnation_; }

    /// It ends then at the latest. To be set before anybody else knows of it.
    void limit_to(Instant end) noexcept { limit_ns_ = end.time_since_epoch().count(); }
    bool limit_has_passed(Instant now) const noexcept { return now.time_since_epoch().count() >= limit_ns_; }

    /// Sticky. True for the first caller only: that one requests the stop, on the notifier lane.
    bool mark_lost() noexcept;
    /// held() answers false from now on, without a loss: the owner gave it back.
    void mark_ended() noexcept;
    /// The time for which this process has the same nodes, whoever holds by them.
    struct Tenure {
        const Hold* holder;  // the last one
    };
    /// *lock held*: null, if the nodes were never handed over.
    const std::shared_ptr<Tenure>& tenure() const noexcept { return tenure_; }
    /// *lock held*: `next` goes on with the same nodes, after mark_ended().
    void succeeded_by(Hold& next);
    /// While it is bound, its nodes guard something of its owner that may come later than its end, so nobody else may
    /// go on with them. For ever, if it is never unbound. Anywhere.
    void bind_to_owner() const noexcept { change_bonds(1); }
    void unbind() const noexcept { change_bonds(-1); }
    bool bound_to_owner() const noexcept { return bonds_.load(std::memory_order_acquire) != 0; }
    /// The same. Whoever binds it after that sees what the caller did before, for example mark_ended().
    bool was_bound_to_owner() const noexcept { return bonds_.fetch_add(0, std::memory_order_acq_rel) != 0; }
    /// It, or another one on the same nodes beside it, is bound to its owner.
    bool nodes_are_bound() const noexcept { return first().bonds_of_all_.load(std::memory_order_acquire) != 0; }
    /// *lock held*: what is counted and told of it.
    HoldRecord& record() noexcept { return record_; }
    const HoldRecord& record() const noexcept { return record_; }
    void request_stop() noexcept { lost_source_.request_stop(); }
    void request_revocation() noexcept { revocation_source_.request_stop(); }

private:
    void change_bonds(std::int64_t by) const noexcept {
        bonds_.fetch_add(by, std::memory_order_acq_rel);
        first().bonds_of_all_.fetch_add(by, std::memory_order_acq_rel);
    }

    const std::shared_ptr<const Hold> first_;  // null: this one
    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<const LeaseView> lease_;
    const std::vector<std::string> nodes_;  // of the first one
    const std::int64_t czxid_;
    const std::int64_t session_id_;
    const std::uint64_t incarnation_;
    const ProcessMark process_;
    std::int64_t limit_ns_ = std::numeric_limits<std::int64_t>::max();  // BootTime since its epoch
    mutable std::atomic<bool> over_{false};                             // held() is false for ever
    std::atomic<bool> loss_reported_{false};
    mutable std::atomic<std::int64_t> bonds_{0};
    mutable std::atomic<std::int64_t> bonds_of_all_{0};  // of the first one: those of all on the same nodes
    std::shared_ptr<Tenure> tenure_;
    HoldRecord record_;
    std::stop_source lost_source_;
    std::stop_source revocation_source_;
};

}  // namespace zkrecipes::internal
