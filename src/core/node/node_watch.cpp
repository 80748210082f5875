#include "core/node/node_watch.hpp"

#include <spdlog/spdlog.h>

#include "core/operation/latest.hpp"
#include "core/operation/subscribe.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {

void NodeWatch::start() {
    self_ = shared_from_this();
    core_->add_observer(*this);
    fsm_.start();
}

void NodeWatch::stop() {
    if (!core_ || !self_) return;  // the session was closed before, or it was never started
    core_->remove_observer(*this);
    let_go();
}

void NodeWatch::let_go() {
    unwatch();
    stop_timer();
    // As LeaderWatch::let_go: a late answer may still come, but the core must not be destroyed under its own lock.
    SessionCore& session = *core_;
    session.defer([self = std::move(self_), core = std::move(core_)] {});
}

void NodeWatch::sync(Ticket ticket) {
    core_->sync(path_, [self = shared_from_this(), ticket](Rc rc, Instant) {
        if (self->core_) self->fsm_.on_synced(ticket, rc);
    });
}

bool NodeWatch::watch(Ticket ticket) {
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    SessionCore::WatchListener watcher;
    watcher.ready = [this, ticket](Rc rc, const std::string& data, const NodeStat& stat) {
        fsm_.on_node(ticket, rc, data, stat);
    };
    watcher.fired = [this, ticket](WatchEventType) { fsm_.on_fired(ticket); };
    watch_ = core_->watch_existence(path_, std::move(watcher));
    return watch_ != 0;
}

void NodeWatch::unwatch() {
    if (watch_ != 0) core_->unwatch(std::exchange(watch_, 0));
}

void NodeWatch::start_timer(std::chrono::milliseconds delay) {
    timer_ = core_->at(core_->runtime().now() + delay, [this] {
        timer_ = 0;
        fsm_.on_timer();
    });
}

void NodeWatch::stop_timer() {
    if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
}

void NodeWatch::refused(const char* why, int times) {
    if (!should_log(static_cast<std::uint64_t>(times))) return;
    core_->log().error("{}: cannot see {}: {} ({} times); trying again", who_, core_->user_path(path_), why, times);
}

Subscription watch_latest(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                          std::string path, std::function<void(const SeenNode&)> listener) {
    const auto subscriber = std::make_shared<Subscriber<Latest<SeenNode>>>(core->shared_runtime(), core->shared_log(),
                                                                           operation, std::move(listener));
    const auto watch = std::make_shared<NodeWatch>(core, operation, std::move(path),
                                                   [subscriber](const SeenNode& node) { subscriber->push(node); });
    return subscribe(core, operation, user_path, watch, subscriber);
}

}  // namespace zkrecipes::internal
