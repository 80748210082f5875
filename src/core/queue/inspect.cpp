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
        core().children(
            directory_,
            executed("list", directory_, [this](Rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
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

/// Deletes one node if it is the same that was seen before.
class Remover final : public ReadOp {
public:
    Remover(std::shared_ptr<SessionCore> core, const char* operation, const Participant& seen, std::string path)
        : ReadOp(std::move(core), operation, seen.path), path_(std::move(path)), seen_(seen) {}

    bool removed = false;

private:
    void begin() override {
        core().exists(path_, executed("exists", path_, [this](Rc rc, const NodeStat& stat, Instant) {
                          go_on(after_stat(seen_, rc, stat), stat.version);
                      }));
    }

    void go_on(Removal next, std::int32_t version) {
        switch (next) {
            case Removal::gone:
                removed = sent_;  // if the answer to our delete was lost, it was our delete
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
        sent_ = true;
        core().remove(path_, version, executed("delete", path_, [this](Rc rc, Instant) {
                          if (rc == Rc::bad_version) return changed();
                          if (rc != Rc::ok && rc != Rc::no_node) {
                              return fail(Errc::protocol, std::string("delete was answered: ") + to_string(rc));
                          }
                          removed = rc == Rc::ok;
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
        : ReadOp(std::move(core), operation, seen.path), path_(std::move(path)), token_(seen.token) {}

    bool requested = false;

private:
    void begin() override {
        core().exists(path_, executed("exists", path_, [this](Rc rc, const NodeStat& stat, Instant) {
                          if (rc != Rc::ok || stat.czxid != token_) return done();
                          // No version: the request must be there in the end, whatever another client wrote
                          // meanwhile. The name of a lock node is never used again, so it is still the same node.
                          set();
                      }));
    }

    void set() {
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
};

/// The semaphores in use among the candidates. `parts`: directories of these, which are no locks of their own.
/// `unreadable`: what an access list hides is added.
std::vector<LockView> find_semaphores(const std::shared_ptr<SessionCore>& core, const char* operation,
                                      const std::vector<std::string>& candidates, Deadline deadline,
                                      std::set<std::string>& parts, std::vector<std::string>& unreadable) {
    std::vector<LockView> found;
    for (const auto& directory : candidates) {
        const auto user_path = core->user_path(directory);
        try {
            const auto layout = read_layout(core, operation, user_path, directory, deadline);
            if (!layout.evident) continue;
            auto view = read_semaphore_at(core, operation, user_path, directory, layout, deadline);
            parts.insert(queue_directory(layout, directory));
            if (!view.participants.empty()) found.push_back(std::move(view));
        } catch (const Error& error) {
            if (error.errc() != Errc::no_permission) throw;
            unreadable.push_back(user_path);
        }
    }
    return found;
}

}  // namespace
}  // namespace internal

using internal::SessionAccess;

LockView inspect_lock(Session& session, const std::string& path, Deadline deadline, bool up_to_date) {
    const auto core = SessionAccess::core(session);
    return internal::read_lock(core, "inspect_lock", path, core->server_path(path, "inspect_lock"), deadline,
                               up_to_date);
}

std::vector<LockView> find_locks(Session& session, const std::string& prefix, Deadline deadline,
                                 std::vector<std::string>* unreadable) {
    constexpr const char* operation = "find_locks";
    const auto core = SessionAccess::core(session);
    // One deadline over all the steps, whatever clock it came from.
    const auto finder =
        std::make_shared<internal::LockFinder>(core, operation, prefix, core->server_path(prefix, operation));
    finder->run_or_throw(deadline);
    std::set<std::string> parts;  // queues and leases of semaphores: no locks of their own
    auto locks =
        internal::find_semaphores(core, operation, finder->may_be_semaphores, deadline, parts, finder->unreadable);
    for (const auto& directory : finder->directories) {
        if (parts.contains(directory)) continue;
        auto view = internal::read_queue(core, operation, core->user_path(directory), directory, deadline, false);
        if (!view.participants.empty()) locks.push_back(std::move(view));
    }
    std::ranges::sort(locks, {}, &LockView::path);
    if (unreadable) {
        std::ranges::sort(finder->unreadable);
        finder->unreadable.erase(std::ranges::unique(finder->unreadable).begin(), finder->unreadable.end());
        *unreadable = std::move(finder->unreadable);
    }
    return locks;
}

bool ParticipantFilter::matches(const Participant& participant, std::chrono::system_clock::time_point now) const {
    if (standing != Standing::any && participant.holder != (standing == Standing::holding)) return false;
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

std::vector<LockView> find_locks(Session& session, const std::string& prefix, const ParticipantFilter& filter,
                                 Deadline deadline) {
    auto locks = find_locks(session, prefix, deadline);
    const auto now = SessionAccess::core(session)->runtime().wall_now();
    for (auto& lock : locks) {
        std::erase_if(lock.participants, [&](const Participant& one) { return !filter.matches(one, now); });
    }
    std::erase_if(locks, [](const LockView& lock) { return lock.participants.empty(); });
    return locks;
}

bool wait_until_free(Session& session, const std::string& path, Deadline deadline, std::stop_token stop) {
    constexpr const char* operation = "wait_until_free";
    const auto core = SessionAccess::core(session);
    const auto directory = core->server_path(path, operation);
    const auto layout = internal::read_layout(core, operation, path, directory, deadline, stop);
    if (!layout) return false;
    const bool leases = layout->kind != internal::LockLayout::Kind::queue;
    const auto waiter = std::make_shared<internal::FreeWaiter>(
        core, operation, path, leases ? lease_directory(*layout, directory) : directory, leases);
    return waiter->run(deadline, std::move(stop)) == internal::ReadOp::Outcome::done;
}

bool request_revocation(Session& session, const Participant& participant, Deadline deadline) {
    constexpr const char* operation = "request_revocation";
    const auto core = SessionAccess::core(session);
    const auto revoker = std::make_shared<internal::Revoker>(core, operation, participant,
                                                             core->server_path(participant.path, operation));
    revoker->run_or_throw(deadline);
    return revoker->requested;
}

bool remove_participant(Session& session, const Participant& participant, Deadline deadline) {
    constexpr const char* operation = "remove_participant";
    const auto core = SessionAccess::core(session);
    const auto remover = std::make_shared<internal::Remover>(core, operation, participant,
                                                             core->server_path(participant.path, operation));
    remover->run_or_throw(deadline);
    return remover->removed;
}

}  // namespace zkrecipes
