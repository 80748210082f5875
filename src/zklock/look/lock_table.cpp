#include "zklock/look/lock_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

namespace zkrecipes::zklock {
namespace {

constexpr const char* kQueue = "/locks";    // of a semaphore: the waiters
constexpr const char* kLeases = "/leases";  // of a semaphore: the holders

bool same_nodes(const std::vector<Participant>& a, const std::vector<Participant>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Participant& one, const Participant& other) { return one.node == other.node; });
}

/// A client that has just got a lease may still be in the queue. Its two nodes begin with the same identity.
bool same_client(const Participant& waiter, const Participant& lease) {
    constexpr std::size_t kIdentity = 39;  // "_c_" and a UUID
    return lease.node.starts_with("_c_") && lease.node.size() > kIdentity &&
           waiter.node.starts_with(std::string_view(lease.node).substr(0, kIdentity));
}

std::string parent_of(const std::string& path) { return path.rfind('/') == 0 ? "/" : path.substr(0, path.rfind('/')); }
/// The path of the same parent with this last part.
std::string beside(const std::string& path, const char* name) { return path.substr(0, path.rfind('/')) + name; }

LockRow row_of_queue(const std::string& path, const std::vector<Participant>& queue) {
    LockRow row{path, "exclusive", 0, 0, {}, {path}};
    for (const Participant& one : queue) ++(one.holder ? row.holders : row.waiters);
    const auto holder = std::find_if(queue.begin(), queue.end(), [](const Participant& one) { return one.holder; });
    if (holder != queue.end()) {
        row.holder = holder->path;
        row.mode = holder->mode;
    }
    return row;
}

}  // namespace

LockTable::LockTable(const std::string& prefix, std::string skipped) : prefix_(prefix), skipped_(std::move(skipped)) {
    add(prefix);
}

void LockTable::add(const std::string& path) {
    if (path == skipped_ || !directories_.try_emplace(path).second) return;
    unlisted_.insert(path);
}

void LockTable::forget(const std::string& path, const Directory& directory) {
    for (std::set<std::string>* const paths : {&unlisted_, &shown_, &parents_, &changed_}) paths->erase(path);
    by_age_.erase({directory.listed_at, path});
}

/// Also forgets what is below it.
void LockTable::remove(const std::string& path) {
    const std::string below = path + "/";
    for (auto it = directories_.lower_bound(below); it != directories_.end() && it->first.starts_with(below);) {
        forget(it->first, it->second);
        it = directories_.erase(it);
    }
    if (const auto found = directories_.find(path); found != directories_.end()) {
        forget(path, found->second);
        directories_.erase(found);
    }
}

/// It is under way no longer.
void LockTable::put_down(const std::string& path, Directory& directory, Instant now) {
    unlisted_.erase(path);
    by_age_.erase({directory.listed_at, path});
    directory.listed_at = now;
    by_age_.insert({now, path});
}

void LockTable::listed(const LockNames& names, Instant now) {
    const auto found = directories_.find(names.path);
    if (found == directories_.end()) return;
    if (!names.exists && names.path != prefix_) return remove(names.path);
    Directory& directory = found->second;
    std::vector<Participant> queue, leases;
    for (const Participant& one : names.participants) (one.mode == "semaphore" ? leases : queue).push_back(one);
    if (directory.listed && !(same_nodes(queue, directory.queue) && same_nodes(leases, directory.leases))) {
        directory.changed_at = now;
        changed_.insert(names.path);
    }
    directory.queue = std::move(queue);
    directory.leases = std::move(leases);
    directory.has_others = !names.others.empty();
    directory.listed = true;
    directory.hidden = false;
    put_down(names.path, directory, now);
    if (!names.others.empty() || names.path == prefix_) parents_.insert(names.path);
    for (const std::string& other : names.others) add(other);
}

void LockTable::unreadable(const std::string& path, Instant now) {
    const auto found = directories_.find(path);
    if (found == directories_.end()) return;
    found->second = Directory{};
    found->second.listed = found->second.hidden = true;
    put_down(path, found->second, now);
}

void LockTable::failed(const std::string& path) {
    const auto found = directories_.find(path);
    if (found == directories_.end()) return;
    if (!found->second.listed) {
        unlisted_.insert(path);
    } else {
        by_age_.insert({found->second.listed_at, path});
    }
}

/// The other directory of the semaphore to which `path` belongs, if its name ends with `own`.
const LockTable::Directory* LockTable::sibling(const std::string& path, const char* own, const char* other) const {
    if (!path.ends_with(own)) return nullptr;
    const auto found = directories_.find(beside(path, other));
    return found == directories_.end() ? nullptr : &found->second;
}

