// The session goes on after the only server was restarted: with a shorter session timeout, or after it was away for
// long.
#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class ZklockRestartedServerTest : public FaultyWorld {
protected:
    void SetUp() override {
        FaultyWorld::SetUp();
        if (IsSkipped()) return;
        mode_ = "-x";
        server_ = std::make_unique<testenv::ZkServer>();
        gate_->set_target(server_->endpoint());
    }
    /// The holder has a lease of 13 seconds. Then the server grants no more than four, and it knows.
    std::unique_ptr<ZklockProcess> hold_with_a_shorter_timeout() {
        session_timeout_ = "20s";
        auto holder = hold({}, Kind::with_stubborn_grandchild);
        server_->set_max_session_timeout(4s);
        server_->restart();
        EXPECT_TRUE(await([&] { return holder->err().find("from 20s to 4.0s") != std::string::npos; }))
            << holder->err();
        // Two heartbeats later it has looked at its lease again.
        const std::int64_t session = gate_->sessions().back();
        gate_->reset_trace();
        EXPECT_TRUE(await([&] { return gate_->counts(session).total() >= 2; }));
        return holder;
    }
    ZklockProcess next() {
        return ZklockProcess({"--connect", server_->connect_string(), "--session-timeout", "30", lock(), "-c",
                              "exec flock -n " + (scratch_ / "alive") + " true"});
    }

    std::unique_ptr<testenv::ZkServer> server_;
};

TEST_F(ZklockRestartedServerTest, AShorterTimeoutCountsForTheCommand) {
    const auto holder = hold_with_a_shorter_timeout();
    auto rival = next();
    gate_->blackhole();
    EXPECT_EQ(rival.wait(), 0) << "the former command was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_F(ZklockRestartedServerTest, AShorterTimeoutCountsForTheDeadMansSwitch) {
    const auto holder = hold_with_a_shorter_timeout();
    auto rival = next();
    holder->signal(SIGSTOP);
    EXPECT_EQ(rival.wait(), 0) << "the former command was alive when the next one held the lock";
    holder->signal(SIGCONT);
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_F(ZklockRestartedServerTest, AWaiterWhoseSessionGoesOnKeepsItsPlace) {
    session_timeout_ = "4s";
    const auto holder = hold({});
    ZklockProcess waiter(with({"-v", lock(), "true"}, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return waiter.err().find("position 2 of 2") != std::string::npos; })) << waiter.err();
    server_->kill();
    ASSERT_TRUE(await([&] { return waiter.err().find("lost by our own clock") != std::string::npos; })) << waiter.err();
    server_->start();
    EXPECT_EQ(waiter.wait(), 0) << waiter.err();
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(waiter.err(), Not(HasSubstr("tail of the queue"))) << "the servers start each session's time anew";
}

}  // namespace
}  // namespace zkrecipes::zklock::test
