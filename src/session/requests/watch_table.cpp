#include "session/requests/watch_table.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {

namespace {

bool about_children(WatchKind kind) { return kind == WatchKind::children || kind == WatchKind::directory; }
bool awaits_creation(WatchKind kind) { return kind == WatchKind::existence || kind == WatchKind::directory; }

}  // namespace

WatchId WatchTable::add(const std::string& path, WatchListener listener, WatchKind kind) {
    const auto found = entries_.try_emplace(path).first;
    if (!count(path, found->second, kind)) {
        settle(found);
        return 0;
    }
    const WatchId id = ++last_id_;
    listeners_.emplace(id, Listening{path, std::move(listener), kind});
    Entry& entry = found->second;
    Facet& facet = entry.facet(about_children(kind));
    entry.abandoned = false;
    if (entry.removing != 0) {
        // The client forgets its watches when the removal is answered. A read sent now could be answered in between.
        facet.queued.push_back(id);
    } else {
        facet.arming.push_back(id);
        if (facet.reading == 0) start_read(path, entry, about_children(kind));
    }
    return id;
}

void WatchTable::guard(const std::string& path, std::int64_t czxid) {
    if (!port_.can_send()) return;
    const auto found = entries_.try_emplace(path).first;
    Entry& entry = found->second;
    if (entry.removing != 0 || entry.guard == czxid) return;
    entry.guard = 0;
    // The rest is for those who wait.
    const bool room = entry.itself.counted || budget_.used() <= budget_.limit() / 4;
    if (!room) return settle(found);
    if (!count(path, entry, WatchKind::node)) return settle(found);
    entry.guarded = true;
    if (entry.itself.reading == 0) start_read(path, entry, false);
}

std::int64_t WatchTable::guarded(const std::string& path) const {
    const auto found = entries_.find(path);
    return found == entries_.end() ? 0 : found->second.guard;
}

bool WatchTable::unused() const noexcept {
    return std::ranges::all_of(entries_, [](const auto& entry) {
        const Entry& each = entry.second;
        return each.guarded && !each.asked_for() && !each.reading() && !each.children.armed && each.removing == 0;
    });
}

/// After a reconnect the client sends each path once for the node and once for its children, in one packet.
bool WatchTable::count(const std::string& path, Entry& entry, WatchKind kind) {
    const bool on_itself = !about_children(kind) || awaits_creation(kind);
    for (const bool of_children : {false, true}) {
        Facet& facet = entry.facet(of_children);
        if (facet.counted || !(of_children ? about_children(kind) : on_itself)) continue;
        if (!budget_.reserve(path.size())) return false;
        facet.counted = true;
    }
    return true;
}

void WatchTable::start_read(const std::string& path, Entry& entry, bool of_children) {
    Facet& facet = entry.facet(of_children);
    facet.reading = ++last_ticket_;
    tickets_.emplace(facet.reading, Issued{path, of_children});
    if (facet.asks_existence) return port_.send_exists_watch(path, facet.reading);
    of_children ? port_.send_children_watch(path, facet.reading) : port_.send_get_watch(path, facet.reading);
}

void WatchTable::drop(WatchId id, bool remove_from_server) {
    const auto listening = listeners_.find(id);
    if (listening == listeners_.end()) return;
    const auto entry = entries_.find(listening->second.path);
    // What the listener captured may own a great deal; it must not be destroyed while the table is half changed.
    const auto keep = listeners_.extract(listening);
    if (entry == entries_.end()) return;
    Facet& facet = entry->second.facet(about_children(keep.mapped().kind));
    for (auto* list : {&facet.ready, &facet.arming, &facet.queued}) std::erase(*list, id);
    if (!remove_from_server) entry->second.abandoned = true;
    settle(entry);
}

/// No listener may be left, and nothing may be left to wait for.
void WatchTable::settle(Entries::iterator found) {
    Entry& entry = found->second;
    if (entry.asked_for()) return;
    if (entry.reading() || entry.removing != 0) return;  // goes on when the answer is there
    if (entry.armed()) {
        if (entry.abandoned || !port_.can_send()) return;  // the event or on_connected() comes
        if (entry.guarded && !entry.children.armed) return;
        entry.guarded = false;
        entry.guard = 0;
        entry.removing = ++last_ticket_;
        tickets_.emplace(entry.removing, Issued{found->first, false});
        port_.send_remove_watches(found->first, entry.removing);
        return;
    }
    for (const Facet* facet : {&entry.itself, &entry.children}) {
        if (facet->counted) budget_.release(found->first.size());
    }
    entries_.erase(found);
}

void WatchTable::hand_over(WatchId id, WatchListener listener) {
    if (const auto found = listeners_.find(id); found != listeners_.end()) {
        std::swap(found->second.listener, listener);  // what the former one owns ends with this call
    }
}

WatchListener WatchTable::take(WatchId id) {
    auto node = listeners_.extract(id);
    return node.empty() ? WatchListener{} : std::move(node.mapped().listener);
}

/// Whether a read that was answered so has left this one a watch.
bool WatchTable::watches(WatchId id, Rc rc, bool asked_existence) const {
    if (rc == Rc::ok) return true;
    return rc == Rc::no_node && asked_existence && awaits_creation(listeners_.at(id).kind);
}

