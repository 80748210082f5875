#pragma once

#include <string>

#include <zkrecipes/session.hpp>

#include "zklock/console.hpp"
#include "zklock/options.hpp"

namespace zkrecipes::zklock {

/// A session for commands that only look; connected when the constructor returns. Throws Failure and Error.
class Outside {
public:
    Outside(const Options& options, Console& console);
    Session& session() noexcept { return session_; }
    /// For one question to the servers.
    static Deadline answer_by() { return Deadline(std::chrono::seconds(10)); }

private:
    Session session_;
};

/// Writes all of it on stdout, however slow the reader is. Throws Failure when it does not get there.
void print(const std::string& text);
[[noreturn]] void cannot_print(int error);
/// The last step of writing on stdout, of print() too. Throws Failure.
void finish_printing();

}  // namespace zkrecipes::zklock
