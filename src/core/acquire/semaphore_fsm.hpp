#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/acquire/acquire_fsm.hpp"
#include "core/queue/semaphore_terms.hpp"

namespace zkrecipes::internal {

/// The one write of the protocol, a transaction: these leases instead of the place in the queue, as long as the terms
/// are those that were read.
struct LeaseRequest {
    std::string place;                // the own node in the queue, to be deleted
    std::vector<std::string> leases;  // names of the nodes to be created
    std::int32_t version = 0;         // of the data of the directory of leases
    std::string terms;                // what to write there; empty: nothing, only compare the version
    bool told = true;                 // also sets the data of the first lease, which answers its Stat
};
/// Which of the operations of a LeaseRequest was refused.
enum class TakingStep { terms, place, leases, data };

/// What SemaphoreFsm asks of its surroundings beside what AcquirePort has; that port's requests concern the queue.
class LeasePort {
public:
    virtual ~LeasePort() = default;
    virtual void look(Ticket ticket) = 0;          // data and stat of the directory of leases: on_look
    virtual void make_leases(Ticket ticket) = 0;   // on_leases_made
    virtual void watch_leases(Ticket ticket) = 0;  // its children: on_leases_watched; on_leases_changed, if it fires
    virtual void unwatch_leases() = 0;             // harmless without a watch
    /// Lets guarded_leases() tell, if it can, whether the directory of leases with this czxid was there when the
    /// request behind it was executed: then it answers this czxid.
    virtual void guard_leases(std::int64_t czxid) = 0;
    virtual std::int64_t guarded_leases() const = 0;
    /// The transaction: on_taken. If it does not tell the Stat, right behind it exists of the first lease: on_lease.
    virtual void take(Ticket ticket, const LeaseRequest& taking) = 0;
    virtual void sync_leases(Ticket ticket) = 0;                                          // on_leases_synced
    virtual void find_lease(Ticket ticket, const std::string& name) = 0;                  // exists: on_lease
    virtual void renew_leases(Ticket ticket, const std::vector<std::string>& names) = 0;  // on_leases_renewed

    virtual bool reserve_leases(const std::vector<std::string>& names) = 0;  // kept until held, reaped or finished
    virtual bool may_watch_leases() = 0;
    virtual void left_queue() = 0;  // the place in the queue is gone, by our own transaction
    virtual bool begin_lease_hold(const std::vector<std::string>& names, std::int64_t czxid) = 0;
    virtual void delete_leases(const std::vector<std::string>& names) = 0;
    virtual void delete_leases_by_identity(const std::string& identity) = 0;
};

/// Waits in the queue until it is at the head, then until enough leases are free, and takes all of them at once. Only
/// the head takes leases and only the head watches them. So no contender holds some leases while it waits for more, and
/// a lease that is given back wakes one waiter.
///
/// In the order of the servers' transactions there are never more leases held than the limit. While our node is at the
/// head, no other contender takes leases, so there are at most as many as the last count showed. The transaction
/// happens only if our node is still there and the limit has not been changed in this directory.
///
/// The transaction compares the version of the directory's data, and so cannot tell a directory that the servers have
/// removed, as it was empty, and that another client has made anew, with another limit. A watch on the directory tells:
/// its event comes before the answer to the transaction. Where there is no such watch, a look after the transaction
/// compares the directory's czxid. Leases in another directory than the one that was read are given back. None of this
/// is needed by the transaction that writes the first number. If it does so in the directory that was read, the leases
/// there were counted; in one that was made anew since, there are none, as we are at the head.
///
/// The transaction also sets the data of the first lease, because only the answer to a setData contains a Stat. That of
/// the new lease has the czxid and the owner of all leases, as one session makes them by one transaction. So the grant
/// needs no read: the transaction is committed, has checked the own place, and renews the lease. Without the right to
/// write the lease, and after a lost answer, exists of the first lease answers the same.
class SemaphoreFsm final : public AcquireFsm {
public:
    SemaphoreFsm(AcquirePort& port, LeasePort& leases, const QueueSpec& spec, Patience patience, SemaphoreTerms& terms,
                 std::int32_t wanted);

    void on_look(Ticket ticket, Rc rc, std::string_view data, const NodeStat& stat);
    void on_leases_made(Ticket ticket, Rc rc);
    void on_leases_watched(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_leases_changed(Ticket ticket);
    /// `refused`: which operation, where rc is a refusal. `lease`: of the first lease; czxid 0: not told.
    void on_taken(Ticket ticket, Rc rc, TakingStep refused, const NodeStat& lease, Instant sent_at);
    void on_lease(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_leases_synced(Ticket ticket, Rc rc);
    void on_leases_renewed(Ticket ticket, Rc rc);

    const std::vector<std::string>& leases() const noexcept { return leases_; }

private:
    /// Steps at the head of the queue; with Step::beyond only.
    enum class Head : std::uint8_t {
        none,
        asking,  // not even in the queue: whether there are as many leases as are wanted
        looking,
        making_leases,
        setting_watch,
        waiting,
        taking,
        reading_lease,  // taken; the answer of exists(first lease) is on its way
        syncing,        // outcome unknown: the server catches up …
        finding,        // … and tells whether the leases are there
        renewing_leases,
        confirming  // taken; whether in the directory that was read
    };
    /// What is known of the leases of `leases_`, all of them, since one transaction makes them.
    enum class Taken : std::uint8_t { no, unknown, yes };

    // AcquireFsm
    void at_head(bool again) override;
    void send_first_look() override;
    void on_first_look(bool free, bool directory) override;
    void send_create_request(const std::string& prefix) override;
    void look_again() override;
    void go_on() override;
    bool is_idle() const noexcept override;
    bool outcome_open() const noexcept override;
    void drop_watches() override;
    void give_up_nodes() override;
    void own_node_missing() override;
    void forget_nodes() override;

    bool at(Ticket ticket, Head head) const noexcept { return current(ticket, Step::beyond) && head_ == head; }
    Ticket go_to(Head head);
    void send_look();
    bool agree(std::string_view data, const NodeStat& stat);
    void refuse_wanted();
    bool enough(const NodeStat& stat) const noexcept;
    void send_take();
    void on_taking_refused(Rc rc, TakingStep refused);
    void use_leases(const NodeStat& first);
    bool foreign(const NodeStat& lease) const;
    void foreign_leases();
    void on_confirmed(Rc rc, const NodeStat& stat);
    void start_over(const char* why);
    void leases_gone();
    void grant_or_renew_leases();

    LeasePort& lease_port_;
    SemaphoreTerms& terms_;
    const std::int32_t wanted_;
    Head head_ = Head::none;
    Taken taken_ = Taken::no;
    bool doubtful_ = false;       // a transaction whose outcome was unknown was not found to have happened
    bool first_looked_ = false;   // try: the queue was empty …
    bool queue_exists_ = false;   // … or not even there
    Ticket look_ticket_ = 0;      // of the look that is on its way; it may overtake a list (Requests::list)
    std::int32_t version_ = 0;    // of the terms, by the last look …
    std::int64_t directory_ = 0;  // … and of the directory that they stand in
    bool unwritten_ = false;      // … where nobody has written any yet
    bool confirmed_ = false;      // the leases are in that directory
    std::vector<std::string> leases_;
};

}  // namespace zkrecipes::internal
