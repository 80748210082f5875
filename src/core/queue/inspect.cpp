#include <zkrecipes/inspect.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/paths.hpp"
#include "core/operation/read_op.hpp"
#include "core/queue/lock_layout.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"
#include "core/queue/queue_rule.hpp"

namespace zkrecipes {
namespace internal {
namespace {

/// What the list of one directory says. Pure.
struct DirectoryContents {
    bool is_lock = false;                       // it has lock nodes
    bool may_be_semaphore = false;              // worth reading its layout
    std::vector<std::string> subdirectories{};  // that may hold locks, too
};
DirectoryContents contents_of(const std::string& directory, Rc rc, const std::vector<std::string>& names,
                              const NodeStat& stat) {
    DirectoryContents contents;
    contents.may_be_semaphore = rc == Rc::ok && may_be_semaphore(names, stat);
    for (const auto& name : names) {
        if (parse_queue_name(name, lock_patterns())) {
            contents.is_lock = true;
        } else if (!is_lease_name(name) && (directory != "/" || name != "zookeeper")) {
            contents.subdirectories.push_back(join_path(directory, name));
        }
    }
    return contents;
}

/// Walks a subtree and keeps the directories that have lock nodes, or may be a semaphore's.
class LockFinder final : public ReadOp {
public:
    LockFinder(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string root)
        : ReadOp(std::move(core), operation, std::move(user_path)), root_(std::move(root)) {}

    // Server paths, parents before children.
    std::vector<std::string> directories;
    std::vector<std::string> may_be_semaphores;
    std::vector<std::string> unreadable;

private:
    void begin() override {
        directories.clear();
        may_be_semaphores.clear();
        unreadable.clear();
        open_ = {root_};
        in_flight_ = 0;
        go_on();
    }

    void go_on() {
        while (!open_.empty() && in_flight_ < kInFlight) {
            auto directory = std::move(open_.front());
            open_.pop_front();
            ++in_flight_;
            core().children(directory,
                            guard([this, directory](Rc rc, const std::vector<std::string>& names, const NodeStat& stat,
                                                    Instant) { on_listed(directory, rc, names, stat); }));
        }
        if (open_.empty() && in_flight_ == 0) done();
    }

    void on_listed(const std::string& directory, Rc rc, const std::vector<std::string>& names, const NodeStat& stat) {
        // What we may not read below the root is left out.
        const bool hidden = rc == Rc::no_auth && directory != root_;
        if (!hidden && !usable(rc, "list", directory)) return;
        if (hidden) unreadable.push_back(core().user_path(directory));
        --in_flight_;
        auto contents = contents_of(directory, rc, names, stat);
        if (contents.is_lock) directories.push_back(directory);
        if (contents.may_be_semaphore) may_be_semaphores.push_back(directory);
        std::ranges::move(contents.subdirectories, std::back_inserter(open_));
        go_on();
    }

    const std::string root_;
    std::deque<std::string> open_;
    std::size_t in_flight_ = 0;
};

/// The node whose end a caller that waits for a free lock waits for: the head of the queue, or any lease. Empty: the
/// lock is free. Pure.
std::string holder_among(const std::vector<std::string>& names, bool leases) {
    if (leases) return names.empty() ? std::string() : names.front();
    const auto queue = sorted_queue(names, lock_patterns());
    return queue.empty() ? std::string() : std::string(queue.front().name);
}

/// Watches a holder until it is gone, again and again until there is none.
class FreeWaiter final : public ReadOp {
public:
    FreeWaiter(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory,
               bool leases)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)), leases_(leases) {}

private:
    void begin() override {
        core().children(directory_,
                        executed("list", directory_,
                                 [this](Rc, const std::vector<std::string>& names, const NodeStat& stat, Instant) {
                                     if (!leases_ && !can_be_directory(stat)) return;
                                     const auto first = holder_among(names, leases_);
                                     if (first.empty()) return done();
                                     if (once()) return timed_out();
                                     watch(join_path(directory_, first));
                                 }));
    }

    void watch(const std::string& path) {
        if (!core().reserve_watch_possible(path.size())) {
            return fail(Errc::budget_exceeded, "this session watches as many nodes as ZooKeeper survives");
        }
        SessionCore::WatchListener listener;
        listener.ready = guard([this, path](Rc rc, const std::string&, const NodeStat&) {
            if (usable(rc, "get", path) && rc != Rc::ok) begin();
        });
        listener.fired = guard([this](WatchEventType) {
            clean_up();
            begin();
        });
        watch_ = core().watch_node(path, std::move(listener));
    }

