#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class SharedValueImpl;
}

/// Options of a SharedValue or SharedCount.
struct SharedValueOptions {
    /// If set, each write happens exactly once even if answers are lost, as long as the session lives. For this, each
    /// write keeps an ephemeral node in this directory until it is done. The directory is made if it is missing, and
    /// stays; it must not be that of a lock.
    std::string idempotent_in{};
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// A value with the version of the node's data.
struct VersionedValue {
    std::string value;         ///< the data of the node
    std::int32_t version = 0;  ///< of the node's data: 0 when the node is made, and one more with every write

    bool operator==(const VersionedValue&) const = default;
};

/// How an asynchronous write ended. True: written; false: the node had another version.
using SetResult = Result<bool>;

/// A small value that many programs share: the same as Curator's SharedValue on that path. Reading it costs no request.
/// Changes can be observed. A write can require that no client has written in between.
///
/// The seed is the first value: if the node is missing, get() makes it with the seed, also after the node was deleted.
/// observe() does this once, when it begins, as long as SessionOptions::retry allows. Safe for concurrent use. All
/// calls also wait for a connection.
class ZKRECIPES_API SharedValue {
public:
    /// Is called with the present value. Empty: there is no node.
    using Observer = std::function<void(const std::optional<VersionedValue>& value)>;

    /// Does not block and sends nothing. Throws Error bad_path; bad_option; too_large for the seed.
    SharedValue(Session& session, std::string path, std::string seed, SharedValueOptions options = {});
    SharedValue(SharedValue&&) noexcept;
    SharedValue& operator=(SharedValue&&) noexcept;
    ~SharedValue();  ///< Waiting calls and subscriptions go on.

    /// The latest known value. It is never older than one that this object has returned or written, and as new as the
    /// connected server has reported. Without a connection, it is the last known value. The first call of each session
    /// asks a server, and blocks for that. Later calls cost no request, because the node is watched. Throws Error:
    /// unreachable (a server has to be asked, and the deadline passes or a stop is requested before the answer),
    /// connection_lost, no_permission, no_parent, closed.
    VersionedValue get(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking; called back as set_async.
    void get_async(Deadline deadline, std::stop_token stop, std::function<void(Result<VersionedValue>)> done);

    /// Writes the value, whatever the node holds; makes a missing node. Blocks for one request and one round trip.
    /// Throws Error; nothing was written, except with outcome_unknown:
    ///   outcome_unknown  it was sent and the answer was lost: it has happened, or may still happen, or never will
    ///   unreachable      the deadline passed or a stop was requested before anything was sent
    ///   too_large, connection_lost (the retry policy gave up), closed, no_permission, no_parent …
    void set(std::string value, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// As set(), but only if the node still has this version, as get() returned it. Returns false if another client has
    /// written or deleted the node. Throws unsupported for version -1, because for the servers it means any version:
    /// docs/recipes/shared_value.md.
    [[nodiscard]] bool try_set(std::int32_t version, std::string value, Deadline deadline = Deadline::never(),
                               std::stop_token stop = {});
    /// The same without blocking: `done` is called exactly once, on the session's notifier thread, with what the
    /// blocking form returns (set: true) or throws. If the call cannot be started, they throw immediately: closed;
    /// too_large; bad_option for an empty callback. An exception thrown by the callback is logged.
    void set_async(std::string value, Deadline deadline, std::stop_token stop, std::function<void(SetResult)> done);
    void try_set_async(std::int32_t version, std::string value, Deadline deadline, std::stop_token stop,
                       std::function<void(SetResult)> done);

    /// Calls `observer` on the session's notifier thread with the value (empty: there is no node), and then after each
    /// change. It continues in later sessions, until the subscription ends or the session is closed. A slow observer
    /// gets the latest value; no observer gets an earlier value after a later one. Costs one read for each change, and
    /// one watch. Does not block. Throws Error: closed; bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::SharedValueImpl> impl_;
};

}  // namespace zkrecipes
