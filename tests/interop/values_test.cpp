// Numbers and values that C++, Curator 5.4 and kazoo share.
#include <limits>

#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>

#include "interop/interop_test.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::ElementsAre;

class ValuesInteropTest : public InteropTest {
protected:
    std::string number_path() const { return path("shared/number"); }
    CounterOptions four_bytes() const {
        CounterOptions options;
        options.size = CounterSize::four_bytes;
        return options;
    }
};

TEST_F(ValuesInteropTest, CuratorReadsAndWritesTheSameNumbersOfEightBytes) {
    ZKRECIPES_NEEDS(Who::curator);
    using Limits = std::numeric_limits<std::int64_t>;
    Session s = connected_session(connect_string());
    AtomicCounter counter(s, number_path());
    const auto curator = client(Who::curator);
    const auto number = [&](const std::string& what, std::int64_t first = 0, std::int64_t second = 0) {
        return curator->ask({"number", "long", number_path(), what, std::to_string(first), std::to_string(second)})
            .fields();
    };
    EXPECT_THAT(number("get"), ElementsAre("yes", "0", "0")) << "missing";
    EXPECT_EQ(counter.get(), 0);
    EXPECT_EQ(counter.decrement().after, -1);
    EXPECT_THAT(number("add", -257), ElementsAre("yes", "-1", "-258"));
    EXPECT_EQ(counter.increment().before, -258);
    for (const std::int64_t each :
         {std::int64_t{0}, std::int64_t{-2}, std::int64_t{1} << 40, Limits::min(), Limits::max()}) {
        counter.force_set(each);
        const auto text = std::to_string(each);
        EXPECT_THAT(number("get"), ElementsAre("yes", text, text));
        counter.force_set(7);
        number("force", each);
        EXPECT_EQ(counter.get(Fresh::yes), each);
    }
    EXPECT_THAT(number("compare", Limits::max(), 5), ElementsAre("yes", std::to_string(Limits::max()), "5"));
    EXPECT_TRUE(counter.compare_and_set(5, -5)->changed);
    EXPECT_THAT(number("exchange", 9), ElementsAre("yes", "-5", "9"));
    EXPECT_EQ(counter.exchange(1)->before, 9);
    EXPECT_THAT(number("initialize", 3), ElementsAre("no"));
    observer().remove(number_path());
    EXPECT_THAT(number("initialize", 3), ElementsAre("yes"));
    EXPECT_FALSE(counter.initialize(4));
    observer().remove(number_path());
    EXPECT_THAT(number("add", 6), ElementsAre("yes", "0", "6")) << "made by Curator";
    EXPECT_EQ(counter.increment().after, 7);
}

TEST_F(ValuesInteropTest, CuratorAndKazooReadAndWriteTheSameNumbersOfFourBytes) {
    ZKRECIPES_NEEDS(Who::curator, Who::kazoo);
    Session s = connected_session(connect_string());
    AtomicCounter counter(s, number_path(), four_bytes());
    SharedCount count(s, number_path(), 0);
    const auto curator = client(Who::curator), kazoo = client(Who::kazoo);
    EXPECT_THAT(kazoo->ask({"number", number_path(), "get"}).fields(), ElementsAre("yes", "0", "0"))
        << "kazoo makes a node without data";
    EXPECT_EQ(counter.get(), 0);
    EXPECT_EQ(count.get().count, 0);
    EXPECT_EQ(counter.decrement().after, -1);
    EXPECT_THAT(kazoo->ask({"number", number_path(), "add", "-257"}).fields(), ElementsAre("yes", "-1", "-258"));
    EXPECT_THAT(curator->ask({"number", "int", number_path(), "add", "-1"}).fields(),
                ElementsAre("yes", "-258", "-259"));
    EXPECT_EQ(counter.increment().before, -259);
    EXPECT_THAT(curator->ask({"shared_count", number_path(), "0", "get"}).fields(), ElementsAre("4", "-258"));
    EXPECT_TRUE(curator->ask({"shared_count", number_path(), "0", "try", "5"}).yes());
    EXPECT_TRUE(await([&] { return count.get().count == 5; }));
    EXPECT_TRUE(count.try_set(count.get().version, std::numeric_limits<std::int32_t>::min()));
    EXPECT_TRUE(await([&] {
        return curator->ask({"shared_count", number_path(), "0", "get"}).fields().at(1) == "-2147483648";
    }));
    EXPECT_THAT(kazoo->ask({"number", number_path(), "get"}).fields().at(1), "-2147483648");
}

