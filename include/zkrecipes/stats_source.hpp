#pragma once

#include <functional>
#include <optional>

#include <zkrecipes/export.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_stats.hpp>

namespace zkrecipes {

/// A function that returns Session::stats(), and may be called at any time: after the Session object was moved, and
/// after it is gone. It returns nothing when the session was closed, or the object destroyed. If the servers refused
/// the credentials, or the session failed, it goes on, and SessionStats::connected is false. For programs that export
/// the numbers; zkrecipes::PrometheusCollector uses it. The function does not keep the session alive, and may be called
/// by any thread; it does not wait for servers. Throws Error closed for an object that was moved from, or in a child of
/// fork().
ZKRECIPES_API std::function<std::optional<SessionStats>()> stats_source(const Session& session);

}  // namespace zkrecipes
