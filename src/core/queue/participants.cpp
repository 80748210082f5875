#include "core/queue/participants.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/paths.hpp"
#include "core/operation/read_op.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

/// Whether contenders of this pattern, an index of lock_patterns(), share the lock with each other.
bool shares_lock(std::size_t pattern) { return pattern == 2 || pattern == 4; }
/// Whether the data of such a node are the id of its owner and nothing else.
bool says_only_id(std::size_t pattern) { return pattern == 5; }

/// Marks the participants that no earlier one blocks. Exclusive ones block everybody, shared ones only the exclusive
/// ones. A node with the same number blocks nobody: it is the second one of the same owner, which Curator makes when an
/// exclusive holder takes a share.
void mark_holders(std::vector<Participant>& queue) {
    const auto parsed = [](const Participant& participant) {
        return parse_queue_name(participant.node, lock_patterns());
    };
    bool only_shares = true;  // all earlier ones are shared
    bool only_first = true;   // all earlier ones have the number of the first one
    for (auto& participant : queue) {
        const auto first = parsed(queue.front());
        const auto name = parsed(participant);
        if (!first || !name) return;
        const bool shares = shares_lock(name->pattern);
        const bool second_node = only_first && name->sequence == first->sequence && (shares || only_shares);
        participant.holder = &participant == &queue.front() || second_node || (shares && only_shares);
        only_shares = only_shares && shares;
        only_first = only_first && name->sequence == first->sequence;
    }
}

/// All of them hold; the oldest first.
void mark_leases(std::vector<Participant>& leases) {
    std::ranges::sort(leases, [](const Participant& a, const Participant& b) {
        return a.token != b.token ? a.token < b.token : a.node < b.node;
    });
    for (auto& participant : leases) {
        participant.holder = true;
        participant.mode = "semaphore";
    }
}

class QueueReader final : public ReadOp {
public:
    /// A queue that the caller has named must not be that of an ephemeral node.
    enum class Content { named_queue, queue, leases };

    QueueReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory,
                bool sync_first, Content content)
        : ReadOp(std::move(core), operation, std::move(user_path)),
          directory_(std::move(directory)),
          sync_first_(sync_first),
          content_(content) {}

    LockView view;
    bool may_be_semaphore = false;

private:
    void begin() override {
        names_.clear();
        found_.clear();
        next_ = answered_ = 0;
        if (!sync_first_) return list();
        core().sync(directory_, executed("sync", directory_, [this](Rc, Instant) { list(); }));
    }

    void list() {
        core().children(directory_,
                        executed("list", directory_,
                                 [this](Rc rc, const std::vector<std::string>& names, const NodeStat& stat, Instant) {
                                     if (content_ == Content::named_queue && !can_be_directory(stat)) return;
                                     view.path = user_path_;
                                     view.exists = rc == Rc::ok;
                                     may_be_semaphore = view.exists && internal::may_be_semaphore(names, stat);
                                     view.participants.clear();
                                     if (content_ == Content::leases) {
                                         names_ = names;  // each child counts
                                     } else {
                                         for (const auto& n : sorted_queue(names, lock_patterns()))
                                             names_.emplace_back(n.name);
                                     }
                                     found_.resize(names_.size());
                                     if (names_.empty()) return done();
                                     while (next_ < names_.size() && next_ < kInFlight) read_next();
                                 }));
    }

    void read_next() {
        const std::size_t index = next_++;
        const auto path = join_path(directory_, names_[index]);
        core().get(path, guard([this, index, path](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       // A node that we may not read is still in the queue.
                       const bool hidden = rc == Rc::no_auth;
                       if (!hidden && !usable(rc, "get", path)) return;
                       if (hidden) {
                           found_[index] = unreadable_participant(user_path_, names_[index]);
                       } else if (rc == Rc::ok) {
                           found_[index] = participant_of(user_path_, names_[index], data, stat);
                       }
                       if (++answered_ == names_.size()) return all_read();
                       if (next_ < names_.size()) read_next();
                   }));
    }

    void all_read() {
        for (auto& participant : found_) {
            if (participant) view.participants.push_back(std::move(*participant));
        }
        content_ == Content::leases ? mark_leases(view.participants) : mark_holders(view.participants);
        done();
    }

    const std::string directory_;
    const bool sync_first_;
    const Content content_;
    std::vector<std::string> names_;
    std::vector<std::optional<Participant>> found_;
    std::size_t next_ = 0;
    std::size_t answered_ = 0;
};

class NamesReader final : public ReadOp {
public:
    NamesReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)) {}

    LockNames names;

private:
    void begin() override {
        core().children(
            directory_,
            executed("list", directory_,
                     [this](Rc rc, const std::vector<std::string>& children, const NodeStat& stat, Instant) {
                         names = names_in(user_path_, children);
                         names.exists = rc == Rc::ok;
                         names.maybe_semaphore = names.exists && may_be_semaphore(children, stat);
                         done();
                     }));
    }

    const std::string directory_;
};

}  // namespace

