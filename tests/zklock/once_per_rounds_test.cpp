// zklock --once-per: several machines want the same run while one of them is killed, frozen or cut off. Never two runs
// in one period without --retry-unknown, and none is skipped that nobody has claimed. The runs write into a journal.
#include <algorithm>
#include <random>
#include <sstream>
#include <thread>

#include "support/whole.hpp"
#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using std::chrono::milliseconds;

enum class Trouble { kill, freeze, partition, claim_lost, claim_answer_lost, end_answer_lost, term, kill_at_claim };
constexpr int kTroubles = 8;
const char* const kNames[] = {"kill",           "freeze",          "partition", "claim lost",
                              "claim answered", "end answer lost", "term",      "kill at the claim"};

class ZklockOnceRoundsTest : public FaultyWorld {
protected:
    struct Round {
        int number;
        Trouble trouble;
        std::mt19937 random;
        std::string lock;
        std::string journal;
    };

    static std::vector<std::string> tokens(const Round& round) {
        std::istringstream stream(read_file(round.journal));
        std::vector<std::string> result;
        for (std::string line; std::getline(stream, line);) result.push_back(line);
        return result;
    }
    std::unique_ptr<ZklockProcess> start_one(const Round& round, bool faulty, std::vector<std::string> options = {}) {
        std::vector<std::string> arguments = {"--connect",
                                              faulty ? gate_->connect_string() : connect_string(),
                                              "--session-timeout",
                                              faulty ? "2s" : "10s",
                                              "-k",
                                              "100ms",
                                              "--once-per",
                                              "87600h"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.insert(arguments.end(),
                         {round.lock, "-c", "echo $ZKLOCK_FENCING_TOKEN >>" + round.journal + "; sleep 0.3"});
        return std::make_unique<ZklockProcess>(arguments);
    }
    Json record(const Round& round) {
        const auto node = observer_->get(round.lock + ".once");
        return Json::parse_or_null(node ? node->data : "null");
    }

    /// What happens to the first one; the rest of it happens at the end of the round.
    testenv::Fault plan(const Round& round) {
        const auto write = testenv::Match::op(testenv::Opcode::multi).path(round.lock + ".once");
        switch (round.trouble) {
            case Trouble::claim_lost: return gate_->cut_before(write);
            case Trouble::end_answer_lost: return gate_->cut_after(testenv::Match(write).nth(2));
            case Trouble::kill_at_claim: return gate_->hold_reply(write);
            default:
                return gate_->cut_after(
                    testenv::Match(write).nth(round.trouble == Trouble::claim_answer_lost ? 1 : 1000));
        }
    }
    void strike(Round& round, ZklockProcess& victim, const testenv::Fault& fault) {
        // At any moment from before it connects until after its command has ended.
        const milliseconds later(std::uniform_int_distribution(0, 450)(round.random));
        switch (round.trouble) {
            case Trouble::kill_at_claim:
                EXPECT_TRUE(await([&] { return fault.reached() || !victim.running(); }));
                return victim.signal(SIGKILL);
            case Trouble::kill:
            case Trouble::freeze:
            case Trouble::partition:
            case Trouble::term: std::this_thread::sleep_for(later); break;
            default: return;
        }
        if (round.trouble == Trouble::partition) return gate_->blackhole();
        victim.signal(round.trouble == Trouble::kill ? SIGKILL : round.trouble == Trouble::freeze ? SIGSTOP : SIGTERM);
    }

    void play(Round round) {
        SCOPED_TRACE("round " + std::to_string(round.number) + ": " + kNames[static_cast<int>(round.trouble)]);
        const bool had_one = round.random() % 2 == 0;
        if (had_one) {
            observer_->create(round.lock + ".once",
                              R"({"v":1,"state":"running","id":"of a former period","claimed_ms":1000,"per_ms":1000,)"
                              R"("host":"old","pid":1,"name":"x","token":1,"node":"/gone"})");
        }
        const testenv::Fault fault = plan(round);
        const auto victim = start_one(round, true);
        if (round.random() % 4 != 0) {  // to be the first, usually
            ASSERT_TRUE(await([&] { return observer_->exists(round.lock).has_value() || !victim->running(); }));
        }
        std::vector<std::unique_ptr<ZklockProcess>> others;
        for (int i = 0; i < 2; ++i) others.push_back(start_one(round, false));
        strike(round, *victim, fault);
        for (const auto& other : others) {
            const int code = other->wait();
            EXPECT_TRUE(code == 0 || code == 80) << code << other->err();
        }
        fault.cancel();
        gate_->pass();
        victim->signal(SIGCONT);
        const int code = victim->wait();
        judge(round, *victim, code);
    }

    void judge(const Round& round, const ZklockProcess& victim, int code) {
        const int last = start_one(round, false)->wait();
        const auto journal = tokens(round);
        const auto found = record(round);
        ASSERT_TRUE(found.is_object()) << "nobody has claimed the period";
        EXPECT_GT(found["claimed_ms"], 1000) << "nobody has claimed the period";
        ASSERT_LE(journal.size(), 1u) << "two runs in one period";
        const std::string token = std::to_string(found["token"].number<std::int64_t>());
        if (!journal.empty()) {
            EXPECT_EQ(journal.front(), token) << "another run than the one that is recorded";
        }
        if (found["state"] == "done") {
            EXPECT_EQ(last, 0);
            // A command that ends by TERM has run, perhaps without having written.
            const bool ended_by_term = round.trouble == Trouble::term && found.contains("signal");
            EXPECT_TRUE(ended_by_term || journal.size() == 1u) << "done, and it never ran";
            return;
        }
        EXPECT_EQ(last, 80);
        EXPECT_EQ(found["pid"].number<pid_t>(), victim.pid())
            << "one to whom nothing has happened, which ended with " << code;
        ++unknown_;
        EXPECT_EQ(start_one(round, false, {"--retry-unknown"})->wait(), 0);
        EXPECT_EQ(tokens(round).size(), journal.size() + 1);
        EXPECT_EQ(record(round)["state"], "done");
    }

    int unknown_ = 0;
};

TEST_F(ZklockOnceRoundsTest, NeverTwoRunsInAPeriodAndNoneIsSkipped) {
    const int rounds = zkrecipes::test::share_of(200, 16);
    observer_ = std::make_unique<testenv::RawClient>(connect_string());
    observer_->make_path(root());
    for (int i = 0; i < rounds && !HasFatalFailure(); ++i) {
        const std::string name = "round-" + std::to_string(i);
        play({i, static_cast<Trouble>(i % kTroubles), std::mt19937(static_cast<unsigned>(i)), path(name),
              scratch_ / name});
    }
    std::printf("%d rounds, %d of them with an unknown outcome\n", rounds, unknown_);
    EXPECT_GT(unknown_, 0) << "nothing has gone wrong";
    EXPECT_LT(unknown_, rounds) << "each run has gone wrong";
}

}  // namespace
}  // namespace zkrecipes::zklock::test
