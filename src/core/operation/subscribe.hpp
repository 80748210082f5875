#pragma once

#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>

#include "base/process.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Starts `watch`, which pushes what it sees to `listener`, a Subscriber, until the subscription ends. Throws Error
/// closed and auth_failed.
template <class Watch, class Listener>
Subscription subscribe(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                       const std::shared_ptr<Watch>& watch, const std::shared_ptr<Listener>& listener) {
    std::optional<Error> closed;
    core->run_locked([&] {
        closed = core->closed_error(operation, user_path);
        if (!closed) watch->start();
    });
    if (closed) throw *closed;
    return Subscription([listener, watch, process = ProcessMark(), weak = std::weak_ptr<SessionCore>(core)] {
        if (process.inherited()) return;
        if (const auto session = weak.lock()) session->run_locked_or_post([watch] { watch->stop(); });
        listener->cancel();
    });
}

}  // namespace zkrecipes::internal
