#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/session.hpp>

#include "core/node/node_watch_fsm.hpp"
#include "core/operation/continuous_operation.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Gives a NodeWatchFsm its session.
class NodeWatch final : public NodeWatchPort, public ContinuousOperation {
public:
    /// Runs under the session lock: the present state of the node, and then each change. Must not stop this watch.
    using Told = std::function<void(const SeenNode&)>;

    /// `who` watches, for the log. `path` is a server path.
    NodeWatch(std::shared_ptr<SessionCore> core, const char* who, std::string path, Told told)
        : ContinuousOperation(std::move(core)), who_(who), path_(std::move(path)), told_(std::move(told)) {}

    // *lock held*:
    const std::optional<SeenNode>& told() const noexcept { return fsm_.told(); }
    bool is_watching() const noexcept { return fsm_.is_watching(); }

private:
    ContinuousFsm& machine() noexcept override { return fsm_; }
    void remove_watches() override { unwatch(); }

    // NodeWatchPort
    void sync(Ticket ticket) override;
    bool watch(Ticket ticket) override;
    void unwatch() override { ContinuousOperation::unwatch(watch_); }
    void refused(const char* why, int times) override;
    void tell(const SeenNode& node) override { told_(node); }

    const char* const who_;
    const std::string path_;
    const Told told_;
    NodeWatchFsm fsm_{*this};
    SessionCore::WatchId watch_ = 0;
};

/// Tells `listener` on the notifier lane the state of the node, and then each change. A slow listener is told only the
/// latest. Ends with the subscription or the session. Throws Error closed, naming `operation`.
Subscription watch_latest(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                          std::string path, std::function<void(const SeenNode&)> listener);

}  // namespace zkrecipes::internal
