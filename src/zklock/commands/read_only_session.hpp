#pragma once

#include <chrono>
#include <stop_token>

#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/answers.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// Waits until the session is connected, at most for --connect-timeout, and for the -w of `zklock wait`. Returns false
/// if a stop is requested before. Throws Failure and Error.
bool await_connection(Session& session, const Options& options, std::stop_token stop = {});

/// A session for commands that only read. It is connected when the constructor returns. Throws Failure and Error.
class ReadOnlySession {
public:
    ReadOnlySession(const Options& options, Console& console);
    Session& session() noexcept { return session_; }
    /// For calls that may send many requests.
    Answers& answers() noexcept { return answers_; }
    /// The deadline of one request.
    static Deadline answer_by() { return Deadline(kLimit); }

private:
    static constexpr std::chrono::seconds kLimit{10};

    Session session_;
    Answers answers_;
};

}  // namespace zkrecipes::zklock
