// key_value_trial [FAULTS [SEED [SERVERS]]]: the key-value service of examples/, three processes, while clients raise
// numbers through whichever of them leads. The leader is killed with SIGKILL and started again, or frozen with SIGSTOP
// until another one leads and continued, in turn, FAULTS times. Every write that was acknowledged must be there, none
// twice. Exit code 0: so it was. That it can see is tried first, with a leader that is stopped right before it writes:
// without its guard writes must be lost, with it none.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "chaos/key_value_trial.hpp"
#include "support/await.hpp"

namespace {

using namespace std::chrono_literals;
using namespace zkrecipes::chaos;
using zkrecipes::test::await;
using zkrecipes::test::scaled;

const std::chrono::milliseconds kMaxWait = scaled(60s);
constexpr const char* kServer = ZKRECIPES_KEY_VALUE_SERVER;            // the example as it is
constexpr const char* kStoppingServer = ZKRECIPES_KEY_VALUE_STOPPING;  // key_value_guarded.cpp
constexpr const char* kAnchor = "/anchor/x-lock-0000000000";
constexpr int kClients = 4, kKeys = 3;

/// One server, or an ensemble.
class Servers {
public:
    explicit Servers(int count) {
        if (count == 1) {
            one_ = std::make_unique<zkrecipes::testenv::ZkServer>();
        } else {
            ensemble_ = std::make_unique<zkrecipes::testenv::ZkEnsemble>(count);
        }
    }
    std::string connect_string() const { return one_ ? one_->connect_string() : ensemble_->connect_string(); }
    const std::string& address() const { return (one_ ? *one_ : ensemble_->member(0)).endpoint().address; }

private:
    std::unique_ptr<zkrecipes::testenv::ZkServer> one_;
    std::unique_ptr<zkrecipes::testenv::ZkEnsemble> ensemble_;
};

class Trial {
public:
    Trial(const Servers& servers, std::uint64_t seed)
        : random_(seed),
          observer_(servers.connect_string()),
          processes_(servers.connect_string(), servers.address(), observer_) {
        observer_.remove_tree("/kv");
        observer_.make_path(kAnchor);
    }

    /// One process alone, until it stops itself between what it has read and what it writes. Then the others are
    /// started, one of them leads, and the first one goes on. What the clients complain of; empty: nothing.
    std::string stop_at_the_worst_moment(bool with_guard) {
        std::vector<std::string> environment = {"KEY_VALUE_STOP_AT=50"};
        if (!with_guard) environment.push_back("KEY_VALUE_GUARD=zkr1:1:x" + std::string(kAnchor));
        processes_.start(0, kStoppingServer, environment);
        begin();
        wait_for([&] { return processes_.is_stopped(0); }, "it does not stop");
        processes_.start(1, kServer);
        processes_.start(2, kServer);
        await_writes(40);
        load_->pause();  // or a write that is under way could cover up what the first one does now
        const auto before = processes_.writes();
        processes_.signal(0, SIGCONT);
        if (with_guard) {
            wait_for([&] { return processes_.candidates() == 3; }, "it does not stand again");
        } else {
            wait_for([&] { return processes_.writes() > before; }, "without its guard it does not write");
        }
        return finish();
    }

    void start() {
        for (int i = 0; i < KeyValueProcesses::kSize; ++i) processes_.start(i, kServer);
        begin();
    }
    void kill_the_leader() {
        const int victim = strike(SIGKILL);
        processes_.wait_end(victim);
        await_writes(10);  // by another one
        processes_.start(victim, kServer);
    }
    void freeze_the_leader() {
        const int victim = strike(SIGSTOP);
        wait_for([&] { return !processes_.is_candidate(victim) && processes_.leader() >= 0; }, "nobody takes over");
        await_writes(10);
        processes_.signal(victim, SIGCONT);
    }

