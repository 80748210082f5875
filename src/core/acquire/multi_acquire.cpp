#include "core/acquire/multi_acquire.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "client/wire_size.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

/// What `count` paths of `bytes` take in a budget that counts each path with four bytes more.
std::size_t budget_bytes(std::size_t bytes, std::size_t count) { return bytes + 4 * (count - 1); }

std::string prefix_of(const MultiQueueSpec& spec, std::size_t member, const std::string& identity) {
    return join_path(spec.members[member].directory, identity + spec.members[member].base);
}

/// Between the identity and the end of the marker's name. No client takes such a node for a contender.
constexpr const char* kMarkerName = "marker";

/// The transaction that creates a node in each of the queues. The marker comes after them, so that they get the next
/// number of their directory.
std::vector<MultiOp> creation(const MultiQueue& queue, const std::string& identity, const std::string& payload,
                              bool marked) {
    std::vector<MultiOp> ops(queue.queues.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
        ops[i].kind = MultiOp::Kind::create;
        ops[i].path = prefix_of(queue.spec, i, identity);
        ops[i].data = payload;
        ops[i].acl = queue.acl;
        ops[i].mode = CreateMode::ephemeral_sequential;
    }
    if (!marked) return ops;
    for (const auto kind : {MultiOp::Kind::create, MultiOp::Kind::set, MultiOp::Kind::remove}) {
        MultiOp& op = ops.emplace_back();
        op.kind = kind;
        op.path = join_path(queue.spec.members.front().directory, identity + kMarkerName);
        if (kind == MultiOp::Kind::create) op.acl = queue.acl;
        op.mode = CreateMode::ephemeral;
    }
    return ops;
}

/// The answer to that, of a set of `size` members.
CreatedSet created_set(std::size_t size, Rc rc, const std::vector<MultiResult>& results) {
    CreatedSet created;
    created.paths.resize(size);
    created.refused = size;
    const bool marked = results.size() > size;
    if (rc == Rc::ok) {
        for (std::size_t i = 0; i < size; ++i) created.paths[i] = results[i].path;
        if (marked) created.marker = results[size + 1].stat;
    } else if (results.size() >= size) {
        const auto first = static_cast<std::size_t>(std::ranges::find(results, rc, &MultiResult::rc) - results.begin());
        created.refused = std::min(first, size);
        created.marker_refused = first >= size && first < results.size();
    }
    return created;
}

}  // namespace

std::shared_ptr<const MultiQueue> make_multi_queue(const SessionCore& core,
                                                   std::vector<std::shared_ptr<const Queue>> queues,
                                                   LockOptions options, const char* operation) {
    auto queue = std::make_shared<MultiQueue>();
    for (const auto& member : queues) {
        queue->spec.members.push_back({member->spec.directory, member->spec.base, member->rule.get()});
    }
    queue->spec.create_parents = options.create_parents;
    queue->name = queues.front()->user_path;
    if (queues.size() > 1) queue->name += " and " + std::to_string(queues.size() - 1) + " more";
    queue->acl = options.acl ? *options.acl : core.options().acl;
    queue->queues = std::move(queues);
    queue->options = std::move(options);
    queue->payload.emplace(queue->options, operation, queue->name);
    const auto ops = creation(*queue, std::string(kIdentityChars, 'x'), queue->payload->at({}), true);
    if (const std::size_t bytes = multi_wire_bytes(ops); bytes > kMaxRequestBytes) {
        throw Error(Errc::too_large, operation, queue->name,
                    "the transaction would have " + std::to_string(bytes) + " bytes and the servers take " +
                        std::to_string(kMaxRequestBytes) + "; use shorter paths or fewer of them");
    }
    return queue;
}

// ---- begin and end ------------------------------------------------------------------------------------------------

MultiAcquireOp::MultiAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const MultiQueue> queue,
                               const char* operation, Patience patience, Done done)
    : Acquisition(std::move(core), operation, std::move(done)),
      queue_(std::move(queue)),
      fsm_(*this, queue_->spec, patience) {}

void MultiAcquireOp::answer(Ended how, Errc error, std::string detail, std::optional<std::size_t> member) {
    deliver(how, error, member ? queue_->user_path(*member) : queue_->name, std::move(detail));
}

std::string MultiAcquireOp::path_of(std::size_t member, const std::string& name) const {
    return join_path(directory(member), name);
}

std::vector<std::string> MultiAcquireOp::paths_of(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!names[i].empty()) paths.push_back(path_of(i, names[i]));
    }
    return paths;
}

std::string MultiAcquireOp::payload() const { return queue_->payload->at(core_->runtime().wall_now()); }

// ---- requests -----------------------------------------------------------------------------------------------------

void MultiAcquireOp::create(Ticket ticket, const std::string& identity, bool marked) {
    core_->multi(creation(*queue_, identity, payload(), marked),
                 answered([this, ticket](Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
                     fsm_.on_created(ticket, rc, created_set(size(), rc, results), sent_at);
                 }));
    for (std::size_t i = 0; i < size(); ++i) {
        core_->exists(directory(i), answered([this, ticket, i](Rc rc, const NodeStat& stat, Instant) {
                          fsm_.on_parent(ticket, i, rc, stat);
                      }));
    }
}

