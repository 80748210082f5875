#include "session/for_testing.hpp"

#include <utility>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

ForTesting::Opened ForTesting::open(SessionOptions options, std::shared_ptr<Runtime> runtime,
                                    std::shared_ptr<ClientFactory> clients) {
    auto core = SessionCore::open(std::move(options), {std::move(runtime), std::move(clients), nullptr});
    const std::weak_ptr<SessionLock> object = core->self();  // longer than the session is open
    const std::weak_ptr<SessionCore> opened = core;
    const auto closing = [object, raw = core.get()] {
        const auto keep = object.lock();
        return keep != nullptr && raw->state() == SessionState::closed;
    };
    const auto check_holds = [opened] {
        if (const auto keep = opened.lock())
            keep->run_locked_or_post([keep] { keep->check_all(keep->runtime().now()); });
    };
    const void* const id = core.get();
    return {SessionAccess::make(std::move(core)), id, closing, check_holds};
}

const void* ForTesting::id_of(const Session& session) noexcept { return SessionAccess::id(session); }

std::shared_ptr<Runtime> ForTesting::make_runtime() { return SessionCore::make_runtime(); }

}  // namespace zkrecipes::internal
