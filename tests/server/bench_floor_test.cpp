// The floors of the benchmark send what bench/floor.hpp claims, and not a request more.
#include "bench/floor.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "bench/requests.hpp"
#include "support/round_trips.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using bench::FloorCrowd;
using bench::FloorLock;
using bench::FloorSemaphoreMutex;
using bench::FloorSet;
using bench::Purpose;
using testenv::Gate;
using testenv::Record;

class BenchFloorTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        gate_.emplace(server().endpoint());
    }
    Gate& gate() { return *gate_; }
    std::string hosts() { return gate_->connect_string(); }
    std::vector<Record> trace() { return trace_of(gate(), root()); }
    std::string counts() { return to_string(count(trace())); }
    /// Counts from here on. `call` sends so many requests, in one round trip.
    template <class Call>
    void count_from(std::uint64_t requests, Call call) {
        gate().reset_trace();
        in_round_trips(gate(), root(), {requests}, call);
    }

private:
    std::optional<Gate> gate_;
};

TEST_F(BenchFloorTest, FreeLockIsThreeRequestsACycle) {
    FloorLock lock(hosts(), path("lock"), "data");
    lock.make_path(path("lock"));
    count_from(2, [&] { lock.acquire_free(); });
    EXPECT_EQ(round_trips(trace(), lock.session_id()), 1);
    EXPECT_EQ(counts(), "exists 1, create2 1");
    lock.release_and_wait();
    EXPECT_EQ(counts(), "remove 1, exists 1, create2 1");
    const auto cycle = bench::requests_of_cycles(trace(), path("lock"), 1);
    EXPECT_EQ(cycle.requests, 3);
    double bytes = 0;
    for (const auto& record : trace()) bytes += static_cast<double>(record.bytes);
    EXPECT_EQ(cycle.bytes, bytes - 4);  // without "data"
}

TEST_F(BenchFloorTest, HandOverIsFourRequestsAndNothingBetweenTheEventAndTheGrant) {
    FloorLock first(hosts(), path("lock"));
    FloorLock second(hosts(), path("lock"));
    first.make_path(path("lock"));
    first.acquire_free();
    gate().reset_trace();
    std::atomic<bool> held{false};
    std::thread waiter([&] {
        second.acquire();
        held = true;
    });
    ASSERT_TRUE(await([&] { return server().watch_count() == 1; }));
    EXPECT_EQ(counts(), "get_data 1, get_children 1, create2 1");
    EXPECT_FALSE(held);
    first.release();
    waiter.join();
    EXPECT_EQ(counts(), "remove 1, get_data 1, get_children 1, create2 1");
    second.release_and_wait();
    const auto hand_over = bench::requests_of_hand_overs(trace(), path("lock"));
    EXPECT_EQ(hand_over.holds, 1);  // the first one had nobody in front of it
    EXPECT_EQ(hand_over.total(), 4);
    for (const auto purpose : {Purpose::enter, Purpose::look, Purpose::watch, Purpose::leave}) {
        EXPECT_EQ(hand_over[purpose], 1) << to_string(purpose);
    }
}

TEST_F(BenchFloorTest, SetOfNPathsIsNPlusTwoRequests) {
    const std::vector<std::string> paths{path("a"), path("b"), path("c"), path("d")};
    FloorSet set(hosts(), paths, "data");
    for (const auto& each : paths) set.make_path(each);
    count_from(5, [&] { set.acquire(); });
    EXPECT_EQ(round_trips(trace(), set.session_id()), 1);
    set.release_and_wait();
    EXPECT_EQ(counts(), "exists 4, multi 2");
    EXPECT_EQ(set.children(paths[3]), 0);
}

TEST_F(BenchFloorTest, SemaphoreMutexIsFourRequests) {
    FloorSemaphoreMutex mutex(hosts(), path("mutex"), "data");
    mutex.make_path(path("mutex") + "/locks");
    mutex.make_path(path("mutex") + "/leases");
    count_from(3, [&] { mutex.acquire(); });
    EXPECT_EQ(round_trips(trace(), mutex.session_id()), 1);
    mutex.release_and_wait();
    EXPECT_EQ(counts(), "remove 1, exists 2, create2 1");
}

TEST_F(BenchFloorTest, CrowdIsThreeRequestsAHoldAndTwoNodes) {
    FloorCrowd crowd(hosts(), path("lock"), "data");
    crowd.make_path(path("lock"));
    gate().reset_trace();
    crowd.drain(10);
    EXPECT_EQ(counts(), "remove 10, exists 10, create2 10");
    EXPECT_EQ(crowd.children(path("lock")), 0);
}

/// A hold of which each request is for something else.
TEST(BenchRequestsTest, EachRequestOfAHandOverHasAPurpose) {
    const auto request = [](testenv::Opcode opcode, const std::string& path) {
        Record record;
        record.opcode = opcode;
        record.path = path;
        record.session = 7;
        if (opcode == testenv::Opcode::multi) record.parts.push_back({testenv::Opcode::check, path});
        return record;
    };
    using testenv::Opcode;
    Record event = request(Opcode::notification, "/l/a-1");
    event.kind = Record::Kind::event;
    const std::vector<Record> trace{request(Opcode::create2, "/l/b-"),
                                    request(Opcode::get_children2, "/l"),
                                    request(Opcode::get_data, "/l/a-1"),
                                    request(Opcode::multi, "/l/b-2"),  // before the event: a heartbeat
                                    request(Opcode::get_data, "/l/b-2"),
                                    event,
                                    request(Opcode::multi, "/l/b-2"),
                                    request(Opcode::multi, "/l/b-2"),
                                    request(Opcode::remove, "/l/b-2"),
                                    request(Opcode::create2, "/l/c-"),
                                    request(Opcode::exists, "/l"),
                                    request(Opcode::remove, "/l/c-3"),  // nobody was in front: no hand-over
                                    request(Opcode::create2, "/elsewhere/d-")};
    const auto found = bench::requests_of_hand_overs(trace, "/l");
    EXPECT_EQ(found.holds, 1);
    EXPECT_EQ(found.total(), 6);
    EXPECT_EQ(found[Purpose::heartbeat], 2);
    for (const auto purpose :
         {Purpose::enter, Purpose::look, Purpose::watch, Purpose::watch_own, Purpose::check, Purpose::leave}) {
        EXPECT_EQ(found[purpose], 1) << to_string(purpose);
    }
}

}  // namespace
}  // namespace zkrecipes::test
