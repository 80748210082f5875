#include <zkrecipes/inspect.hpp>

#include <algorithm>
#include <deque>
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
        bool is_lock = false;
        for (const auto& name : names) {
            if (parse_queue_name(name, lock_patterns())) {
                is_lock = true;
            } else if (!is_lease_name(name) && (directory != "/" || name != "zookeeper")) {
                open_.push_back(join_path(directory, name));
            }
        }
        if (is_lock) directories.push_back(directory);
        if (rc == Rc::ok && may_be_semaphore(names, stat)) may_be_semaphores.push_back(directory);
        go_on();
    }

    const std::string root_;
    std::deque<std::string> open_;
    std::size_t in_flight_ = 0;
};

/// Looks at the head of the queue, or at any lease, and waits until it is gone, again and again until there is none.
class FreeWaiter final : public ReadOp {
public:
    FreeWaiter(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory,
               bool leases)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)), leases_(leases) {}

private:
    void begin() override {
        core().children(directory_,
                        guard([this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            if (!usable(rc, "list", directory_)) return;
                            const auto first = holder(names);
                            if (first.empty()) return done();
                            if (once()) return timed_out();
                            watch(join_path(directory_, first));
                        }));
    }

    /// Empty: nobody.
    std::string_view holder(const std::vector<std::string>& names) const {
        if (leases_) return names.empty() ? std::string_view() : std::string_view(names.front());
        const auto queue = sorted_queue(names, lock_patterns());
        return queue.empty() ? std::string_view() : queue.front().name;
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

/// Deletes one node if it is the same that was seen before.
class Remover final : public ReadOp {
public:
    Remover(std::shared_ptr<SessionCore> core, const char* operation, const Participant& seen, std::string path)
        : ReadOp(std::move(core), operation, seen.path),
          path_(std::move(path)),
          token_(seen.token),
          version_(seen.version) {}

    bool removed = false;

private:
    void begin() override {
        core().exists(path_, guard([this](Rc rc, const NodeStat& stat, Instant) {
                          if (!usable(rc, "exists", path_)) return;
                          // After a delete of which the answer was lost, gone means that it was ours.
                          if (rc != Rc::ok || stat.czxid != token_) {
                              removed = sent_;
                              return done();
                          }
                          stat.version == version_ ? remove(version_) : look_what_has_changed();
                      }));
    }

    /// A request to give way says nothing new of its owner: whoever asked, and waited in vain, may remove it.
    void look_what_has_changed() {
        core().get(path_, guard([this](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       if (!usable(rc, "get", path_)) return;
                       if (rc != Rc::ok || stat.czxid != token_) {
                           removed = sent_;
                           return done();
                       }
                       data == kRevocationRequest ? remove(stat.version) : changed();
                   }));
    }

    void remove(std::int32_t version) {
        sent_ = true;
        core().remove(path_, version, guard([this](Rc rc, Instant) {
                          if (!usable(rc, "delete", path_)) return;
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
    const std::int64_t token_;
    const std::int32_t version_;
    bool sent_ = false;
};

/// Writes the request to give way into one node if it is the same that was seen before.
class Revoker final : public ReadOp {
public:
    Revoker(std::shared_ptr<SessionCore> core, const char* operation, const Participant& seen, std::string path)
        : ReadOp(std::move(core), operation, seen.path), path_(std::move(path)), token_(seen.token) {}

    bool requested = false;

private:
    void begin() override {
        core().exists(path_, guard([this](Rc rc, const NodeStat& stat, Instant) {
                          if (!usable(rc, "exists", path_)) return;
                          if (rc != Rc::ok || stat.czxid != token_) return done();
                          // No version: whatever somebody else wrote meanwhile, the request has to stand there in the
                          // end. A lock node's name is never used again, so this is still the node that was looked at.
                          set();
                      }));
    }

    void set() {
        core().set(path_, std::string(kRevocationRequest), -1, guard([this](Rc rc, const NodeStat&, Instant) {
                       if (!usable(rc, "set", path_)) return;
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

/// Those in use among the candidates. `parts`: what is listed as one of these, and not by itself. `unreadable`: what an
/// access list hides is added.
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
