#include <zkrecipes/testenv/gate.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <optional>
#include <thread>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/sessions.hpp>

#include "support/zk_server_test.hpp"
#include "testenv/src/net.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using testenv::CreateMode;
using testenv::Direction;
using testenv::Fault;
using testenv::Gate;
using testenv::Match;
using testenv::Opcode;
using testenv::RawClient;
using testenv::RawClientOptions;
using testenv::RawError;
using testenv::Record;
using testenv::Side;

/// A gate in front of the shared server, a client behind the gate and an observer beside it.
class GateTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        ZKRECIPES_NEEDS_OWN_SERVER();
        ASSERT_TRUE(await([&] { return server().connection_count() == 0; })) << "connections of an earlier test";
        gate_.emplace(server().endpoint());
        observer_.emplace(server().connect_string());
        observer_->make_path(root());
    }
    void TearDown() override {
        if (HasFailure() && gate_) {
            std::cerr << "--- trace:\n" << to_string(gate_->trace());
        }
        ZkServerTest::TearDown();
    }

    Gate& gate() { return *gate_; }
    RawClient& observer() { return *observer_; }
    RawClient connect(std::chrono::milliseconds session_timeout = 60s, bool reconnect = false) {
        RawClientOptions options;
        options.session_timeout = session_timeout;
        options.reconnect = reconnect;
        return RawClient(gate_->connect_string(), options);
    }
    static int error_of(std::future<RawClient::Reply>& answer) {
        if (answer.wait_for(kMaxWait) != std::future_status::ready) {
            return 1;  // not an error that ZooKeeper has
        }
        return answer.get().error;
    }
    static bool unanswered(std::future<RawClient::Reply>& answer) {
        return answer.wait_for(0s) != std::future_status::ready;
    }

    std::string create(const std::string& name) const { return RawClient::create_body(path(name), "", 0); }
    std::string look(const std::string& name) const { return RawClient::path_watch_body(path(name), false); }

private:
    std::optional<Gate> gate_;
    std::optional<RawClient> observer_;
};

TEST_F(GateTest, PassesRequestsAndCountsThemByOpcodeAndSession) {
    auto first = connect();
    auto second = connect();
    first.create(path("a"));
    EXPECT_TRUE(first.exists(path("a")));
    EXPECT_FALSE(second.get(path("b")));
    EXPECT_EQ(gate().counts()[Opcode::create], 1U);
    EXPECT_EQ(gate().counts(first.session_id())[Opcode::exists], 1U);
    EXPECT_EQ(gate().counts(first.session_id()).total(), 2U);
    EXPECT_EQ(gate().counts(second.session_id()).total(), 1U);
    EXPECT_EQ(gate().counts().writes(), 1U);
    EXPECT_EQ(gate().counts().reads(), 2U);
    EXPECT_EQ(gate().connection_count(), 2);
    EXPECT_EQ(gate().sessions(), (std::vector{first.session_id(), second.session_id()}));
    gate().reset_trace();
    EXPECT_EQ(gate().counts().total(), 0U);
    EXPECT_TRUE(gate().trace().empty());
}

TEST_F(GateTest, TraceTellsRequestsRepliesAndEventsInOrder) {
    auto client = connect();
    gate().reset_trace();
    EXPECT_FALSE(client.exists(path("a"), true));
    observer().create(path("a"));
    ASSERT_TRUE(client.next_event());
    std::vector<std::string> seen;
    for (const auto& record : gate().trace(client.session_id())) {
        if (record.opcode != Opcode::ping) {
            seen.push_back(std::to_string(static_cast<int>(record.kind)) + " " + to_string(record.opcode) + " " +
                           std::to_string(record.error) + " " + record.path);
        }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"1 exists 0 " + path("a"), "2 exists -101 " + path("a"),
                                              "3 notification 0 " + path("a")}));
}

TEST_F(GateTest, TraceNamesThePartsOfAMulti) {
    auto client = connect();
    observer().create(path("a"));
    // A check of the root and a delete of the node, as on the wire.
    std::string body;
    const auto part = [&](Opcode opcode, const std::string& node) {
        const auto number = [&](std::uint32_t value) {
            for (int shift = 24; shift >= 0; shift -= 8) {
                body.push_back(static_cast<char>(value >> shift));
            }
        };
        number(static_cast<std::uint32_t>(opcode));
        body.push_back(node.empty() ? 1 : 0);
        number(0xffffffff);
        if (!node.empty()) {
            number(static_cast<std::uint32_t>(node.size()));
            body += node;
            number(0xffffffff);
        }
    };
    part(Opcode::check, root());
    part(Opcode::remove, path("a"));
    part(static_cast<Opcode>(-1), "");
    EXPECT_EQ(client.request(Opcode::multi, body).error, 0);
    EXPECT_FALSE(observer().exists(path("a")));
    const auto trace = gate().trace();
    const auto found =
        std::find_if(trace.begin(), trace.end(), [](const Record& record) { return record.opcode == Opcode::multi; });
    ASSERT_NE(found, trace.end());
    ASSERT_EQ(found->parts.size(), 2U);
    EXPECT_EQ(found->parts[0].opcode, Opcode::check);
    EXPECT_EQ(found->parts[1].opcode, Opcode::remove);
    EXPECT_EQ(found->parts[1].path, path("a"));
}

