// Processes with many sessions.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <thread>

#include <zkrecipes/inspect.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "bench/capacity/capacity.hpp"
#include "bench/cases.hpp"
#include "bench/median.hpp"
#include "bench/places.hpp"

namespace zkrecipes::bench {
namespace {

using Words = std::vector<std::string>;
using std::chrono::milliseconds;

constexpr int kInFlight = 1024;  // acquires at the same time
constexpr char kTop[] = "/capacity/locks";

std::string key_of(int lock) { return std::to_string(lock / 1000) + "/" + std::to_string(lock % 1000); }

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Grant granted(AcquireResult result) {
    if (!result.value) {
        std::fprintf(stderr, "lock_capacity: a client got no lock\n");
        std::_Exit(1);
    }
    return std::move(result.value);
}

/// Acquires and releases two locks in turn until it is told to stop. With one lock, it would wait for the answer to
/// each release.
class Cycle {
public:
    Cycle(Session& session, const std::string& path, const std::atomic<bool>& counts, const std::atomic<bool>& ends)
        : locks_{ExclusiveMutex(session, path + "-even"), ExclusiveMutex(session, path + "-odd")},
          counts_(counts),
          ends_(ends) {}
    void begin() {
        const auto called = Clock::now();
        locks_[++round_ % 2].acquire_async(Deadline::never(), {}, [this, called](AcquireResult result) {
            Grant grant = granted(std::move(result));
            if (counts_) samples.push_back(1000 * seconds_since(called));
            grant.release();
            if (ends_) {
                ended.release();
            } else {
                begin();
            }
        });
    }
    std::vector<double> samples;  // milliseconds; once it has ended
    std::binary_semaphore ended{0};

private:
    std::array<ExclusiveMutex, 2> locks_;
    std::size_t round_ = 0;
    const std::atomic<bool>& counts_;
    const std::atomic<bool>& ends_;
};

/// What the process has, and does, one command after the other.
class Inside {
public:
    std::string run(const Words& words) {
        std::ostringstream answer;
        const std::string& verb = words.at(0);
        if (verb == "open" || verb == "open_raw") {  // hosts, sessions, milliseconds
            const int sessions = std::stoi(words.at(2));
            const milliseconds timeout(std::stoi(words.at(3)));
            for (int i = 0; i < sessions; ++i) open(verb == "open_raw", words.at(1), timeout, i);
            if (!sessions_.empty()) locks_ = std::make_unique<LockRegistry>(sessions_, kTop);
            answer << 0;
        } else if (verb == "acquire") {  // locks
            answer << acquire(std::stoi(words.at(1)));
        } else if (verb == "acquire_one_each") {
            for (std::size_t i = 0; i < sessions_.size(); ++i) {
                const std::string process = std::to_string(getpid());
                grants_.push_back(
                    ExclusiveMutex(sessions_[i], "/capacity/" + process + "/" + std::to_string(i)).acquire());
            }
            answer << 0;
        } else if (verb == "release") {
            answer << release();
        } else if (verb == "find") {
            const auto begin = Clock::now();
            const auto found = zkrecipes::find_locks(sessions_.front(), kTop, Deadline::never()).size();
            answer << seconds_since(begin) << '\t' << found;
        } else if (verb == "cycle") {  // callers, milliseconds
            answer << cycle(std::stoi(words.at(1)), milliseconds(std::stoi(words.at(2))));
        } else {
            throw std::runtime_error("unknown command " + verb);
        }
        return answer.str();
    }

private:
    /// `hosts` are separated by semicolons; session i uses the i-th, modulo their number.
    void open(bool raw, const std::string& hosts, milliseconds timeout, int i) {
        std::istringstream list(hosts);
        std::vector<std::string> all;
        for (std::string one; std::getline(list, one, ';');) all.push_back(one);
        const std::string& host = all.at(static_cast<std::size_t>(i) % all.size());
        if (raw) {
            testenv::RawClientOptions options;
            options.session_timeout = timeout;
            raw_.emplace_back(host, options);
        } else {
            sessions_.push_back(open_session(host, timeout));
        }
    }

