#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <tuple>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

// Whatever happens to a lock that is held alone happens to a share in the same way.
constexpr const char* kModes[] = {"-x", "-s"};

class ZklockFaultTest : public FaultyWorld, public testing::WithParamInterface<const char*> {
protected:
    ZklockFaultTest() { mode_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Modes, ZklockFaultTest, testing::ValuesIn(kModes));

class ZklockPartitionTest : public FaultyWorld, public testing::WithParamInterface<std::tuple<const char*, int>> {
protected:
    ZklockPartitionTest() { mode_ = std::get<0>(GetParam()); }
    Kind kind() const { return static_cast<Kind>(std::get<1>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(Commands, ZklockPartitionTest,
                         testing::Combine(testing::ValuesIn(kModes), testing::Values(0, 1, 2)));

TEST_P(ZklockPartitionTest, TheCommandIsDeadBeforeAnotherHoldsTheLock) {
    const auto holder = hold({}, kind());
    const auto next = rival();
    gate_->blackhole();
    EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(holder->err(), testing::ContainsRegex("lost " + lock() + "(.|\n)*did not confirm"))
        << "the cause first";
    EXPECT_EQ(last_reason(), "no server confirmed the lock in time");
    const auto stopping = events_named(scratch_ / "events", "stopping");
    EXPECT_EQ(stopping.at(0)["signal"], SIGTERM);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "lost");
}

TEST_P(ZklockPartitionTest, TheCommandIsDeadBeforeAnotherHoldsTheLockWhileZklockIsStopped) {
    const auto holder = hold({}, kind());
    const auto next = rival();
    holder->signal(SIGSTOP);
    EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
    holder->signal(SIGCONT);
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(last_reason(), testing::ContainsRegex("^zklock did not run for [0-9.]+s,"));
    EXPECT_THAT(holder->err(), HasSubstr(last_reason()));
}

TEST_P(ZklockFaultTest, AHoldThatWasStoppedForTooLongSaysSo) {
    ZklockProcess::Setup setup;
    setup.keep_input = true;
    std::vector<std::string> arguments =
        with({mode_, "--events", scratch_ / "events", lock()}, gate_->connect_string());
    arguments.insert(arguments.begin(), "hold");
    ZklockProcess holder(arguments, setup);
    ASSERT_TRUE(await([&] { return !holder.out().empty(); }));
    const auto next = next_one("true");
    holder.signal(SIGSTOP);
    EXPECT_EQ(next->wait(), 0);
    holder.signal(SIGCONT);
    EXPECT_EQ(holder.wait(), 79) << holder.err();
    EXPECT_THAT(last_reason(), testing::ContainsRegex("^zklock did not run for [0-9.]+s,"));
}

TEST_P(ZklockFaultTest, AfterPkillByNameOrArgumentsTheCommandIsDeadBeforeAnotherHoldsTheLock) {
    for (const char* const signal : {"-KILL", "-STOP"}) {
        for (const char* const by : {"zklock", "-f 'zklock .*--session-timeout'"}) {
            const auto holder = hold({}, Kind::with_stubborn_grandchild);
            const auto next = rival();
            // Of all that bear this name only what zklock has started, and zklock itself.
            const std::string pkill =
                std::string("pkill ") + signal + " -P " + std::to_string(holder->pid()) + " " + by;
            EXPECT_NE(std::system(pkill.c_str()), 0) << "another process than zklock is hit: " << pkill;
            holder->signal(std::string(signal) == "-KILL" ? SIGKILL : SIGSTOP);
            EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
            holder->signal(SIGCONT);
            EXPECT_EQ(holder->wait(), std::string(signal) == "-KILL" ? -SIGKILL : 79);
            for (const char* const file : {"held", "ticks", "events"}) ::unlink((scratch_ / file).c_str());
        }
    }
}

TEST_P(ZklockFaultTest, AfterAFreezeOfTheWholeMachineTheCommandIsKilledAtOnce) {
    const auto holder = hold({});
    // As a frozen machine: zklock, its switch and its command all stand still.
    std::vector<pid_t> frozen = {holder->pid()};
    for (std::size_t i = 0; i < frozen.size(); ++i) {
        std::ifstream children("/proc/" + std::to_string(frozen[i]) + "/task/" + std::to_string(frozen[i]) +
                               "/children");
        for (pid_t child = 0; children >> child;) frozen.push_back(child);
    }
    ASSERT_GE(frozen.size(), 3u);
    const auto next = next_one("true");
    for (const pid_t pid : frozen) ::kill(pid, SIGSTOP);
    EXPECT_EQ(next->wait(), 0);
    for (auto pid = frozen.begin(); pid != frozen.end(); ++pid) ::kill(*pid, SIGCONT);
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["child"]["signal"], SIGKILL);
}

TEST_P(ZklockFaultTest, RideSurvivesAShortDisconnect) {
    session_timeout_ = "20s";
    const auto holder = hold({"--on-suspend", "ride"});
    gate_->refuse();
    gate_->reset_all();
    ASSERT_TRUE(await([&] { return !events_named(scratch_ / "events", "suspended").empty(); }));
    EXPECT_GT(events_named(scratch_ / "events", "suspended")[0]["lease_left_ms"], 0);
    gate_->pass();
    EXPECT_TRUE(await([&] { return !events_named(scratch_ / "events", "resumed").empty(); }));
    const std::size_t before = ticks();
    EXPECT_TRUE(await([&] { return ticks() > before; }));
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 128 + SIGTERM);
}

TEST_P(ZklockFaultTest, StopActsAtTheFirstDisconnect) {
    session_timeout_ = "20s";
    const auto holder = hold({"--on-suspend", "stop", "-k", "300ms"});
    gate_->refuse();
    gate_->reset_all();
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_EQ(last_reason(), "the connection broke");
}

TEST_P(ZklockFaultTest, PauseFreezesTheCommandUntilTheLockIsSure) {
    session_timeout_ = "20s";
    const auto holder = hold({"--on-suspend", "pause"});
    gate_->refuse();
    gate_->reset_all();
    ASSERT_TRUE(await([&] { return !events_named(scratch_ / "events", "suspended").empty(); }));
    // Whatever it wrote was written before the stop took effect; then nothing more.
    std::size_t last = 0;
    ASSERT_TRUE(await([&] {
        const std::size_t before = std::exchange(last, ticks());
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return ticks() == last && before == last;
    }));
    gate_->pass();
    EXPECT_TRUE(await([&] { return ticks() > last; }));
    EXPECT_EQ(events_named(scratch_ / "events", "resumed").size(), 1u);
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 128 + SIGTERM);
}

