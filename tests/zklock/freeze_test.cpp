// A zklock that is frozen at a certain point while the switch kills its command.
#include <fstream>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

class ZklockFreezeTest : public FaultyWorld {
protected:
    ZklockFreezeTest() { mode_ = "-x"; }
    void SetUp() override {
#ifdef ZKLOCK_FREEZE_SHIM
        FaultyWorld::SetUp();
#else
        GTEST_SKIP() << "nothing can be loaded before a sanitizer";
#endif
    }
    std::vector<std::string> frozen_at_a_point() const {
#ifdef ZKLOCK_FREEZE_SHIM
        return {"env", std::string("LD_PRELOAD=") + ZKLOCK_FREEZE_SHIM, "FREEZE=" + (scratch_ / "freeze")};
#else
        return {};
#endif
    }
    /// In one step.
    void freeze_at(const std::string& point) const {
        std::ofstream(scratch_ / "point") << point;
        ASSERT_EQ(::rename((scratch_ / "point").c_str(), (scratch_ / "freeze").c_str()), 0);
    }
    std::string lived() const { return "exec 9>" + (scratch_ / "alive") + "; flock 9; "; }
    /// What the command leaves running dies with the test.
    std::string linger() const {
        return "(trap '' TERM; touch " + (scratch_ / "held") + "; while kill -0 " + std::to_string(::getpid()) +
               "; do sleep 0.05; done) & ";
    }
};

TEST_F(ZklockFreezeTest, AnEndByTheSwitchIsALossAlsoIfZklockLearnsOfItLast) {
    // The command itself has ended with 0, and the rest of its group is alive; or the switch kills the whole group.
    for (const bool conclude : {true, false}) {
        ZklockProcess::Setup setup;
        setup.launcher = frozen_at_a_point();
        ZklockProcess holder(with({"--result", scratch_ / "result", "--on-lost", "touch " + (scratch_ / "told"), lock(),
                                   "-c", lived() + linger() + (conclude ? "exit 0" : "wait")},
                                  gate_->connect_string()),
                             setup);
        ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); })) << holder.err();
        const auto next = rival();
        freeze_at(conclude ? "conclude" : "look");
        EXPECT_EQ(next->wait(), 0) << "the command was alive when the next one held the lock";
        EXPECT_FALSE(exists(scratch_ / "freeze")) << "zklock was not frozen there";
        holder.signal(SIGCONT);
        EXPECT_EQ(holder.wait(), 79) << holder.err();
        EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "lost");
        EXPECT_TRUE(exists(scratch_ / "told")) << "the command of --on-lost did not run";
        ::unlink((scratch_ / "held").c_str());
        ::unlink((scratch_ / "told").c_str());
    }
}

}  // namespace
}  // namespace zkrecipes::zklock::test
