// Server failover and rolling restart of a three-server ensemble with the stock tick, init and sync limits, under
// clients that are processes of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <zkrecipes/testenv/error.hpp>

#include "chaos/actor_process.hpp"
#include "chaos/board.hpp"
#include "chaos/cluster.hpp"
#include "chaos/judge.hpp"
#include "chaos/queue_observer.hpp"

namespace zkrecipes::chaos {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

constexpr std::chrono::milliseconds kMaxWait = 60s;

class FailoverTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        std::signal(SIGPIPE, SIG_IGN);  // an actor that has ended is noticed by what it did not say
        try {
            cluster_ = new Cluster(Cluster::Links::plain);
        } catch (const testenv::MissingDependency& error) {
            missing_ = error.what();
        }
    }
    static void TearDownTestSuite() {
        delete cluster_;
        cluster_ = nullptr;
    }

    FailoverTest() : board_(Board::create()) {
        actors_.reserve(32);  // references into it are handed out
    }

    void SetUp() override {
        if (cluster_ == nullptr) GTEST_SKIP() << missing_;
        static int number = 0;
        dir_ = "/failover/" + std::to_string(++number);
        leader_ = cluster_->wait_whole();
        observer_ = std::make_unique<QueueObserver>(cluster_->servers());
    }

    ActorProcess& start(const std::string& role, int timeout_ms, int first_lock, int locks) {
        const auto actor = std::to_string(actors_.size());
        actors_.emplace_back(board_, std::vector<std::string>{
                                         "role=" + role, "hosts=" + cluster_->all_servers(), "dir=" + dir_,
                                         "timeout-ms=" + std::to_string(timeout_ms), "actor=" + actor,
                                         "first-lock=" + std::to_string(first_lock), "locks=" + std::to_string(locks)});
        return actors_.back();
    }

    // A client that knows all servers, so that it has somewhere to go, and is connected to the leader, or to another.
    // Which one it gets is chance.
    ActorProcess& start_client(int timeout_ms, int first_lock, int locks, bool on_leader) {
        for (int attempt = 0; attempt < 30; ++attempt) {
            auto& client = start("client", timeout_ms, first_lock, locks);
            const auto connected = client.expect("connected", kMaxWait);
            const bool is_on_leader = connected.find(cluster_->server(leader_)) != std::string::npos;
            if (is_on_leader == on_leader) return client;
            EXPECT_EQ(client.quit(kMaxWait), 0);
            actors_.pop_back();
        }
        throw std::runtime_error("no client was connected to the server that the test needs");
    }

    // What the outsider and the board say of these locks; every queue must be empty by now.
    void expect_clean(int locks) {
        // First: an eye whose server has just come back still has to see which nodes are gone.
        for (int lock = 0; lock < locks; ++lock) {
            EXPECT_TRUE(await([&] { return observer_->queue_length(lock) == 0; }, kMaxWait))
                << "nodes are left behind in the queue of lock " << lock;
        }
        auto history = board_.history(0, locks);
        history.sightings = observer_->sightings(0, locks);
        // While a server is down the eye on it sees nothing, so what only that eye has seen may seem to stay for long.
        JudgeOptions options;
        options.observer_lag = from_ms(30'000);
        const auto verdict = judge(history, options);
        for (const auto& finding : verdict.findings) {
            ADD_FAILURE() << to_string(finding.violation) << ": lock " << finding.lock << ": " << finding.text;
        }
    }

    static Cluster* cluster_;
    static std::string missing_;
    Board board_;
    std::string dir_;
    int leader_ = 0;
    std::unique_ptr<QueueObserver> observer_;
    std::vector<ActorProcess> actors_;
};

Cluster* FailoverTest::cluster_ = nullptr;
std::string FailoverTest::missing_;

