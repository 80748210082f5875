// What fault_test.cpp does to a lock, done to a lease of a semaphore and to a set of locks.
#include <algorithm>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockRecipeFaultTest : public FaultyWorld, public testing::WithParamInterface<const char*> {
protected:
    bool semaphore() const { return GetParam() == std::string("-j"); }
    std::string other() const { return path("other"); }
    std::vector<std::string> wanted() const override {
        if (semaphore()) return {"-j", "1", lock()};
        return {"-L", lock() + ":shared", "-L", other()};
    }
    std::size_t nodes_in(const std::string& directory) {
        if (!observer_) observer_ = std::make_unique<testenv::RawClient>(connect_string());
        return observer_->children(directory).value_or(std::vector<std::string>{}).size();
    }
    /// All nodes by which the lock, or the set, is held or waited for.
    std::size_t nodes() {
        if (semaphore()) return nodes_in(lock() + "/locks") + nodes_in(lock() + "/leases");
        return nodes_in(lock()) + nodes_in(other());
    }
    std::size_t nodes_of_one() const { return semaphore() ? 1 : 2; }
    /// Waits for what the holder has; of the set, for one member of it.
    std::unique_ptr<ZklockProcess> next_in_line() {
        std::vector<std::string> arguments = {"--connect", connect_string(), "--session-timeout", "30"};
        const std::vector<std::string> what = semaphore() ? wanted() : std::vector<std::string>{other()};
        arguments.insert(arguments.end(), what.begin(), what.end());
        arguments.insert(arguments.end(), {"-c", "exec flock -n " + (scratch_ / "alive") + " true"});
        auto process = std::make_unique<ZklockProcess>(arguments);
        EXPECT_TRUE(await([&] { return nodes() == nodes_of_one() + 1; }));
        return process;
    }
};
INSTANTIATE_TEST_SUITE_P(Recipes, ZklockRecipeFaultTest, testing::Values("-j", "-L"));

TEST_P(ZklockRecipeFaultTest, TheCommandIsDeadBeforeAnotherHolds) {
    const auto holder = hold({}, Kind::with_stubborn_grandchild);
    const auto next = next_in_line();
    gate_->blackhole();
    EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(holder->err(), HasSubstr("lost " + lock()));
    EXPECT_EQ(last_reason(), "no server confirmed the lock in time");
    EXPECT_TRUE(await([&] { return nodes() == 0; }));
}

// The switch knows the deadline, and nothing of the lock.
class ZklockLeaseFaultTest : public ZklockRecipeFaultTest {};
INSTANTIATE_TEST_SUITE_P(Recipes, ZklockLeaseFaultTest, testing::Values("-j"));

TEST_P(ZklockLeaseFaultTest, TheSwitchKillsTheCommandWhileZklockIsStopped) {
    const auto holder = hold({}, Kind::with_stubborn_grandchild);
    const auto next = next_in_line();
    holder->signal(SIGSTOP);
    EXPECT_EQ(next->wait(), 0) << "the former command was alive when the next one held the lock";
    holder->signal(SIGCONT);
    EXPECT_EQ(holder->wait(), 79) << holder->err();
}

TEST_P(ZklockRecipeFaultTest, ANodeThatIsDeletedStopsTheCommand) {
    session_timeout_ = "20s";
    const auto holder = hold({"-k", "300ms"});
    // A hold shorter than half a second is not watched; ticks show that it has got that old.
    ASSERT_TRUE(await([&] { return ticks() > 80; }));
    const Outcome broken =
        zklock({"break", "--connect", connect_string(), semaphore() ? lock() : other(), "--holder", "--yes"});
    EXPECT_EQ(broken.code, 0) << broken.err;
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(last_reason(), HasSubstr("is gone"));
    EXPECT_EQ(nodes(), 0u) << "the rest of the set";
    const auto result = Json::parse(read_file(scratch_ / "result"));
    EXPECT_EQ(result["outcome"], "lost");
    EXPECT_EQ(result.contains("locks"), !semaphore());
}

TEST_P(ZklockRecipeFaultTest, AnExpiredSessionStopsTheCommand) {
    session_timeout_ = "20s";
    const auto holder = hold({"-k", "300ms"});
    const auto next = next_in_line();
    gate_->expire(gate_->sessions().back());
    EXPECT_EQ(holder->wait(), 79) << holder->err();
    EXPECT_THAT(last_reason(), HasSubstr("expired"));
    next->wait();
    EXPECT_EQ(nodes(), 0u);
}

TEST_P(ZklockRecipeFaultTest, AWaiterWhoseSessionExpiresStandsInLineAgain) {
    session_timeout_ = "20s";
    std::vector<std::string> first = wanted();
    first.insert(first.end(), {"-c", "touch " + (scratch_ / "first") + "; exec sleep 300"});
    // -c stands before the lock where it can, and a set has no LOCK.
    const auto holder = start(first);
    ASSERT_TRUE(await([&] { return exists(scratch_ / "first"); })) << holder->err();
    std::vector<std::string> second = wanted();
    second.insert(second.end(), {"-c", "echo ran"});
    ZklockProcess waiter(with(second, gate_->connect_string()));
    ASSERT_TRUE(await([&] { return nodes() == 2 * nodes_of_one(); }));
    gate_->expire(gate_->sessions().back());
    EXPECT_TRUE(await([&] { return waiter.err().find("tail of the queue") != std::string::npos; }));
    holder->signal(SIGTERM);
    EXPECT_EQ(waiter.wait(), 0) << waiter.err();
    EXPECT_EQ(waiter.out(), "ran\n");
    EXPECT_EQ(nodes(), 0u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
