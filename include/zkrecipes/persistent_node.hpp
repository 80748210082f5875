#pragma once

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
class PersistentNodeImpl;
}

/// What is known of a PersistentNode. While no server answers, what was known last.
enum class PersistentNodeState {
    missing,  ///< not there, as far as is known; it is being made
    present,  ///< there, and of our session
    taken,    ///< another session has a node of this name; ours is made as soon as that is gone
    refused,  ///< the servers do not let us make or write it; tried again and again
    closed    ///< for ever: by close(), or with the session
};

ZKRECIPES_API const char* to_string(PersistentNodeState state) noexcept;

struct PersistentNodeOptions {
    std::string data{};                     ///< what the node says
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// An ephemeral node at a fixed path that is there as long as this object and the servers are: made again whenever it
/// is gone, because somebody has deleted it or its parents, or because the session was lost and replaced. Curator's
/// PersistentNode of mode EPHEMERAL.
///
/// Safe for concurrent use. At most one object for a path and session. Costs a create and a read, one watch, and, when
/// it is deleted, the same again; set_data costs a set and a read.
class ZKRECIPES_API PersistentNode {
public:
    using Listener = std::function<void(PersistentNodeState)>;

    /// Begins to make it. Does not block. Throws Error bad_path, bad_option (an empty access list), too_large (the data
    /// do not fit into a request), closed.
    PersistentNode(Session& session, std::string path, PersistentNodeOptions options = {});
    PersistentNode(PersistentNode&&) noexcept;
    PersistentNode& operator=(PersistentNode&&) noexcept;
    ~PersistentNode();  ///< close()

    /// Blocks the fiber or thread until the node is there and says what was set last. False: the deadline passed or a
    /// stop was requested; it goes on being made. Throws Error: why the servers refuse it (no_permission, no_parent,
    /// quota_exceeded, budget_exceeded …; it is tried again all the same), or closed.
    bool wait_present(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    /// What the node says from now on, also when it is made again; of several that follow each other fast only the last
    /// may be written. What others write into the node stays until then. Does not block. Throws Error too_large;
    /// closed.
    void set_data(std::string data);
    std::string data() const;  ///< what was set last

    PersistentNodeState state() const noexcept;
    /// Calls `listener` on the session's notifier thread with the present state and then with each change; a slow one
    /// is told the latest. Throws Error bad_option for an empty listener.
    [[nodiscard]] Subscription watch_state(Listener listener);

    /// The node is deleted and not made any more, also where the answer to a create is still to come. Does not wait.
    void close() noexcept;
    /// close(), and block until the servers have confirmed it. True: surely gone, or with a session that is over.
    /// False: the deadline passed; it is deleted behind, or ends with the session.
    bool close_and_wait(Deadline deadline);

    const std::string& path() const noexcept;

private:
    std::shared_ptr<internal::PersistentNodeImpl> impl_;
};

}  // namespace zkrecipes
