#pragma once

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
class PersistentNodeImpl;
}

/// The state of a PersistentNode. While no server answers, it is the last known one.
enum class PersistentNodeState {
    missing,  ///< does not exist, as far as is known; it is being made
    present,  ///< exists and belongs to this session
    taken,    ///< another session has a node at this path; this object makes its own when that is gone
    refused,  ///< the servers refuse to make or write it; the session keeps trying
    closed    ///< final: by close(), or because the session was closed
};

/// "missing", "present", "taken", "refused", "closed"
ZKRECIPES_API const char* to_string(PersistentNodeState state) noexcept;

/// Options of a PersistentNode.
struct PersistentNodeOptions {
    std::string data{};                     ///< of the node
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// An ephemeral node at a fixed path that exists as long as this object. It is made again if another client deletes it
/// or its parents, and if the session is lost and replaced. The same as Curator's PersistentNode with mode EPHEMERAL.
///
/// Safe for concurrent use. Use at most one object for a path and session. Costs one create, one read and one watch,
/// and the same again when it is deleted; set_data costs one set and one read.
class ZKRECIPES_API PersistentNode {
public:
    /// Is called with the state.
    using Listener = std::function<void(PersistentNodeState)>;

    /// Starts to make the node. Does not block. Throws Error bad_path; bad_option for an empty access list; too_large
    /// if the data do not fit into a request; closed.
    PersistentNode(Session& session, std::string path, PersistentNodeOptions options = {});
    PersistentNode(PersistentNode&&) noexcept;
    PersistentNode& operator=(PersistentNode&&) noexcept;
    ~PersistentNode();  ///< close()

    /// Blocks until the node exists with the data that was set last. Returns false if the deadline passes or a stop is
    /// requested before; the session keeps trying. Throws Error: closed, or the reason why the servers refuse the node
    /// (no_permission, no_parent, quota_exceeded, budget_exceeded …); in the latter case the session keeps trying, too.
    bool wait_present(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking: `done` is called exactly once, on the session's notifier thread. If the call cannot
    /// be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the callback is
    /// logged.
    void wait_present_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    /// Changes the data of the node, now and whenever the node is made again. If several changes follow quickly,
    /// perhaps only the last one is written. If another client writes into the node, its data stays until the next
    /// change. Does not block. Throws Error too_large; closed.
    void set_data(std::string data);
    std::string data() const;  ///< the one that was set last

    PersistentNodeState state() const noexcept;  ///< the last known one
    /// Calls `listener` on the session's notifier thread with the present state and then after each change. A slow
    /// listener gets the latest state. Does not block. Throws Error bad_option for an empty listener.
    [[nodiscard]] Subscription watch_state(Listener listener);

    /// Deletes the node for good, also if it is being made at that moment. Does not block.
    void close() noexcept;
    /// Deletes the node for good and blocks until the servers have confirmed it, or its session is over. Returns false
    /// if the deadline passes before; the session keeps trying, and the node ends with the session at the latest. A
    /// request that a former, lost session had still on its way may make the node after that, until the servers have
    /// ended that session.
    bool close_and_wait(Deadline deadline = Deadline::never());
    /// The same without blocking. A stop ends the wait, as the deadline does. Called back as wait_present_async.
    void close_and_wait_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::PersistentNodeImpl> impl_;
};

}  // namespace zkrecipes