    std::string finish() {
        load_->stop();
        if (const auto complaint = load_->check_sums(); !complaint.empty()) return complaint;
        for (int i = 0; i < KeyValueProcesses::kSize; ++i) processes_.signal(i, SIGTERM);
        for (int i = 0; i < KeyValueProcesses::kSize; ++i) {
            if (processes_.wait_end(i) != 0) return "a process did not end well";
        }
        if (!await([&] { return processes_.candidates() == 0; }, 400ms)) return "who has ended is a candidate still";
        if (!observer_.children("/kv/clients")->empty()) return "a client has not left";
        return {};
    }
    std::size_t acknowledged() { return load_->acknowledged(); }

private:
    void begin() { load_ = std::make_unique<KeyValueLoad>(processes_.addresses(), kClients, kKeys); }

    /// Sends the signal to a process that leads, anywhere in what it does. On a busy machine a leader may lose its
    /// session without our doing just before that; then it is not the one that we want.
    int strike(int signal) {
        for (;;) {
            wait_for([&] { return processes_.candidates() == 3; }, "they do not all stand");
            await_writes(30);
            const int victim = processes_.leader();
            if (victim < 0) continue;
            std::this_thread::sleep_for(std::chrono::microseconds(random_() % 5000));
            processes_.signal(victim, signal);
            if (processes_.leader() == victim) return victim;
            if (signal == SIGKILL) {
                processes_.wait_end(victim);
                processes_.start(victim, kServer);
            } else {
                processes_.signal(victim, SIGCONT);
            }
        }
    }
    void await_writes(std::size_t more) {
        const auto wanted = load_->acknowledged() + more;
        wait_for([&] { return load_->acknowledged() >= wanted; }, "nobody writes");
    }
    template <class Condition>
    void wait_for(Condition condition, const char* complaint) {
        const bool came = await([&] { return !load_->complaint().empty() || condition(); }, kMaxWait);
        if (!load_->complaint().empty()) throw std::runtime_error(load_->complaint());
        if (!came) throw std::runtime_error(complaint);
    }

    std::mt19937_64 random_;
    zkrecipes::testenv::RawClient observer_;
    KeyValueProcesses processes_;
    std::unique_ptr<KeyValueLoad> load_;  // ends before the processes
};

void require_empty(const std::string& complaint) {
    if (!complaint.empty()) throw std::runtime_error(complaint);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // the clients' connections
    const int faults = argc > 1 ? std::atoi(argv[1]) : 50;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}();
    const int servers = argc > 3 ? std::atoi(argv[3]) : 1;
    if (faults <= 0 || servers <= 0) {
        std::fprintf(stderr, "usage: %s [FAULTS [SEED [SERVERS]]]\n", argv[0]);
        return 64;
    }
    int done = 0;
    try {
        const Servers ensemble(servers);
        const auto lost = Trial(ensemble, seed).stop_at_the_worst_moment(false);
        if (lost.empty()) throw std::runtime_error("the control without a guard lost nothing: this trial is blind");
        require_empty(Trial(ensemble, seed).stop_at_the_worst_moment(true));

        Trial trial(ensemble, seed);
        trial.start();
        const auto begun = std::chrono::steady_clock::now();
        for (; done < faults; ++done) done % 2 == 0 ? trial.kill_the_leader() : trial.freeze_the_leader();
        require_empty(trial.finish());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        std::printf(
            "%d leaders killed or frozen, %zu writes acknowledged, all there, none twice, %.0f s (seed %llu)\n"
            "without its guard: %s\n",
            done, trial.acknowledged(), took.count(), static_cast<unsigned long long>(seed), lost.c_str());
        return 0;
    } catch (const zkrecipes::testenv::MissingDependency& error) {
        std::fprintf(stderr, "key_value_trial: %s\n", error.what());
        return 77;  // for ctest: skipped
    } catch (const std::exception& error) {
        std::fprintf(stderr, "key_value_trial: fault %d (seed %llu): %s\n", done, static_cast<unsigned long long>(seed),
                     error.what());
        return 1;
    }
}
