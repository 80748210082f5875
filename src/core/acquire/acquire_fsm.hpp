#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "core/acquire/queueing_fsm.hpp"
#include "core/operation/types.hpp"
#include "core/queue/queue_rule.hpp"

namespace zkrecipes::internal {

/// What the acquire protocol asks of its surroundings.
class AcquirePort : public virtual OperationPort {
public:
    // ---- requests ----
    /// create (ephemeral, sequential) of `prefix` in the lock directory and, right behind it, a read of the directory:
    /// on_created, then on_parent (stat) or on_children (names).
    enum class ReadBehind { stat, names };
    virtual void create(Ticket ticket, const std::string& prefix, ReadBehind read) = 0;
    virtual void make_directory(Ticket ticket) = 0;                    // on_directory
    virtual void list(Ticket ticket) = 0;                              // on_children
    virtual void sync(Ticket ticket) = 0;                              // on_synced
    virtual void look_at(Ticket ticket, const std::string& name) = 0;  // on_own
    virtual void watch(Ticket ticket, const std::string& name) = 0;    // on_watching; later on_watch_fired, if it fires
    virtual void unwatch() = 0;                                        // all of them; harmless without a watch
    // What makes a grant on the event possible. Nobody waits for the answers.
    virtual void watch_second(Ticket ticket, const std::string& name) = 0;  // on_second; perhaps on_second_fired
    /// Names, and a watch on the directory: on_looked_ahead; perhaps on_directory_fired. False: it was not sent.
    virtual bool look_ahead(Ticket ticket) = 0;
    virtual void watch_own(Ticket ticket, const std::string& name) = 0;  // on_own_watched; perhaps on_own_fired
    /// Heartbeats keep the lease fresh from now on, until unwatch().
    virtual void in_front(std::size_t) {}  // so many are before the own node, for people
    virtual void is_next(const std::string& name) = 0;
    virtual void renew_lease(Ticket ticket, const std::string& name) = 0;  // on_lease_renewed

    // ---- budgets, lease, cleaning up ----
    virtual bool reserve_node(
        const std::string& prefix) = 0;  // room for one node; kept until it is held, reaped or finished
    virtual bool may_watch(const std::string& name) = 0;
    virtual void lease_committed(Instant sent_at) = 0;
    virtual bool lease_is_fresh() const = 0;
    virtual bool begin_hold(const std::string& name, std::int64_t czxid) = 0;  // false: the lease is not fresh
    virtual void granted_on_event() = 0;  // no answer of the servers is as new as this hold yet
    virtual void delete_node(const std::string& name) = 0;
    virtual void delete_by_identity(const std::string& identity) = 0;

    // ---- of all calls of one recipe object ----
    virtual bool met_queue() const = 0;  // the last call that asked had to wait
    virtual void remember_queue(bool met) = 0;

    // ---- the log, and the end ----
    virtual void note(const char* what) = 0;  // something worth a line in the log
    virtual void running_out() = 0;           // more than half of the directory's numbers are used up
    /// The one answer. After `granted` the hold of begin_hold belongs to the caller.
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
};

/// What the calls of one recipe object have in common.
struct QueueSpec {
    std::string directory;  // server path of the queue
    std::string base;       // of the own nodes, before the sequence: "lock-"
    const QueueRule* rule = nullptr;
    bool create_parents = true;
    /// Asks for the names at once where the last call had to wait, since most often they are asked for in the end. And
    /// is granted on the event where that can be prepared.
    bool fast_handover = false;
    Dialect dialect = Dialect::curator;
};

enum class AcquireStep : std::uint8_t {
    idle,
    awaiting_session,
    backing_off,
    leaving,
    finished,
    awaiting_room,  // nothing is made yet: many_given_up()
    looking,        // try: list before anything is written
    creating,
    checking_parent,  // created; the answer of exists(directory) is on its way
    making_directory,
    syncing,         // outcome unknown: the server catches up …
    searching,       // … lists …
    checking_owner,  // … and tells whose node that is
    listing,
    setting_watch,
    waiting,
    renewing_lease,
    beyond  // at the head; a subclass goes on
};

/// Waits in one queue until the lock is held, or gives up and leaves nothing behind.
///
/// The end of the predecessor grants at once, without a further request, if all of this was learned while it still held
/// (fast_handover):
///   - The predecessor is the only one that is left before us, and nobody can come between (only_predecessor_). This is
///     asked for when the second before us has gone, since then, most often, the predecessor holds.
///   - Our own node is watched, by itself or by the directory that it is in, and nothing was told of it. Within a
///     connection events come in the order of the transactions, and the client tells them in that order. So our node
///     was there when the predecessor's was deleted, and from that transaction on it is first. (The servers keep an
///     event from whoever may not read the node. So if an operator takes away the right to read the node or the
///     directory, and then deletes our node, no event tells. A heartbeat does, as it tells a holder: those who are next
///     are named in it.)
///   - The connection has not broken since: after a reconnect the servers tell what was missed in any order.
///   - The lease is fresh: our session lives, and so our node has not ended with it.
///   - The predecessor belongs to another session: the nodes of one session are deleted together, in any order.
/// If one of these fails, a committed check of the own node decides, as it does without preparation. But where the
/// names are on their way when the predecessor goes, they decide: a server answers behind what it has told, so they
/// show the directory at that transaction or later. If our node is first in them, and the lease is fresh, it is held.
///
/// A protocol that continues at the head of the queue (SemaphoreFsm) replaces the virtual functions.
class AcquireFsm : public QueueingFsm<AcquirePort, AcquireStep> {
public:
    AcquireFsm(AcquirePort& port, const QueueSpec& spec, Patience patience);

