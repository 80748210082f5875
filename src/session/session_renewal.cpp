// Committed checks of nodes of ours, at the end of which the lease is fresh: what a hold can begin on.
#include <algorithm>
#include <iterator>
#include <utility>

#include "session/session_impl.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kTick = std::chrono::milliseconds(1);  // "later than", for timers that may come exactly in time

constexpr std::size_t kSmall = 64;

}  // namespace

void SessionImpl::renew_lease(std::vector<std::string> nodes, Done<> done) {
    if (nodes.empty()) {
        post_inside([done = std::move(done), now = runtime_->now()] { done(Rc::ok, now); });
        return;
    }
    Verifications one(1);
    one.front() = {std::move(nodes), std::move(done)};
    send_verifications(std::move(one));
}

void SessionImpl::send_verifications(Verifications asked) {
    std::vector<MultiOp> ops;
    for (const LeaseRenewal& each : asked) {
        for (const auto& node : each.nodes) ops.emplace_back().path = node;
    }
    multi(std::move(ops),
          [this, asked = std::move(asked)](Rc rc, const std::vector<MultiResult>& results, Instant sent_at) mutable {
              if (rc == Rc::ok) lease_committed(sent_at);
              const bool definite = meaning(rc) == Meaning::refused || meaning(rc) == Meaning::failed;
              if (definite && asked.size() > 1) return on_one_refused(std::move(asked), rc, results, sent_at);
              const Instant now = runtime_->now();
              if (rc == Rc::ok && !lease_.fresh(now) && !closing_) {
                  if (lease_.attainable()) return await_fresh_lease(std::move(asked), now - sent_at);
                  rc = Rc::no_lease;
              }
              for (const LeaseRenewal& each : asked) {
                  if (each.done) each.done(rc, sent_at);
              }
          });
}

/// The answer names the node that is refused. The others were not checked: they are asked about anew.
void SessionImpl::on_one_refused(Verifications asked, Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
    const auto named = std::ranges::find(results, rc, &MultiResult::rc);
    auto node = static_cast<std::size_t>(named - results.begin());
    auto refused = asked.begin();
    while (refused != asked.end() && node >= refused->nodes.size()) node -= (refused++)->nodes.size();
    if (named == results.end() || refused == asked.end()) {
        for (LeaseRenewal& each : asked) renew_lease(std::move(each.nodes), std::move(each.done));
        return;
    }
    const auto done = std::move(refused->done);
    asked.erase(refused);
    if (asked.size() > kSmall) {  // when there are more of them, not one round trip for each
        const auto middle = asked.begin() + static_cast<std::ptrdiff_t>(asked.size() / 2);
        send_verifications({std::make_move_iterator(middle), std::make_move_iterator(asked.end())});
        asked.erase(middle, asked.end());
    }
    send_verifications(std::move(asked));
    if (done) done(rc, sent_at);
}

/// The nodes are there, but the leader may last have heard of us long ago: we were silent, stopped or away, or answers
/// are slow. This one is the touch that a second check can build on, once a ping has carried it to the leader. That
/// check is one for all who wait: the checks of thousands could keep the answers so slow that no lease is ever fresh.
void SessionImpl::await_fresh_lease(Verifications asked, Nanoseconds took) {
    std::ranges::move(asked, std::back_inserter(waiting_for_lease_));
    slowest_verification_ = std::max(slowest_verification_, took);
    if (std::exchange(second_check_planned_, true)) return;
    at(runtime_->now() + lease_.touch_delay() + kTick, [this] {
        second_check_planned_ = false;
        if (waiting_for_lease_.empty()) return;
        if (slowest_verification_ > lease_.slowest_answer() && should_log(++slow_verifications_)) {
            const auto ms = [](Nanoseconds time) { return time / std::chrono::milliseconds(1); };
            logger_->warn(
                "session {:#x}: {} hold(s) cannot begin yet, since answers take too long for the lease: {} ms, and at "
                "most {} ms will do with a session timeout of {} ms. Raise SessionOptions::timeout, or ask for less at "
                "once",
                static_cast<std::uint64_t>(fsm_.incarnation().session_id), waiting_for_lease_.size(),
                ms(slowest_verification_), ms(lease_.slowest_answer()), ms(lease_.timeout()));
        }
        slowest_verification_ = {};
        verify_waiting();
    });
}

void SessionImpl::verify_waiting() {
    Verifications chunk;
    std::size_t bytes = 0;
    for (LeaseRenewal& each : std::exchange(waiting_for_lease_, {})) {
        const std::size_t cost = HoldTable::check_bytes(each.nodes);
        if (!chunk.empty() && bytes + cost > HoldTable::kChunkBytes) {
            send_verifications(std::exchange(chunk, {}));
            bytes = 0;
        }
        bytes += cost;
        chunk.push_back(std::move(each));
    }
    if (!chunk.empty()) send_verifications(std::move(chunk));
}

}  // namespace zkrecipes::internal
