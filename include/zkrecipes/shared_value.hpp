#pragma once

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
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class SharedValueImpl;
}

struct SharedValueOptions {
    /// Makes writes happen exactly once through lost answers, while the session lives: each makes an ephemeral node
    /// below this directory for as long as it takes. Made when missing, and kept; must not be that of a lock.
    std::string idempotent_in{};
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

struct VersionedValue {
    std::string value;
    std::int32_t version = 0;  ///< of the node's data: grows with every write, from 0 when the node is made

    bool operator==(const VersionedValue&) const = default;
};

/// How an asynchronous write ended: true, written; false, the version was another one; with neither (timed out or
/// stopped, nothing was written); or with an error.
struct SetResult {
    std::optional<bool> written;
    std::exception_ptr error;  ///< an Error, or null
};

/// A small value that many programs share: the same as Curator's SharedValue on that path. It is read and observed
/// without asking the servers each time, and written on the condition that nobody else has written meanwhile.
///
/// The seed is what it is while nobody has written: get() makes a missing node with it, also one that was deleted
/// later; observe() once, when it begins, for as long as SessionOptions::retry goes on. Safe for concurrent use. Calls
/// wait for the connection within their deadline.
class ZKRECIPES_API SharedValue {
public:
    using Observer = std::function<void(const std::optional<VersionedValue>& value)>;

    /// Throws Error bad_path, bad_option, and too_large (the seed). Does not block and sends nothing.
    SharedValue(Session& session, std::string path, std::string seed, SharedValueOptions options = {});
    SharedValue(SharedValue&&) noexcept;
    SharedValue& operator=(SharedValue&&) noexcept;
    ~SharedValue();  ///< Waiting calls and subscriptions live on.

    /// The latest that is known: never older than what this object has returned or written before, and as new as what
    /// the connected server has told; while there is no connection, what was known last. The first call of each session
    /// asks a server, and the node is followed; from then on it costs no request. Throws Error: unreachable (the
    /// deadline passed, or a stop was requested, before anything was known), connection_lost, no_permission, no_parent,
    /// closed.
    VersionedValue get(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    // Block the fiber or thread until it has happened: one request, one round trip. Throw Error; nothing was written,
    // unless it is outcome_unknown:
    //   outcome_unknown  it was sent, and the answer was lost: it has happened, or will in a moment, or never
    //   unreachable      the deadline passed or a stop was requested before anything was sent
    //   too_large, connection_lost (retry policy gave up), closed, no_permission, no_parent …
    /// Writes it, whatever stands there; makes a missing node.
    void set(std::string value, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// Writes it, if the version is still the one of get(); false: somebody has written, or deleted the node. Throws
    /// unsupported for version -1, which the servers would take for any: docs/recipes/shared_value.md.
    [[nodiscard]] bool try_set(std::int32_t version, std::string value, Deadline deadline = Deadline::never(),
                               std::stop_token stop = {});
    /// The same without blocking; the result comes on the session's notifier thread, exactly once. Throw Error at once
    /// where nothing can follow: closed; too_large; bad_option for an empty callback. What the callback throws is
    /// logged.
    void set_async(std::string value, Deadline deadline, std::stop_token stop, std::function<void(SetResult)> done);
    void try_set_async(std::int32_t version, std::string value, Deadline deadline, std::stop_token stop,
                       std::function<void(SetResult)> done);

    /// Calls `observer` on the session's notifier thread with the value (empty: there is no node) and then with each
    /// change, also across sessions, until the subscription ends or the session is closed. A slow observer is told the
    /// latest, none is told an earlier value after a later one. Costs one read for each change and one watch. Does not
    /// block. Throws Error: closed; bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;

private:
    std::shared_ptr<internal::SharedValueImpl> impl_;
};

}  // namespace zkrecipes
