// The servers' tick on trial: a session timeout of less than two ticks, and a holder whose server is cut off right
// before the leader ends its session. Whose command runs beside that of the next holder?
//
// Three servers with tickTime=10000 and minSessionTimeout=1000. The leader ends sessions at multiples of the tick on
// CLOCK_MONOTONIC, and pings the followers every half tick. The leader is stopped for a while, so that the pings come
// right behind such a multiple; the holders connect to a follower between a ping and the moment 3 s before the next
// multiple, and the follower is cut off 0.3 s before that.
//
// $ZKLOCK_TICK_TRIALS: how many trials that go as planned; default: one. A few more, if the control has not overlapped.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "support/zk_server_test.hpp"
#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kTick = 10s;
constexpr milliseconds kTimeout = 3s;

/// Milliseconds of the clock by which the servers count.
milliseconds server_time() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return milliseconds(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
}

/// The trial is about moments.
void wait_until(milliseconds time) { std::this_thread::sleep_for(time - server_time()); }

/// One way to use zklock there, and what came of it.
struct Arm {
    const char* name;
    std::vector<std::string> settings;
    bool may_overlap = false;
    int valid = 0, overlaps = 0, warned = 0;
    int longest_ms = 0;
};

class TickTrial : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }

    static testenv::EnsembleOptions servers(const std::string& words) {
        testenv::EnsembleOptions options;
        options.gated_links = true;
        options.server.tick_time = kTick;
        options.server.init_limit = 2;  // so many ticks a member waits for followers that it will never have
        options.server.min_session_timeout = 1s;
        options.server.config_lines = {"4lw.commands.whitelist=" + words};
        return options;
    }

    void run(testenv::ZkEnsemble& ensemble, std::vector<Arm>& arms) {
        const char* const wanted = std::getenv("ZKLOCK_TICK_TRIALS");
        const int trials = wanted ? std::atoi(wanted) : 1;
        const int most = trials + 8;
        const auto proven = [&] {
            return std::all_of(arms.begin(), arms.end(), [&](const Arm& arm) {
                return arm.valid >= trials && (!arm.may_overlap || arm.overlaps > 0);
            });
        };
        for (int trial = 0; trial < most && !proven(); ++trial) once(ensemble, arms, trial);
        std::printf("%-28s valid  overlaps  longest, ms  warned\n", "");
        for (const Arm& arm : arms) {
            std::printf("%-28s %5d  %8d  %11d  %6d\n", arm.name, arm.valid, arm.overlaps, arm.longest_ms, arm.warned);
            EXPECT_GT(arm.valid, 0) << arm.name << ": no trial went as planned";
            if (arm.may_overlap) {
                EXPECT_GT(arm.overlaps, 0) << arm.name << ": a trial that finds no overlap proves nothing";
            } else {
                EXPECT_EQ(arm.overlaps, 0) << arm.name;
            }
        }
    }