    void clean_up() override {
        if (watch_ != 0) core().unwatch(std::exchange(watch_, 0));
    }

    const std::string directory_;
    const bool leases_;
    SessionCore::WatchId watch_ = 0;
};

/// What to do about the node of a participant that was seen before. Pure.
enum class Removal {
    gone,          // nothing
    remove,        // in the version that was looked at
    read,          // its data have changed
    changed_since  // refuse
};
Removal after_stat(const Participant& seen, Rc rc, const NodeStat& stat) {
    if (rc != Rc::ok || stat.czxid != seen.token) return Removal::gone;
    return stat.version == seen.version ? Removal::remove : Removal::read;
}
/// A request to give way says nothing new about the owner: a caller that asked, and waited in vain, may remove the
/// node.
Removal after_get(const Participant& seen, Rc rc, const std::string& data, const NodeStat& stat) {
    if (rc != Rc::ok || stat.czxid != seen.token) return Removal::gone;
    return data == kRevocationRequest ? Removal::remove : Removal::changed_since;
}

constexpr const char* kNotUnique =
    "its name does not tell the node from a later one, and its czxid is not known; "
    "a session that may read the node can do this";

/// Deletes one node if it is the same that was seen before. A node that may not be read is known by its name.
class Remover final : public ReadOp {
public:
    Remover(std::shared_ptr<SessionCore> core, const char* operation, const Participant& seen, std::string path)
        : ReadOp(std::move(core), operation, seen.path), path_(std::move(path)), seen_(seen) {}

    bool removed = false;

private:
    void begin() override {
        const bool unique = is_unique(base_name(path_));
        if (seen_.token == 0) return unique ? remove(-1) : fail(Errc::no_permission, kNotUnique);
        core().exists(path_, guard([this, unique](Rc rc, const NodeStat& stat, Instant) {
                          if (rc == Rc::no_auth && unique) return remove(seen_.version);
                          if (usable(rc, "exists", path_)) go_on(after_stat(seen_, rc, stat), stat.version);
                      }));
    }

    void go_on(Removal next, std::int32_t version) {
        switch (next) {
            case Removal::gone:
                removed = sent_;  // if the answer to an earlier delete was lost, that one removed it
                return done();
            case Removal::remove: return remove(version);
            case Removal::read: return read();
            case Removal::changed_since: return changed();
        }
    }

    void read() {
        core().get(path_, executed("get", path_, [this](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       go_on(after_get(seen_, rc, data, stat), stat.version);
                   }));
    }

    void remove(std::int32_t version) {
        const bool again = std::exchange(sent_, true);
        core().remove(path_, version, executed("delete", path_, [this, again](Rc rc, Instant) {
                          if (rc == Rc::bad_version) return changed();
                          if (rc == Rc::not_empty) return fail(Errc::not_empty, "so no client of a lock has made it");
                          if (rc != Rc::ok && rc != Rc::no_node) {
                              return fail(Errc::protocol, std::string("delete was answered: ") + to_string(rc));
                          }
                          removed = rc == Rc::ok || again;
                          done();
                      }));
    }

    void changed() {
        fail(Errc::bad_data, "the node's data has changed since it was read; look at it again before removing it");
    }

    const std::string path_;
    const Participant seen_;
    bool sent_ = false;
};

/// Writes the request to give way into a node if it is the same that was seen before.
class Revoker final : public ReadOp {
public:
    Revoker(std::shared_ptr<SessionCore> core, const char* operation, const Participant& seen, std::string path)
        : ReadOp(std::move(core), operation, seen.path),
          path_(std::move(path)),
          token_(seen.token),
          unique_(is_unique(base_name(path_))) {}

    bool requested = false;

private:
    void begin() override {
        if (token_ == 0) return unique_ ? set() : fail(Errc::no_permission, kNotUnique);
        core().exists(path_, guard([this](Rc rc, const NodeStat& stat, Instant) {
                          if (rc == Rc::no_auth && unique_) return set();
                          if (!usable(rc, "exists", path_)) return;
                          rc != Rc::ok || stat.czxid != token_ ? done() : set();
                      }));
    }

