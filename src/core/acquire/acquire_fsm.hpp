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
#include "core/operation/retrying_fsm.hpp"
#include "core/operation/types.hpp"
#include "core/queue/queue_rule.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What the acquire protocol asks of its surroundings.
class AcquirePort : public virtual OperationPort {
public:
    // ---- requests ----
    /// create (ephemeral, sequential) of `prefix` in the lock directory and, right behind it, exists of the directory:
    /// on_created, then on_parent.
    virtual void create(Ticket ticket, const std::string& prefix) = 0;
    virtual void make_directory(Ticket ticket) = 0;                        // on_directory
    virtual void list(Ticket ticket) = 0;                                  // on_children
    virtual void sync(Ticket ticket) = 0;                                  // on_synced
    virtual void look_at(Ticket ticket, const std::string& name) = 0;      // on_own
    virtual void watch(Ticket ticket, const std::string& name) = 0;        // on_watching, then perhaps on_watch_fired
    virtual void unwatch() = 0;                                            // harmless without a watch
    virtual void renew_lease(Ticket ticket, const std::string& name) = 0;  // on_lease_renewed

    // ---- budgets, lease, cleaning up ----
    virtual bool reserve_node(
        const std::string& prefix) = 0;  // room for one node; kept until it is held, reaped or finished
    virtual bool may_watch(const std::string& name) = 0;
    virtual void lease_committed(Instant sent_at) = 0;
    virtual bool begin_hold(const std::string& name, std::int64_t czxid) = 0;  // false: the lease is not fresh
    virtual void delete_node(const std::string& name) = 0;
    virtual void delete_by_identity(const std::string& identity) = 0;

    // ---- the log, and the end ----
    virtual void note(const char* what) = 0;  // something worth a line in the log
    virtual void running_out() = 0;           // more than half of the directory's numbers are used up
    /// The one answer. After `granted` the hold of begin_hold belongs to whoever asked.
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
};

/// What the calls of one recipe object have in common.
struct QueueSpec {
    std::string directory;  // server path of the queue
    std::string base;       // of the own nodes, before the sequence: "lock-"
    const QueueRule* rule = nullptr;
    bool create_parents = true;
    Dialect dialect = Dialect::curator;
};

/// Stands in one queue until held, or gives up without leaving anything behind. Pure: it is told what happened and
/// tells the port what to do; it owns no clock, thread or connection.
///
/// What is known of the own node (none, perhaps created, created) belongs to one session incarnation and is forgotten
/// with it. From it alone follows what has to be done on each (re)connect:
///   none      create, with exists(directory) right behind it
///   perhaps   sync, list, find by identity, compare the owner with the session: adopt, or create again
///   created   list
/// A connection that breaks at any step costs one attempt of the retry policy and leads back to this table.
///
/// A protocol that goes on once it is at the head of the queue (SemaphoreFsm) replaces what is virtual.
class AcquireFsm : public OperationFsm {
public:
    AcquireFsm(AcquirePort& port, const QueueSpec& spec, Patience patience);

    void start() override;
    void deadline() override;
    void stop() override;
    void on_timer() override;

    // ---- the session ----
    void on_connected() override;
    void on_suspended() override;
    void on_session_lost() override;
    void on_closed(Errc why, std::string detail) override;

    // ---- answers ----
    void on_created(Ticket ticket, Rc rc, std::string_view path, const NodeStat& stat, Instant sent_at);
    void on_parent(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_directory(Ticket ticket, Rc rc);
    void on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names);
    void on_synced(Ticket ticket, Rc rc);
    void on_own(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_watching(Ticket ticket, Rc rc);
    void on_watch_fired(Ticket ticket, WatchEventType type);
    void on_lease_renewed(Ticket ticket, Rc rc);

    bool is_finished() const noexcept { return step_ == Step::finished; }
    bool is_waiting() const noexcept { return is_idle(); }
    const std::string& node() const noexcept { return node_; }  // name of the own node; "": not known
    std::int64_t czxid() const noexcept { return czxid_; }

protected:
    enum class Step : std::uint8_t {
        idle,
        awaiting_session,  // never connected so far
        backing_off,       // the connection broke; until the retry timer
        looking,           // try: list before anything is written
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
        beyond,   // at the head; a subclass goes on
        leaving,  // answered; the outcome of the create is still to come
        finished
    };
    enum class Known : std::uint8_t { none, perhaps, created };

    // ---- what a subclass replaces ----
    /// Nobody is before the own node: by an answer to the present ticket or, with `again`, by an event since.
    virtual void at_head(bool again);
    /// The try's one look at the queue, and what it showed.
    virtual void send_first_look() { port_.list(next_ticket()); }
    virtual void on_first_look(bool free, bool directory);
    virtual void send_create_request(const std::string& prefix) { port_.create(next_ticket(), prefix); }
    /// The one before us is gone, but others may be.
    virtual void look_again();
    /// Connected, and the session is the one that the knowledge is about.
    virtual void go_on();
    virtual bool is_idle() const noexcept { return step_ == Step::waiting; }        // no request is open
    virtual bool outcome_open() const noexcept { return step_ == Step::creating; }  // the answer decides what to delete
    virtual void drop_watches() { port_.unwatch(); }
    virtual void give_up_nodes();
    virtual void own_node_missing();
    virtual void forget_node();

    // ---- what it may use ----
    void send_create();
    void send_list();
    void attempt_failed();
    /// Deals with an answer that is neither done nor a refusal that has a meaning at this step.
    void trouble(Rc rc, const char* what);
    void fail(Errc error, std::string detail);
    void leave(Ended how, Errc error = {}, std::string detail = {});
    void finish();
    bool may_make_directory();
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }
    bool same_session() const { return node_incarnation_ == port_.incarnation(); }

    AcquirePort& port_;
    const QueueSpec& spec_;
    const Patience patience_;
    Step step_ = Step::idle;
    Known known_ = Known::none;
    Outage outage_;
    Ticket ticket_ = 0;
    std::uint64_t node_incarnation_ = 0;  // whose session the knowledge is about
    std::int64_t node_session_ = 0;
    std::int64_t czxid_ = 0;
    std::string identity_;  // "_c_<uuid>-" of the present create; "": none yet
    std::string node_;

private:
    void resume();
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

    bool only_predecessor_ = false;  // the watched node was the only one before us
    bool checking_ = false;          // a check of the own node was sent right before the list …
    bool checked_ = false;           // … and was answered well
    bool fast_grant_ = false;        // nothing but round trips since the create: its commit may be lease enough
    std::uint16_t directory_attempts_ = 0;
    std::string predecessor_;
};

}  // namespace zkrecipes::internal
