// zklock elect and leader: the command runs while its candidate leads, and only then.
#include <algorithm>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockElectTest : public FaultyWorld {
protected:
    std::string terms() const { return scratch_ / "terms"; }
    std::size_t terms_of(const std::string& id) const {
        const std::string text = read_file(terms());
        std::size_t count = 0;
        for (std::size_t at = 0; (at = text.find(id + "\n", at)) != std::string::npos; ++at) ++count;
        return count;
    }
    /// A candidate whose command notes that it has begun, and goes on until it is stopped. While one is at work another
    /// one must not be: it would note that instead.
    std::unique_ptr<ZklockProcess> candidate(const std::string& id, std::vector<std::string> options,
                                             const std::string& connect) {
        std::vector<std::string> arguments = {"elect", "--connect", connect, "--id", id};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.insert(arguments.end(), {lock(), "--", "flock", "-n", "-E", "9", scratch_ / "alive", "sh", "-c",
                                           "echo " + id + " >>" + terms() + "; exec sleep 300"});
        return std::make_unique<ZklockProcess>(arguments);
    }
    Outcome leader(std::vector<std::string> options) {
        options.insert(options.begin(), {"leader", "--connect", connect_string()});
        options.push_back(lock());
        return zklock(options);
    }
};

TEST_F(ZklockElectTest, TheNextCandidateRunsWhenTheLeaderEnds) {
    const auto first = candidate("one", {}, connect_string());
    ASSERT_TRUE(await([&] { return terms_of("one") == 1; })) << first->err();
    const auto second = candidate("two", {}, connect_string());
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const Outcome shown = leader({});
    EXPECT_EQ(shown.code, 0);
    EXPECT_THAT(shown.out, HasSubstr(lock() + ": led\n  leader   \"one\" session 0x"));
    EXPECT_THAT(shown.out, HasSubstr("  next 1   \"two\" session 0x"));
    const auto json = Json::parse(leader({"--json"}).out);
    EXPECT_EQ(json["leader"]["id"], "one");
    EXPECT_GT(json["leader"]["fencing_token"], 0);
    ASSERT_EQ(json["candidates"].size(), 1u);
    EXPECT_EQ(json["candidates"][0]["id"], "two");
    EXPECT_EQ(terms_of("two"), 0u);
    first->signal(SIGTERM);
    EXPECT_EQ(first->wait(), 128 + SIGTERM);
    EXPECT_TRUE(await([&] { return terms_of("two") == 1; }));
    second->signal(SIGTERM);
    EXPECT_EQ(second->wait(), 128 + SIGTERM);
    EXPECT_EQ(leader({}).code, 75);
    EXPECT_EQ(leader({}).out, lock() + ": no leader\n");
}

TEST_F(ZklockElectTest, TheCommandIsDeadBeforeAnotherLeadsAndRunsAgainWhenLeadershipReturns) {
    const auto first =
        candidate("one", {"--session-timeout", "6s", "--connect-timeout", "6s", "-n"}, gate_->connect_string());
    ASSERT_TRUE(await([&] { return terms_of("one") == 1; })) << first->err();
    auto second = candidate("two", {"--session-timeout", "30"}, connect_string());
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    gate_->blackhole();
    // By flock: while the former command is alive, that of the next leader ends at once.
    ASSERT_TRUE(await([&] { return terms_of("two") == 1 || !second->running(); }));
    EXPECT_TRUE(second->running()) << "the former command was alive when the next one led: " << second->wait();
    EXPECT_TRUE(await([&] { return first->err().find("standing for election") != std::string::npos; }));
    gate_->pass();
    second->signal(SIGTERM);
    EXPECT_EQ(second->wait(), 128 + SIGTERM);
    EXPECT_TRUE(await([&] { return terms_of("one") == 2; })) << first->err();
    first->signal(SIGTERM);
    EXPECT_EQ(first->wait(), 128 + SIGTERM);
    EXPECT_TRUE(await([&] { return queue_length() == 0; }));
}

