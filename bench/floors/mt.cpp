// The floor on libzookeeper_mt: the C client has an I/O thread and a completion thread for each session.
//     floor_mt HOSTS uncontended
//     floor_mt HOSTS hand_over SESSIONS
#include <deque>
#include <optional>
#include <string>

#include "bench/floors/client_lock.hpp"
#include "bench/floors/contest.hpp"
#include "bench/floors/cycle_meter.hpp"
#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"
#include "bench/floors/signal.hpp"

namespace zkrecipes::bench {
namespace {

// The sessions end first, because their threads call the rest.

void uncontended(const std::string& hosts, int) {
    Signal answered;
    const auto post = [&] { answered.post(); };
    std::optional<ClientLock> lock;
    const ClientSession session(hosts, post);
    answered.wait();
    lock.emplace(session.handle(), directory_of(0), post, post);
    const auto acquire = [&] {
        lock->acquire();
        answered.wait();
    };
    const auto release = [&] {
        lock->release();
        answered.wait();
    };
    measure_uncontended(acquire, release);
}

void hand_over(const std::string& hosts, int count) {
    Signal connected, ended;
    Contest contest(count, [&] { ended.post(); });
    std::deque<ClientSession> sessions;
    for (int i = 0; i < count; ++i) {
        sessions.emplace_back(hosts, [&] { connected.post(); });
        connected.wait();
    }
    for (const ClientSession& session : sessions) contest.enter(session.handle());
    ended.wait();
    print(contest.result());
}

}  // namespace
}  // namespace zkrecipes::bench

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    return run(argc, argv, {{"uncontended", uncontended}, {"hand_over", hand_over}});
}