TEST_P(ZklockFaultTest, PauseKillsAtTheDeadline) {
    const auto holder = hold({"--on-suspend", "pause"}, Kind::with_stubborn_grandchild);
    const auto next = rival();
    gate_->refuse();
    gate_->reset_all();
    EXPECT_EQ(next->wait(), 0);
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["child"]["signal"], SIGKILL);
}

TEST_P(ZklockFaultTest, AnExpiredSessionStopsTheCommand) {
    session_timeout_ = "20s";
    const auto holder = hold({"-k", "300ms"}, Kind::with_stubborn_grandchild);
    gate_->expire(gate_->sessions().back());
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_THAT(last_reason(), HasSubstr("expired"));
}

TEST_P(ZklockFaultTest, BreakStopsTheCommandAndLetsTheNextOneIn) {
    session_timeout_ = "20s";
    const auto holder = hold({"--lost-exit-code", "99"});
    const std::string node = contenders().at(0);
    // A hold shorter than half a second is not watched; ticks show that it has got that old.
    ASSERT_TRUE(await([&] { return ticks() > 80; }));
    const auto break_with = [&](std::vector<std::string> options) {
        options.insert(options.begin(), {"break", "--connect", connect_string(), lock()});
        return zklock(options);
    };
    const Outcome refused = break_with({"--holder"});
    EXPECT_EQ(refused.code, 64);
    EXPECT_THAT(refused.err, HasSubstr("use --yes"));
    EXPECT_THAT(refused.out, HasSubstr(node)) << "it says whom it would have hit";
    EXPECT_EQ(break_with({"--node", "nobody", "--yes"}).code, 65);
    EXPECT_EQ(queue_length(), 1u);
    const Outcome broken = break_with({"--holder", "--yes"});
    EXPECT_EQ(broken.code, 0) << broken.err;
    EXPECT_THAT(broken.out, HasSubstr(node));
    EXPECT_EQ(holder->wait(), 99);
    EXPECT_THAT(last_reason(), HasSubstr("is gone"));
    EXPECT_EQ(queue_length(), 0u);
}

TEST_P(ZklockFaultTest, ABreakWithoutAnAnswerSaysThatTheNodeMayBeGone) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    const testenv::Fault fault = gate_->hold_reply(testenv::Match::op(testenv::Opcode::remove));
    ZklockProcess breaking({"break", "--holder", "--yes", "--connect", gate_->connect_string(), lock()});
    ASSERT_TRUE(fault.wait_reached());
    gate_->refuse();
    fault.drop();
    EXPECT_EQ(breaking.wait(), 69);
    EXPECT_THAT(breaking.err(), HasSubstr("no ZooKeeper server said whether it was removed"));
    EXPECT_TRUE(await([&] { return queue_length() == 0; }));
}

