#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "core/acquire/queueing_fsm.hpp"
#include "core/queue/queue_rule.hpp"

namespace zkrecipes::internal {

/// What the transaction that creates a set was answered.
struct CreatedSet {
    std::vector<std::string> paths;  // of the new nodes
    NodeStat marker;                 // czxid 0: there was none
    std::size_t refused = 0;         // whose create was refused; the number of members: not known
    bool marker_refused = false;     // all creates were allowed, and the marker was not
};

/// What the protocol of a multi-lock asks of its surroundings. Members are named by their index, lists of names have
/// one entry for each member.
class MultiAcquirePort : public virtual OperationPort {
public:
    // ---- requests ----
    /// One transaction that creates (ephemeral, sequential) a node of this identity in every queue and, right behind
    /// it, exists of every directory: on_created, then on_parent for each. `marked`: the same transaction creates a
    /// marker in the first directory, sets its data and deletes it.
    virtual void create(Ticket ticket, const std::string& identity, bool marked) = 0;
    virtual void make_directory(Ticket ticket, std::size_t member) = 0;      // on_directory
    virtual void list(Ticket ticket, std::size_t member) = 0;                // on_children
    virtual void sync(Ticket ticket) = 0;                                    // on_synced
    virtual void look_at_first(Ticket ticket, const std::string& name) = 0;  // on_own
    virtual void watch(Ticket ticket, std::size_t member,
                       const std::string& name) = 0;  // on_watching; later on_watch_fired, if it fires
    virtual void unwatch() = 0;                       // all; harmless without a watch
    virtual void renew_lease(Ticket ticket, const std::vector<std::string>& names) = 0;  // on_lease_renewed

    // ---- budgets, lease, cleaning up ----
    virtual bool reserve_nodes(
        const std::string& identity) = 0;  // room for one in each queue; kept until held, reaped …
    virtual bool may_watch(const std::vector<std::string>& names) = 0;  // "": not in this queue
    virtual void lease_committed(Instant sent_at) = 0;
    /// False: the lease is not fresh. All nodes were created by the transaction `czxid`.
    virtual bool begin_hold(const std::vector<std::string>& names, std::int64_t czxid) = 0;
    virtual void delete_nodes(const std::vector<std::string>& names) = 0;  // "": not there, or not known
    virtual void delete_stray(std::size_t member, const std::string& name) = 0;
    virtual void delete_by_identity(const std::string& identity) = 0;  // in every queue

    // ---- the marker ----
    virtual bool may_mark() = 0;          // it was not refused, and the first directory has numbers enough
    virtual void never_mark_again() = 0;  // it was refused

    // ---- the log, and the end ----
    virtual void in_front(std::size_t) {}              // at most so many are before an own node, for people
    virtual void note(const char* what) = 0;           // something worth a line in the log
    virtual void running_out(std::size_t member) = 0;  // more than half of its directory's numbers are used up
    /// The one answer. After `granted` the hold of begin_hold belongs to the caller. `member`: the one that an error is
    /// about; empty: all of them.
    virtual void answer(Ended how, Errc error, std::string detail, std::optional<std::size_t> member) = 0;
};

/// One of the queues that are entered together.
struct MemberQueue {
    std::string directory;  // server path
    std::string base;       // of the own node, before the sequence
    const QueueRule* rule = nullptr;
};

struct MultiQueueSpec {
    std::vector<MemberQueue> members;  // at least one, no directory twice
    bool create_parents = true;
};

enum class MultiAcquireStep : std::uint8_t {
    idle,
    awaiting_session,
    backing_off,
    leaving,
    finished,
    awaiting_room,  // nothing is made yet: many_given_up()
    looking,        // try: list before anything is written
    creating,
    reading_parents,  // created; the answers of exists are on their way
    finding_missing,  // not created; the same answers tell which directories are missing
    making_directories,
    syncing,    // outcome unknown: the server catches up …
    searching,  // … and lists
    placing,    // whose nodes they are, and where they stand
    setting_watches,
    waiting,
    renewing_lease
};

/// Waits in several queues at once until it is first in all of them, or gives up and leaves nothing behind. One
/// transaction makes all nodes or none, so what is known of one of them is known of all.
///
/// After the create each step is taken for all members at the same time and costs one round trip: exists of the
/// directories, in the round trip of the create; lists of those that have other contenders; watches of all
/// predecessors. When these are gone, one committed check of all own nodes, together with a list where there may be
/// another predecessor.
///
/// A free set is held after one round trip. The answer to a transaction contains no czxid, but the answer to a setData
/// inside it contains the Stat of that node. So the transaction also creates a *marker*, an ephemeral node, sets its
/// data and deletes it. Why the grant is right:
///   - The mzxid of the marker is the zxid Z of the transaction, and so the czxid of all own nodes. Their owner is the
///     marker's, because one session sends one transaction.
///   - The servers are ZooKeeper's. (ClickHouse Keeper leaves a directory's pzxid as it is when a child is deleted.)
///   - The reads of the directories were sent behind the transaction, so their answers show a state at or after Z. A
///     directory whose pzxid is Z has not gained or lost a child after Z. At Z it gained our node, and the marker came
///     and went. So if it has one child, this is our node, and it was the only one at Z.
///   - If that is so for every directory, the set was first in all queues at one point in the history, Z. Later
///     contenders have larger numbers.
///   - The transaction was committed, so it renews the lease from the time when it was sent. begin_hold() refuses a
///     lease that is not fresh.
/// A directory with several children is listed. One with one child and another pzxid needs the committed check. If the
/// servers refuse the marker (no right to write the node or to delete in the directory), and if the transaction's
/// answer was lost, exists of the first own node answers czxid and owner. The marker uses a sequence number of the
/// first directory, so it is left out when more than half of them are used up.
class MultiAcquireFsm final : public QueueingFsm<MultiAcquirePort, MultiAcquireStep> {
public:
    MultiAcquireFsm(MultiAcquirePort& port, const MultiQueueSpec& spec, Patience patience);

