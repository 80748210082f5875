#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/session.hpp>

#include "core/node/node_watch_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Gives a NodeWatchFsm its connection. Owns itself between start() and stop() or the close of the session.
class NodeWatch final : public NodeWatchPort, public SessionObserver, public std::enable_shared_from_this<NodeWatch> {
public:
    /// Runs under the session lock: what the node is at first, and then each change. Must not stop this watch.
    using Told = std::function<void(const SeenNode&)>;

    /// `who` watches, for the log. `path` is a server path.
    NodeWatch(std::shared_ptr<SessionCore> core, const char* who, std::string path, Told told)
        : core_(std::move(core)), who_(who), path_(std::move(path)), told_(std::move(told)) {}

    // *lock held*:
    void start();
    void stop();  // nothing is told any more; harmless when it has ended
    const std::optional<SeenNode>& told() const noexcept { return fsm_.told(); }
    bool is_watching() const noexcept { return fsm_.is_watching(); }

private:
    void let_go();

    // SessionObserver
    void on_connected(bool same_session) override { fsm_.on_connected(same_session); }
    void on_suspended() override { fsm_.on_suspended(); }
    void on_session_lost() override { fsm_.on_session_lost(); }
    void on_closed(const Error&) override { let_go(); }

    // NodeWatchPort
    bool connected() const override { return core_->connected(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    void sync(Ticket ticket) override;
    bool watch(Ticket ticket) override;
    void unwatch() override;
    void start_timer(std::chrono::milliseconds delay) override;
    void stop_timer() override;
    void refused(const char* why, int times) override;
    void tell(const SeenNode& node) override { told_(node); }

    std::shared_ptr<SessionCore> core_;  // null when over
    const char* const who_;
    const std::string path_;
    const Told told_;
    NodeWatchFsm fsm_{*this};
    std::shared_ptr<NodeWatch> self_;
    SessionCore::WatchId watch_ = 0;
    TimerId timer_ = 0;
};

/// Tells `listener` on the notifier lane what the node is, and then each change, the latest when it was busy; until the
/// subscription or the session ends. Throws Error closed, naming `operation`.
Subscription watch_latest(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                          std::string path, std::function<void(const SeenNode&)> listener);

}  // namespace zkrecipes::internal
