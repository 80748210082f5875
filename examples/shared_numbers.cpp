// Several workers number invoices. No number is given twice, even if the connection breaks meanwhile. A shared value
// limits how many invoices each may write at a time. All workers follow it, and any client may change it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/shared_count.hpp>

namespace {

using namespace std::chrono_literals;
using zkrecipes::Errc;
using zkrecipes::Error;

std::int64_t next_number(zkrecipes::Session& session) {
    // [counter]
    zkrecipes::CounterOptions options;
    options.idempotent_in = "/invoices/marks";  // needed to find out what happened if an answer is lost
    zkrecipes::AtomicCounter numbers(session, "/invoices/last", options);
    try {
        return numbers.increment().after;
    } catch (const Error& error) {
        // An answer was lost, and the session has ended. The first number may be used up, so take the next one.
        if (error.errc() != Errc::outcome_unknown) throw;
        return numbers.increment().after;
    }
    // [/counter]
}

int raise_limit(zkrecipes::Session& session) {
    // [count]
    zkrecipes::SharedCount limit(session, "/invoices/limit", 5);  // 5 is the first value
    std::atomic<int> seen = 0;
    const auto subscription = limit.observe([&](const std::optional<zkrecipes::VersionedCount>& now) {
        if (now) seen = now->count;  // on the session's notifier thread
    });
    for (;;) {
        const auto now = limit.get();  // no request: the library watches the node
        if (limit.try_set(now.version, now.count * 2)) break;
        // another client has changed it meanwhile: try again
    }
    // [/count]
    while (seen != limit.get().count) std::this_thread::sleep_for(1ms);
    return seen;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        zkrecipes::Session session(argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181");
        std::mutex mutex;
        std::set<std::int64_t> numbers;
        {
            std::vector<std::jthread> workers;
            for (int worker = 0; worker < 3; ++worker) {
                workers.emplace_back([&] {
                    for (int i = 0; i < 10; ++i) {
                        const auto number = next_number(session);
                        const std::lock_guard lock(mutex);
                        numbers.insert(number);
                    }
                });
            }
        }
        std::printf("%zu numbers, the last is %lld\n", numbers.size(), static_cast<long long>(*numbers.rbegin()));
        std::printf("the limit is %d now\n", raise_limit(session));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
