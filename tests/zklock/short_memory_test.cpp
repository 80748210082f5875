// Memory that is refused between the start of the command and its supervision.
#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

class ZklockShortMemoryTest : public ZklockTest {
protected:
    void SetUp() override {
#ifdef ZKLOCK_MEMORY_SHIM
        ZklockTest::SetUp();
#else
        GTEST_SKIP() << "nothing can be loaded before a sanitizer";
#endif
    }
    ZklockProcess::Setup short_of_memory() const {
        ZklockProcess::Setup setup;
#ifdef ZKLOCK_MEMORY_SHIM
        setup.launcher = {"env", std::string("LD_PRELOAD=") + ZKLOCK_MEMORY_SHIM, "SHORT_MEMORY=" + wanted()};
#endif
        std::ofstream(wanted()).put('\n');
        return setup;
    }
    std::string wanted() const { return scratch_ / "short"; }
};

TEST_F(ZklockShortMemoryTest, TheCommandIsDeadBeforeTheLockIsFreeAlsoIfNoMemoryIsLeftAfterItsStart) {
    // What the command leaves running keeps a lock on the file, and ends with the test at the latest.
    const std::string alive = scratch_ / "alive";
    const std::string linger = "while kill -0 " + std::to_string(::getpid()) + "; do sleep 0.05; done";
    ZklockProcess holder(
        with({lock(), "-c",
              "exec 9>" + alive + "; flock 9; (trap '' TERM; rm " + wanted() + "; " + linger + ") & wait"}),
        short_of_memory());
    const int code = holder.wait();
    EXPECT_FALSE(exists(wanted())) << "the command did not run";
    EXPECT_EQ(code, 70) << holder.err();
    EXPECT_EQ(run({lock(), "flock", "-n", alive, "true"}).code, 0) << "the command lives, and its lock is free";
}

}  // namespace
}  // namespace zkrecipes::zklock::test
