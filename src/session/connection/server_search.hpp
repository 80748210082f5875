#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "session/common/backoff.hpp"
#include "session/common/session_lock.hpp"
#include "session/connection/connection.hpp"
#include "session/connection/server_probe.hpp"

namespace zkrecipes::internal {

/// While no server has answered for a moment: asks all their addresses whether a server would answer there, and lets
/// the client prefer the addresses where one would.
class ServerSearch {
public:
    ServerSearch(SessionLock& lock, Connection& connection, std::shared_ptr<ServerProbe> probe);

    // All with the lock held.
    /// The new handle knows all servers.
    void handle_opened();
    /// Searches soon, unless a server answers, or the next search is planned.
    void plan();
    Instant wake_at() const noexcept { return at_; }
    void on_time(Instant now);
    /// The client has found a server.
    void connected();
    void stop();
    /// Any server will do again: before the next search, and for what is still to be deleted while closing.
    void restore_servers();

private:
    void forget();
    bool needless() const;
    void start();
    void on_probed(std::uint64_t round, const ServerProbe::Found& found);
    void tell_that_none_serves(bool all_cut);
    void prefer(const std::vector<std::string>& addresses);

    SessionLock& lock_;
    Connection& connection_;
    const std::shared_ptr<ServerProbe> probe_;  // null: none
    Instant at_ = Instant::max();
    ExponentialBackoff pace_;
    std::uint64_t round_ = 0;
    bool probing_ = false;
    std::vector<std::string> preferred_;        // what the client was given; empty: the full list
    std::vector<std::string> best_;             // what the last probe found best
    int same_rounds_ = 0;                       // further probes that found the same
    int probes_ = 0;                            // since the client was last connected, or its handle was opened
    int turns_ = 0;                             // those that found nothing new
    std::set<std::vector<std::string>> tried_;  // what the client was given since then as the best
    std::uint64_t failures_ = 0;
};

}  // namespace zkrecipes::internal
