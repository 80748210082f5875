#pragma once

#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/testenv/zk_server.hpp>

#include "bench/processes.hpp"

namespace zkrecipes::bench {

// The curves of docs/capacity.md. Each prints a table as CSV. `brief`: a small version, for tests.
void measure_locks(bool brief);
void measure_sessions(bool brief);
void measure_waiters(bool brief);
void measure_rate(bool brief);
void measure_writes(bool brief);

/// One table on standard output. The first line, a comment, describes the machine.
class Csv {
public:
    Csv(bool brief, const std::vector<std::string>& columns);
    /// A missing value was not measured.
    void row(const std::vector<std::optional<double>>& values);
};

/// A server with the just-in-time compiler that servers have in production, so much heap, and timeouts up to 10
/// minutes.
testenv::ServerOptions large_server(const std::string& heap);

/// Bytes of the server's heap that are in use after a collection. Empty: there is no jcmd here.
std::optional<double> live_heap(const testenv::ZkServer& server);

/// A process with many sessions: of the library, or of the C client's protocol alone, which needs fewer threads.
class Clients {
public:
    Clients();
    int pid() const { return process_.pid(); }
    /// Waits for the answer, however long it takes.
    std::vector<double> run(const std::vector<std::string>& words);

    void open(const std::string& hosts, int sessions, std::chrono::milliseconds timeout);
    void open_raw(const std::string& hosts, int sessions, std::chrono::milliseconds timeout);
    /// Acquires so many locks. Returns how many seconds it took.
    double acquire(int locks);
    void acquire_one_each();  ///< each session one lock of its own
    double release();
    struct Found {
        double seconds = 0;
        double locks = 0;
    };
    Found find_locks();
    /// So many callers acquire and release uncontended locks all the time, each of them two locks in turn.
    struct Rate {
        double holds_a_second = 0;
        double milliseconds_to_acquire = 0;  ///< median
    };
    Rate cycle(int callers, std::chrono::milliseconds time);

private:
    Process process_;
};

/// The program as such a process.
int run_clients();

}  // namespace zkrecipes::bench
