// Many locks: those that are held, those that nobody holds, and those that nobody will ever use again.
#include <cmath>
#include <memory>
#include <thread>

#include "bench/capacity/capacity.hpp"
#include "bench/cases.hpp"
#include "bench/process_state.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::milliseconds;
using testenv::ZkServer;

constexpr int kLocksOfASession = 8000;  // the paths of its nodes have 900 kB at most
constexpr milliseconds kTimeout = std::chrono::minutes(5);
constexpr int kMostToFind = 100'000;  // locks that are held: more take minutes
constexpr std::chrono::minutes kPatience{5};

template <class Condition>
double seconds_until(const char* what, Condition condition) {
    const auto begin = Clock::now();
    while (!condition()) {
        if (Clock::now() > begin + kPatience) throw testenv::Error(std::string("took too long: ") + what);
        std::this_thread::sleep_for(milliseconds(20));
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::optional<double> per(std::optional<double> bytes, std::optional<double> without, int count) {
    if (!bytes || !without) return std::nullopt;
    return (*bytes - *without) / count;
}

testenv::ServerOptions server_with(const std::string& reaper_interval) {
    auto options = large_server("4g");
    options.java_properties = {{"znode.container.checkIntervalMs", reaper_interval},
                               {"znode.container.maxPerMinute", "100000000"},
                               {"zookeeper.snapCount", "500000"}};
    return options;
}

void measure(Csv& table, int locks) {
    auto server = std::make_unique<ZkServer>(server_with("3600000"));
    const auto empty = live_heap(*server);
    const auto empty_nodes = mntr(*server, {"zk_znode_count"});
    auto clients = std::make_unique<Clients>();
    const int sessions = (locks + kLocksOfASession - 1) / kLocksOfASession;
    clients->open(server->connect_string(), sessions, kTimeout);
    const int client_before = kib_of(clients->pid(), "VmRSS");
    const double acquired = clients->acquire(locks);
    seconds_until("each lock node is watched", [&] { return mntr(*server, {"zk_watch_count"}) >= locks; });
    const double client_kib = kib_of(clients->pid(), "VmRSS") - client_before;
    const auto held = live_heap(*server);
    std::optional<double> found;
    if (locks <= kMostToFind) {
        const auto all = clients->find_locks();
        if (all.locks != locks) throw testenv::Error("find_locks found " + std::to_string(all.locks) + " locks");
        found = all.seconds;
    }
    const auto release_begins = Clock::now();
    clients->release();
    seconds_until("all lock nodes are deleted", [&] { return mntr(*server, {"zk_ephemerals_count"}) == 0; });
    const double released = std::chrono::duration<double>(Clock::now() - release_begins).count();
    const auto idle = live_heap(*server);
    const double found_idle = clients->find_locks().seconds;
    clients.reset();

    // The same data, in a server that removes unused directories as fast as it can.
    server->stop();
    auto options = server_with("100");
    options.config_lines = {"dataDir=" + server->directory() + "/data"};
    const auto started = Clock::now();
    const ZkServer reaper(options);
    const double restarted = std::chrono::duration<double>(Clock::now() - started).count();
    const double reaped =
        seconds_until("the directories are gone", [&] { return mntr(reaper, {"zk_znode_count"}) <= empty_nodes; });
    const auto unused = live_heap(reaper);
    table.row({locks, sessions, per(empty, 0, 1'000'000), per(held, 0, 1'000'000), per(idle, 0, 1'000'000),
               per(unused, 0, 1'000'000), per(held, empty, locks), per(idle, empty, locks), client_kib * 1024 / locks,
               locks / acquired, locks / released, found, found_idle, restarted, reaped});
}

}  // namespace

void measure_locks(bool brief) {
    Csv table(
        brief,
        {"locks", "sessions of the client", "server heap: no lock yet [MB]", "server heap: all locks held [MB]",
         "server heap: no lock held [MB]", "server heap: after the directories were removed [MB]",
         "server heap for a held lock [B]", "server heap for an idle lock [B]", "client memory for a held lock [B]",
         "new locks acquired a second", "locks released a second", "find_locks: all locks held [s]",
         "find_locks: no lock held [s]", "restart of the server [s]", "removal of all unused directories [s]"});
    for (int locks = 1000; locks <= (brief ? 10'000 : 1'000'000); locks *= 10) measure(table, locks);
}

}  // namespace zkrecipes::bench
