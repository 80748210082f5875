#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <zkrecipes/grant.hpp>

#include "sim/client_process.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {

/// Knows true time and every holder, and says when two of them believed at once.
class Judge {
public:
    Judge(SimWorld& world, const Plan& plan, RunResult& result) : world_(world), plan_(plan), result_(result) {}

    struct Held {
        int path = 0;
        ClientProcess* process = nullptr;
        const Grant* grant = nullptr;
        FencingToken token = 0;
        std::uint64_t number = 0;        // in the order of the grants of all paths
        std::uint64_t seen_version = 0;  // of the unfenced register
        bool read = false;
    };
    using Ticket = std::list<Held>::iterator;

    /// An acquire has just answered this grant. It stays at that address until ended().
    Ticket granted(int path, ClientProcess& process, const Grant& grant);
    /// The holder asks held() and, if so, acts in the same instant: on a register that checks tokens and on one that
    /// does not. False: it does not hold any more.
    bool act(Ticket ticket);
    void ended(Ticket ticket);

    /// An operator has deleted nodes, or ended a session from outside as closing a second handle of it does. The holder
    /// is told, but not before: for at most the lease it may act beside the next one.
    void operator_acts(const Txn& committed);

    void violation(const std::string& check, const std::string& text);

    // ---- calls: each one returns, once
    std::uint64_t call_begins(ClientProcess& process, std::string what);
    void call_ends(std::uint64_t call);
    std::vector<std::string> open_calls() const;

private:
    struct Lock {
        FencingToken last_token = 0;
        std::uint64_t last_believed = 0;  // number of the latest grant that was held when it was given
        FencingToken fence = 0;           // of the register that checks tokens
        std::uint64_t version = 0;        // of the one that does not
    };
    struct Call {
        ClientProcess* process;
        std::string what;
        SimTime since;
    };
    bool believes(const Held& held);
    bool excused(const Held& held);
    std::string describe(const Held& held) const;

    SimWorld& world_;
    const Plan& plan_;
    RunResult& result_;
    std::map<int, Lock> locks_;
    std::list<Held> held_;
    struct Deletion {
        std::int64_t zxid;
        SimTime at;
    };
    // By path. A create that is repeated may get the same name again, when the directory was deleted, too.
    std::map<std::string, std::vector<Deletion>> deleted_;
    std::map<std::int64_t, SimTime> ended_sessions_;
    std::uint64_t next_number_ = 1;
    std::map<std::uint64_t, Call> calls_;
    std::uint64_t next_call_ = 1;
};

}  // namespace zkrecipes::sim
