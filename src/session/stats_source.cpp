#include <zkrecipes/stats_source.hpp>

#include <memory>

#include "session/session_core.hpp"

namespace zkrecipes {
namespace {

bool closed_by_its_program(internal::SessionCore& core) {
    if (core.state() != SessionState::closed) return false;
    try {
        core.wait_connected(Deadline::passed(), {});  // throws why it is closed
    } catch (const Error& error) {
        return error.errc() == Errc::closed;
    }
    return false;
}

}  // namespace

std::function<std::optional<SessionStats>()> stats_source(const Session& session) {
    return [known = std::weak_ptr(internal::SessionAccess::core(session))]() -> std::optional<SessionStats> {
        const auto core = known.lock();
        if (!core || core->inherited() || closed_by_its_program(*core)) return std::nullopt;
        return core->stats();
    };
}

}  // namespace zkrecipes
