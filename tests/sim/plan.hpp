#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zkrecipes/lock_options.hpp>

#include "testing/world.hpp"

namespace zkrecipes::sim {

/// What can go wrong in a run. All of it lies within the assumptions A1 to A4 of docs/guarantees.md, under which a hold
/// is promised to be exclusive in time.
enum class Fault : unsigned {
    reset,          // connections break
    silent_server,  // the way between one process and one server is dead, for a while
    one_way,        // in one direction only
    silent_all,     // a process reaches no server
    pause,          // a process stands still
    pause_in_code,  // … in the middle of the library
    freeze_server,  // a server stands still
    kill_server,
    cut_servers,     // two servers do not hear each other
    isolate_server,  // a server does not hear the others, but its clients
    expire,          // a session is ended from outside
    delete_node,     // an operator deletes a lock node
    delete_all,      // … the lock directory with all that is in it
    reaper,          // containers are reaped within milliseconds
    slow_disk,
    lost_messages,  // connections break at chosen requests: before or after they are executed
    stalls,         // ZOOKEEPER-4537
    slow_listeners,
    skewed_clocks,
    process_dies,
    early_close,
    others_hands,    // an operator writes into lock nodes, and puts nodes beside them that are none
    doubt_attack,    // a write is proposed, waits for disks, and its client is elsewhere (doubt_attack.hpp)
    lease_attack,    // a client is silent, writes, and its server is gone (lease_attack.hpp)
    no_quorum,       // no server hears another for so long that clients give up their sessions, which the servers keep
    late_callbacks,  // the client's callbacks run late, while its I/O and the library's timers go on
    // ---- only where a workload asks for them
    impostor,        // somebody makes nodes in the place of others' (impostor.hpp)
    end_of_numbers,  // directories have used up their sequence numbers, or nearly so
    contenders,      // others stand in the queues (contender.hpp)
    count_
};
inline constexpr unsigned kFaultsByChance = static_cast<unsigned>(Fault::impostor);
inline constexpr unsigned kFaults = static_cast<unsigned>(Fault::count_);
const char* to_string(Fault fault) noexcept;

/// One run, made from a seed; what shrinking takes away is taken away here.
struct Plan {
    std::uint64_t seed = 0;
    std::string workload = "mutex";
    int servers = 3;
    std::int64_t tick_ms = 2000;
    std::int64_t timeout_ms = 6000;
    int processes = 3;
    int fibers = 2;  // of each process
    int paths = 1;
    SimTime trouble = 40 * kSecond;    // for so long new work is begun and things go wrong
    SimTime patience = 300 * kSecond;  // after healing everybody has been served by then
    std::uint32_t faults = 0;          // bits of Fault
    bool poll_beliefs = false;         // ask everybody at each grant, or only see who acts (asking makes an end sticky)
    bool probe = true;
    bool tick_known = true;         // to the clients
    bool long_holds = false;        // longer than a session lives
    bool keeper = false;            // EnsembleOptions::keeper
    bool exists_needs_read = true;  // EnsembleOptions::exists_needs_read
    bool containers = true;         // false: refused, and the directories of the locks are there
    LockOptions locks;              // how locks are handed over, kept, joined and ended within a process

    /// LockOptions::max_hold of this process: some have none.
    std::chrono::milliseconds max_hold_of(int process) const noexcept {
        return process % 3 == 2 ? std::chrono::milliseconds(0) : locks.max_hold;
    }
    /// The options of this process for locks that are handed over and kept, and for those that are not.
    LockOptions locks_of(int process) const;
    LockOptions limits_of(int process) const;

    bool has(Fault fault) const noexcept { return (faults >> static_cast<unsigned>(fault) & 1U) != 0; }
    std::string describe() const;
};
/// `keeper`: of ClickHouse Keeper.
Plan make_plan(std::uint64_t seed, const std::string& workload, bool keeper = false);

struct Violation {
    std::string check;  // name of the check that saw it
    std::string text;
};

struct RunResult {
    std::vector<Violation> violations;
    std::uint64_t hash = 0;
    std::uint64_t events = 0;
    SimTime simulated = 0;
    std::uint64_t calls = 0, grants = 0, acts = 0, losses = 0, faults = 0, fenced = 0;
    std::vector<std::string> trace;
    bool stuck = false;  // fibers are left behind: no further run in this process's thread
};

/// Runs it. Workloads are looked up by plan.workload.
RunResult run_plan(const Plan& plan, bool keep_trace);
const std::vector<std::string>& workload_names();

}  // namespace zkrecipes::sim