TEST_F(ZklockElectTest, AfterItsNodeWasDeletedItStandsAgainAndTheWatchSeesEachLeader) {
    const auto watching = std::make_unique<ZklockProcess>(
        std::vector<std::string>{"leader", "--watch", "--json", "--connect", connect_string(), lock()});
    ASSERT_TRUE(await([&] { return watching->out().find('\n') != std::string::npos; })) << watching->err();
    const auto only = candidate("one", {"-k", "200ms", "--result", scratch_ / "result"}, connect_string());
    ASSERT_TRUE(await([&] { return terms_of("one") == 1 && watching->out().find("\"one\"") != std::string::npos; }));
    const std::string node = contenders().at(0);
    ASSERT_TRUE(observer_->remove(lock() + "/" + node));
    EXPECT_TRUE(await([&] { return terms_of("one") == 2; })) << only->err();
    EXPECT_TRUE(await([&] { return only->err().find("is gone") != std::string::npos; })) << only->err();
    EXPECT_NE(contenders().at(0), node);
    EXPECT_TRUE(await([&] { return watching->out().find(contenders().at(0)) != std::string::npos; }));
    EXPECT_EQ(Json::parse(watching->out().substr(0, watching->out().find('\n')))["leader"], nullptr);
    only->signal(SIGTERM);
    EXPECT_EQ(only->wait(), 128 + SIGTERM);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "signalled");
}

TEST_F(ZklockElectTest, TheWatchWarnsWhileNoServerAnswers) {
    ZklockProcess watching({"leader", "--watch", "--connect", gate_->connect_string(), lock()});
    ASSERT_TRUE(await([&] { return watching.out().find("no leader") != std::string::npos; })) << watching.err();
    gate_->refuse();
    gate_->reset_all();
    EXPECT_TRUE(await([&] { return watching.err().find("may have changed") != std::string::npos; }));
    gate_->pass();
    EXPECT_TRUE(await([&] { return watching.err().find("answers again") != std::string::npos; }));
}

TEST_F(ZklockElectTest, TheCommandsEndIsTheEndAndAWaitingCandidateLeavesNoNode) {
    const std::string elect = "elect";
    EXPECT_EQ(zklock({elect, "--connect", connect_string(), lock(), "-c", "[ $ZKLOCK_MODE = leader ] && exit 7"}).code,
              7);
    const auto first = candidate("one", {"--layout", "kazoo"}, connect_string());
    ASSERT_TRUE(await([&] { return terms_of("one") == 1; })) << first->err();
    EXPECT_EQ(zklock({elect, "-n", "--layout", "kazoo", "--connect", connect_string(), lock(), "true"}).code, 75);
    const auto second = candidate("two", {"--layout", "kazoo"}, connect_string());
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    second->signal(SIGINT);
    EXPECT_EQ(second->wait(), -SIGINT);
    EXPECT_EQ(queue_length(), 1u);
    EXPECT_EQ(terms_of("two"), 0u);
}

TEST_F(ZklockElectTest, BreakKnowsOurOwnCandidateFromOneOfCurators) {
    for (const char* layout : {"latch", "selector", "kazoo"}) {
        const auto ours = candidate(layout, {"--layout", layout}, connect_string());
        ASSERT_TRUE(await([&] { return terms_of(layout) == 1; }));
        const Outcome outcome = zklock({"break", "--connect", connect_string(), lock(), "--holder", "--yes"});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("removed "));
        EXPECT_THAT(outcome.out, testing::Not(HasSubstr("not a zkrecipes client")));
        EXPECT_TRUE(await([&] { return ours->err().find("is gone") != std::string::npos; })) << ours->err();
        ours->signal(SIGTERM);
        ours->wait();
        ASSERT_TRUE(await([&] { return queue_length() == 0; }));
    }
}

}  // namespace
}  // namespace zkrecipes::zklock::test
