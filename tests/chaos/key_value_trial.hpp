#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace zkrecipes::testenv {
class RawClient;
}

namespace zkrecipes::chaos {

/// The processes of the key-value service of examples/. They end with this object, and with this process however it
/// ends, also while they are stopped.
class KeyValueProcesses {
public:
    static constexpr int kSize = 3;

    /// They listen at `address`, a loopback address that is ours.
    KeyValueProcesses(std::string hosts, const std::string& address, testenv::RawClient& observer);
    ~KeyValueProcesses();

    const std::vector<std::string>& addresses() const { return addresses_; }
    void start(int i, const std::string& program, const std::vector<std::string>& environment = {});
    void kill(int i);  // SIGKILL; gone on return
    void signal(int i, int number);
    bool is_stopped(int i) const;  // by SIGSTOP
    int wait_end(int i);           // the exit code; -1: by a signal

    int leader();              // by the nodes of the election; -1: nobody
    bool is_candidate(int i);  // the same
    std::size_t candidates();
    std::int64_t writes();  // how often the keys have been written

private:
    std::vector<std::string> ids();  // of the candidates in their order

    const std::string hosts_;
    testenv::RawClient& observer_;
    std::vector<std::string> addresses_;
    std::array<pid_t, kSize> pids_{};
};

/// Clients of the example that add 1 to shared keys all the time, and note each number that they are answered. Every
/// number must come exactly once: one that comes twice is a write that was lost, one that is left out is one that
/// happened twice.
class KeyValueLoad {
public:
    KeyValueLoad(std::vector<std::string> addresses, int clients, int keys);

    std::size_t acknowledged();
    std::string complaint();  // empty: all is well so far
    /// Lets them finish what is under way, and begin nothing more.
    void pause();
    /// Ends them; then nothing is under way any more.
    void stop();
    /// What the service says in the end is what was acknowledged. The complaint, or empty.
    std::string check_sums();

private:
    void run(const std::stop_token& stop, int client);
    bool begin(const std::stop_token& stop);  // false: it is over
    void note(const std::string& key, long long value);
    std::string key_of(int number) const { return "key-" + std::to_string(number); }

    const std::vector<std::string> addresses_;
    const int keys_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable_any changed_;
    bool paused_ = false;
    int under_way_ = 0;
    std::map<std::string, std::set<long long>> seen_;
    std::size_t acknowledged_ = 0;
    std::string complaint_;
    std::vector<std::jthread> threads_;
};

}  // namespace zkrecipes::chaos