void MultiAcquireOp::make_directory(Ticket ticket, std::size_t member) {
    core_->make_directory(directory(member), queue_->acl,
                          answered([this, ticket, member](Rc rc, Instant) { fsm_.on_directory(ticket, member, rc); }));
}

void MultiAcquireOp::list(Ticket ticket, std::size_t member) {
    core_->children(directory(member),
                    answered([this, ticket, member](Rc rc, const std::vector<std::string>& names, const NodeStat&,
                                                    Instant) { fsm_.on_children(ticket, member, rc, names); }));
}

void MultiAcquireOp::sync(Ticket ticket) {
    // Of one path is of all: the server catches up with the leader as a whole.
    core_->sync(directory(0), answered([this, ticket](Rc rc, Instant) { fsm_.on_synced(ticket, rc); }));
}

void MultiAcquireOp::look_at_first(Ticket ticket, const std::string& name) {
    core_->exists(path_of(0, name),
                  answered([this, ticket](Rc rc, const NodeStat& stat, Instant) { fsm_.on_own(ticket, rc, stat); }));
}

void MultiAcquireOp::watch(Ticket ticket, std::size_t member, const std::string& name) {
    if (watches_.empty()) watches_.resize(size());
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    SessionCore::WatchListener listener;
    listener.ready = [this, ticket, member](Rc rc, const std::string&, const NodeStat&) {
        if (rc != Rc::ok) watches_[member] = 0;
        fsm_.on_watching(ticket, member, rc);
    };
    listener.fired = [this, ticket, member](WatchEventType type) {
        watches_[member] = 0;
        fsm_.on_watch_fired(ticket, member, type);
    };
    watches_[member] = core_->watch_node(path_of(member, name), std::move(listener));
}

void MultiAcquireOp::unwatch() {
    for (auto& watch : watches_) {
        if (watch != 0) core_->unwatch(std::exchange(watch, 0));
    }
}

void MultiAcquireOp::renew_lease(Ticket ticket, const std::vector<std::string>& names) {
    core_->renew_lease(paths_of(names),
                       answered([this, ticket](Rc rc, Instant) { fsm_.on_lease_renewed(ticket, rc); }));
}

// ---- budgets, lease, cleaning up ----------------------------------------------------------------------------------

bool MultiAcquireOp::reserve_nodes(const std::string& identity) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < size(); ++i) bytes += prefix_of(queue_->spec, i, identity).size() + kSequenceChars;
    return reserved_.reserve(*core_, budget_bytes(bytes, size()));
}

bool MultiAcquireOp::may_watch(const std::vector<std::string>& names) {
    const auto paths = paths_of(names);
    std::size_t bytes = 0;
    for (const auto& path : paths) bytes += path.size();
    return paths.empty() || core_->reserve_watch_possible(budget_bytes(bytes, paths.size()));
}

void MultiAcquireOp::lease_committed(Instant sent_at) { core_->lease_committed(sent_at); }

bool MultiAcquireOp::begin_hold(const std::vector<std::string>& names, std::int64_t czxid) {
    hold_ = core_->begin_hold(paths_of(names), czxid);
    return hold_ != nullptr;
}

void MultiAcquireOp::delete_nodes(const std::vector<std::string>& names) {
    auto paths = paths_of(names);
    if (paths.empty()) return;
    core_->delete_nodes(std::move(paths), reserved_.release_when_gone(*core_), DeletedFor::giving_up);
}

void MultiAcquireOp::delete_stray(std::size_t member, const std::string& name) {
    core_->delete_node(path_of(member, name));
}

void MultiAcquireOp::delete_by_identity(const std::string& identity) {
    struct Rest {
        std::size_t open;
        bool all_gone;
        std::function<void(bool)> done;
    };
    const auto rest = std::make_shared<Rest>(Rest{size(), true, reserved_.release_when_gone(*core_)});
    for (std::size_t i = 0; i < size(); ++i) {
        const auto one_done = [rest](bool gone) {
            rest->all_gone = rest->all_gone && gone;
            if (--rest->open == 0 && rest->done) rest->done(rest->all_gone);
        };
        core_->delete_by_identity(directory(i), identity, one_done, DeletedFor::giving_up);
    }
}

bool MultiAcquireOp::may_mark() {
    return !queue_->marker_refused.load(std::memory_order_relaxed) &&
           !queue_->queues.front()->warned.load(std::memory_order_relaxed);
}

void MultiAcquireOp::never_mark_again() { queue_->marker_refused.store(true, std::memory_order_relaxed); }

void MultiAcquireOp::note(const char* what) {
    core_->log().warn("{} {}: {} (session {:#x}, node {})", operation_, queue_->name, what, printable(session_id()),
                      fsm_.nodes().front().empty() ? "none" : path_of(0, fsm_.nodes().front()));
}

void MultiAcquireOp::running_out(std::size_t member) {
    if (queue_->queues[member]->warned.exchange(true, std::memory_order_relaxed)) return;
    core_->log().warn(
        "{} {}: more than half of the sequence numbers of this lock directory are used up; delete it while nobody "
        "uses it",
        operation_, queue_->user_path(member));
}

}  // namespace zkrecipes::internal
