#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>

#include "client/client.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {

/// Name of the node that says that the barrier is full.
inline constexpr const char* kBarrierReady = "ready";

/// What the state machines of a double barrier ask of their surroundings. All names are those of nodes in the barrier's
/// directory. A request is answered by the function of the state machine that is named beside it, with the ticket that
/// it was given, once the servers have executed or refused it. If the connection breaks first, no answer comes: the
/// state machine is told to begin() again as soon as the session is connected.
class DoubleBarrierPort {
public:
    virtual ~DoubleBarrierPort() = default;
    /// The deadline had passed before the call: one attempt, which waits for no other member.
    virtual bool once() const = 0;

    virtual void list(Ticket ticket) = 0;                                // on_children
    virtual void stat(Ticket ticket, const std::string& name) = 0;       // on_stat
    virtual bool watch(Ticket ticket, const std::string& name) = 0;      // on_node, on_fired; false: over the budget
    virtual void unwatch() = 0;                                          // all watches; harmless without one
    virtual void set_ready(Ticket ticket, std::int32_t version) = 0;     // raises its version; on_ready_set
    virtual void remove_ready(Ticket ticket, std::int32_t version) = 0;  // on_ready_removed

    // The end; nothing is asked afterwards.
    virtual void done() = 0;
    virtual void timed_out() = 0;
    virtual void fail(Errc error, std::string detail) = 0;
};

class BarrierEntryPort : public DoubleBarrierPort {
public:
    /// The name of our node, which is another one in each session. "": the session's budget is used up.
    virtual std::string own_name() = 0;
    virtual bool watch_ready(Ticket ticket) = 0;  // on_ready, also if it is missing; on_ready_fired; false as watch()
    virtual void create(Ticket ticket) = 0;       // our node; on_created
    virtual void make_directory(Ticket ticket) = 0;  // on_directory
    /// In one transaction that checks that all the `counted` are still there; on_ready_made.
    virtual void make_ready(Ticket ticket, const std::vector<std::string>& counted) = 0;
};

class BarrierExitPort : public DoubleBarrierPort {
public:
    virtual bool same_session() const = 0;        // as that of our node
    virtual void remove_own(Ticket ticket) = 0;   // on_own_removed, also if it was gone
    virtual void remove_both(Ticket ticket) = 0;  // our node and `ready`, in one transaction; on_both_removed
};

/// What entering and leaving have in common. Pure.
class DoubleBarrierFsm {
public:
    void on_ready_set(Ticket ticket, Rc rc, const NodeStat& now);
    void on_ready_removed(Ticket ticket);

protected:
    explicit DoubleBarrierFsm(DoubleBarrierPort& port) : common_(port) {}
    ~DoubleBarrierFsm() = default;

    /// Deletes the `ready` that was seen if it is still there, but not one that was made after it: the members who made
    /// that one have counted us, so they would be in and wait for us to leave while we wait for a `ready`.
    ///
    /// A delete can be bound to a version, but every `ready` begins with version 0. So the version is raised first, and
    /// the answer tells the czxid of the node that was changed.
    void remove_ready(const NodeStat& seen);
    virtual void ready_removed() = 0;  // or replaced by another one

    Ticket next_ticket() noexcept { return ++ticket_; }
    Ticket ticket() const noexcept { return ticket_; }
    bool current(Ticket ticket) const noexcept { return ticket == ticket_; }

private:
    DoubleBarrierPort& common_;
    Ticket ticket_ = 0;
    std::int64_t stale_ = 0;  // czxid of the `ready` that is being deleted
};

/// Enters a double barrier. Pure. The steps are in recipes/double_barrier.cpp.
class BarrierEntryFsm final : public DoubleBarrierFsm {
public:
    BarrierEntryFsm(BarrierEntryPort& port, std::size_t members, bool create_parents)
        : DoubleBarrierFsm(port), port_(port), members_(members), create_parents_(create_parents) {}

