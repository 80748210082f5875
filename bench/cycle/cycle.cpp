// One session takes and releases a free lock, again and again: what a cycle takes, in time and on the processor.
//     cycle HOSTS COUNT [events]
// It uses only what the library of older commits has, too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#if __has_include(<zkrecipes/session_events.hpp>)
#include <zkrecipes/session_events.hpp>
#define HAS_EVENTS 1
#else
#define HAS_EVENTS 0
#endif

#include "bench/processor_time.hpp"

namespace {

#if HAS_EVENTS
struct Listener final : zkrecipes::SessionEvents {
    void on_acquired(const zkrecipes::EventSubject&, zkrecipes::FencingToken, std::chrono::nanoseconds) override {
        ++told;
    }
    void on_released(const zkrecipes::EventSubject&, zkrecipes::FencingToken, std::chrono::nanoseconds) override {
        ++told;
    }
    long told = 0;
};
#endif

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const int count = std::atoi(argv[2]);
    zkrecipes::SessionOptions options;
    options.hosts = argv[1];
    if (argc > 3 && std::string_view(argv[3]) == "events") {
#if HAS_EVENTS
        options.events = std::make_shared<Listener>();
#else
        return 2;
#endif
    }
    zkrecipes::Session session(options);
    if (!session.wait_connected(std::chrono::seconds(30))) return 1;
    zkrecipes::ExclusiveMutex mutex(session, "/cycle");
    std::vector<double> times;
    double processor = 0;
    for (int i = -count / 5; i < count; ++i) {  // the first ones are not counted
        if (i == 0) processor = zkrecipes::bench::processor_microseconds();
        const auto begin = std::chrono::steady_clock::now();
        mutex.acquire().release_and_wait();
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        if (i >= 0) times.push_back(taken.count());
    }
    processor = (zkrecipes::bench::processor_microseconds() - processor) / count;
    std::ranges::nth_element(times, times.begin() + count / 2);
    std::printf("%.2f %.2f\n", times[static_cast<std::size_t>(count / 2)], processor);
}