// The session timeout is 12 s, so a hold is sure for about 8 s after the last committed heartbeat. A new leader serves
// after less than one second, on a busy machine after some.
TEST_F(FailoverTest, HoldsSurviveTheDeathOfTheLeaderWhetherConnectedToItOrNot) {
    constexpr int kLocks = 5;  // of each holder
    constexpr int kTimeout = 12'000;
    observer_->watch(dir_, 0, 2 * kLocks);
    auto& on_leader = start_client(kTimeout, 0, kLocks, true);
    auto& on_follower = start_client(kTimeout, kLocks, kLocks, false);
    for (auto* holder : {&on_leader, &on_follower}) {
        holder->send("acquire");
        for (int i = 0; i < kLocks; ++i) holder->expect("granted", kMaxWait);
    }
    auto& waiter = start("client", kTimeout, 0, 2 * kLocks);
    waiter.expect("connected", kMaxWait);
    waiter.send("acquire");
    for (int lock = 0; lock < 2 * kLocks; ++lock) {
        ASSERT_TRUE(await([&] { return observer_->queue_length(lock) == 2; }, kMaxWait));
    }

    cluster_->kill(leader_);
    cluster_->start(leader_);
    cluster_->wait_whole();

    // A hold without any heartbeat after the kill would be over after the lease, one without session after the timeout.
    const Stamp until = stamp_now() + from_ms(kTimeout + 2000);
    while (stamp_now() < until) {
        const auto holds = board_.holds();
        ASSERT_THAT(holds, SizeIs(2 * kLocks)) << "somebody else was granted a lock";
        for (const auto& hold : holds) {
            ASSERT_EQ(hold.first_false_at, 0);
            ASSERT_EQ(hold.lost_at, 0);
        }
        std::this_thread::sleep_for(20ms);
    }
    on_leader.send("release");
    on_follower.send("release");
    for (int i = 0; i < 2 * kLocks; ++i) waiter.expect("granted", kMaxWait);
    for (auto& actor : actors_) EXPECT_EQ(actor.quit(kMaxWait), 0);
    expect_clean(2 * kLocks);
}

TEST_F(FailoverTest, TwentyProcessesContendThroughFailoverAndRollingRestart) {
    constexpr int kProcesses = 20;
    constexpr int kLocks = 3;
    observer_->watch(dir_, 0, kLocks);
    for (int i = 0; i < kProcesses; ++i) start("worker", 6000, 0, kLocks);
    for (auto& worker : actors_) worker.expect("connected", kMaxWait);
    const auto grants = [this] { return board_.holds().size(); };
    const auto progress = [&](const char* after) {
        const auto before = grants();
        // An election that fails takes the init limit, 20 s, before the next one; on a busy machine one may.
        ASSERT_TRUE(await([&] { return grants() >= before + 2 * kProcesses; }, 5 * kMaxWait))
            << "no progress after " << after << ", " << grants() << " grants so far; the servers:\n"
            << cluster_->log_tails();
    };
    progress("the start");

    cluster_->kill(leader_);
    progress("the death of the leader");
    cluster_->start(leader_);
    leader_ = cluster_->wait_whole();
    progress("its return");
    for (int i = 0; i < Cluster::kSize; ++i) {
        cluster_->stop(i);
        progress("a server was stopped");
        cluster_->start(i);
        cluster_->wait_whole();
        progress("it was started again");
    }

    const auto healed = grants();
    for (auto& worker : actors_) worker.send("finish");
    for (std::size_t i = 0; i < actors_.size(); ++i) {
        actors_[i].expect("done", 2 * kMaxWait);
        EXPECT_EQ(actors_[i].wait(kMaxWait), 0) << "worker " << i;
    }
    EXPECT_GE(grants(), healed + kProcesses * kLocks);  // each took each lock once more
    std::map<int, int> cycles;
    for (const auto& hold : board_.holds()) ++cycles[hold.actor];
    EXPECT_EQ(cycles.size(), static_cast<std::size_t>(kProcesses));
    expect_clean(kLocks);
    RecordProperty("grants", static_cast<int>(grants()));
    std::printf("%zu grants to %d processes\n", grants(), kProcesses);
}

}  // namespace
}  // namespace zkrecipes::chaos
