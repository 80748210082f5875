#include "session/watch_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/mutation.hpp"

namespace zkrecipes::internal {

WatchId WatchTable::add(const std::string& path, WatchListener listener, WatchKind kind) {
    auto found = entries_.find(path);
    if (found == entries_.end()) {
        if (!budget_.reserve(path.size())) return 0;
        found = entries_.emplace(path, Entry{}).first;
        found->second.kind = kind;
    }
    assert(found->second.kind == kind);
    const WatchId id = ++last_id_;
    listeners_.emplace(id, Listening{path, std::move(listener)});
    Entry& entry = found->second;
    entry.abandoned = false;
    if (entry.removing != 0) {
        // The client forgets its watch when the removal is answered. A read sent now could be answered in between.
        entry.queued.push_back(id);
    } else {
        entry.arming.push_back(id);
        if (entry.reading == 0) start_read(path, entry);
    }
    return id;
}

void WatchTable::start_read(const std::string& path, Entry& entry) {
    entry.reading = ++last_ticket_;
    tickets_.emplace(entry.reading, path);
    if (entry.kind == WatchKind::node) return port_.send_get_watch(path, entry.reading);
    entry.asks_existence ? port_.send_exists_watch(path, entry.reading)
                         : port_.send_children_watch(path, entry.reading);
}

void WatchTable::drop(WatchId id, bool remove_from_server) {
    const auto listening = listeners_.find(id);
    if (listening == listeners_.end()) return;
    const auto entry = entries_.find(listening->second.path);
    // What the listener captured may own a great deal; it must not be destroyed while the table is half changed.
    const auto keep = listeners_.extract(listening);
    if (entry == entries_.end()) return;
    for (auto* list : {&entry->second.ready, &entry->second.arming, &entry->second.queued}) std::erase(*list, id);
    if (!remove_from_server) entry->second.abandoned = true;
    settle(entry);
}

/// Nobody may be left who asks, and nothing may be left to wait for.
void WatchTable::settle(Entries::iterator found) {
    Entry& entry = found->second;
    if (!entry.ready.empty() || !entry.arming.empty() || !entry.queued.empty()) return;
    if (entry.reading != 0 || entry.removing != 0) return;  // goes on when the answer is there
    if (entry.armed) {
        if (entry.abandoned || !port_.can_send() || ZKRECIPES_MUTATION("watch-left-on-server"))
            return;  // the event or on_connected() comes
        entry.removing = ++last_ticket_;
        tickets_.emplace(entry.removing, found->first);
        port_.send_remove_watches(found->first, entry.removing);
        return;
    }
    budget_.release(found->first.size());
    entries_.erase(found);
}

WatchListener WatchTable::take(WatchId id) {
    auto node = listeners_.extract(id);
    return node.empty() ? WatchListener{} : std::move(node.mapped().listener);
}

void WatchTable::on_read(std::uint64_t ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    const auto issued = tickets_.find(ticket);
    if (issued == tickets_.end()) return;  // of a former session
    const std::string path = std::move(issued->second);
    tickets_.erase(issued);
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.reading != ticket) return;
    Entry& entry = found->second;
    entry.reading = 0;
    const bool asked_existence = std::exchange(entry.asks_existence, false);
    const bool watching = rc == Rc::ok || (asked_existence && rc == Rc::no_node);
    if (watching) entry.armed = true;
    // A missing directory is watched for being made; one that has been made meanwhile, for its children.
    const bool other_way = entry.kind == WatchKind::directory && rc == (asked_existence ? Rc::ok : Rc::no_node);
    if (other_way && !entry.arming.empty()) {
        entry.asks_existence = !asked_existence;
        return start_read(path, entry);
    }
    const auto waiting = std::exchange(entry.arming, {});
    std::vector<decltype(WatchListener::ready)> calls;
    calls.reserve(waiting.size());
    if (watching) {
        for (const WatchId id : waiting) {
            entry.ready.push_back(id);
            const auto listening = listeners_.find(id);
            calls.push_back(listening->second.listener.ready);
        }
    } else {
        for (const WatchId id : waiting) calls.push_back(take(id).ready);
    }
    settle(found);
    // Last, because the listeners may add and remove. One that an earlier one of them removed must not be called any
    // more.
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const bool removed_meanwhile = watching && !listeners_.contains(waiting[i]);
        if (!removed_meanwhile && calls[i]) calls[i](rc, data, stat);
    }
}

void WatchTable::on_removed(std::uint64_t ticket, Rc rc) {
    const auto issued = tickets_.find(ticket);
    if (issued == tickets_.end()) return;
    const std::string path = std::move(issued->second);
    tickets_.erase(issued);
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.removing != ticket) return;
    Entry& entry = found->second;
    entry.removing = 0;
    switch (meaning(rc)) {
        case Meaning::done:
        case Meaning::refused: entry.armed = false; break;  // refused: no such watch
        case Meaning::failed: entry.armed = false; break;   // asking again would not help
        default: break;  // still armed, as the client registers again what it has; on_connected() goes on
    }
    if (!entry.queued.empty()) {
        entry.arming = std::exchange(entry.queued, {});
        start_read(path, entry);
        return;
    }
    if (entry.armed) return;
    settle(found);
}

void WatchTable::on_event(WatchEventType type, const std::string& path) {
    if (type == WatchEventType::removed) return;  // the answer to the removal says it
    const auto found = entries_.find(path);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    entry.armed = false;
    const auto ready = std::exchange(entry.ready, {});
    settle(found);
    for (const WatchId id : ready) {
        const WatchListener listener = take(id);  // empty when an earlier one has removed it
        if (listener.fired) listener.fired(type);
    }
}

void WatchTable::on_connected() {
    std::vector<std::string> idle;
    for (const auto& [path, entry] : entries_) {
        const bool asked = !entry.ready.empty() || !entry.arming.empty() || !entry.queued.empty();
        if (!asked && entry.armed && entry.removing == 0 && entry.reading == 0) idle.push_back(path);
    }
    for (const auto& path : idle) {
        // A node that we were deleting may be gone since: then there is no event any more that would end an abandoned
        // watch if it came while nobody was connected, and the removal answers "no watcher".
        const auto found = entries_.find(path);
        found->second.abandoned = false;
        settle(found);
    }
}

void WatchTable::reset() {
    tickets_.clear();
    entries_.clear();
    budget_.reset();
    const auto keep = std::exchange(listeners_, {});
}

}  // namespace zkrecipes::internal
