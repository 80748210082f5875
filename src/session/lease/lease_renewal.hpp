#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/lease/lease_keeper.hpp"

namespace zkrecipes::internal {

/// Committed checks of own nodes, at the end of which the lease is fresh: what a hold can begin on. All with the
/// lock held.
class LeaseRenewal {
public:
    LeaseRenewal(SessionLock& lock, Connection& connection, Requests& requests, LeaseKeeper& keeper)
        : lock_(lock), connection_(connection), requests_(requests), keeper_(keeper) {}

    /// One committed check of these own nodes, as a lease renewal: ok, no_node, or unknown.
    void renew_lease(std::vector<std::string> nodes, Requests::Done<> done);

    /// For the other parts of the session: checks now what waits for a second check. After the session they are told
    /// that it is over.
    void check_waiting();

private:
    struct Renewal {
        std::vector<std::string> nodes;
        Requests::Done<> done;
    };
    using Renewals = std::vector<Renewal>;
    void send(Renewals asked);
    void on_one_refused(Renewals asked, Rc rc, const std::vector<MultiResult>& results, Instant sent_at);
    void await_fresh_lease(Renewals asked, Nanoseconds took);

    SessionLock& lock_;
    Connection& connection_;
    Requests& requests_;
    LeaseKeeper& keeper_;
    Renewals waiting_;  // their nodes were there; a second check is planned
    bool second_check_planned_ = false;
    Nanoseconds slowest_{0};  // of those that wait
    std::uint64_t slow_rounds_ = 0;
};

}  // namespace zkrecipes::internal
