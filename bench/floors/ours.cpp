// zkrecipes, measured as the floors are. It uses only what the library of older commits has, too.
//     ours HOSTS uncontended
//     ours HOSTS hand_over SESSIONS
//     ours HOSTS locks LOCKS       all on one session, a thread for each
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "bench/contend.hpp"
#include "bench/floors/cycle_meter.hpp"
#include "bench/floors/program.hpp"

namespace zkrecipes::bench {
namespace {

Session open(const std::string& hosts) {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = std::chrono::seconds(30);
    Session session(options);
    if (!session.wait_connected(std::chrono::seconds(30))) fail("no connection to " + hosts + " within 30 s");
    return session;
}

std::string path_of(int lock) { return "/ours-" + std::to_string(lock); }

void uncontended(const std::string& hosts, int) {
    Session session = open(hosts);
    ExclusiveMutex mutex(session, path_of(0));
    Grant grant;
    measure_uncontended([&] { grant = mutex.acquire(); }, [&] { grant.release_and_wait(); });
}

void hand_over(const std::string& hosts, int count) {
    struct Side {
        Session session;
        ExclusiveMutex mutex;
        Grant grant{};
    };
    std::vector<Side> sides;
    sides.reserve(static_cast<std::size_t>(count));
    std::vector<Contender> contenders;
    for (int i = 0; i < count; ++i) {
        Session session = open(hosts);
        ExclusiveMutex mutex(session, path_of(0));
        Side& side = sides.emplace_back(Side{std::move(session), std::move(mutex)});
        contenders.push_back({[&side] { side.grant = side.mutex.acquire(); }, [&side] { side.grant.release(); }});
    }
    print(contend(contenders, warm_hand_overs(count), kHandOvers));
}

void locks(const std::string& hosts, int count) {
    Session session = open(hosts);
    CycleMeter meter = CycleMeter::of_many_locks();
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            ExclusiveMutex mutex(session, path_of(i));
            Grant grant;
            run_cycles(
                meter, [&] { grant = mutex.acquire(); }, [&] { grant.release_and_wait(); });
        });
    }
    for (std::thread& thread : threads) thread.join();
    meter.print_result();
}

}  // namespace
}  // namespace zkrecipes::bench

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    return run(argc, argv, {{"uncontended", uncontended}, {"hand_over", hand_over}, {"locks", locks}});
}
