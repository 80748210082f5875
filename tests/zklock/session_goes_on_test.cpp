// Sessions that go on: with a server that grants a shorter session timeout, or after the server was away for long.
#include <filesystem>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class ZklockSessionGoesOnTest : public FaultyWorld {
protected:
    void SetUp() override {
        FaultyWorld::SetUp();
        mode_ = "-x";
    }
};

/// Of three servers, one grants no more than six seconds.
class ZklockShorterTimeoutTest : public ZklockSessionGoesOnTest {
protected:
    void SetUp() override {
        ZklockSessionGoesOnTest::SetUp();
        if (IsSkipped()) return;
        servers_ = std::make_unique<testenv::ZkEnsemble>(3);
        servers_->member(2).set_max_session_timeout(6s);
        servers_->restart(2);
        servers_->wait_quorum();
        session_timeout_ = "30s";
    }
    /// The holder has a lease of 20 seconds, and then of four, and knows it.
    std::unique_ptr<ZklockProcess> hold_with_a_shorter_timeout() {
        std::unique_ptr<ZklockProcess> holder;
        // Once more if the machine stalled for so long that the shorter lease had passed.
        EXPECT_TRUE(await([&] {
            holder.reset();
            std::filesystem::remove(scratch_ / "held");
            gate_->set_target(servers_->member(0).endpoint());
            holder = hold({}, Kind::with_stubborn_grandchild);
            if (!heartbeats(1, *holder)) return false;  // the lease is as long as it can be
            gate_->set_target(servers_->member(2).endpoint());
            gate_->reset_all();
            const bool told = await([&] { return warned(*holder) || !holder->running(); });
            return told && warned(*holder) && heartbeats(2, *holder);  // so it has looked at its lease again
        }));
        return holder;
    }
    static bool warned(const ZklockProcess& holder) {
        return holder.err().find("from 30000 ms to 6000 ms") != std::string::npos;
    }
    /// False: the holder has ended.
    bool heartbeats(std::uint64_t count, ZklockProcess& holder) {
        gate_->reset_trace();
        const bool seen = await([&] { return gate_->counts()[testenv::Opcode::multi] >= count || !holder.running(); });
        return seen && holder.running();
    }
    ZklockProcess next() {
        return ZklockProcess({"--connect", servers_->connect_string(0), "--session-timeout", "30", lock(), "-c",
                              "exec flock -n " + (scratch_ / "alive") + " true"});
    }

    std::unique_ptr<testenv::ZkEnsemble> servers_;
};

TEST_F(ZklockShorterTimeoutTest, CountsForTheCommand) {
    const auto holder = hold_with_a_shorter_timeout();
    auto rival = next();
    gate_->blackhole();
    EXPECT_EQ(rival.wait(), 0) << "the former command was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_F(ZklockShorterTimeoutTest, CountsForTheDeadMansSwitch) {
    const auto holder = hold_with_a_shorter_timeout();
    auto rival = next();
    holder->signal(SIGSTOP);
    EXPECT_EQ(rival.wait(), 0) << "the former command was alive when the next one held the lock";
    holder->signal(SIGCONT);
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_F(ZklockSessionGoesOnTest, AWaiterKeepsItsPlace) {
    testenv::ZkServer server;
    gate_->set_target(server.endpoint());
    session_timeout_ = "4s";
    const auto holder = hold({});
    ZklockProcess waiter(with({"-v", lock(), "true"}, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return waiter.err().find("position 2 of 2") != std::string::npos; })) << waiter.err();
    server.kill();
    ASSERT_TRUE(await([&] { return waiter.err().find("lost by our own clock") != std::string::npos; })) << waiter.err();
    server.start();
    EXPECT_EQ(waiter.wait(), 0) << waiter.err();
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(waiter.err(), Not(HasSubstr("tail of the queue"))) << "the server starts each session's time anew";
}

}  // namespace
}  // namespace zkrecipes::zklock::test