TEST_F(GateTest, PassesFourLetterWords) {
    const auto answer =
        testenv::internal::four_letter_word(gate().endpoint(), "srvr", std::chrono::steady_clock::now() + kMaxWait);
    ASSERT_TRUE(answer);
    EXPECT_NE(answer->find("Mode: standalone"), std::string::npos);
    EXPECT_TRUE(await([&] { return gate().connection_count() == 0; }));
}

TEST_F(GateTest, BlackHoleToTheServerKeepsRequestsUntilThePassage) {
    auto client = connect();
    gate().blackhole(Direction::to_server);
    auto answer = client.send(Opcode::create, create("a"));
    observer().sync(root());
    EXPECT_FALSE(observer().exists(path("a")));
    EXPECT_TRUE(unanswered(answer));
    gate().pass();
    EXPECT_EQ(error_of(answer), 0);
    EXPECT_TRUE(observer().exists(path("a")));
}

TEST_F(GateTest, BlackHoleToTheClientLetsRequestsBeExecuted) {
    auto client = connect();
    gate().blackhole(Direction::to_client);
    auto answer = client.send(Opcode::create, create("a"));
    EXPECT_TRUE(await([&] { return observer().exists(path("a")).has_value(); }));
    EXPECT_TRUE(unanswered(answer));
    gate().pass();
    EXPECT_EQ(error_of(answer), 0);
}

TEST_F(GateTest, BlackHoleHidesThatAClientHasGone) {
    auto client = connect(60s);
    client.create(path("mine"), "", CreateMode::ephemeral);
    const int before = server().connection_count();
    gate().blackhole();
    client.abandon();
    EXPECT_EQ(server().connection_count(), before);
    EXPECT_TRUE(observer().exists(path("mine")));
    gate().pass();
    EXPECT_TRUE(await([&] { return server().connection_count() == before - 1; }));
}

TEST_F(GateTest, NewConnectionsIntoABlackHoleHearNothingUntilItIsGone) {
    gate().blackhole();
    auto connecting = std::async(std::launch::async, [&] { return connect().session_id(); });
    EXPECT_TRUE(await([&] { return gate().connection_count() == 1; }));
    EXPECT_EQ(connecting.wait_for(0s), std::future_status::timeout);
    gate().pass();
    EXPECT_NE(connecting.get(), 0);
}

TEST_F(GateTest, ResetEndsAllConnectionsAndWelcomesNewOnes) {
    auto client = connect(60s, true);
    const auto session = client.session_id();
    gate().reset_all();
    EXPECT_TRUE(await([&] { return !client.connected(); }));
    EXPECT_TRUE(client.exists(root()));
    EXPECT_EQ(client.session_id(), session);
}

TEST_F(GateTest, RefusesNewConnectionsAndKeepsTheOldOnes) {
    auto client = connect();
    gate().refuse();
    EXPECT_FALSE(testenv::internal::connect_before(gate().endpoint(), std::chrono::steady_clock::now() + kMaxWait));
    EXPECT_TRUE(client.exists(root()));
    gate().pass();
    EXPECT_TRUE(connect().exists(root()));
}

TEST_F(GateTest, DelaysEachDirection) {
    auto client = connect();
    for (const auto direction : {Direction::to_server, Direction::to_client, Direction::both}) {
        gate().delay(direction, 50ms);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_TRUE(client.exists(root()));
        EXPECT_GE(std::chrono::steady_clock::now() - begin, direction == Direction::both ? 100ms : 50ms);
        gate().pass();
    }
}

