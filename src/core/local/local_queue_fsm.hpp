#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <zkrecipes/error.hpp>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Who waits in a local queue, in the order of arrival.
using WaiterId = std::uint64_t;

/// What a local queue asks of its surroundings.
class LocalQueuePort {
public:
    virtual ~LocalQueuePort() = default;
    virtual Instant now() const = 0;
    /// Takes a place in the queue of the lock: on_granted or on_refused, once, perhaps at once.
    virtual void open_place() = 0;
    /// Takes the place back. Nothing is told of it any more.
    virtual void close_place() = 0;
    virtual void grant(WaiterId waiter) = 0;  // the hold of on_granted, or the one that was kept
    virtual void refuse(WaiterId waiter) = 0;
    virtual void discard() = 0;  // the hold of on_granted: nobody wants it
    /// The node that is given back goes to `waiter`. False: that must not be, and `waiter` waits on.
    virtual bool pass_on(WaiterId waiter) = 0;
    /// The node that is given back stays. False: as above.
    virtual bool keep(Instant until) = 0;
    /// Whether the kept node may be taken for a new hold. `asked`: that is not known yet; on_nobody_else() or
    /// on_doubt() comes. No: give_up_kept().
    enum class MayTake { yes, asked, no };
    virtual MayTake may_take_kept() = 0;
    virtual void give_up_kept() = 0;
    /// on_time_to_look(), soon.
    virtual void look_for_room_later() = 0;
};

/// Both bounds of time count from the first grant of a node.
struct LocalQueueTerms {
    std::uint32_t holds_per_turn = 1;
    Nanoseconds turn{};
    Nanoseconds keep_for{};  // zero: it is not kept
};

/// Lines up all who wait in one session for one lock in one exclusive mode, so that the session takes one place in the
/// queue of the lock, and not one for each waiter. Its rules:
///
/// - A place belongs to the queue, not to a waiter. Whoever waits longest gets what it is granted. When a waiter
/// leaves,
///   the place stays for the next one; when the last one leaves, the place is closed, and never used again.
/// - With one hold per turn the next place is taken when the present one is granted, so that its request is not on the
///   way of a hand-over. So the session has two nodes at most: the hold's and that of the next place. The grant of the
///   next place proves that the node of the hold before it is gone, also where the owner has not given it back.
/// - With more holds per turn a node that is given back goes on to the next waiter, without a request, until there were
///   so many holds or the turn has lasted so long, counted from its first grant. Only then the next place is taken, at
///   the tail of the queue. So an arrival has at most one turn of each other session before it.
/// - A node that is kept belongs to a turn that goes on.
///
/// Pure.
class LocalQueueFsm {
public:
    LocalQueueFsm(LocalQueuePort& port, const LocalQueueTerms& terms) : port_(port), terms_(terms) {}

    // ---- waiters ----
    void arrive(WaiterId waiter);
    void leave(WaiterId waiter);
    /// Somebody holds or waits, or a try is open: a try need not ask the servers.
    bool busy() const noexcept { return held_ || open_ || trying_ || !waiting_.empty(); }
    /// A try gets the kept node. It does not wait for the answer to whether it may.
    bool take_kept();
    void begin_try() noexcept { trying_ = true; }
    /// `granted`: by a node of its own.
    void end_try(bool granted);
    std::size_t waiting() const noexcept { return waiting_.size(); }
    /// Whoever waits, waits for somebody of this session.
    bool held() const noexcept { return held_ || starved_; }
    std::uint64_t grants() const noexcept { return grants_; }

    // ---- the place ----
    void on_granted();
    /// `no_room`: for one more node of this session. While there are nodes of this queue there will be room: nobody
    /// fails, also where the owner of one that was lost does not give it back.
    void on_refused(bool no_room);
    void on_time_to_look();

    // ---- the hold ----
    /// Its owner gives it back. True: the node is somebody else's, or is kept.
    bool take_over();
    /// It was lost.
    void on_hold_over();
    /// Its owner has given it back, and the node is not passed on.
    void on_given_back();
    /// A node of this queue is gone, and there is room for another one.
    void on_node_gone();
    /// Another contender is there, the time is over, or nothing is certain of the node: it is given back, at once or
    /// after the hold.
    void on_doubt();
    /// No other contender is there; the node may be kept, and taken.
    void on_nobody_else();

private:
    LocalQueuePort::MayTake try_kept();
    void go_on();
    void begin_turn();
    bool has_lasted(Nanoseconds bound) const { return port_.now() - turn_began_ >= bound; }

    LocalQueuePort& port_;
    const LocalQueueTerms terms_;
    std::set<WaiterId> waiting_;
    bool open_ = false;
    WaiterId opened_for_ = 0;  // the last who had arrived by then
    bool starved_ = false;     // no room for a place while another node of this queue is there
    int nodes_ = 0;            // that were granted, and are not known to be gone
    bool held_ = false;
    bool trying_ = false;
    bool kept_ = false;
    bool wanted_elsewhere_ = false;  // not to be kept
    std::uint32_t holds_ = 0;        // of this turn
    std::uint64_t grants_ = 0;       // in all
    Instant turn_began_{};
};

}  // namespace zkrecipes::internal
