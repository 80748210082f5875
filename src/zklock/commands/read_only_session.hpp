#pragma once

#include <string>

#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// A session for commands that only read. It is connected when the constructor returns. Throws Failure and Error.
class ReadOnlySession {
public:
    ReadOnlySession(const Options& options, Console& console);
    Session& session() noexcept { return session_; }
    /// The deadline of one request.
    static Deadline answer_by() { return Deadline(std::chrono::seconds(10)); }

private:
    Session session_;
};

}  // namespace zkrecipes::zklock