LockNames names_in(const std::string& user_directory, const std::vector<std::string>& children) {
    LockNames result;
    result.path = user_directory;
    for (const auto& queued : sorted_queue(children, lock_patterns())) {
        result.participants.push_back(participant_of(user_directory, std::string(queued.name), {}, {}));
    }
    mark_holders(result.participants);
    for (const auto& name : children) {
        if (parse_queue_name(name, lock_patterns())) continue;
        if (!is_lease_name(name)) {
            result.others.push_back(join_path(user_directory, name));
            continue;
        }
        auto lease = participant_of(user_directory, name, {}, {});
        lease.holder = true;
        lease.mode = "semaphore";
        result.participants.push_back(std::move(lease));
    }
    return result;
}

Steps<LockNames> read_names(const std::shared_ptr<SessionCore>& core, const char* operation,
                            const std::string& user_path) {
    return found_by(std::make_shared<NamesReader>(core, operation, user_path, core->server_path(user_path, operation)),
                    &NamesReader::names);
}

Participant participant_of(const std::string& user_directory, const std::string& name, std::string data,
                           const NodeStat& stat) {
    Participant participant;
    participant.path = join_path(user_directory, name);
    participant.node = name;
    const auto parsed = parse_queue_name(name, lock_patterns());
    participant.mode = parsed && shares_lock(parsed->pattern) ? "shared" : "exclusive";
    participant.token = stat.czxid;
    participant.session_id = stat.ephemeral_owner;
    participant.since = std::chrono::system_clock::time_point(std::chrono::milliseconds(stat.ctime_ms));
    participant.version = stat.version;
    participant.children = stat.num_children;
    participant.by_zkrecipes = has_our_identity(name);
    const bool only_id = parsed && says_only_id(parsed->pattern);
    only_id ? read_id(std::move(data), participant) : read_payload(std::move(data), participant);
    return participant;
}

Participant unreadable_participant(const std::string& user_directory, const std::string& name) {
    Participant participant = participant_of(user_directory, name, {}, {});
    participant.readable = false;
    return participant;
}

std::span<const std::string> lock_patterns() {
    static const auto& patterns =
        *new std::vector<std::string>{"lock-", "__WRIT__", "__READ__", "__lock__", "__rlock__", "latch-"};
    return patterns;
}

Steps<LockView> read_queue(const std::shared_ptr<SessionCore>& core, const char* operation,
                           const std::string& user_path, const std::string& directory, bool sync_first) {
    return found_by(
        std::make_shared<QueueReader>(core, operation, user_path, directory, sync_first, QueueReader::Content::queue),
        &QueueReader::view);
}

Steps<std::vector<Participant>> read_participants(std::shared_ptr<SessionCore> core, const char* operation,
                                                  std::string user_path, std::string directory) {
    const auto reader =
        std::make_shared<QueueReader>(core, operation, user_path, directory, false, QueueReader::Content::named_queue);
    co_await reader;
    co_return std::move(reader->view.participants);
}

Steps<LockView> read_leases(const std::shared_ptr<SessionCore>& core, const char* operation,
                            const std::string& user_path, const std::string& directory) {
    return found_by(
        std::make_shared<QueueReader>(core, operation, user_path, directory, false, QueueReader::Content::leases),
        &QueueReader::view);
}

std::vector<Participant> with_waiters(std::vector<Participant> leases, std::vector<Participant> waiting) {
    auto all = std::move(leases);
    const auto holders = static_cast<std::ptrdiff_t>(all.size());
    for (auto& waiter : waiting) {
        const auto same = [&](const Participant& lease) {
            return lease.node.size() > kIdentityChars &&
                   waiter.node.starts_with(std::string_view(lease.node).substr(0, kIdentityChars));
        };
        if (std::any_of(all.begin(), all.begin() + holders, same)) continue;
        waiter.holder = false;
        waiter.mode = "semaphore";
        all.push_back(std::move(waiter));
    }
    return all;
}

Steps<LockView> read_semaphore_at(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path,
                                  std::string directory, LockLayout layout) {
    LockView view;
    view.path = user_path;
    view.exists = true;
    view.semaphore = true;
    view.leases = layout.limit;
    // The queue first: a waiter that gets a lease in between is seen twice rather than not at all.
    auto waiting = co_await read_queue(core, operation, queue_directory(layout, user_path),
                                       queue_directory(layout, directory), false);
    auto leases =
        co_await read_leases(core, operation, lease_directory(layout, user_path), lease_directory(layout, directory));
    view.participants = with_waiters(std::move(leases.participants), std::move(waiting.participants));
    co_return view;
}

namespace {

Steps<LockView> read_any(std::shared_ptr<QueueReader> reader, std::shared_ptr<SessionCore> core, const char* operation,
                         std::string user_path, std::string directory) {
    co_await reader;
    if (!reader->may_be_semaphore) co_return std::move(reader->view);
    const auto layout = co_await read_layout(core, operation, user_path, directory);
    if (layout.kind == LockLayout::Kind::queue) co_return std::move(reader->view);
    auto view = co_await read_semaphore_at(core, operation, user_path, directory, layout);
    co_return view;
}

}  // namespace

Steps<LockView> read_lock(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                          const std::string& directory, bool sync_first) {
    return read_any(std::make_shared<QueueReader>(core, operation, user_path, directory, sync_first,
                                                  QueueReader::Content::named_queue),
                    core, operation, user_path, directory);
}

}  // namespace zkrecipes::internal
