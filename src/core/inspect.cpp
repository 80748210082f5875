#include <zkrecipes/inspect.hpp>

#include <deque>
#include <memory>
#include <utility>

#include "base/paths.hpp"
#include "core/node_name.hpp"
#include "core/participants.hpp"
#include "core/queue_rule.hpp"
#include "core/read_op.hpp"

namespace zkrecipes {
namespace internal {
namespace {

/// Walks a subtree and keeps the directories that have lock nodes.
class LockFinder final : public ReadOp {
public:
    LockFinder(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string root)
        : ReadOp(std::move(core), operation, std::move(user_path)), root_(std::move(root)) {}

    std::vector<std::string> directories;  // server paths, parents before children

private:
    void begin() override {
        directories.clear();
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
                            guard([this, directory](Rc rc, const std::vector<std::string>& names, const NodeStat&,
                                                    Instant) { on_listed(directory, rc, names); }));
        }
        if (open_.empty() && in_flight_ == 0) done();
    }

    void on_listed(const std::string& directory, Rc rc, const std::vector<std::string>& names) {
        // What we may not read below the root is as good as not there.
        const bool hidden = rc == Rc::no_auth && directory != root_;
        if (!hidden && !usable(rc, "list", directory)) return;
        --in_flight_;
        bool is_lock = false;
        for (const auto& name : names) {
            if (parse_queue_name(name, lock_patterns())) {
                is_lock = true;
            } else if (directory != "/" || name != "zookeeper") {
                open_.push_back(join_path(directory, name));
            }
        }
        if (is_lock) directories.push_back(directory);
        go_on();
    }

    const std::string root_;
    std::deque<std::string> open_;
    std::size_t in_flight_ = 0;
};

/// Looks at the head of the queue and waits until it is gone, again and again until there is none.
class FreeWaiter final : public ReadOp {
public:
    FreeWaiter(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)) {}

private:
    void begin() override {
        core().children(directory_,
                        guard([this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            if (!usable(rc, "list", directory_)) return;
                            const auto queue = sorted_queue(names, lock_patterns());
                            if (queue.empty()) return done();
                            watch(join_path(directory_, queue.front().name));
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
                          if (stat.version != version_) return changed();
                          remove();
                      }));
    }

    void remove() {
        sent_ = true;
        core().remove(path_, version_, guard([this](Rc rc, Instant) {
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

}  // namespace
}  // namespace internal

using internal::SessionAccess;

LockView inspect_lock(Session& session, const std::string& path, Deadline deadline, bool up_to_date) {
    const auto core = SessionAccess::core(session);
    return internal::read_queue(core, "inspect_lock", path, core->server_path(path, "inspect_lock"), deadline,
                                up_to_date);
}

std::vector<LockView> find_locks(Session& session, const std::string& prefix, Deadline deadline) {
    constexpr const char* operation = "find_locks";
    const auto core = SessionAccess::core(session);
    // One deadline over all the steps, whatever clock it came from.
    const auto finder =
        std::make_shared<internal::LockFinder>(core, operation, prefix, core->server_path(prefix, operation));
    finder->run_or_throw(deadline);
    std::vector<LockView> locks;
    for (const auto& directory : finder->directories) {
        auto view = internal::read_queue(core, operation, core->user_path(directory), directory, deadline, false);
        if (!view.participants.empty()) locks.push_back(std::move(view));
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
    return !at_least_for || now - participant.since >= *at_least_for;
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
    const auto waiter =
        std::make_shared<internal::FreeWaiter>(core, operation, path, core->server_path(path, operation));
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
