#include "session/requests/watches.hpp"

#include <utility>
#include <vector>

namespace zkrecipes::internal {

WatchId Watches::watch_node(const std::string& path, WatchListener listener) {
    return watch_table_.add(path, std::move(listener));
}
WatchId Watches::watch_existence(const std::string& path, WatchListener listener) {
    return watch_table_.add(path, std::move(listener), WatchKind::existence);
}
WatchId Watches::watch_children(const std::string& path, WatchListener listener) {
    return watch_table_.add(path, std::move(listener), WatchKind::children);
}
WatchId Watches::watch_directory(const std::string& path, WatchListener listener) {
    return watch_table_.add(path, std::move(listener), WatchKind::directory);
}

void Watches::send_get_watch(const std::string& path, std::uint64_t ticket) {
    const auto done = [this, ticket](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
        watch_table_.on_read(ticket, rc, data, stat);
    };
    requests_.get(path, done, true);
}

void Watches::send_children_watch(const std::string& path, std::uint64_t ticket) {
    const auto done = [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat& stat, Instant) {
        watch_table_.on_read(ticket, rc, {}, stat, names);
    };
    requests_.children(path, done, true);
}

void Watches::send_exists_watch(const std::string& path, std::uint64_t ticket) {
    const auto done = [this, ticket](Rc rc, const NodeStat& stat, Instant) {
        watch_table_.on_read(ticket, rc, {}, stat);
    };
    requests_.exists(path, done, true);
}

void Watches::send_remove_watches(const std::string& path, std::uint64_t ticket) {
    requests_.remove_watches(path, [this, ticket](Rc rc, Instant) { watch_table_.on_removed(ticket, rc); });
}

}  // namespace zkrecipes::internal
