#include "core/node/leader_watch.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/paths.hpp"
#include "core/node/election.hpp"
#include "core/node/leader_watch_fsm.hpp"
#include "core/operation/latest.hpp"
#include "core/operation/subscribe.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {
namespace {

using LeaderListener = Subscriber<Latest<std::optional<Participant>>>;

/// Gives a LeaderWatchFsm its connection. Owns itself until it is stopped or the session is closed.
class LeaderWatch final : public LeaderWatchPort,
                          public SessionObserver,
                          public std::enable_shared_from_this<LeaderWatch> {
public:
    LeaderWatch(std::shared_ptr<SessionCore> core, std::string user_path, std::string directory,
                std::shared_ptr<LeaderListener> listener)
        : core_(std::move(core)),
          user_path_(std::move(user_path)),
          directory_(std::move(directory)),
          listener_(std::move(listener)) {}

    // *lock held*:
    void start() {
        self_ = shared_from_this();
        core_->add_observer(*this);
        fsm_.start();
    }
    void stop() {
        if (!core_) return;  // the session was closed before
        core_->remove_observer(*this);
        let_go();
    }

private:
    void let_go() {
        unwatch();
        stop_timer();
        // Answers that nobody waits for may still come; they are dropped under the session lock, where the core must
        // not be destroyed: it is let go here.
        SessionCore& session = *core_;
        session.defer([self = std::move(self_), core = std::move(core_)] {});
    }

    // SessionObserver
    void on_connected(bool same_session) override { fsm_.on_connected(same_session); }
    void on_suspended() override { fsm_.on_suspended(); }
    void on_session_lost() override { fsm_.on_session_lost(); }
    void on_closed(const Error&) override { let_go(); }

    /// Wraps an answer: not called any more once this has been stopped.
    template <class Answer>
    auto guard(Answer answer) {
        return [self = shared_from_this(), answer = std::move(answer)](auto&&... values) {
            if (self->core_) answer(std::forward<decltype(values)>(values)...);
        };
    }

    // LeaderWatchPort
    bool connected() const override { return core_->connected(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    void sync(Ticket ticket) override {
        core_->sync(directory_, guard([this, ticket](Rc rc, Instant) { fsm_.on_synced(ticket, rc); }));
    }
    void list(Ticket ticket) override {
        core_->children(directory_,
                        guard([this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat& stat,
                                             Instant) { fsm_.on_children(ticket, rc, names, stat); }));
    }
    bool watch_leader(Ticket ticket, const std::string& name) override {
        SessionCore::WatchListener watcher;
        watcher.ready = guard([this, ticket](Rc rc, const std::string& data, const NodeStat& stat) {
            fsm_.on_leader(ticket, rc, data, stat);
        });
        watcher.fired = guard([this, ticket](WatchEventType) { fsm_.on_fired(ticket); });
        watch_ = core_->watch_node(join_path(directory_, name), std::move(watcher));
        return watch_ != 0;
    }
    bool watch_directory(Ticket ticket) override {
        SessionCore::WatchListener watcher;
        watcher.ready = guard(
            [this, ticket](Rc rc, const std::string&, const NodeStat& stat) { fsm_.on_directory(ticket, rc, stat); });
        watcher.fired = guard([this, ticket](WatchEventType) { fsm_.on_fired(ticket); });
        watch_ = core_->watch_directory(directory_, std::move(watcher));
        return watch_ != 0;
    }
    void unwatch() override {
        if (watch_ != 0) core_->unwatch(std::exchange(watch_, 0));
    }
    void start_timer(std::chrono::milliseconds delay) override {
        timer_ = core_->at(core_->runtime().now() + delay, [this] {
            timer_ = 0;
            fsm_.on_timer();
        });
    }
    void stop_timer() override {
        if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
    }
    void refused(const char* why, int times) override {
        if (!should_log(static_cast<std::uint64_t>(times))) return;
        core_->log().error("observe {}: cannot see who leads: {} ({} times); trying again", user_path_, why, times);
    }
    void tell(const SeenLeader& leader) override {
        std::optional<Participant> said;
        if (!leader.node.empty()) {
            said.emplace(candidate_of(user_path_, leader.node, leader.data, leader.stat));
            said->holder = true;
        }
        listener_->push(std::move(said));
    }

    std::shared_ptr<SessionCore> core_;  // null when over
    const std::string user_path_;
    const std::string directory_;
    const std::shared_ptr<LeaderListener> listener_;
    LeaderWatchFsm fsm_{*this};
    std::shared_ptr<LeaderWatch> self_;
    SessionCore::WatchId watch_ = 0;
    TimerId timer_ = 0;
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
