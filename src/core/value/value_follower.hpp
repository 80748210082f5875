#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/node/node_watch.hpp"
#include "core/value/value_update_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What a value is, as far as its own session knows, from three sources: a watch, own looks and own writes. Everything
/// happens under the session lock. It never goes back.
///
/// Within one session they need no comparison: answers come in the order in which the servers did what was asked, so
/// what came last is the latest. A new session may be with a server that is behind the one before: the watch is
/// believed only behind the answer to an own write, or to a look that was sent behind a sync. Versions tell nothing
/// here: they begin again with a node that is made again, and come round (CURATOR-688).
class ValueFollower : public std::enable_shared_from_this<ValueFollower> {
public:
    /// From now on a watch follows it. Harmless when one does already.
    void start(const std::shared_ptr<SessionCore>& core, const std::string& path);
    void stop();

    /// Empty: not known, or there is no node. While a server could be asked it is known only where a watch stands: it
    /// has not fired, so that something new is being read.
    std::optional<FoundValue> known(const SessionCore& core) const;
    /// An own write, or an own look behind a sync, has just been answered; empty: it has changed, to nobody knows what.
    void saw(const SessionCore& core, std::optional<FoundValue> value);

private:
    std::shared_ptr<NodeWatch> watch_;
    std::optional<FoundValue> known_;
    std::uint64_t sure_in_ = 0;  // incarnation in which the watch can be believed; 0: none
};

}  // namespace zkrecipes::internal