    void set() {
        // Any version: the request must be there in the end, whatever another client wrote meanwhile. It is still the
        // same node, by its name or by what was just read.
        core().set(path_, std::string(kRevocationRequest), -1,
                   executed("set", path_, [this](Rc rc, const NodeStat&, Instant) {
                       if (rc != Rc::ok && rc != Rc::no_node) {
                           return fail(Errc::protocol, std::string("set was answered: ") + to_string(rc));
                       }
                       requested = rc == Rc::ok;
                       done();
                   }));
    }

    const std::string path_;
    const std::int64_t token_;
    const bool unique_;
};

/// The semaphores in use among the candidates. Directories of these, which are no locks of their own, are added to
/// `parts`, and what an access list hides to `unreadable`.
Steps<std::vector<LockView>> find_semaphores(std::shared_ptr<SessionCore> core, const char* operation,
                                             std::shared_ptr<LockFinder> finder, std::set<std::string>& parts) {
    std::vector<LockView> found;
    for (const auto& directory : finder->may_be_semaphores) {
        const auto user_path = core->user_path(directory);
        try {
            const auto layout = co_await read_layout(core, operation, user_path, directory);
            if (!layout.evident) continue;
            auto view = co_await read_semaphore_at(core, operation, user_path, directory, layout);
            parts.insert(queue_directory(layout, directory));
            if (!view.participants.empty()) found.push_back(std::move(view));
        } catch (const Error& error) {
            if (error.errc() != Errc::no_permission) throw;
            finder->unreadable.push_back(user_path);
        }
    }
    co_return found;
}

Steps<FoundLocks> find_all(std::shared_ptr<SessionCore> core, const char* operation,
                           std::shared_ptr<LockFinder> finder) {
    co_await finder;
    FoundLocks found;
    std::set<std::string> parts;  // queues and leases of semaphores: no locks of their own
    found.locks = co_await find_semaphores(core, operation, finder, parts);
    for (const auto& directory : finder->directories) {
        if (parts.contains(directory)) continue;
        auto view = co_await read_queue(core, operation, core->user_path(directory), directory, false);
        if (!view.participants.empty()) found.locks.push_back(std::move(view));
    }
    std::ranges::sort(found.locks, {}, &LockView::path);
    found.unreadable = std::move(finder->unreadable);
    auto& hidden = found.unreadable;
    std::sort(hidden.begin(), hidden.end());
    hidden.erase(std::unique(hidden.begin(), hidden.end()), hidden.end());
    co_return found;
}

Steps<FoundLocks> find(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& prefix) {
    return find_all(core, operation,
                    std::make_shared<LockFinder>(core, operation, prefix, core->server_path(prefix, operation)));
}

Steps<FoundLocks> find(std::shared_ptr<SessionCore> core, const char* operation, std::string prefix,
                       ParticipantFilter filter) {
    auto found = co_await find(core, operation, prefix);
    const auto now = core->runtime().wall_now();
    ParticipantFilter by_standing;
    by_standing.standing = filter.standing;
    for (auto& lock : found.locks) {
        std::erase_if(lock.participants, [&](const Participant& one) {
            const bool matches = filter.matches(one, now);
            if (!matches && !one.readable && by_standing.matches(one, now)) found.unreadable.push_back(one.path);
            return !matches;
        });
    }
    std::erase_if(found.locks, [](const LockView& lock) { return lock.participants.empty(); });
    std::ranges::sort(found.unreadable);
    co_return found;
}

Steps<LockView> inspect(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& path,
                        bool up_to_date) {
    return read_lock(core, operation, path, core->server_path(path, operation), up_to_date);
}

/// False: the deadline passed, or a stop was requested.
Steps<bool> wait_free(std::shared_ptr<SessionCore> core, const char* operation, std::string path,
                      std::string directory) {
    LockLayout layout;
    try {
        layout = co_await read_layout(core, operation, path, directory);
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable) throw;
        co_return false;
    }
    const bool leases = layout.kind != LockLayout::Kind::queue;
    const auto waiter = std::make_shared<FreeWaiter>(core, operation, path,
                                                     leases ? lease_directory(layout, directory) : directory, leases);
    const auto outcome = co_await EndOf(waiter);
    co_return outcome == ReadOp::Outcome::done;
}

Steps<bool> wait_until_free(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& path) {
    return wait_free(core, operation, path, core->server_path(path, operation));
}

Steps<bool> revoke(const std::shared_ptr<SessionCore>& core, const char* operation, const Participant& participant) {
    return found_by(
        std::make_shared<Revoker>(core, operation, participant, core->server_path(participant.path, operation)),
        &Revoker::requested);
}

