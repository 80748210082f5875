#pragma once

#include <memory>
#include <string>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Starts `watch`, which pushes what it sees to `listener`, a Subscriber, until the subscription ends. Throws Error
/// closed.
template <class Watch, class Listener>
StateSubscription subscribe(const std::shared_ptr<SessionCore>& core, const char* operation,
                            const std::string& user_path, const std::shared_ptr<Watch>& watch,
                            const std::shared_ptr<Listener>& listener) {
    bool closed = false;
    core->enter([&] {
        closed = core->closed_because() != nullptr;
        if (!closed) watch->start();
    });
    if (closed) throw Error(Errc::closed, operation, user_path, "make a new Session");
    return StateSubscription([listener, watch, weak = std::weak_ptr<SessionCore>(core)] {
        if (const auto session = weak.lock()) session->enter([&] { watch->stop(); });
        listener->cancel();
    });
}

}  // namespace zkrecipes::internal