// A delay neither rounds nor collects: of two messages that come within one millisecond, the first leaves on time.
TEST_F(GateTest, DelaysEachMessageByTheSameTime) {
    auto client = connect();
    gate().delay(Direction::to_client, 5ms);
    auto pause = 800us;
    int on_time = 0;  // this thread, where the first message was not
    const auto first_is_on_time = [&] {
        gate().reset_trace();
        const auto begin = std::chrono::steady_clock::now();
        auto first = client.send(Opcode::exists, look("a"));
        const auto until = std::chrono::steady_clock::now() + pause;
        while (std::chrono::steady_clock::now() < until) {
        }
        auto second = client.send(Opcode::exists, look("a"));
        std::this_thread::sleep_until(begin + 5ms);
        const bool punctual = std::chrono::steady_clock::now() < begin + 5'150us;
        EXPECT_EQ(error_of(first), testenv::zk_error::no_node);
        EXPECT_EQ(error_of(second), testenv::zk_error::no_node);
        auto trace = gate().trace();
        std::erase_if(trace, [](const Record& record) { return record.opcode != Opcode::exists; });
        const auto gap = trace.at(1).time - trace.at(0).time;
        const auto delay = trace.at(2).time - trace.at(0).time;
        EXPECT_GE(delay, 5ms);
        if (gap >= 950us && pause > 50us) pause -= 50us;  // sending takes its time, too
        if (gap <= 750us) pause += 50us;
        if (gap <= 750us || gap >= 950us) return false;
        if (delay < gap + 4'950us) return true;
        on_time += punctual ? 1 : 0;
        return false;
    };
    const bool done = await(first_is_on_time);
    if (!done && on_time < 50) GTEST_SKIP() << "this machine was too busy to tell: " << on_time;
    EXPECT_TRUE(done) << "this thread was woken on time as often as " << on_time << " times";
}

TEST_F(GateTest, CountsRoundTrips) {
    auto client = connect();
    gate().reset_trace();
    const Fault fault = gate().hold_reply(Match::op(Opcode::create));
    auto first = client.send(Opcode::create, create("a"));
    auto second = client.send(Opcode::exists, look("a"));
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::exists] == 1U; }));
    ASSERT_TRUE(fault.wait_reached(kMaxWait));
    fault.release();
    EXPECT_EQ(error_of(first), 0);
    EXPECT_EQ(error_of(second), 0);
    EXPECT_EQ(round_trips(gate().trace(), client.session_id()), 1);
    EXPECT_TRUE(client.remove(path("a")));
    EXPECT_EQ(round_trips(gate().trace(), client.session_id()), 2);
    EXPECT_EQ(round_trips(gate().trace(), client.session_id() + 1), 0);
}

TEST_F(GateTest, HalfOpenTellsOnlyTheServer) {
    auto client = connect(60s);
    const int before = server().connection_count();
    gate().half_open(Side::server);
    EXPECT_TRUE(await([&] { return server().connection_count() == before - 1; }));
    auto answer = client.send(Opcode::create, create("a"));
    observer().sync(root());
    EXPECT_FALSE(observer().exists(path("a")));
    EXPECT_TRUE(client.connected());
    EXPECT_TRUE(unanswered(answer));
    EXPECT_TRUE(connect().exists(root()));
    client.abandon();
}

TEST_F(GateTest, HalfOpenTellsOnlyTheClient) {
    auto client = connect(60s);
    const int before = server().connection_count();
    gate().half_open(Side::client);
    EXPECT_TRUE(await([&] { return !client.connected(); }));
    EXPECT_EQ(server().connection_count(), before);
}

TEST_F(GateTest, CutsBeforeARequestIsExecuted) {
    auto client = connect();
    const Fault fault = gate().cut_before(Match::op(Opcode::create).path("second"));
    auto first = client.send(Opcode::create, create("first"));
    auto second = client.send(Opcode::create, create("second"));
    EXPECT_EQ(error_of(second), testenv::zk_error::connection_loss);
    ASSERT_TRUE(fault.wait_reached(kMaxWait));
    EXPECT_EQ(fault.request().path, path("second"));
    EXPECT_TRUE(await([&] { return observer().exists(path("first")).has_value(); }));
    client.reconnect();
    EXPECT_FALSE(client.exists(path("second")));
    const int first_error = error_of(first);  // its reply may have been on its way
    EXPECT_TRUE(first_error == 0 || first_error == testenv::zk_error::connection_loss) << first_error;
    EXPECT_EQ(client.create(path("second")).path, path("second"));  // a fault is for one request
}

TEST_F(GateTest, CutsAfterARequestWasExecuted) {
    auto client = connect();
    const Fault fault = gate().cut_after(Match::op(Opcode::create).path("a"));
    auto earlier = client.send(Opcode::exists, look("none"));
    auto answer = client.send(Opcode::create, create("a"));
    EXPECT_EQ(error_of(earlier), testenv::zk_error::no_node);
    EXPECT_EQ(error_of(answer), testenv::zk_error::connection_loss);
    ASSERT_TRUE(fault.wait_reached(kMaxWait));
    EXPECT_TRUE(observer().exists(path("a")));
    client.reconnect();
    EXPECT_TRUE(client.exists(path("a")));
}