    void on_connected() override;
    void on_suspended() override;

    // ---- answers ----
    void on_created(Ticket ticket, Rc rc, std::string_view path, const NodeStat& stat, Instant sent_at);
    void on_parent(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_directory(Ticket ticket, Rc rc);
    void on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names);
    void on_synced(Ticket ticket, Rc rc);
    void on_own(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_watching(Ticket ticket, Rc rc, std::int64_t owner);
    void on_watch_fired(Ticket ticket, WatchEventType type);
    void on_lease_renewed(Ticket ticket, Rc rc);
    void on_second(Ticket ticket, Rc rc);
    void on_second_fired(Ticket ticket, WatchEventType type);
    void on_looked_ahead(Ticket ticket, Rc rc, const std::vector<std::string>& names);
    void on_directory_fired(Ticket ticket);
    void on_own_watched(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_own_fired(Ticket ticket, WatchEventType type);
    void on_next_refused(std::string_view name, Rc rc);  // the part of a heartbeat that checks the node of is_next

    bool is_waiting() const noexcept { return is_idle(); }
    const std::string& node() const noexcept { return node_; }  // name of the own node; "": not known

protected:
    // ---- what a subclass replaces ----
    /// The own node is first: says an answer to the present ticket or, with `again`, a later event.
    virtual void at_head(bool again);
    /// The one look of a try, before anything is written; and what it showed.
    virtual void send_first_look() { port_.list(next_ticket()); }
    virtual void on_first_look(bool free, bool directory);
    virtual void send_create_request(const std::string& prefix) { port_.create(next_ticket(), prefix, read_behind_); }
    /// The predecessor is gone; there may be another one.
    virtual void look_again();
    virtual void own_node_missing();
    void go_on() override;
    bool is_idle() const noexcept override { return step_ == Step::waiting; }
    bool watch_goes_on() const noexcept override { return step_ == Step::waiting && same_session(); }
    bool outcome_open() const noexcept override { return step_ == Step::creating; }
    void drop_watches() override;
    void give_up_nodes() override;
    void forget_nodes() override;

    // ---- what it may use ----
    void send_create();
    void send_list();
    bool may_make_directory();

    using ReadBehind = AcquirePort::ReadBehind;
    ReadBehind read_behind_ = ReadBehind::stat;  // what was sent right behind the create
    const QueueSpec& spec_;
    std::string node_;

private:
    /// How far the preparation of a grant on the event is, while waiting.
    enum class Ahead : std::uint8_t {
        none,       // not begun, or given up
        second,     // the second before us is watched
        looking,    // it has gone; the names are on their way
        directory,  // nobody else is before us, and the directory has not changed since
        own_asked,  // the watch on the own node is on its way
        own         // nobody else is before us, and the own node is watched
    };
    bool at(Ticket ticket, Ahead ahead) const noexcept { return current(ticket, Step::waiting) && ahead_ == ahead; }

    void forget_attempt() override;
    void answer(Ended how, Errc error, std::string detail) override;
    void send_make_directory();
    void send_watch();
    void send_renewal();
    void take_node(std::string_view path, const NodeStat& stat, Instant sent_at);
    bool check_number();
    void apply(const QueuePosition& position);
    void search(const std::vector<std::string>& names);
    void sweep(const std::vector<std::string>& names);
    void grant_or_renew();
    void predecessor_gone();
    void away();
    bool granted_at_once();
    bool grants_on_event() const { return spec_.fast_handover && port_.zookeeper_serves(); }
    void prepare(std::int64_t owner);
    void send_look_ahead();
    void send_own_watch();
    void is_next(Ahead by);

    Ahead ahead_ = Ahead::none;
    bool read_first_ = false;        // the read behind the create was answered before it, and so shows nothing
    bool only_predecessor_ = false;  // the watched node was the only one before us
    std::string second_;             // whoever is before it; "": not of interest
    bool behind_event_ = false;      // the names that are on their way show that the predecessor is gone
    bool checking_ = false;          // a check of the own node was sent right before the list
    bool was_away_ = false;          // the connection broke since the watch was set
    std::string predecessor_;
};

}  // namespace zkrecipes::internal
