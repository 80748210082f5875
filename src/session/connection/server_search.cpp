#include "session/connection/server_search.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kProbeAfter = 50ms;  // most reconnects are over before a server need be asked
constexpr Nanoseconds kProbeAgain = 1s;    // when a probe could not be begun
constexpr int kRoundsToConnect = 2;        // probes with the same answer, a second or more apart

}  // namespace

ServerSearch::ServerSearch(SessionLock& lock, Connection& connection, std::shared_ptr<ServerProbe> probe)
    : lock_(lock), connection_(connection), probe_(std::move(probe)), pace_(1s, 10s) {}

void ServerSearch::handle_opened() {
    narrowed_to_.clear();
    tried_.clear();
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
    const auto limit = std::clamp(timeout / 12, std::chrono::milliseconds(100), std::chrono::milliseconds(1000));
    try {
        probe_->probe(connection_.hosts(), limit,
                      [this, self = lock_.self(), round = round_](const std::vector<std::string>& up, bool all_cut) {
                          self->run_internally([&] { on_probed(round, up, all_cut); });
                      });
        probing_ = true;  // its answer cannot come earlier: that takes the session lock
    } catch (const std::exception& error) {
        lock_.log().warn("session: cannot ask the servers whether they serve: {}", error.what());
        at_ = lock_.runtime().now() + kProbeAgain;
    }
}

void ServerSearch::on_probed(std::uint64_t round, const std::vector<std::string>& answering, bool all_cut) {
    probing_ = false;
    if (needless() || connection_.client() == nullptr) return;
    at_ = lock_.runtime().now() + pace_.next(lock_.runtime().random());
    if (round != round_) return;
    if (answering.empty() || all_cut) tell_that_none_serves(all_cut);
    if (answering.empty()) return restore_servers();
    // All of them: the client finds one by itself, and an attempt that is under way is not disturbed.
    if (answering == connection_.hosts()) return restore_servers();
    if (answering == narrowed_to_ && ++narrowed_rounds_ < kRoundsToConnect) return;
    // The client had its time to connect to one of these and did not. What they say does not hold for this client: they
    // are not preferred again before it has found a server by itself.
    if (!tried_.insert(answering).second) return restore_servers();
    narrowed_rounds_ = 0;
    narrowed_to_ = answering;
    connection_.client()->set_servers(answering);
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
void ServerSearch::restore_servers() {
    if (narrowed_to_.empty() || connection_.client() == nullptr) return;
    narrowed_to_.clear();
    connection_.client()->set_servers(connection_.hosts());
}

void ServerSearch::connected() {
    if (const auto failures = std::exchange(failures_, 0); failures > 0) {
        lock_.log().info("session: servers answer again after {} failed attempts", failures);
    }
    stop();
    pace_.reset();
    tried_.clear();
}

void ServerSearch::stop() {
    at_ = Instant::max();
    ++round_;  // what is still being probed came too late
}

}  // namespace zkrecipes::internal