    // ---- answers ----
    void on_created(Ticket ticket, Rc rc, const CreatedSet& created, Instant sent_at);
    void on_parent(Ticket ticket, std::size_t member, Rc rc, const NodeStat& stat);
    void on_directory(Ticket ticket, std::size_t member, Rc rc);
    void on_children(Ticket ticket, std::size_t member, Rc rc, const std::vector<std::string>& names);
    void on_synced(Ticket ticket, Rc rc);
    void on_own(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_watching(Ticket ticket, std::size_t member, Rc rc);
    void on_watch_fired(Ticket ticket, std::size_t member, WatchEventType type);
    void on_lease_renewed(Ticket ticket, Rc rc);

    bool is_waiting() const noexcept { return step_ == Step::waiting; }
    const std::vector<std::string>& nodes() const noexcept { return nodes_; }  // "": not known

private:
    /// Where one of the own nodes stands, by the last look.
    struct Standing {
        enum class State : std::uint8_t { to_list, clear, blocked } state = State::to_list;
        std::size_t in_front = 0;     // blocked: by so many
        bool certain = false;         // blocked: once the predecessor is gone it is clear, without a further look
        std::int64_t only_since = 0;  // clear, because a directory had one child, and this was its last change; 0: not
        std::string predecessor;
    };
    using State = Standing::State;

    // QueueingFsm
    void go_on() override;
    void forget_attempt() override;
    void answer(Ended how, Errc error, std::string detail) override;
    bool is_idle() const noexcept override { return is_waiting(); }
    bool outcome_open() const noexcept override { return step_ == Step::creating; }
    void drop_watches() override { port_.unwatch(); }
    void give_up_nodes() override;
    void forget_nodes() override;

    std::size_t size() const noexcept { return spec_.members.size(); }
    void send_create();
    void take_nodes(const CreatedSet& created, Instant sent_at);
    bool check_numbers();
    void make_missing();
    void send_search();
    void search_done();
    void look_anew();
    void send_places();
    void apply(std::size_t member, const QueuePosition& position);
    void sweep(std::size_t member, const std::vector<std::string>& names);
    void decide();
    void send_watches();
    void predecessor_gone(std::size_t member);
    void settle_watches();
    void send_renewal();
    bool any(State state) const;
    void own_node_missing();
    bool foreign(const NodeStat& own) const noexcept { return own.ephemeral_owner != node_session_; }
    void foreign_nodes();
    // `member`: the one that the error is about.
    void handle_error(Rc rc, const char* what, std::optional<std::size_t> member = {});
    void fail(Errc error, std::string detail, std::optional<std::size_t> member = {});
    /// A new phase, in which `answers` are waited for.
    Ticket begin(Step step, std::size_t answers);

    const MultiQueueSpec& spec_;
    std::size_t open_ = 0;              // answers that the present step waits for
    std::optional<std::size_t> about_;  // the member that an error is about; empty: all
    std::vector<std::string> nodes_;
    std::vector<Standing> standing_;
    std::vector<std::size_t> missing_;  // members without a directory
};

}  // namespace zkrecipes::internal
