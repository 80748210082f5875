#include "bench/crowd_process.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>

#include "bench/cases.hpp"
#include "bench/places.hpp"

namespace zkrecipes::bench {
namespace {

using Words = std::vector<std::string>;

/// One session with a lock that it holds all the time, and a crowd that wants another one.
class Crowd {
public:
    void open(const std::string& hosts, const std::string& other, std::chrono::milliseconds timeout) {
        session_ = std::make_unique<Session>(open_session(hosts, timeout));
        other_ = ExclusiveMutex(*session_, other).acquire();
        sampler_ = std::thread([this] {
            for (;;) {
                const auto lease = other_.remaining_lease().count();
                for (auto least = least_lease_.load();
                     lease < least && !least_lease_.compare_exchange_weak(least, lease);) {
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
        });
        pthread_setname_np(sampler_.native_handle(), kLeaseSampler);
        sampler_.detach();  // until the process ends
    }

    void queue(const std::string& path, int waiters) {
        mutex_ = std::make_unique<ExclusiveMutex>(*session_, path);
        std::thread([this, waiters] {
            for (int i = 0; i < waiters; ++i) {
                mutex_->acquire_async(Deadline::never(), {}, [this](AcquireResult result) {
                    if (!result.value) {
                        std::fprintf(stderr, "bench: a waiter got no lock\n");
                        std::_Exit(1);
                    }
                    last_grant_ = Clock::now();
                    ++granted_;
                    result.value.release();
                });
                ++called_;
            }
        }).detach();
    }

    std::string status() {
        std::ostringstream text;
        text << granted_ << '\t' << std::chrono::nanoseconds(last_grant_.load().time_since_epoch()).count() << '\t'
             << called_ << '\t' << least_lease_.exchange(kNoLease) << '\t' << (other_.held() ? 1 : 0);
        return text.str();
    }

private:
    static constexpr std::int64_t kNoLease = 1'000'000'000;

    std::unique_ptr<Session> session_;
    std::unique_ptr<ExclusiveMutex> mutex_;
    Grant other_;
    std::thread sampler_;
    std::atomic<std::int64_t> least_lease_{kNoLease};  // milliseconds, since the last status
    std::atomic<int> called_{0};
    std::atomic<int> granted_{0};
    std::atomic<Clock::time_point> last_grant_{Clock::time_point{}};
};

}  // namespace

int run_crowd_process() {
    Crowd crowd;
    for (std::string line; std::getline(std::cin, line);) {
        Words words;
        std::istringstream fields(line);
        for (std::string word; std::getline(fields, word, '\t');) words.push_back(word);
        std::string answer;
        if (words.at(2) == "open") {  // hosts, path of the lock that is held, milliseconds
            crowd.open(words.at(3), words.at(4), std::chrono::milliseconds(std::stoi(words.at(5))));
        } else if (words.at(2) == "queue") {  // path, waiters
            crowd.queue(words.at(3), std::stoi(words.at(4)));
        } else {
            answer = crowd.status();
        }
        std::cout << words.at(0) << "\tok\t" << answer << std::endl;
    }
    std::_Exit(0);
}

}  // namespace zkrecipes::bench