TEST_F(ValuesInteropTest, AMixedCrowdLosesNoIncrement) {
    ZKRECIPES_NEEDS(Who::curator, Who::kazoo);
    constexpr int kRounds = 20;
    std::vector<std::unique_ptr<Client>> peers;
    std::vector<Answer> answers;
    const auto rounds = std::to_string(kRounds);
    const auto long_path = path("shared/long");
    for (int i = 0; i < 2; ++i) {
        answers.push_back(peers.emplace_back(client(Who::curator))->ask({"increment", "int", number_path(), rounds}));
        answers.push_back(peers.emplace_back(client(Who::kazoo))->ask({"increment", number_path(), rounds}));
        answers.push_back(
            peers.emplace_back(client(Who::curator))->ask({"increment", "long", long_path, rounds, lock_path()}));
    }
    {
        std::vector<std::jthread> ours;
        for (int i = 0; i < 2; ++i) {
            ours.emplace_back([&] {
                Session s = connected_session(connect_string());
                CounterOptions locked;
                locked.lock_path = lock_path();
                AtomicCounter small(s, number_path(), four_bytes()), large(s, long_path, locked);
                for (int round = 0; round < kRounds; ++round) {
                    small.increment();
                    large.increment();
                }
            });
        }
    }
    for (const auto& answer : answers) answer.fields();
    Session s = connected_session(connect_string());
    EXPECT_EQ(AtomicCounter(s, number_path(), four_bytes()).get(Fresh::yes), 6 * kRounds);
    EXPECT_EQ(AtomicCounter(s, long_path).get(Fresh::yes), 4 * kRounds);
    EXPECT_TRUE(await_nodes(0)) << "nobody has kept the lock";
}

TEST_F(ValuesInteropTest, CuratorAndWeShareAValueAndSeeEachOthersChanges) {
    ZKRECIPES_NEEDS(Who::curator);
    Session s = connected_session(connect_string());
    const auto curator = client(Who::curator);
    for (const bool ours_first : {true, false}) {
        const auto where = path(ours_first ? "shared/ours" : "shared/theirs");
        SharedValue value(s, where, "our seed");
        const auto theirs = [&](const std::string& what, const std::string& text = "") {
            return curator->ask({"shared", where, "their seed", what, text}).fields();
        };
        const std::string seed = ours_first ? "our seed" : "their seed";
        if (ours_first) value.get();
        EXPECT_THAT(theirs("get"), ElementsAre("0", seed));
        EXPECT_EQ(value.get(), (VersionedValue{seed, 0}));
        std::atomic<int> told = -1;
        const auto subscription = value.observe([&](const std::optional<VersionedValue>& seen) {
            if (seen) told = seen->version;
        });
        EXPECT_THAT(theirs("try", "1"), ElementsAre("yes"));
        EXPECT_TRUE(await([&] { return told == 1 && value.get() == VersionedValue{"1", 1}; }));
        EXPECT_TRUE(value.try_set(1, "2"));
        EXPECT_FALSE(value.try_set(1, "3"));
        EXPECT_TRUE(await([&] { return theirs("get").at(1) == "2"; }));
        theirs("set", "4");
        EXPECT_TRUE(await([&] { return value.get() == VersionedValue{"4", 3}; }));
    }
}

}  // namespace
}  // namespace zkrecipes::test