Steps<bool> remove(const std::shared_ptr<SessionCore>& core, const char* operation, const Participant& participant) {
    return found_by(
        std::make_shared<Remover>(core, operation, participant, core->server_path(participant.path, operation)),
        &Remover::removed);
}

}  // namespace
}  // namespace internal

using internal::SessionAccess;

bool ParticipantFilter::matches(const Participant& participant, std::chrono::system_clock::time_point now) const {
    if (standing != Standing::any && participant.holder != (standing == Standing::holding)) return false;
    if (!participant.readable) return !id && !host && labels.empty() && !at_least_for;
    if (id && participant.id != *id) return false;
    if (host && participant.host != *host) return false;
    for (const auto& [name, value] : labels) {
        const auto found = participant.labels.find(name);
        if (found == participant.labels.end() || found->second != value) return false;
    }
    // In milliseconds: the largest ones do not fit the clock's own unit.
    return !at_least_for ||
           std::chrono::duration_cast<std::chrono::milliseconds>(now - participant.since) >= *at_least_for;
}

LockView inspect_lock(Session& session, const std::string& path, Deadline deadline, bool up_to_date) {
    return internal::inspect(SessionAccess::core(session), "inspect_lock", path, up_to_date).get(deadline);
}

void inspect_lock_async(Session& session, const std::string& path, bool up_to_date, Deadline deadline,
                        std::stop_token stop, std::function<void(Result<LockView>)> done) {
    constexpr const char* operation = "inspect_lock_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, path, internal::inspect(core, operation, path, up_to_date), deadline, std::move(stop),
              std::move(done));
}

LockNames list_lock(Session& session, const std::string& path, Deadline deadline) {
    return internal::read_names(SessionAccess::core(session), "list_lock", path).get(deadline);
}

void list_lock_async(Session& session, const std::string& path, Deadline deadline, std::stop_token stop,
                     std::function<void(Result<LockNames>)> done) {
    constexpr const char* operation = "list_lock_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, path, internal::read_names(core, operation, path), deadline, std::move(stop),
              std::move(done));
}

std::vector<LockView> find_locks(Session& session, const std::string& prefix, Deadline deadline,
                                 std::vector<std::string>* unreadable) {
    auto found = internal::find(SessionAccess::core(session), "find_locks", prefix).get(deadline);
    if (unreadable) *unreadable = std::move(found.unreadable);
    return std::move(found.locks);
}

std::vector<LockView> find_locks(Session& session, const std::string& prefix, const ParticipantFilter& filter,
                                 Deadline deadline) {
    return internal::find(SessionAccess::core(session), "find_locks", prefix, filter).get(deadline).locks;
}

void find_locks_async(Session& session, const std::string& prefix, ParticipantFilter filter, Deadline deadline,
                      std::stop_token stop, std::function<void(Result<FoundLocks>)> done) {
    constexpr const char* operation = "find_locks_async";
    const auto core = SessionAccess::core(session);
    core->server_path(prefix, operation);  // throws at once
    run_later(core, operation, prefix, internal::find(core, operation, prefix, std::move(filter)), deadline,
              std::move(stop), std::move(done));
}

bool wait_until_free(Session& session, const std::string& path, Deadline deadline, std::stop_token stop) {
    return internal::wait_until_free(SessionAccess::core(session), "wait_until_free", path)
        .get(deadline, std::move(stop));
}

void wait_until_free_async(Session& session, const std::string& path, Deadline deadline, std::stop_token stop,
                           std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "wait_until_free_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, path, internal::wait_until_free(core, operation, path), deadline, std::move(stop),
              std::move(done));
}

bool request_revocation(Session& session, const Participant& participant, Deadline deadline) {
    return internal::revoke(SessionAccess::core(session), "request_revocation", participant).get(deadline);
}

void request_revocation_async(Session& session, const Participant& participant, Deadline deadline, std::stop_token stop,
                              std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "request_revocation_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, participant.path, internal::revoke(core, operation, participant), deadline,
              std::move(stop), std::move(done));
}

bool remove_participant(Session& session, const Participant& participant, Deadline deadline) {
    return internal::remove(SessionAccess::core(session), "remove_participant", participant).get(deadline);
}

void remove_participant_async(Session& session, const Participant& participant, Deadline deadline, std::stop_token stop,
                              std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "remove_participant_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, participant.path, internal::remove(core, operation, participant), deadline,
              std::move(stop), std::move(done));
}

}  // namespace zkrecipes
