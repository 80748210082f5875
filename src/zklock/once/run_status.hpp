#pragma once

#include <optional>
#include <string>

#include <boost/json/fwd.hpp>
#include <zkrecipes/inspect.hpp>

#include "zklock/once/run_record.hpp"
#include "zklock/report/answers.hpp"

namespace zkrecipes::zklock {

/// A lock, and what is recorded of its runs with --once-per.
struct LockStatus {
    LockView lock;
    std::optional<RunRecord> run;
    bool unreadable = false;  ///< there is a record, but an access list forbids to read it, or it is none of zklock's
    /// A node below a path that has no lock nodes, as in a directory of locks; empty: none.
    std::string other_node;
};

/// Reads both. A run that the record still calls running, and whose lock node is gone, is `unknown` in the result.
/// Blocks. Throws as inspect_lock.
LockStatus read_lock_status(Answers& answers, const std::string& path);

/// A line for people; empty: no run was ever recorded.
std::string run_line(const LockStatus& status, const Options& options);
/// The field "once" of `status --json`: null, or an object.
boost::json::value run_json(const LockStatus& status);

}  // namespace zkrecipes::zklock
