#include "bench/contend.hpp"

#include <thread>

namespace zkrecipes::bench {

HandOvers contend(const std::vector<Contender>& contenders, int warm, int count) {
    HandOverMeter meter(warm, count);
    std::vector<std::thread> threads;
    for (const Contender& contender : contenders) {
        threads.emplace_back([&] {
            while (!meter.enough()) {
                contender.acquire();
                meter.held(HandOverMeter::Clock::now());
                meter.releases();
                contender.release();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return meter.result();
}

}  // namespace zkrecipes::bench
