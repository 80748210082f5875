#include "session/connection/server_search.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kProbeAfter = 50ms;  // most reconnects are over before a server need be asked
constexpr Nanoseconds kProbeAgain = 1s;    // when a probe could not be begun
constexpr int kRoundsToConnect = 2;        // probes with the same answer, half a second or more apart
constexpr int kDoublings = 8;              // of the time that a probe gives the servers
constexpr int kTurns = 4;                  // of so many probes that find nothing new, one is for the full list

}  // namespace

ServerSearch::ServerSearch(SessionLock& lock, Connection& connection, std::shared_ptr<ServerProbe> probe)
    : lock_(lock), connection_(connection), probe_(std::move(probe)), pace_(1s, 10s) {}

void ServerSearch::handle_opened() {
    preferred_.clear();
    forget();
    at_ = Instant::max();
}

void ServerSearch::forget() {
    best_.clear();
    tried_.clear();
    probes_ = turns_ = 0;
    pace_.reset();
}

bool ServerSearch::needless() const {
    return !probe_ || probing_ || connection_.closing() || connection_.fsm().linked();
}

void ServerSearch::plan() {
    if (needless() || at_ != Instant::max()) return;
    at_ = lock_.runtime().now() + kProbeAfter;
}

void ServerSearch::on_time(Instant now) {
    if (now >= at_) start();
}

void ServerSearch::start() {
    at_ = Instant::max();
    if (needless() || connection_.client() == nullptr) return;
    const SessionFsm& fsm = connection_.fsm();
    const auto timeout = fsm.has_session() ? fsm.incarnation().timeout : connection_.options().timeout;
    // Longer from one probe to the next, up to a quarter of the timeout: a slow server, unlike a frozen one, answers.
    const auto shortest = std::clamp(timeout / 12, std::chrono::milliseconds(100), std::chrono::milliseconds(1000));
    const auto limit =
        std::clamp(shortest * (1 << std::min(probes_, kDoublings)), shortest, std::max(shortest, timeout / 4));
    try {
        probe_->probe(connection_.hosts(), limit,
                      [this, self = lock_.self(), round = round_](const ServerProbe::Found& found) {
                          self->run_internally([&] { on_probed(round, found); });
                      });
        ++probes_;
        probing_ = true;  // its answer cannot come earlier: that takes the session lock
    } catch (const std::exception& error) {
        lock_.log().warn("session: cannot ask the servers whether they serve: {}", error.what());
        at_ = lock_.runtime().now() + kProbeAgain;
    }
}

void ServerSearch::on_probed(std::uint64_t round, const ServerProbe::Found& found) {
    probing_ = false;
    if (needless() || connection_.client() == nullptr) return;
    at_ = lock_.runtime().now() + pace_.next(lock_.runtime().random());
    if (round != round_) return;
    if (found.best.empty() || found.leaderless || found.all_cut) tell_that_none_serves(found.all_cut);
    // All of them: the client finds one by itself, and an attempt that is under way is not disturbed.
    if (found.best.empty() || found.best == connection_.hosts()) return restore_servers();
    if (found.best != best_) {
        best_ = found.best;
        same_rounds_ = 0;
        if (tried_.insert(best_).second) return prefer(best_);
    } else if (++same_rounds_ < kRoundsToConnect) {
        return;
    }
    // The client had its time to connect to one of these and did not: what they say need not hold for this client, or
    // holds no longer. Now any server will do that is not frozen: on a frozen one the client would wait for two thirds
    // of the session timeout. That is tried in turn, too, since it may only be slow.
    if (++turns_ % kTurns == 2) return restore_servers();
    prefer(found.awake.empty() ? best_ : found.awake);
}

void ServerSearch::tell_that_none_serves(bool all_cut) {
    std::string why = "no server of " + connection_.options().hosts + " answers and serves";
    if (all_cut) {
        why +=
            ": those that take connections cut them at once. Check that these are client ports of ZooKeeper servers, "
            "and raise their maxClientCnxns, or use fewer sessions, if this host has as many connections";
        connection_.note_problem(why);
    }
    if (should_log(++failures_)) {
        lock_.log().warn("session {:#x}: {} ({} attempts)", connection_.printable_id(), why, failures_);
    }
}

/// Only while not connected: a list that changes under a connection may make the C client leave it.
void ServerSearch::prefer(const std::vector<std::string>& addresses) {
    if (addresses == preferred_) return;
    if (addresses == connection_.hosts()) return restore_servers();
    preferred_ = addresses;
    connection_.client()->set_servers(addresses);
}

void ServerSearch::restore_servers() {
    if (preferred_.empty() || connection_.client() == nullptr) return;
    preferred_.clear();
    connection_.client()->set_servers(connection_.hosts());
}

void ServerSearch::connected() {
    if (const auto failures = std::exchange(failures_, 0); failures > 0) {
        lock_.log().info("session: servers answer again after {} failed attempts", failures);
    }
    stop();
    forget();
}

void ServerSearch::stop() {
    at_ = Instant::max();
    ++round_;  // what is still being probed came too late
}

}  // namespace zkrecipes::internal
