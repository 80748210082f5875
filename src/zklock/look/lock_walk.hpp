#pragma once

#include <exception>
#include <string>
#include <vector>

#include <zkrecipes/inspect.hpp>

#include "zklock/report/answers.hpp"

namespace zkrecipes::zklock {

/// What a walk through a tree has found.
struct WalkedLocks {
    std::vector<LockView> locks;          ///< those with a holder or a waiter, by path
    std::vector<std::string> unreadable;  ///< paths that an access list forbids to read
    bool exists = true;                   ///< whether the path exists
    std::exception_ptr cut;               ///< what ended the walk early; null: the list is complete
};

/// Finds every lock at or below `prefix`, as find_locks() does, with many calls at the same time. If the servers do not
/// answer any more, returns what was found until then. `skipped`: a directory that is not looked at; empty: none.
WalkedLocks walk_locks(Answers& answers, const std::string& prefix, const std::string& skipped);

}  // namespace zkrecipes::zklock