TEST_F(GateTest, AFaultForCreatesHitsEachWayToCreateANode) {
    auto client = connect();
    for (const Opcode opcode : {Opcode::create, Opcode::create2, Opcode::create_container}) {
        const Fault fault = gate().cut_after(Match::create().path("lock-"));
        const std::string name = "lock-" + to_string(opcode);
        const int flags = opcode == Opcode::create_container ? static_cast<int>(CreateMode::container) : 0;
        auto answer = client.send(opcode, RawClient::create_body(path(name), "", flags));
        ASSERT_TRUE(fault.wait_reached(kMaxWait)) << to_string(opcode);
        EXPECT_EQ(error_of(answer), testenv::zk_error::connection_loss);
        EXPECT_TRUE(observer().exists(path(name))) << to_string(opcode);
        client.reconnect();
    }
}

TEST_F(GateTest, FaultIsForTheNthRequestOfTheSessionThatFits) {
    auto other = connect();
    auto client = connect();
    const Fault fault = gate().cut_before(Match::op(Opcode::exists).path(root()).nth(2).session(client.session_id()));
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(other.exists(root()));
    }
    EXPECT_TRUE(client.exists(root()));
    EXPECT_FALSE(fault.reached());
    EXPECT_THROW((void)client.exists(root()), RawError);
    EXPECT_TRUE(fault.wait_reached(kMaxWait));
}

TEST_F(GateTest, CancelledFaultNeverComes) {
    auto client = connect();
    gate().cut_before(Match::op(Opcode::exists)).cancel();
    EXPECT_TRUE(client.exists(root()));
}

TEST_F(GateTest, HoldsAReplyAndWhatFollowsButNotPings) {
    auto client = connect(10s);
    const Fault fault = gate().hold_reply(Match::op(Opcode::create));
    auto created = client.send(Opcode::create, create("a"));
    auto looked = client.send(Opcode::exists, look("a"));
    ASSERT_TRUE(fault.wait_reached(kMaxWait));
    EXPECT_TRUE(observer().exists(path("a")));
    // Longer than the client would stand it without answers to its pings.
    const auto pings = gate().counts(client.session_id()).pings();
    EXPECT_TRUE(await([&] { return gate().counts(client.session_id()).pings() >= pings + 3; }));
    EXPECT_TRUE(client.connected());
    EXPECT_TRUE(unanswered(created));
    EXPECT_TRUE(unanswered(looked));
    fault.release();
    EXPECT_EQ(error_of(created), 0);
    EXPECT_EQ(error_of(looked), 0);
}

TEST_F(GateTest, DropsAHeldReplyWithItsConnection) {
    auto client = connect();
    const Fault fault = gate().hold_reply(Match::op(Opcode::create));
    auto created = client.send(Opcode::create, create("a"));
    ASSERT_TRUE(fault.wait_reached(kMaxWait));
    fault.drop();
    EXPECT_EQ(error_of(created), testenv::zk_error::connection_loss);
    EXPECT_TRUE(observer().exists(path("a")));
}

TEST_F(GateTest, FaultMayHitTheHandshake) {
    const Fault fault = gate().cut_after(Match::op(Opcode::connect));
    auto client = connect();  // the second attempt succeeds
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(client.exists(root()));
}

TEST_F(GateTest, ExpiresASessionThatItHasSeen) {
    auto client = connect(60s);
    client.create(path("mine"), "", CreateMode::ephemeral);
    gate().expire(client.session_id());
    EXPECT_FALSE(observer().exists(path("mine")));
    try {
        client.reconnect();
        FAIL() << "the session should be over";
    } catch (const RawError& error) {
        EXPECT_EQ(error.code(), testenv::zk_error::session_expired);
    }
    EXPECT_THROW(gate().expire(12345), testenv::Error);
}

TEST_F(GateTest, ServerThatIsGoneIsAReset) {
    testenv::ZkServer own;
    Gate own_gate(own.endpoint());
    RawClientOptions options;
    options.reconnect = false;
    RawClient client(own_gate.connect_string(), options);
    own.kill();
    EXPECT_TRUE(await([&] { return !client.connected(); }));
    EXPECT_TRUE(await([&] { return own_gate.connection_count() == 0; }));
}

TEST_F(GateTest, CarriesLargeRepliesAndManyRequestsUnharmed) {
    auto client = connect();
    const std::string big(900'000, 'x');
    client.create(path("big"), big);
    std::vector<std::future<RawClient::Reply>> answers;
    for (int i = 0; i < 50; ++i) {
        answers.push_back(client.send(Opcode::get_data, look("big")));
    }
    for (auto& answer : answers) {
        ASSERT_EQ(answer.wait_for(kMaxWait), std::future_status::ready);
        const auto reply = answer.get();
        EXPECT_EQ(reply.error, 0);
        EXPECT_EQ(reply.body.compare(4, big.size(), big), 0);
    }
}

}  // namespace
}  // namespace zkrecipes::test
