#pragma once

#include <cstdint>

#include "client/client.hpp"
#include "core/operation/continuous_fsm.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {

class SingleWatchPort : public virtual ContinuousPort {
public:
    virtual void sync(Ticket ticket) = 0;                  // on_synced
    virtual void unwatch() = 0;                            // harmless without a watch
    virtual void refused(const char* why, int times) = 0;  // something for the log; it is tried again
};

/// Follows something with one watch at a time. Pure.
///
/// What is told only goes forward. Within a session ZooKeeper's reads do. A new session may be with a server that is
/// behind the former one (if localSessionsEnabled makes sessions without a transaction), so it begins with a sync.
/// Nothing is told twice, and nothing while no server answers: what was told last is then the last known state. Changes
/// that follow each other fast may be told as one.
class SingleWatchFsm : public ContinuousFsm {
public:
    void start() override { look(); }
    void on_connected(bool same_session) override;
    void on_suspended() override;
    void on_session_lost() override;
    void on_timer() override;
    void on_synced(Ticket ticket, Rc rc);

    /// What was told last is the present state, as far as the connected server knows. False: it is being read, or
    /// cannot be read.
    bool is_watching() const noexcept { return step_ == Step::watching; }

protected:
    enum class Step : std::uint8_t { away, pausing, syncing, reading, watching };

    explicit SingleWatchFsm(SingleWatchPort& port) : common_(port) {}

    /// The first request of a look. It ends with settled(), look_again(), trouble() or no_room().
    virtual void read() = 0;
    virtual bool has_told() const = 0;

    void look();
    void settled();       // the watch is in place, and what was read is the present state
    void trouble(Rc rc);  // the answer says nothing: tries again later
    void no_room();       // for the watch, in the session's budget: tries again later
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

private:
    void go_away();
    void pause(const char* why);  // null: nothing that a user can do something about

    SingleWatchPort& common_;
    Step step_ = Step::away;
    Ticket ticket_ = 0;
    bool behind_ = false;  // the server may be behind what was told
};

}  // namespace zkrecipes::internal
