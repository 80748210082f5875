#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
struct TransactionPlan;
}

/// What a transaction that has happened has done.
struct TransactionResult {
    struct Operation {
        std::string path;           ///< of the node; of a sequential create: with its number
        std::int32_t version = -1;  ///< of the node's data now: 0 after a create; -1 after a remove or a check
    };
    std::vector<Operation> operations;  ///< in the order in which they were added; empty: answer_lost
    /// It has happened, but the answer that told versions and numbers was lost. Only with idempotent_in.
    bool answer_lost = false;
};

/// How an asynchronous commit ended: with a result; with neither (timed out or stopped, nothing was written); or with
/// an error.
struct CommitResult {
    std::optional<TransactionResult> result;
    std::exception_ptr error;  ///< an Error, or null
};

/// Writes that happen only while grants are held: all of them at once, or none, and only if the node of every required
/// grant is there at that point of ZooKeeper's own history. No clock is involved, so a holder that was stopped, cut
/// off or replaced cannot write any more, whatever it believes. Works with the grants of every recipe.
///
/// Costs one request and one round trip. May be committed again. Not safe for concurrent use while operations are
/// added; commits may run beside each other.
///
/// The session that sends need not be that of the grant. Paths are those of the session that sends (its namespace).
class ZKRECIPES_API Transaction {
public:
    static constexpr std::int32_t any_version = -1;
    enum class Create {
        persistent,
        sequential  ///< persistent; the servers append ten digits to the path
    };

    /// On the session of the grant. Throws Error lock_lost for an empty grant.
    explicit Transaction(const Grant& grant);
    Transaction(Session& session, const Grant& grant);
    /// For the hold of another process. Throws Error lock_lost for a sequencer that was moved from.
    Transaction(Session& session, const Sequencer& sequencer);
    Transaction(Transaction&&) noexcept;
    Transaction& operator=(Transaction&&) noexcept;
    ~Transaction();

    /// A further grant that must be held. Throws Error lock_lost for an empty grant, and for a sequencer that was moved
    /// from.
    Transaction& require(const Grant& grant);
    Transaction& require(const Sequencer& sequencer);

    // The operations, executed in this order; each sees what those before it did. Throw Error bad_path; bad_option for
    // a version below -1 or an empty access list.
    /// `acl` empty: the session's. The parent must exist.
    Transaction& create(const std::string& path, std::string data, Create how = Create::persistent,
                        std::optional<std::vector<Acl>> acl = {});
    Transaction& set(const std::string& path, std::string data, std::int32_t version = any_version);
    Transaction& remove(const std::string& path, std::int32_t version = any_version);
    /// Changes nothing; the node must be there, and its data of that version.
    Transaction& check(const std::string& path, std::int32_t version = any_version);

    /// Lets the transaction be sent again when its answer is lost, without a chance that it happens twice: every
    /// attempt also makes one ephemeral node, of the same name that is used only once, in this directory, and the next
    /// attempt fails on it if an earlier one has happened. It is deleted behind the commit. The directory must exist
    /// and must not be that of a lock. Works while the session lives.
    Transaction& idempotent_in(const std::string& directory);

    std::size_t size() const noexcept;  ///< how many operations were added

    /// Blocks the fiber or thread until the servers have answered. Throws Error:
    ///   lock_lost         a grant is over; nothing was written
    ///   node_exists, no_node, no_parent, bad_version, not_empty, no_permission, quota_exceeded …
    ///                     an operation was refused: the text says which; nothing was written
    ///   too_large         more than the servers take in one request; nothing was sent
    ///   connection_lost   retry policy gave up before anything was sent; nothing was written
    ///   closed            the session was closed before anything was sent; nothing was written
    ///   outcome_unknown   it was sent, and the answer was lost: it has happened as a whole, or will in a moment, or
    ///                     never; see docs/recipes/transaction.md
    TransactionResult commit();
    /// Empty: the deadline passed or a stop was requested before anything was sent; nothing was written. A passed
    /// deadline makes one attempt: empty when not connected, otherwise it waits for the answer. Throws as commit(), and
    /// outcome_unknown when the deadline passes or a stop is requested before the answer came.
    [[nodiscard]] std::optional<TransactionResult> commit_before(Deadline deadline, std::stop_token stop = {});
    /// As commit_before without blocking; the result comes on the session's notifier thread, exactly once. What was
    /// added so far is what is sent. Throws Error at once where nothing can follow: closed; too_large; bad_option for
    /// an empty callback. What the callback throws is logged.
    void commit_async(Deadline deadline, std::stop_token stop, std::function<void(CommitResult)> done);

private:
    std::unique_ptr<internal::TransactionPlan> plan_;
};

}  // namespace zkrecipes