    double acquire(int locks) {
        grants_.resize(static_cast<std::size_t>(locks));
        const auto begin = Clock::now();
        for (int i = 0; i < locks; ++i) {
            room_.acquire();
            locks_->get(key_of(i)).acquire_async(Deadline::never(), {}, [this, i](AcquireResult result) {
                grants_[static_cast<std::size_t>(i)] = granted(std::move(result));
                room_.release();
            });
        }
        for (int i = 0; i < kInFlight; ++i) room_.acquire();
        const double took = seconds_since(begin);
        room_.release(kInFlight);
        return took;
    }

    double release() {
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < grants_.size(); ++i) {
            if (i % kInFlight == kInFlight - 1) {
                grants_[i].release_and_wait();
            } else {
                grants_[i].release();
            }
        }
        grants_.clear();
        return seconds_since(begin);
    }

    std::string cycle(int callers, milliseconds time) {
        std::atomic<bool> counts{false}, ends{false};
        std::vector<std::unique_ptr<Cycle>> cycles;
        for (int i = 0; i < callers; ++i) {
            auto& session = sessions_[static_cast<std::size_t>(i) % sessions_.size()];
            cycles.push_back(std::make_unique<Cycle>(session, std::string(kTop) + "/" + key_of(i), counts, ends));
        }
        for (auto& one : cycles) one->begin();
        std::this_thread::sleep_for(time / 4);
        counts = true;
        const auto begin = Clock::now();
        std::this_thread::sleep_for(time);
        counts = false;
        const double took = seconds_since(begin);
        ends = true;
        std::vector<double> samples;
        for (auto& one : cycles) {
            one->ended.acquire();
            samples.insert(samples.end(), one->samples.begin(), one->samples.end());
        }
        std::ostringstream answer;
        answer << static_cast<double>(samples.size()) / took << '\t' << median(samples);
        return answer.str();
    }

    std::vector<Session> sessions_;
    std::vector<testenv::RawClient> raw_;
    std::unique_ptr<LockRegistry> locks_;
    std::vector<Grant> grants_;
    std::counting_semaphore<> room_{kInFlight};
};

}  // namespace

int run_clients() {
    Inside inside;
    std::future<std::string> running;
    for (std::string line; std::getline(std::cin, line);) {
        Words words;
        std::istringstream fields(line);
        for (std::string word; std::getline(fields, word, '\t');) words.push_back(word);
        std::string answer;
        if (words.at(2) != "result") {
            running = std::async(std::launch::async, [&inside, command = Words(words.begin() + 2, words.end())] {
                return inside.run(command);
            });
        } else if (running.wait_for(milliseconds(0)) == std::future_status::ready) {
            answer = running.get();
        }
        std::cout << words.at(0) << "\tok\t" << answer << std::endl;
    }
    std::_Exit(0);
}

Clients::Clients() : process_({"/proc/self/exe", "--clients"}) {}

std::vector<double> Clients::run(const std::vector<std::string>& words) {
    process_.ask(words);
    for (;;) {
        auto answer = process_.ask({"result"});
        if (!answer.empty()) return answer;
        std::this_thread::sleep_for(milliseconds(5));
    }
}

void Clients::open(const std::string& hosts, int sessions, milliseconds timeout) {
    run({"open", hosts, std::to_string(sessions), std::to_string(timeout.count())});
}

void Clients::open_raw(const std::string& hosts, int sessions, milliseconds timeout) {
    run({"open_raw", hosts, std::to_string(sessions), std::to_string(timeout.count())});
}

double Clients::acquire(int locks) { return run({"acquire", std::to_string(locks)}).at(0); }

void Clients::acquire_one_each() { run({"acquire_one_each"}); }

double Clients::release() { return run({"release"}).at(0); }

Clients::Found Clients::find_locks() {
    const auto answer = run({"find"});
    return {answer.at(0), answer.at(1)};
}

Clients::Rate Clients::cycle(int callers, milliseconds time) {
    const auto answer = run({"cycle", std::to_string(callers), std::to_string(time.count())});
    return {answer.at(0), answer.at(1)};
}

}  // namespace zkrecipes::bench