TEST_P(ZklockFaultTest, AWaiterKeepsItsPlaceThroughABrokenConnection) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    ZklockProcess waiter(with({mode_, lock(), "-c", "echo $ZKLOCK_NODE"}, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const auto before = contenders();
    gate_->refuse();
    gate_->reset_all();
    holder->signal(SIGTERM);
    holder->wait();
    gate_->pass();
    EXPECT_EQ(waiter.wait(), 0);
    const std::string node = waiter.out().substr(lock().size() + 1, waiter.out().size() - lock().size() - 2);
    EXPECT_THAT(before, testing::Contains(node)) << "it ran as " << waiter.out();
    EXPECT_EQ(queue_length(), 0u);
}

TEST_P(ZklockFaultTest, AWaiterWhoseSessionExpiresGoesToTheBackOfTheQueue) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    ZklockProcess waiter(
        with({mode_, lock(), "-c", "echo expired >>" + (scratch_ / "order")}, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const auto later = start({lock(), "-c", "echo later >>" + (scratch_ / "order")});
    ASSERT_TRUE(await([&] { return queue_length() == 3; }));
    const auto before = contenders();
    gate_->expire(gate_->sessions().back());
    ASSERT_TRUE(await([&] {
        const auto now = contenders();
        return now.size() == 3 &&
               std::set<std::string>(now.begin(), now.end()) != std::set<std::string>(before.begin(), before.end());
    }));
    EXPECT_TRUE(await([&] { return waiter.err().find("tail of the queue") != std::string::npos; }));
    holder->signal(SIGTERM);
    EXPECT_EQ(waiter.wait(), 0);
    EXPECT_EQ(later->wait(), 0);
    EXPECT_EQ(read_file(scratch_ / "order"), "later\nexpired\n");
}

TEST_P(ZklockFaultTest, AWaitThatEndsDisconnectedIs69) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    ZklockProcess waiter(with({mode_, "-w", "8s", lock(), "true"}, gate_->connect_string()));
    ZklockProcess looking({"wait", "-w", "8s", "--connect", gate_->connect_string(), lock()});
    ASSERT_TRUE(await([&] { return queue_length() == 2 && gate_->sessions().size() == 2; }));
    gate_->refuse();
    gate_->reset_all();
    EXPECT_EQ(waiter.wait(), 69) << waiter.err();
    EXPECT_EQ(looking.wait(), 69) << looking.err();
}

TEST_P(ZklockFaultTest, ATryThatLosesContactIs69AndNot75) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    const testenv::Fault fault = gate_->hold_reply(testenv::Match::any().path(lock()));
    ZklockProcess trying(with({mode_, "-n", lock(), "true"}, gate_->connect_string()));
    ASSERT_TRUE(fault.wait_reached());
    gate_->refuse();
    fault.drop();
    EXPECT_EQ(trying.wait(), 69) << trying.err();
}

TEST_P(ZklockFaultTest, AWaitForAFreeLockThatNoServerAnswersIs69AndNot75) {
    const auto held = gate_->hold_reply(testenv::Match::any().path(lock()));
    const Outcome outcome =
        zklock({"wait", "-w", "1s", "--connect", gate_->connect_string(), "--session-timeout", "60", lock()});
    EXPECT_EQ(outcome.code, 69) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("did not answer in time"));
}

TEST_P(ZklockFaultTest, ATermWhileWaitingDisconnectedEndsItSoon) {
    session_timeout_ = "20s";
    const auto holder = hold_with_command();
    ZklockProcess waiter(with({mode_, lock(), "true"}, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    gate_->refuse();
    gate_->reset_all();
    waiter.signal(SIGINT);
    EXPECT_EQ(waiter.wait(), -SIGINT);
}

TEST_P(ZklockFaultTest, AReleaseThatTheServersDoNotConfirmIsSaidAndChangesNoExitCode) {
    session_timeout_ = "20s";
    ZklockProcess holder(with(
        {mode_, "--events", scratch_ / "events", "--result", scratch_ / "result", lock(), "-c",
         "touch " + (scratch_ / "held") + "; while [ ! -e " + (scratch_ / "go") + " ]; do sleep 0.05; done; exit 5"},
        gate_->connect_string()));
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); }));
    gate_->refuse();
    gate_->reset_all();
    ASSERT_TRUE(await([&] { return !events_named(scratch_ / "events", "suspended").empty(); }));
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder.wait(), 5);
    EXPECT_THAT(holder.err(), HasSubstr("it is free at the latest 20s after a majority of the servers works"));
    EXPECT_EQ(events_named(scratch_ / "events", "released").at(0)["confirmed"], false);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["confirmed"], false);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
