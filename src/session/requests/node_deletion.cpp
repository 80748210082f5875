#include "session/requests/node_deletion.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace zkrecipes::internal {

bool NodeDeletion::has_session(std::function<void(bool)>& done) {
    if (connection_.fsm().has_session()) return true;
    if (done) lock_.post_locked([done = std::move(done)] { done(false); });
    return false;
}

void NodeDeletion::delete_node(std::string node, std::function<void(bool)> done, DeletedFor why) {
    if (has_session(done)) node_cleaner_.add_node(std::move(node), std::move(done), why);
}

void NodeDeletion::delete_nodes(std::vector<std::string> nodes, std::function<void(bool)> done, DeletedFor why) {
    if (has_session(done)) node_cleaner_.add_nodes(std::move(nodes), std::move(done), why);
}

void NodeDeletion::delete_if_owned(std::string node, std::function<void(bool)> done) {
    if (!has_session(done)) return;
    node_cleaner_.add_owned(std::move(node), connection_.incarnation().session_id, std::move(done));
}

void NodeDeletion::delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool)> done,
                                      DeletedFor why) {
    if (!has_session(done)) return;
    const std::int64_t owner = connection_.incarnation().session_id;
    node_cleaner_.add_identity(std::move(directory), std::move(name_prefix), owner, std::move(done), why);
}

void NodeDeletion::cleaner_remove(const std::string& path, NodeCleaner::Ticket ticket) {
    requests_.remove(path, -1, [this, ticket](Rc rc, Instant) { node_cleaner_.on_removed(ticket, rc); });
}

void NodeDeletion::cleaner_remove_all(const std::vector<std::string>& paths, NodeCleaner::Ticket ticket) {
    std::vector<MultiOp> ops(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
        ops[i].kind = MultiOp::Kind::remove;
        ops[i].path = paths[i];
    }
    requests_.multi(std::move(ops), [this, ticket](Rc rc, const std::vector<MultiResult>&, Instant) {
        node_cleaner_.on_removed_all(ticket, rc);
    });
}

void NodeDeletion::cleaner_sync(const std::string& path, NodeCleaner::Ticket ticket) {
    requests_.sync(path, [this, ticket](Rc rc, Instant) { node_cleaner_.on_synced(ticket, rc); });
}

void NodeDeletion::cleaner_children(const std::string& path, NodeCleaner::Ticket ticket) {
    requests_.children(path, [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
        node_cleaner_.on_children(ticket, rc, names);
    });
}

void NodeDeletion::cleaner_exists(const std::string& path, NodeCleaner::Ticket ticket) {
    requests_.exists(path, [this, ticket](Rc rc, const NodeStat& stat, Instant) {
        node_cleaner_.on_exists(ticket, rc, stat.ephemeral_owner);
    });
}

void NodeDeletion::cleaner_refused(const std::string& path, const char* operation, Rc rc, std::uint64_t n) {
    if (!should_log(n)) return;
    lock_.log().error(
        "session {:#x}: cannot clean up {}: {} was answered '{}' ({} times). It stays until it is permitted or the "
        "session "
        "ends; give this session the permissions READ on the directory and DELETE in it",
        connection_.printable_id(), path, operation, to_string(rc), n);
}

}  // namespace zkrecipes::internal
