#include "core/node/leader_watch.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/paths.hpp"
#include "core/node/election.hpp"
#include "core/node/leader_watch_fsm.hpp"
#include "core/operation/continuous_operation.hpp"
#include "core/operation/latest.hpp"
#include "core/operation/subscribe.hpp"
#include "core/queue/participants.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {
namespace {

using LeaderListener = Subscriber<Latest<std::optional<Participant>>>;

/// Gives a LeaderWatchFsm its session.
class LeaderWatch final : public LeaderWatchPort, public ContinuousOperation {
public:
    LeaderWatch(std::shared_ptr<SessionCore> core, std::string user_path, std::string directory,
                std::shared_ptr<LeaderListener> listener)
        : ContinuousOperation(std::move(core)),
          user_path_(std::move(user_path)),
          directory_(std::move(directory)),
          listener_(std::move(listener)) {}

private:
    ContinuousFsm& machine() noexcept override { return fsm_; }
    void remove_watches() override { unwatch(); }

    // LeaderWatchPort
    void sync(Ticket ticket) override {
        core_->sync(directory_, answered([this, ticket](Rc rc, Instant) { fsm_.on_synced(ticket, rc); }));
    }
    void list(Ticket ticket) override {
        core_->children(directory_,
                        answered([this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat& stat,
                                                Instant) { fsm_.on_children(ticket, rc, names, stat); }));
    }
    // The listeners by raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    bool watch_leader(Ticket ticket, const std::string& name) override {
        SessionCore::WatchListener watcher;
        watcher.ready = [this, ticket](Rc rc, const std::string& data, const NodeStat& stat) {
            fsm_.on_leader(ticket, rc, data, stat);
        };
        watcher.fired = [this, ticket](WatchEventType) { fsm_.on_fired(ticket); };
        watch_ = core_->watch_node(join_path(directory_, name), std::move(watcher));
        return watch_ != 0;
    }
    bool watch_directory(Ticket ticket) override {
        SessionCore::WatchListener watcher;
        watcher.ready = [this, ticket](Rc rc, const std::string&, const NodeStat& stat) {
            fsm_.on_directory(ticket, rc, stat);
        };
        watcher.fired = [this, ticket](WatchEventType) { fsm_.on_fired(ticket); };
        watch_ = core_->watch_directory(directory_, std::move(watcher));
        return watch_ != 0;
    }
    void unwatch() override { ContinuousOperation::unwatch(watch_); }
    void refused(const char* why, int times) override {
        if (!should_log(static_cast<std::uint64_t>(times))) return;
        core_->log().error("observe {}: cannot see who leads: {} ({} times); trying again", user_path_, why, times);
    }
    void tell(const SeenLeader& leader) override {
        std::optional<Participant> said;
        if (!leader.node.empty()) {
            said = leader.readable ? candidate_of(user_path_, leader.node, leader.data, leader.stat)
                                   : unreadable_participant(user_path_, leader.node);
            said->holder = true;
        }
        listener_->push(std::move(said));
    }

    const std::string user_path_;
    const std::string directory_;
    const std::shared_ptr<LeaderListener> listener_;
    LeaderWatchFsm fsm_{*this};
    SessionCore::WatchId watch_ = 0;
};

}  // namespace

Subscription watch_leader(const std::shared_ptr<SessionCore>& core, const char* operation, std::string user_path,
                          std::string directory, std::function<void(const std::optional<Participant>&)> told) {
    auto listener = std::make_shared<LeaderListener>(core->shared_runtime(), core->shared_log(),
                                                     "an observer of a leader", std::move(told));
    const auto watch = std::make_shared<LeaderWatch>(core, user_path, std::move(directory), listener);
    return subscribe(core, operation, user_path, watch, listener);
}

}  // namespace zkrecipes::internal
