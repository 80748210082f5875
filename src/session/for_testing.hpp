#pragma once

#include <functional>
#include <memory>

#include <zkrecipes/export.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"

namespace zkrecipes::internal {

/// What zkrecipes::testing, a library of its own, needs of this one. The shared library exports it for that one alone.
struct ZKRECIPES_API ForTesting {
    struct Opened {
        Session session;
        const void* id;  // id_of(session)
        /// Whether it is being closed. Lock-free; does not keep the session open.
        std::function<bool()> closing;
        /// Sends the heartbeats of all holds now. Takes the session lock.
        std::function<void()> check_holds;
    };
    /// Throws Error.
    static Opened open(SessionOptions options, std::shared_ptr<Runtime> runtime,
                       std::shared_ptr<ClientFactory> clients);
    /// The same for all Session objects that a session was moved to. Null: moved from.
    static const void* id_of(const Session& session) noexcept;
    /// The threads of a session. Throws Error out_of_resources.
    static std::shared_ptr<Runtime> make_runtime();
};

}  // namespace zkrecipes::internal