    /// Connected. What was learned before is void.
    void begin();

    void on_ready(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_ready_fired(Ticket ticket, WatchEventType type);
    void on_created(Ticket ticket, Rc rc);
    void on_directory(Ticket ticket);
    void on_children(Ticket ticket, const std::vector<std::string>& names);
    void on_stat(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_ready_made(Ticket ticket, Rc rc);
    void on_node(Ticket ticket, Rc rc);
    void on_fired(Ticket ticket, WatchEventType type);

    bool entered() const noexcept { return entered_; }

private:
    void make_directory();
    void decide();
    void check_next_member();
    void ready_removed() override { begin(); }
    void enter();

    BarrierEntryPort& port_;
    const std::size_t members_;
    const bool create_parents_;
    int directories_made_ = 0;  // in a row
    std::string own_;
    bool entered_ = false;
    // Since begin(), to which all answers with the present ticket belong:
    bool ready_known_ = false;
    std::optional<NodeStat> ready_;     // empty: it is missing
    bool listed_ = false;               // our node is there, and `present_` is known
    std::vector<std::string> present_;  // members
    std::size_t checked_ = 0;           // so many of them were asked for
};

/// Which member a leaving one waits for.
struct BarrierWait {
    enum class What {
        all_gone,    // nobody else is inside
        stay_for,    // we are the first by name: our node stays until `name`, the last one, and all others have gone
        leave_then,  // our node goes now; then wait for `name`, the first one, which goes last
        wait_for     // our node has gone already; wait for `name`
    };
    What what{};
    std::string name{};
};
/// `names`: the nodes that are there, ours among them unless it has gone.
BarrierWait next_to_wait_for(const std::vector<std::string>& names, const std::string& own);

/// Leaves a double barrier. Pure. The steps are in recipes/double_barrier.cpp.
class BarrierExitFsm final : public DoubleBarrierFsm {
public:
    /// `own`: name of our node.
    BarrierExitFsm(BarrierExitPort& port, std::string own)
        : DoubleBarrierFsm(port), port_(port), own_(std::move(own)) {}

    /// Connected. What was asked before is void.
    void begin();

    void on_children(Ticket ticket, const std::vector<std::string>& names);
    void on_own_removed(Ticket ticket);
    void on_both_removed(Ticket ticket, Rc rc);
    void on_stat(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_node(Ticket ticket, Rc rc);
    void on_fired(Ticket ticket, WatchEventType type);

    bool removed() const noexcept { return removed_; }  // our node has gone for certain

private:
    enum class Step : std::uint8_t {
        listing,
        awaiting_member,
        leaving_then_awaiting,  // our node is being deleted; then wait for `awaited_`
        leaving_as_last,        // … nobody else of our round is there
        leaving_after_all,      // … it could not be deleted together with `ready`
        leaving_with_ready,
        looking_at_ready,  // all have gone, and have left `ready`
        listing_again,     // is anybody there?
        removing_ready
    };

    void on_list(const std::vector<std::string>& names);
    void keep_members_of_this_round(const std::vector<std::string>& names);
    bool nobody_else(const std::vector<std::string>& names) const;
    void remove_own(Step step);
    void remove_both();
    void look_after_ready(const std::vector<std::string>& names);
    void await_or_give_up();
    void ready_removed() override { end(); }
    void end();
    void fail_lost();
    Ticket go_to(Step step) noexcept {
        step_ = step;
        return next_ticket();
    }

    BarrierExitPort& port_;
    const std::string own_;
    Step step_ = Step::listing;
    bool deleted_ = false;  // the delete of our node was sent
    bool removed_ = false;  // and answered
    bool lost_ = false;     // our node was gone before
    bool listed_ = false;
    std::vector<std::string> inside_;  // members of this round that have not gone yet
    std::string awaited_;
    NodeStat ready_;
};

}  // namespace zkrecipes::internal
