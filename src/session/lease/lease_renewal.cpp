#include "session/lease/lease_renewal.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "session/common/backoff.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kTick = std::chrono::milliseconds(1);  // "later than", for timers that may come exactly in time

constexpr std::size_t kSmall = 64;

}  // namespace

void LeaseRenewal::renew_lease(std::vector<std::string> nodes, Requests::Done<> done) {
    if (nodes.empty()) {
        lock_.post_locked([done = std::move(done), now = lock_.runtime().now()] { done(Rc::ok, now); });
        return;
    }
    Renewals one(1);
    one.front() = {std::move(nodes), std::move(done)};
    send(std::move(one));
}

void LeaseRenewal::send(Renewals asked) {
    std::vector<MultiOp> ops;
    for (const Renewal& each : asked) {
        for (const auto& node : each.nodes) ops.emplace_back().path = node;
    }
    requests_.multi(std::move(ops), [this, asked = std::move(asked)](Rc rc, const std::vector<MultiResult>& results,
                                                                     Instant sent_at) mutable {
        if (rc == Rc::ok) keeper_.lease_committed(sent_at);
        const Meaning what = meaning_or_failed(rc);
        const bool definite = what == Meaning::refused || what == Meaning::failed;
        if (definite && asked.size() > 1) return on_one_refused(std::move(asked), rc, results, sent_at);
        const Instant now = lock_.runtime().now();
        if (rc == Rc::ok && !keeper_.lease_clock().fresh(now) && !connection_.closing()) {
            if (keeper_.lease_clock().attainable()) return await_fresh_lease(std::move(asked), now - sent_at);
            rc = Rc::no_lease;
        }
        for (const Renewal& each : asked) {
            if (each.done) each.done(rc, sent_at);
        }
    });
}

/// The answer names the node that is refused. The others were not checked: they are asked about anew.
void LeaseRenewal::on_one_refused(Renewals asked, Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
    const auto named = std::ranges::find(results, rc, &MultiResult::rc);
    auto node = static_cast<std::size_t>(named - results.begin());
    auto refused = asked.begin();
    while (refused != asked.end() && node >= refused->nodes.size()) node -= (refused++)->nodes.size();
    if (named == results.end() || refused == asked.end()) {
        for (Renewal& each : asked) renew_lease(std::move(each.nodes), std::move(each.done));
        return;
    }
    const auto done = std::move(refused->done);
    asked.erase(refused);
    if (asked.size() > kSmall) {  // when there are more of them, not one round trip for each
        const auto middle = asked.begin() + static_cast<std::ptrdiff_t>(asked.size() / 2);
        send({std::make_move_iterator(middle), std::make_move_iterator(asked.end())});
        asked.erase(middle, asked.end());
    }
    send(std::move(asked));
    if (done) done(rc, sent_at);
}

/// The nodes are there, but the leader may last have heard of us long ago: we were silent, stopped or away, or answers
/// are slow. This one is the touch that a second check can build on, once a ping has carried it to the leader. That
/// check is one for all that wait: the checks of thousands could keep the answers so slow that no lease is ever fresh.
void LeaseRenewal::await_fresh_lease(Renewals asked, Nanoseconds took) {
    std::ranges::move(asked, std::back_inserter(waiting_));
    slowest_ = std::max(slowest_, took);
    if (std::exchange(second_check_planned_, true)) return;
    lock_.at(lock_.runtime().now() + keeper_.lease_clock().touch_delay() + kTick, [this] {
        second_check_planned_ = false;
        if (waiting_.empty()) return;
        if (slowest_ > keeper_.lease_clock().slowest_answer() && should_log(++slow_rounds_)) {
            const auto ms = [](Nanoseconds time) { return time / std::chrono::milliseconds(1); };
            lock_.log().warn(
                "session {:#x}: {} hold(s) cannot begin yet, since answers take too long for the lease: {} ms, and at "
                "most {} ms will do with a session timeout of {} ms. Raise SessionOptions::timeout, or ask for less at "
                "once",
                connection_.printable_id(), waiting_.size(), ms(slowest_), ms(keeper_.lease_clock().slowest_answer()),
                ms(keeper_.lease_clock().timeout()));
        }
        slowest_ = {};
        check_waiting();
    });
}

void LeaseRenewal::check_waiting() {
    Renewals chunk;
    std::size_t bytes = 0;
    for (Renewal& each : std::exchange(waiting_, {})) {
        const std::size_t cost = HoldTable::check_bytes(each.nodes);
        if (!chunk.empty() && bytes + cost > HoldTable::kChunkBytes) {
            send(std::exchange(chunk, {}));
            bytes = 0;
        }
        bytes += cost;
        chunk.push_back(std::move(each));
    }
    if (!chunk.empty()) send(std::move(chunk));
}

}  // namespace zkrecipes::internal
