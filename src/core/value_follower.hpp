#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/change_fsm.hpp"
#include "core/node_watch.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What a value is, as far as its own session knows, from three sources: a watch, own reads and own writes. Everything
/// happens inside the strand.
///
/// They need no comparison: answers of one session come in the order in which the servers did what was asked, so what
/// came last is the latest. A new session asks behind a sync (NodeWatchFsm). Versions tell nothing here: they begin
/// again with a node that is made again, and come round (CURATOR-688).
class ValueFollower : public std::enable_shared_from_this<ValueFollower> {
public:
    /// From now on a watch follows it. Harmless when one does already.
    void start(const std::shared_ptr<SessionCore>& core, const std::string& path);
    void stop();

    /// Empty: not known, or there is no node. While nobody watches although a server could be asked, it is not known:
    /// the watch has fired, and what has changed is being read; or it could not be set.
    const std::optional<FoundValue>& known(const SessionCore& core) const {
        static const std::optional<FoundValue> unknown;
        return watch_ && (watch_->is_watching() || !core.connected()) ? known_ : unknown;
    }
    /// An own read or write has just been answered; empty: it has changed, to nobody knows what.
    void saw(std::optional<FoundValue> value) { known_ = std::move(value); }

private:
    std::shared_ptr<NodeWatch> watch_;
    std::optional<FoundValue> known_;
};

}  // namespace zkrecipes::internal
