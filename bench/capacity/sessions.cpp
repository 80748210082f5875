// Many sessions: idle, and with one lock each.
#include <memory>
#include <thread>

#include "bench/capacity/capacity.hpp"
#include "bench/cases.hpp"
#include "bench/process_state.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{10'000};
constexpr int kSessionsOfAProcess = 1000;
constexpr int kRawSessionsOfAProcess = 2500;

/// What goes on while the clients do nothing of their own accord.
struct Calm {
    double requests_a_second = 0;
    double server_percent = 0;  // of one processor
    double client_percent = 0;
};

Calm watch_calm(const testenv::ZkServer& server, const std::vector<std::unique_ptr<Clients>>& clients,
                milliseconds time) {
    const auto clients_time = [&] {
        std::int64_t sum = 0;
        for (const auto& one : clients) sum += processor_milliseconds(one->pid());
        return sum;
    };
    std::this_thread::sleep_for(3 * time / 5);  // until each session has asked what it asks once
    const auto begin = Clock::now();
    const auto requests = mntr(server, {"zk_packets_received"});
    const auto server_time = processor_milliseconds(server.pid());
    const auto client_time = clients_time();
    std::this_thread::sleep_for(time);
    const double took = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    Calm calm;
    calm.server_percent = 100 * static_cast<double>(processor_milliseconds(server.pid()) - server_time) / took;
    calm.client_percent = 100 * static_cast<double>(clients_time() - client_time) / took;
    calm.requests_a_second = 1000 * static_cast<double>(mntr(server, {"zk_packets_received"}) - requests) / took;
    return calm;
}

void measure(Csv& table, int sessions, bool raw, milliseconds time) {
    testenv::ServerOptions options = large_server("2g");
    options.java_properties["zookeeper.snapCount"] = "500000";
    options.tick_time = std::chrono::seconds(2);
    options.min_session_timeout = std::chrono::seconds(4);
    const testenv::ZkServer server(options);
    const auto empty = live_heap(server);
    std::vector<std::unique_ptr<Clients>> clients;
    double client_kib = 0, threads = 0;
    const int most = raw ? kRawSessionsOfAProcess : kSessionsOfAProcess;
    for (int left = sessions; left > 0; left -= most) {
        auto& one = *clients.emplace_back(std::make_unique<Clients>());
        const int before = kib_of(one.pid(), "VmRSS"), threads_before = kib_of(one.pid(), "Threads");
        if (raw) {
            one.open_raw(server.connect_string(), std::min(left, most), kTimeout);
        } else {
            one.open(server.connect_string(), std::min(left, most), kTimeout);
        }
        client_kib += kib_of(one.pid(), "VmRSS") - before;
        threads += kib_of(one.pid(), "Threads") - threads_before;
    }
    const Calm idle = watch_calm(server, clients, time);
    const auto heap = live_heap(server);
    const double resident = kib_of(server.pid(), "VmRSS") / 1024.0;
    std::vector<std::optional<double>> row{sessions, resident};
    row.push_back(heap && empty ? std::optional((*heap - *empty) / 1024 / sessions) : std::nullopt);
    row.insert(row.end(), {idle.requests_a_second, idle.server_percent});
    if (raw) {
        row.resize(row.size() + 6);
    } else {
        for (auto& one : clients) one->acquire_one_each();
        const Calm holding = watch_calm(server, clients, time);
        row.insert(row.end(), {holding.requests_a_second, holding.server_percent, client_kib / sessions,
                               threads / sessions, idle.client_percent, holding.client_percent});
    }
    table.row(row);
}

}  // namespace

void measure_sessions(bool brief) {
    Csv table(brief, {"sessions", "resident memory of the server [MiB]", "server heap for a session [KiB]",
                      "idle: requests a second", "idle: server CPU [%]", "one lock each: requests a second",
                      "one lock each: server CPU [%]", "client memory for a session [KiB]",
                      "client threads for a session", "idle: client CPU [%]", "one lock each: client CPU [%]"});
    const milliseconds time(brief ? 1000 : 5000);
    for (int sessions = 10; sessions <= (brief ? 100 : 1000); sessions *= 10) measure(table, sessions, false, time);
    measure(table, brief ? 200 : 10'000, true, time);
}

}  // namespace zkrecipes::bench
