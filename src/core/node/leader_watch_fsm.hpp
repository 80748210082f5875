#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "core/operation/types.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// Who leads, as an observer was told. Two are the same leadership when the node is.
struct SeenLeader {
    std::string node;  // name; "": nobody leads
    std::string data;
    NodeStat stat;
};

/// What the observer of a leadership asks of its surroundings. A request is answered by the function of LeaderWatchFsm
/// named beside it, exactly once, never from inside the request, with the ticket that it was given.
class LeaderWatchPort {
public:
    virtual ~LeaderWatchPort() = default;
    virtual bool connected() const = 0;
    virtual std::uint64_t random() = 0;

    virtual void sync(Ticket ticket) = 0;  // on_synced
    virtual void list(Ticket ticket) = 0;  // on_children
    // Then perhaps on_fired. False: the budget of watches is used up, nothing was done.
    virtual bool watch_leader(Ticket ticket, const std::string& name) = 0;  // on_leader
    virtual bool watch_directory(Ticket ticket) = 0;                        // on_directory; also where it is missing
    virtual void unwatch() = 0;                                             // harmless without a watch

    virtual void start_timer(std::chrono::milliseconds delay) = 0;  // on_timer
    virtual void stop_timer() = 0;
    virtual void refused(const char* why, int times) = 0;  // something for the log; it is tried again
    virtual void tell(const SeenLeader& leader) = 0;
};

/// Follows who leads with one watch: on the leader's node, or, where nobody leads, on the directory. Pure.
///
/// What is told only goes forward. Within a session ZooKeeper's reads do; a new session may be with a server that is
/// behind the one before (where localSessionsEnabled makes sessions without a transaction), so it begins with a sync.
/// Nothing is told twice, and nothing at all while no server answers: what was told last is then the last that was
/// known.
class LeaderWatchFsm {
public:
    explicit LeaderWatchFsm(LeaderWatchPort& port) : port_(port) {}

    void start();

    // ---- the session ----
    void on_connected(bool same_session);
    void on_suspended();
    void on_session_lost();

    // ---- answers ----
    void on_synced(Ticket ticket, Rc rc);
    void on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names, const NodeStat& stat);
    void on_leader(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_directory(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_fired(Ticket ticket);
    void on_timer();

    bool is_watching() const noexcept { return step_ == Step::watching; }

private:
    enum class Step : std::uint8_t { away, pausing, syncing, listing, asking_leader, asking_directory, watching };

    void look();
    void send_list();
    void tell(SeenLeader leader);
    /// An answer that says nothing about the leader: tries again later.
    void trouble(Rc rc);
    void pause(const char* why);  // null: nothing that anybody can do something about
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

    LeaderWatchPort& port_;
    Step step_ = Step::away;
    Ticket ticket_ = 0;
    bool behind_ = false;  // the server may be behind what was told
    int failures_ = 0;
    ExponentialBackoff pace_{std::chrono::milliseconds(100), std::chrono::seconds(5)};
    std::string candidate_;       // first in the list
    std::int64_t listed_at_ = 0;  // last change of the children when nobody was there; 0: no directory either
    std::optional<SeenLeader> told_;
};

}  // namespace zkrecipes::internal
