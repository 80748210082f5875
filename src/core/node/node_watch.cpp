#include "core/node/node_watch.hpp"

#include <spdlog/spdlog.h>

#include "core/operation/latest.hpp"
#include "core/operation/subscribe.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {

void NodeWatch::sync(Ticket ticket) {
    core_->sync(path_, answered([this, ticket](Rc rc, Instant) { fsm_.on_synced(ticket, rc); }));
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