std::optional<LockRow> LockTable::row_of(const std::string& path, const Directory& directory) const {
    const auto is_leases = [](const Directory& one) { return one.queue.empty() && !one.has_others; };
    if (path.ends_with(kLeases) && !directory.leases.empty()) {
        const Directory* const queue = sibling(path, kLeases, kQueue);
        const std::string lock = parent_of(path);
        LockRow row{lock.empty() ? "/" : lock,     "semaphore", directory.leases.size(), 0,
                    directory.leases.front().path, {path}};
        if (!queue) return row;
        row.directories.push_back(beside(path, kQueue));
        for (const Participant& waiter : queue->queue) {
            const auto has_lease = [&](const Participant& lease) { return same_client(waiter, lease); };
            row.waiters += std::none_of(directory.leases.begin(), directory.leases.end(), has_lease) ? 1 : 0;
        }
        return row;
    }
    if (directory.queue.empty()) return std::nullopt;
    if (const Directory* const leases = sibling(path, kQueue, kLeases); leases && is_leases(*leases)) {
        if (!leases->leases.empty()) return std::nullopt;  // shown with its leases
        const std::string lock = parent_of(path);
        return LockRow{lock, "semaphore", 0, directory.queue.size(), {}, {path, beside(path, kLeases)}};
    }
    return row_of_queue(path, directory.queue);
}

std::vector<LockRow> LockTable::rows() const {
    std::vector<LockRow> rows;
    for (const auto& [path, directory] : directories_) {
        if (auto row = row_of(path, directory)) rows.push_back(std::move(*row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const LockRow& a, const LockRow& b) {
        return std::tie(b.waiters, b.holders, a.path) < std::tie(a.waiters, a.holders, b.path);
    });
    return rows;
}

std::vector<std::string> LockTable::unreadable_paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, directory] : directories_) {
        if (directory.hidden) paths.push_back(path);
    }
    return paths;
}

void LockTable::show(const std::vector<LockRow>& visible) {
    shown_.clear();
    for (const LockRow& row : visible) shown_.insert(row.directories.begin(), row.directories.end());
}

Nanoseconds LockTable::oldest_look(Instant now) const {
    Nanoseconds oldest(0);  // also where an answer is missing, which is under way and not in by_age_
    for (const auto& [path, directory] : directories_) {
        if (directory.listed) oldest = std::max(oldest, now - directory.listed_at);
    }
    return oldest;
}

std::string LockTable::take(const std::string& path) {
    by_age_.erase({directories_[path].listed_at, path});
    return path;
}

std::optional<std::string> LockTable::next_unlisted() {
    if (unlisted_.empty()) return std::nullopt;
    std::string path = *unlisted_.begin();
    unlisted_.erase(unlisted_.begin());
    return path;
}

std::optional<std::string> LockTable::oldest_of(const std::set<std::string>& paths, Instant listed_before) const {
    const std::string* best = nullptr;
    Instant best_at = listed_before;
    for (const std::string& path : paths) {
        const auto found = directories_.find(path);
        if (found == directories_.end() || found->second.listed_at > best_at) continue;
        if (!by_age_.contains({found->second.listed_at, path})) continue;  // not listed yet, or under way
        best = &path;
        best_at = found->second.listed_at;
    }
    return best ? std::optional(*best) : std::nullopt;
}

std::optional<std::string> LockTable::oldest(Kind kind, Instant now) const {
    switch (kind) {
        case Kind::shown: return oldest_of(shown_, now - kShownEvery);
        case Kind::parent: return oldest_of(parents_, now - kParentsEvery);
        case Kind::changed: return oldest_of(changed_, now - kChangedEvery);
        case Kind::other:
            if (by_age_.empty() || by_age_.begin()->first > now - kOthersEvery) return std::nullopt;
            return by_age_.begin()->second;
    }
    return std::nullopt;
}

std::optional<std::string> LockTable::next_due(Instant now) {
    if (auto path = next_unlisted()) return path;
    std::erase_if(changed_,
                  [&](const std::string& path) { return directories_[path].changed_at < now - kChangedLately; });
    // Of four requests two are for what is shown, and each of the others has its own first choice: nothing starves.
    using Choice = std::array<Kind, 4>;
    static constexpr std::array<Choice, 4> kTurns = {
        Choice{Kind::shown, Kind::changed, Kind::parent, Kind::other},
        Choice{Kind::parent, Kind::changed, Kind::other, Kind::shown},
        Choice{Kind::shown, Kind::changed, Kind::parent, Kind::other},
        Choice{Kind::other, Kind::shown, Kind::changed, Kind::parent},
    };
    for (const Kind kind : kTurns[turn_++ % kTurns.size()]) {
        if (auto path = oldest(kind, now)) return take(*path);
    }
    return std::nullopt;
}

}  // namespace zkrecipes::zklock
