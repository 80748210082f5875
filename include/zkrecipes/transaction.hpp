#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
struct TransactionPlan;
}

/// What a committed transaction has done.
struct TransactionResult {
    /// What one operation has done.
    struct Operation {
        std::string path;  ///< of the node; after a sequential create, it includes the number
        std::int32_t version =
            -1;  ///< of the node's data after the operation: 0 after a create; -1 after a remove or a check
    };
    std::vector<Operation> operations;  ///< in the order in which they were added; empty if answer_lost
    /// The transaction was committed, but the answer with the versions and numbers was lost. Only with idempotent_in.
    bool answer_lost = false;
};

/// How an asynchronous commit ended. If there is no error and the value is empty, it timed out or was stopped, and
/// nothing was written.
using CommitResult = Result<std::optional<TransactionResult>>;

/// Writes to ZooKeeper that happen only while grants are held: all of them or none, and only if the lock nodes of all
/// required grants exist at that point of ZooKeeper's own history. No clock is involved: a holder that was suspended,
/// disconnected or replaced cannot write any more, even if it still believes in its lock. Works with the grants of
/// every recipe.
///
/// Costs one request and one round trip. One object may be committed several times. Not safe for concurrent use while
/// operations are added; several commits may run at the same time.
///
/// The session that sends the transaction need not be that of the grant. Paths are relative to the path_prefix of the
/// session that sends.
class ZKRECIPES_API Transaction {
public:
    static constexpr std::int32_t any_version = -1;  ///< no condition on the version
    /// Which node a create makes.
    enum class Create {
        persistent,  ///< with the given path
        sequential   ///< persistent; the servers append ten digits to the path
    };

    /// Uses the session of the grant. Throws Error lock_lost for an empty grant.
    explicit Transaction(const Grant& grant);
    Transaction(Session& session, const Grant& grant);
    /// For the hold of another process. Throws Error lock_lost for a sequencer that was moved from.
    Transaction(Session& session, const Sequencer& sequencer);
    Transaction(Transaction&&) noexcept;
    Transaction& operator=(Transaction&&) noexcept;
    ~Transaction();

    /// Requires a further grant. Throws Error lock_lost for an empty grant or a sequencer that was moved from.
    Transaction& require(const Grant& grant);
    Transaction& require(const Sequencer& sequencer);

    // The operations run in the order in which they are added; each sees the effects of the earlier ones. All throw
    // Error bad_path; bad_option for a version below -1 or an empty access list.
    /// The parent must exist. `acl`: if empty, that of the session.
    Transaction& create(const std::string& path, std::string data, Create how = Create::persistent,
                        std::optional<std::vector<Acl>> acl = {});
    Transaction& set(const std::string& path, std::string data, std::int32_t version = any_version);
    Transaction& remove(const std::string& path, std::int32_t version = any_version);
    /// Changes nothing: the node must exist, and its data must have that version.
    Transaction& check(const std::string& path, std::int32_t version = any_version);

    /// Makes it safe to send the transaction again if its answer is lost, so commit() does that. Every attempt also
    /// creates the same ephemeral node in this directory, so a second one fails if an earlier one has happened. The
    /// node is deleted after the commit. The directory must exist: make it once, as a persistent node. It must not be
    /// that of a lock. Works as long as the session lives.
    Transaction& idempotent_in(const std::string& directory);

    std::size_t size() const noexcept;  ///< the number of operations

    /// Blocks until the servers have answered. Throws Error:
    ///   lock_lost         a required hold is over; nothing was written
    ///   node_exists, no_node, no_parent, bad_version, not_empty, no_permission, quota_exceeded …
    ///                     an operation was refused, the text says which; nothing was written
    ///   too_large         more than the servers accept in one request; nothing was sent
    ///   connection_lost   the retry policy gave up before anything was sent; nothing was written
    ///   closed            the session was closed before anything was sent; nothing was written
    ///   outcome_unknown   it was sent and the answer was lost: all of it has happened, or may still happen, or none
    ///                     ever will; see docs/recipes/transaction.md
    TransactionResult commit();
    /// Blocks until the servers have answered. Returns empty if the deadline passes or a stop is requested before
    /// anything was sent; then nothing was written. Throws as commit(), and outcome_unknown if the deadline passes or a
    /// stop is requested before the answer. A deadline that has already passed allows one attempt: empty if not
    /// connected, otherwise the call waits for the answer.
    [[nodiscard]] std::optional<TransactionResult> try_commit_for(Timeout timeout, std::stop_token stop = {});
    [[nodiscard]] std::optional<TransactionResult> try_commit_until(Deadline deadline, std::stop_token stop = {});
    /// As try_commit_until, without blocking. Sends the operations that were added before; `done` is called exactly
    /// once, on the session's notifier thread. If the call cannot be started, throws immediately: closed; too_large;
    /// bad_option for an empty callback. An exception thrown by the callback is logged.
    void commit_async(Deadline deadline, std::stop_token stop, std::function<void(CommitResult)> done);

private:
    std::unique_ptr<internal::TransactionPlan> plan_;
};

}  // namespace zkrecipes
