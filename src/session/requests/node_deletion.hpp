#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "session/requests/node_cleaner.hpp"
#include "session/requests/requests.hpp"

namespace zkrecipes::internal {

/// What must be deleted in the end: sends what the NodeCleaner of a session asks for. All with the lock held.
class NodeDeletion : private NodeCleaner::Port {
public:
    NodeDeletion(SessionLock& lock, Connection& connection, Requests& requests)
        : lock_(lock), connection_(connection), requests_(requests) {}

    /// Deletes a node of the present incarnation, trying until it or the incarnation is gone. `done`: it is gone for
    /// sure (true), or the session ended without our knowing (false).
    void delete_node(std::string node, std::function<void(bool gone)> done = {}, DeletedFor why = {});
    /// Several, by one request if that is possible. `done`: of all of them.
    void delete_nodes(std::vector<std::string> nodes, std::function<void(bool gone)> done = {}, DeletedFor why = {});
    /// The same for a node of which only the directory and a unique part of its name are known, because the answer to
    /// its create was lost: sync, list, compare the owner, delete.
    void delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool gone)> done = {},
                            DeletedFor why = {});
    /// The same for a node of a name that others may use, too: deleted only if it belongs to the present incarnation.
    void delete_if_owned(std::string node, std::function<void(bool gone)> done = {});

    /// For the other parts of the session.
    NodeCleaner& node_cleaner() { return node_cleaner_; }

private:
    /// False, and `done` is answered: there is no session.
    bool has_session(std::function<void(bool)>& done);
    void cleaner_remove(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_remove_all(const std::vector<std::string>& paths, NodeCleaner::Ticket ticket) override;
    void cleaner_sync(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_children(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_exists(const std::string& path, NodeCleaner::Ticket ticket) override;
    bool cleaner_can_send() const override { return connection_.connected(); }
    Instant cleaner_now() const override { return lock_.runtime().now(); }
    std::uint64_t cleaner_random() override { return lock_.runtime().random(); }
    void cleaner_refused(const std::string& path, const char* operation, Rc rc, std::uint64_t n) override;

    SessionLock& lock_;
    Connection& connection_;
    Requests& requests_;
    NodeCleaner node_cleaner_{*this};
};

}  // namespace zkrecipes::internal