/// Whom the answer to a read is for. The others wait for one more: what is missing is watched for being made, and what
/// has been made meanwhile is read.
std::vector<WatchId> WatchTable::answered(const std::string& path, Entry& entry, bool of_children, Rc rc) {
    Facet& facet = entry.facet(of_children);
    const bool asked_existence = facet.asks_existence;
    const bool other_way = rc == (asked_existence ? Rc::ok : Rc::no_node);
    std::vector<WatchId> told;
    for (const WatchId id : std::exchange(facet.arming, {})) {
        const bool waits = other_way && (asked_existence || awaits_creation(listeners_.at(id).kind));
        (waits ? facet.arming : told).push_back(id);
    }
    facet.asks_existence = other_way && !asked_existence && !facet.arming.empty();
    if (!facet.arming.empty()) start_read(path, entry, of_children);
    return told;
}

void WatchTable::on_read(std::uint64_t ticket, Rc rc, const std::string& data, const NodeStat& stat,
                         const std::vector<std::string>& names) {
    const auto issued = tickets_.extract(ticket);
    if (issued.empty()) return;  // of a former session
    const auto& [path, of_children] = issued.mapped();
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.facet(of_children).reading != ticket) return;
    Facet& facet = found->second.facet(of_children);
    facet.reading = 0;
    const bool asked_existence = facet.asks_existence;
    // What asks whether it is there leaves a watch on the node itself, also for those who then want its children.
    if (rc == Rc::ok || (asked_existence && rc == Rc::no_node))
        found->second.facet(of_children && !asked_existence).armed = true;
    if (!of_children) {
        Entry& entry = found->second;
        entry.guarded = entry.guarded && (rc == Rc::ok || (facet.armed && rc != Rc::no_node));
        if (entry.guarded && rc == Rc::ok) entry.guard = stat.czxid;
    }
    struct Call {
        WatchId id;
        bool watching;
    };
    std::vector<Call> calls;
    for (const WatchId id : answered(path, found->second, of_children, rc)) {
        const bool watching = watches(id, rc, asked_existence);
        if (watching) facet.ready.push_back(id);
        calls.push_back({id, watching});
    }
    settle(found);
    // Last, because the listeners may add and remove. One that an earlier one of them removed is not called any more:
    // it is looked for right before its call.
    for (const Call& call : calls) {
        const auto known = listeners_.find(call.id);
        if (known == listeners_.end()) continue;
        const WatchListener listener = call.watching ? known->second.listener : take(call.id);
        if (listener.listed) {
            listener.listed(rc, names, stat);
        } else if (listener.ready) {
            listener.ready(rc, data, stat);
        }
    }
}

void WatchTable::on_removed(std::uint64_t ticket, Rc rc) {
    const auto issued = tickets_.extract(ticket);
    if (issued.empty()) return;
    const std::string& path = issued.mapped().path;
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.removing != ticket) return;
    Entry& entry = found->second;
    entry.removing = 0;
    switch (meaning(rc)) {
        case Meaning::done:
        case Meaning::refused:                                                           // no such watch
        case Meaning::failed: entry.itself.armed = entry.children.armed = false; break;  // asking again would not help
        default: break;  // still armed, as the client registers again what it has; on_connected() goes on
    }
    for (const bool of_children : {false, true}) {
        Facet& facet = entry.facet(of_children);
        if (facet.queued.empty()) continue;
        facet.arming = std::exchange(facet.queued, {});
        start_read(path, entry, of_children);
    }
    // Refused at a break, and told so only on the next connection, whose on_connected() is over: again.
    if (entry.armed() && rc != Rc::not_connected) return;
    settle(found);
}

void WatchTable::on_event(WatchEventType type, const std::string& path) {
    if (type == WatchEventType::removed) return;  // the answer to the removal says it
    const auto found = entries_.find(path);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    std::vector<WatchId> ready;
    for (const bool of_children : {false, true}) {
        if (type == (of_children ? WatchEventType::changed : WatchEventType::children_changed)) continue;
        Facet& facet = entry.facet(of_children);
        facet.armed = false;
        if (!of_children) {
            entry.guarded = entry.guarded && facet.reading != 0;
            entry.guard = 0;
        }
        ready.insert(ready.end(), facet.ready.begin(), facet.ready.end());
        facet.ready.clear();
    }
    settle(found);
    for (const WatchId id : ready) {
        const WatchListener listener = take(id);  // empty when an earlier one has removed it
        if (listener.fired) listener.fired(type);
    }
}

void WatchTable::on_connected() {
    std::vector<std::string> idle;
    for (auto& [path, entry] : entries_) {
        entry.guard = 0;
        if (entry.guarded && !entry.children.armed) continue;
        if (!entry.asked_for() && entry.armed() && entry.removing == 0 && !entry.reading()) idle.push_back(path);
    }
    for (const auto& path : idle) {
        // A node that we were deleting may be gone since: then there is no event any more that would end an abandoned
        // watch if it came while the client was not connected, and the removal answers "no watcher".
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
