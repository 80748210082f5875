#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/transaction.hpp>

#include "core/hold/hold_ref.hpp"
#include "core/operation/operation.hpp"
#include "core/operation/types.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What a transaction consists of. Copied for each commit, so that the Transaction may be changed or destroyed
/// meanwhile.
struct TransactionPlan {
    explicit TransactionPlan(std::shared_ptr<SessionCore> session) : core(std::move(session)) {}

    /// Throws Error lock_lost for an empty grant.
    void require(const Grant& grant, const char* operation);
    /// Server path of a node that must be there.
    void require_node(const std::string& node);

    std::shared_ptr<SessionCore> core;
    std::vector<std::shared_ptr<const Hold>> holds;  // those that are ours to know of
    std::vector<MultiOp> checks;                     // one for each node
    std::vector<MultiOp> operations;                 // server paths
    std::vector<std::string> paths;                  // as the caller names them, one for each operation
    std::string mark_directory;                      // server path; empty: no mark
    std::string mark_path;                           // the same as the caller names it
};

/// Throws Error too_large where no server would take it.
void check_size(const TransactionPlan& plan, const char* operation);

/// How one commit ended: with a result, with an error, or with neither (nothing was sent).
struct CommitAnswer {
    std::optional<TransactionResult> result;
    std::optional<Error> error;
};

/// Runs under the session lock, exactly once.
using CommitDone = std::function<void(CommitAnswer)>;
/// One commit, for protocols that go on under the session lock.
std::shared_ptr<Operation> make_commit(const TransactionPlan& plan, const char* operation, Patience patience,
                                       CommitDone done);

/// Blocks the calling fiber or thread until the answer is there. Throws Error. Empty: timed out or stopped before
/// anything was sent.
std::optional<TransactionResult> commit_blocking(const TransactionPlan& plan, const char* operation, Deadline deadline,
                                                 std::stop_token stop);
/// `done` gets the answer on the notifier lane, exactly once.
void commit_later(const TransactionPlan& plan, const char* operation, Deadline deadline, std::stop_token stop,
                  std::function<void(CommitAnswer)> done);

}  // namespace zkrecipes::internal