private:
    using Processes = std::vector<std::unique_ptr<ZklockProcess>>;

    /// One trial with its own locks and files.
    struct Stage {
        testenv::ZkEnsemble& ensemble;
        const int number, leader, follower;
        const testenv::Scratch scratch{};
        std::string file(std::size_t arm, const char* what) const {
            return scratch / (std::string(what) + std::to_string(arm));
        }
        std::string lock(std::size_t arm) const {
            return "/trial-" + std::to_string(number) + "-" + std::to_string(arm);
        }
    };

    static Processes start_holders(const Stage& stage, const std::vector<Arm>& arms) {
        Processes holders;
        for (std::size_t i = 0; i < arms.size(); ++i) {
            std::vector<std::string> arguments = {"--connect", stage.ensemble.connect_string(stage.follower),
                                                  "--session-timeout", std::to_string(kTimeout.count()) + "ms"};
            arguments.insert(arguments.end(), arms[i].settings.begin(), arms[i].settings.end());
            arguments.insert(arguments.end(), {stage.lock(i), "-c",
                                               "exec 9>" + stage.file(i, "alive") + "; flock 9; touch " +
                                                   stage.file(i, "held") + "; exec sleep 300"});
            holders.push_back(std::make_unique<ZklockProcess>(arguments));
        }
        return holders;
    }

    /// Its command measures how long it runs beside that of the former holder.
    static Processes start_next(const Stage& stage, std::size_t arms) {
        Processes next;
        for (std::size_t i = 0; i < arms; ++i) {
            const std::string alive = stage.file(i, "alive");
            const std::string measure = "flock -n " + alive + " true || { a=$(date +%s%N); flock " + alive +
                                        " true; b=$(date +%s%N); echo $(((b - a) / 1000000)) >" +
                                        stage.file(i, "overlap") + "; }";
            next.push_back(std::make_unique<ZklockProcess>(std::vector<std::string>{
                "--connect", stage.ensemble.connect_string(stage.leader), "--session-timeout", "30s", stage.lock(i),
                "-c", "touch " + stage.file(i, "granted") + "; " + measure}));
        }
        return next;
    }

    static void judge(const Stage& stage, std::vector<Arm>& arms, Processes& next, milliseconds end) {
        for (std::size_t i = 0; i < next.size(); ++i) {
            Arm& arm = arms[i];
            const bool granted = await([&] { return exists(stage.file(i, "granted")); });
            if (granted && server_time() < end + 2s) ++arm.valid;
            EXPECT_EQ(next[i]->wait(), 0) << next[i]->err();
            if (!exists(stage.file(i, "overlap"))) continue;
            ++arm.overlaps;
            arm.longest_ms = std::max(arm.longest_ms, std::atoi(read_file(stage.file(i, "overlap")).c_str()));
        }
    }

    static void once(testenv::ZkEnsemble& ensemble, std::vector<Arm>& arms, int trial) {
        const int leader = ensemble.wait_quorum();
        const Stage stage{ensemble, trial, leader, ensemble.follower()};
        // Sessions end at this time. The leader pings the followers 9.7 s and 4.7 s before it.
        const milliseconds end = (server_time() + 16s) / kTick * kTick + kTick;
        wait_until(end - 15'500ms);
        ensemble.freeze(leader);
        wait_until(end - 9700ms);
        ensemble.thaw(leader);
        wait_until(end - 3900ms);
        Processes holders = start_holders(stage, arms);
        const auto all_hold = [&] {
            for (std::size_t i = 0; i < arms.size(); ++i) {
                if (!exists(stage.file(i, "held"))) return false;
            }
            return true;
        };
        const bool in_time = await(all_hold, end - 3050ms - server_time());
        Processes next = start_next(stage, in_time ? arms.size() : 0);
        wait_until(end - 300ms);
        ensemble.isolate(stage.follower);
        judge(stage, arms, next, end);
        for (std::size_t i = 0; i < holders.size(); ++i) {
            holders[i]->signal(SIGTERM);
            holders[i]->wait();
            if (holders[i]->err().find("has a tickTime of 10000 ms") != std::string::npos) ++arms[i].warned;
        }
        ensemble.heal(stage.follower);
        ensemble.restart(stage.follower);
    }
};

TEST_F(TickTrial, WhereServersTellTheirTickNothingOverlaps) {
    testenv::ZkEnsemble ensemble(servers("*"));
    std::vector<Arm> arms = {{"--server-tick 10s", {"--server-tick", "10s"}},
                             {"no setting", {}},
                             {"a wrong one: --server-tick 1.5s", {"--server-tick", "1.5s"}}};
    run(ensemble, arms);
    EXPECT_EQ(arms[0].warned, 0);
    EXPECT_GE(arms[1].warned, arms[1].valid);
    EXPECT_GE(arms[2].warned, arms[2].valid);
}

TEST_F(TickTrial, WhereServersDoNotTellItTheSettingProtects) {
    testenv::ZkEnsemble ensemble(servers("srvr,mntr"));
    std::vector<Arm> arms = {{"--server-tick 10s", {"--server-tick", "10s"}}, {"control: no setting", {}, true}};
    run(ensemble, arms);
    EXPECT_EQ(arms[1].warned, 0);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
