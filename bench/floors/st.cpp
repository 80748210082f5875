// The floor on libzookeeper_st: the program drives the C client itself.
//     floor_st HOSTS caller               the thread that waits for the lock polls the socket
//     floor_st HOSTS loop                 another thread polls the socket, and wakes the one that waits
//     floor_st HOSTS hand_over SESSIONS   one thread for all sessions
//     floor_st HOSTS locks LOCKS          one session and one thread for all locks
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/floors/client_lock.hpp"
#include "bench/floors/contest.hpp"
#include "bench/floors/cycle_meter.hpp"
#include "bench/floors/loop.hpp"
#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"
#include "bench/floors/signal.hpp"

namespace zkrecipes::bench {
namespace {

/// `wait` blocks until the answer to a request has come, or the answers to those that are sent together.
template <class Wait>
void measure_cycles(Loop& loop, Loop::Driven& driven, ClientLock& lock, Wait&& wait) {
    const auto acquire = [&] {
        loop.send(driven, [&] { lock.acquire(); });
        wait();
    };
    const auto release = [&] {
        loop.send(driven, [&] { lock.release(); });
        wait();
    };
    measure_uncontended(acquire, release);
}

void caller(const std::string& hosts, int) {
    bool answered = false;
    const auto note = [&] { answered = true; };
    Loop loop;
    Loop::Driven& driven = loop.open(hosts);
    ClientLock lock(driven.session.handle(), directory_of(0), note, note);
    measure_cycles(loop, driven, lock, [&] {
        while (!std::exchange(answered, false)) loop.turn();
    });
}

void loop_thread(const std::string& hosts, int) {
    bool answered = false;  // of the loop's thread, which wakes the caller when the loop's mutex is free
    const auto note = [&] { answered = true; };
    Signal woken;
    std::atomic<bool> ended{false};
    Loop loop;
    Loop::Driven& driven = loop.open(hosts);
    ClientLock lock(driven.session.handle(), directory_of(0), note, note);
    std::thread thread([&] {
        while (!ended) {
            loop.turn();
            if (std::exchange(answered, false)) woken.post();
        }
    });
    measure_cycles(loop, driven, lock, [&] { woken.wait(); });
    ended = true;
    loop.wake();
    thread.join();
}

void hand_over(const std::string& hosts, int count) {
    bool ended = false;
    Contest contest(count, [&] { ended = true; });
    Loop loop;
    std::vector<Loop::Driven*> sessions;
    for (int i = 0; i < count; ++i) sessions.push_back(&loop.open(hosts));
    for (Loop::Driven* driven : sessions) {
        loop.send(*driven, [&] { contest.enter(driven->session.handle()); });
    }
    while (!ended) loop.turn();
    print(contest.result());
}

/// One lock that is acquired and released again and again by its own callbacks.
struct Cycling {
    std::optional<ClientLock> lock;
    CycleMeter::Clock::time_point called{}, granted{};

    void start() {
        called = CycleMeter::Clock::now();
        lock->acquire();
    }
};

void locks(const std::string& hosts, int count) {
    CycleMeter meter = CycleMeter::of_many_locks();
    int active = count;
    std::vector<Cycling> all(static_cast<std::size_t>(count));
    Loop loop;
    Loop::Driven& driven = loop.open(hosts);
    for (Cycling& each : all) {
        const auto granted = [&each] {
            each.granted = CycleMeter::Clock::now();
            each.lock->release();
        };
        const auto released = [&] {
            if (meter.add(each.called, each.granted)) {
                each.start();
            } else {
                --active;
            }
        };
        const int number = static_cast<int>(&each - all.data());
        loop.send(driven, [&] {
            each.lock.emplace(driven.session.handle(), directory_of(number), granted, released);
            each.start();
        });
    }
    while (active > 0) loop.turn();
    meter.print_result();
}

}  // namespace
}  // namespace zkrecipes::bench

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    return run(argc, argv, {{"caller", caller}, {"loop", loop_thread}, {"hand_over", hand_over}, {"locks", locks}});
}
