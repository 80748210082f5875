#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "session/requests/requests.hpp"
#include "session/requests/watch_table.hpp"

namespace zkrecipes::internal {

/// The watches of a session: sends what its WatchTable asks for. All with the lock held.
class Watches : private WatchTable::Port {
public:
    Watches(Connection& connection, Requests& requests) : connection_(connection), requests_(requests) {}

    // One watch on the server per path and facet, however many ask; removed there when no listener is left.
    // WatchListener::ready (or listed) is called once, under the session lock, and never from inside watch_node.
    using WatchListener = internal::WatchListener;
    using WatchId = internal::WatchId;  // 0: over the budget, nothing was done
    WatchId watch_node(const std::string& path, WatchListener listener);
    WatchId watch_existence(const std::string& path, WatchListener listener);  // the node; missing: its creation
    WatchId watch_children(const std::string& path, WatchListener listener);
    WatchId watch_directory(const std::string& path, WatchListener listener);  // its children; missing: its creation
    /// Watches die silently with their incarnation; removing a dead one is harmless.
    void unwatch(WatchId watch) { watch_table_.remove(watch); }
    /// Whether a node is still the same one, without a request for each question: see WatchTable::guard and guarded.
    void guard(const std::string& path, std::int64_t czxid) { watch_table_.guard(path, czxid); }
    std::int64_t guarded(const std::string& path) const { return watch_table_.guarded(path); }
    bool reserve_watch_possible(std::size_t path_bytes) const { return watch_table_.room_for(path_bytes); }

    /// For the other parts of the session.
    WatchTable& watch_table() { return watch_table_; }

private:
    void send_get_watch(const std::string& path, std::uint64_t ticket) override;
    void send_children_watch(const std::string& path, std::uint64_t ticket) override;
    void send_exists_watch(const std::string& path, std::uint64_t ticket) override;
    void send_remove_watches(const std::string& path, std::uint64_t ticket) override;
    bool can_send() const override { return connection_.connected(); }

    Connection& connection_;
    Requests& requests_;
    WatchTable watch_table_{*this};
};

}  // namespace zkrecipes::internal
