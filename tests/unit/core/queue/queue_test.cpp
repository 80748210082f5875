#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "core/queue/node_name.hpp"
#include "core/queue/queue_rule.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using Names = std::vector<std::string>;

const Names kLock = {"lock-"};
constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();

std::string curator(int who, std::int32_t sequence, const std::string& base = "lock-") {
    return make_identity("0123456" + std::to_string(who % 10) + "-89ab-4def-8123-" +
                         std::to_string(100000000000 + who)) +
           base + format_sequence(sequence);
}

TEST(NodeNameTest, IdentityIsCuratorsProtectionPrefix) {
    EXPECT_EQ(make_identity("01234567-89ab-4def-8123-456789abcdef"), "_c_01234567-89ab-4def-8123-456789abcdef-");
    EXPECT_EQ(make_identity("01234567-89ab-4def-8123-456789abcdef").size(), kIdentityChars);
}

TEST(NodeNameTest, OursIsToldFromCuratorsAndKazoosByTheVersionOfTheUuid) {
    const std::string ours = "01234567-89ab-8def-8123-456789abcdef";
    const std::string theirs = "01234567-89ab-4def-8123-456789abcdef";
    EXPECT_TRUE(has_our_identity(make_identity(ours) + "latch-0000000007"));
    EXPECT_TRUE(has_our_identity(make_identity(ours, Dialect::kazoo) + "__lock__0000000007"));
    EXPECT_FALSE(has_our_identity(make_identity(theirs) + "latch-0000000007"));
    EXPECT_FALSE(has_our_identity(make_identity(theirs, Dialect::kazoo) + "__lock__0000000007"));
    // go-zk's, which has no dashes; ZooKeeper's own C recipe; others.
    for (const char* name : {"_c_0123456789ab8def8123456789abcdef-lock-0000000007", "x-72057-0000000008", "", "_c_",
                             "lock-0000000001", "0123456789ab8def", "0123456789aB8def8123456789abcdef__lock__1"}) {
        EXPECT_FALSE(has_our_identity(name)) << name;
    }
}

TEST(NodeNameTest, KazoosIdentityIsTheBareDigits) {
    const std::vector<std::string> patterns = {"__lock__", "__rlock__"};
    const auto identity = make_identity("01234567-89ab-4def-8123-456789abcdef", Dialect::kazoo);
    EXPECT_EQ(identity, "0123456789ab4def8123456789abcdef");
    EXPECT_EQ(parse_queue_name(identity + "__lock__0000000007", patterns)->pattern, 0u);
    EXPECT_EQ(parse_queue_name(identity + "__rlock__0000000007", patterns)->pattern, 1u);
    EXPECT_FALSE(parse_queue_name(identity + "-lock-0000000007", patterns));
}

TEST(NodeNameTest, EveryNumberOfTheServerIsReadBack) {
    for (const std::int32_t sequence :
         {0, 1, 9, 1'000'000'000, 2'000'000'000, kMax, -1, -5, -999'999'999, -1'000'000'000, kMin}) {
        const auto name = curator(1, sequence);
        const auto parsed = parse_queue_name(name, kLock);
        ASSERT_TRUE(parsed) << name;
        EXPECT_EQ(parsed->sequence, sequence);
    }
    EXPECT_EQ(format_sequence(kMin).size(), kSequenceChars);
}

TEST(NodeNameTest, OtherClientsPrefixesAreContenders) {
    EXPECT_TRUE(parse_queue_name("_c_0123456789abcdef0123456789abcdef-lock-0000000003", kLock));  // go-zk
    EXPECT_TRUE(parse_queue_name("lock-0000000003", kLock));
    EXPECT_TRUE(parse_queue_name("x-lock--2147483648", kLock));
    EXPECT_TRUE(parse_queue_name("01234567-89ab-4def-8123-456789abcdef-lock-0000000003", kLock));
}

TEST(NodeNameTest, APatternIsAWordOfTheName) {  // H70
    const Names patterns = {"lock-", "latch-", "__WRIT__", "__READ__", "__lock__"};
    for (const char* name : {"block-0000000000", "clock-0000000000", "unlock-0000000000", "x_lock-0000000000",
                             "_c_lock-0000000000", "slatch-0000000000", "x.lock--2147483648"}) {
        EXPECT_FALSE(parse_queue_name(name, patterns)) << name;
    }
    for (const std::string& pattern : patterns) {
        const std::string uuid = "01234567-89ab-4def-8123-456789abcdef";
        for (const std::string& before : {std::string(), make_identity(uuid), uuid + "-"}) {
            EXPECT_TRUE(parse_queue_name(before + pattern + "0000000001", patterns)) << before << pattern;
        }
    }
    EXPECT_TRUE(parse_queue_name("0123456789ab4def8123456789abcdef__lock__0000000001", patterns));
    const Names any = {""};
    EXPECT_EQ(parse_queue_name("_c_x-__WRIT__0000000007", any)->sequence, 7) << "whatever stands before the number";
}

TEST(NodeNameTest, ANameWithARandomPartIsUnique) {
    const std::string uuid = "01234567-89ab-4def-8123-456789abcdef", digits = "0123456789abcdef0123456789abcdef";
    for (const std::string& name :
         {"_c_" + uuid + "-lock-0000000001", "_c_" + digits + "-lock-0000000001",
          make_identity("01234567-89ab-8def-8123-456789abcdef", Dialect::kazoo) + "__lock__0"}) {
        EXPECT_TRUE(is_unique(name)) << name;
    }
    for (const std::string& name :
         {std::string("lock-0000000000"), std::string("_c_lock-0000000000"), std::string("deadbeef-lock-0000000000"),
          std::string(), digits, digits + "__lock__0000000001", uuid + "-lease-0000000001"}) {
        EXPECT_FALSE(is_unique(name)) << name;
    }
}

TEST(NodeNameTest, ForeignNamesAreNot) {  // H70
    for (const char* name : {"",
                             "!junk",
                             "lock-",
                             "lock-1",
                             "lock-000000000",
                             "lock-00000000001",
                             "lock-0000000001x",
                             "lock-2147483648",
                             "lock-9999999999",
                             "lock--2147483649",
                             "lock--0000000000",
                             "lock--000000000",
                             "lock_0000000001",
                             "0000000001",
                             "-0000000001",
                             "x-0000000001",
                             "abc__lock__0000000001",
                             "lock-+000000001",
                             "lock- 000000001",
                             "-"}) {
        EXPECT_FALSE(parse_queue_name(name, kLock)) << name;
    }
    const Names kazoo = {"__rlock__", "__lock__"};
    EXPECT_EQ(parse_queue_name("abc__lock__0000000001", kazoo)->pattern, 1u);
    EXPECT_EQ(parse_queue_name("abc__rlock__0000000001", kazoo)->pattern, 0u);
}

TEST(NodeNameTest, RandomNamesAreReadWithoutHarm) {
    std::mt19937_64 random(1);
    const std::string letters = "lock-0123456789_c/\0x";
    for (int i = 0; i < 200'000; ++i) {
        std::string name;
        for (auto n = random() % 24; n > 0; --n) name += letters[random() % letters.size()];
        const auto parsed = parse_queue_name(name, kLock);
        if (parsed) {
            EXPECT_TRUE(name.ends_with("lock-" + format_sequence(parsed->sequence))) << name;
        }
    }
}

TEST(NodeNameTest, OrderIsThatOfTheDifference) {  // H11
    EXPECT_TRUE(sequence_before(0, 1));
    EXPECT_FALSE(sequence_before(1, 1));
    EXPECT_TRUE(sequence_before(kMax, kMin));
    EXPECT_TRUE(sequence_before(kMax - 1, kMin + 5));
    EXPECT_FALSE(sequence_before(kMin, kMax));
    EXPECT_TRUE(sequence_before(-1, 0));
}

TEST(NodeNameTest, TheQueueIsSortedAcrossTheOverflow) {
    const Names children = {"b-lock--2147483648", "junk", "a-lock-2147483647", "c-lock--2147483647",
                            "d-lock-2147483646"};
    std::vector<std::int32_t> order;
    for (const auto& n : sorted_queue(children, kLock)) order.push_back(n.sequence);
    EXPECT_THAT(order, ElementsAre(kMax - 1, kMax, kMin, kMin + 1));
}

TEST(NodeNameTest, TheQueueIsSortedAcrossZero) {
    const Names children = {"b-lock-0000000001", "d-lock--000000002", "a-lock-0000000000", "c-lock--000000001"};
    std::vector<std::int32_t> order;
    for (const auto& n : sorted_queue(children, kLock)) order.push_back(n.sequence);
    EXPECT_THAT(order, ElementsAre(-2, -1, 0, 1));
}

TEST(NodeNameTest, NumbersAllAroundTheCircleAreStillSorted) {
    // Serial arithmetic is no order here (each is "before" the next, in a circle): sorting must not run wild on it.
    const Names children = {"lock-0000000000", "lock-1500000000", "lock--1300000000", "lock-0700000000",
                            "lock--0500000000"};
    EXPECT_EQ(sorted_queue(children, kLock).size(), 4u);  // the last name is none that a server writes
}

/// Where the numbers of a random queue begin: every other time shortly before they overflow.
std::uint32_t start_of(int round, std::mt19937& random) {
    const auto any = static_cast<std::uint32_t>(random());
    return round % 2 == 0 ? any : 0x7FFFFFFFU - any % 10;
}

PredecessorRule exclusive() { return PredecessorRule({{"lock-", true}}); }

TEST(QueueRuleTest, TheFirstHolds) {
    const Names children = {curator(2, 5), curator(1, 3), "zjunk"};
    EXPECT_EQ(exclusive().position(children, children[1]).kind, QueuePosition::Kind::held);
    EXPECT_FALSE(exclusive().would_hold(children));
    EXPECT_TRUE(exclusive().would_hold(Names{"zjunk"}));
    EXPECT_TRUE(exclusive().would_hold(Names{}));
}

TEST(QueueRuleTest, EverybodyElseWaitsForTheNearestBeforeIt) {  // H22
    const Names children = {curator(4, 9), curator(1, 3), curator(3, 8), curator(2, 5)};
    const auto second = exclusive().position(children, children[3]);
    EXPECT_EQ(second.kind, QueuePosition::Kind::wait);
    EXPECT_EQ(second.predecessor, children[1]);
    EXPECT_TRUE(second.only_predecessor);
    const auto last = exclusive().position(children, children[0]);
    EXPECT_EQ(last.predecessor, children[2]);
    EXPECT_FALSE(last.only_predecessor);
}

TEST(QueueRuleTest, TheOrderIsThatOfTheNumbersNotOfTheNames) {
    const Names children = {"_c_ffffffff-ffff-4fff-bfff-ffffffffffff-lock-0000000001",
                            "_c_00000000-0000-4000-8000-000000000000-lock-0000000002"};
    EXPECT_EQ(exclusive().position(children, children[0]).kind, QueuePosition::Kind::held);
    EXPECT_EQ(exclusive().position(children, children[1]).predecessor, children[0]);
}

TEST(QueueRuleTest, TheOrderGoesOnAcrossTheOverflow) {
    const Names children = {curator(1, kMax), curator(2, kMin), curator(3, kMin + 1)};
    EXPECT_EQ(exclusive().position(children, children[0]).kind, QueuePosition::Kind::held);
    EXPECT_EQ(exclusive().position(children, children[1]).predecessor, children[0]);
    EXPECT_EQ(exclusive().position(children, children[2]).predecessor, children[1]);
}

TEST(QueueRuleTest, AnUnlistedNodeIsMissing) {
    const Names children = {curator(1, 3)};
    EXPECT_EQ(exclusive().position(children, curator(2, 1)).kind, QueuePosition::Kind::missing);
    EXPECT_EQ(exclusive().position(Names{}, curator(2, 1)).kind, QueuePosition::Kind::missing);
    EXPECT_EQ(exclusive().position(Names{"junk"}, "junk").kind, QueuePosition::Kind::missing);
}

TEST(QueueRuleTest, EqualNumbersNeverBothHold) {
    const Names children = {curator(1, kMax), curator(2, kMax)};
    const bool first = exclusive().position(children, children[0]).kind == QueuePosition::Kind::held;
    const bool second = exclusive().position(children, children[1]).kind == QueuePosition::Kind::held;
    EXPECT_NE(first, second);
}

TEST(QueueRuleTest, AReaderWaitsForTheNearestWriterBeforeIt) {
    const PredecessorRule reader({{"__WRIT__", true}, {"__READ__", false}});
    const Names children = {curator(1, 1, "__WRIT__"), curator(2, 2, "__READ__"), curator(3, 3, "__WRIT__"),
                            curator(4, 4, "__READ__"), curator(5, 5, "__READ__"), curator(6, 6, "__WRIT__")};
    EXPECT_EQ(reader.position(children, children[4]).predecessor, children[2]);
    EXPECT_EQ(reader.position(children, children[1]).predecessor, children[0]);
    const Names readers = {children[1], children[3], children[5]};
    EXPECT_EQ(reader.position(readers, children[3]).kind,
              QueuePosition::Kind::held);  // H23: a later writer does not matter
}

TEST(QueueRuleTest, WhereNodesCanAppearBeforeAWaiterNobodyIsAlone) {
    const PredecessorRule writer({{"__WRIT__", true}, {"__READ__", true}}, PredecessorRule::Shrinking::no);
    const Names children = {curator(1, 1, "__WRIT__"), curator(2, 2, "__WRIT__")};
    EXPECT_FALSE(writer.position(children, children[1]).only_predecessor);
}

TEST(QueueRuleTest, AShareWithTheNumberOfAGoneWriterBlocksTheNextWriterOnly) {  // H45
    const PredecessorRule writer({{"__WRIT__", true}, {"__READ__", true}}, PredecessorRule::Shrinking::no);
    const PredecessorRule reader({{"__WRIT__", true}, {"__READ__", false}});
    const Names children = {curator(9, 4, "__READ__"), curator(2, 5, "__WRIT__"), curator(3, 6, "__READ__")};
    EXPECT_EQ(writer.position(children, children[1]).predecessor, children[0]);
    EXPECT_EQ(reader.position(children, children[2]).predecessor, children[1]);
    EXPECT_EQ(reader.position(Names{children[0], children[2]}, children[2]).kind, QueuePosition::Kind::held);
}

TEST(QueueRuleTest, ATryForAShareLooksAtWritersOnlyAndATryForAllAtEverybody) {
    const PredecessorRule writer({{"__WRIT__", true}, {"__READ__", true}}, PredecessorRule::Shrinking::no);
    const PredecessorRule reader({{"__WRIT__", true}, {"__READ__", false}});
    const Names shares = {curator(1, 1, "__READ__")};
    EXPECT_TRUE(reader.would_hold(shares));
    EXPECT_FALSE(writer.would_hold(shares));
    const Names both = {curator(1, 1, "__READ__"), curator(2, 2, "__WRIT__")};
    EXPECT_FALSE(reader.would_hold(both));  // fair: not past a writer that waits
}

TEST(QueueRuleTest, WritersAndReadersNeverHoldTogetherWhateverTheQueue) {
    const PredecessorRule writer({{"__WRIT__", true}, {"__READ__", true}}, PredecessorRule::Shrinking::no);
    const PredecessorRule reader({{"__WRIT__", true}, {"__READ__", false}});
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
        const auto start = start_of(round, random);
        Names children;
        for (std::uint32_t i = 0; i < 10; ++i) {
            const bool writes = random() % 2 == 0;
            children.push_back(
                curator(static_cast<int>(i), static_cast<std::int32_t>(start + i), writes ? "__WRIT__" : "__READ__"));
        }
        const auto first_kind = children.front().find("__WRIT__") != std::string::npos;
        std::shuffle(children.begin(), children.end(), random);
        int writers = 0, readers = 0;
        for (const auto& child : children) {
            const bool writes = child.find("__WRIT__") != std::string::npos;
            const auto position = writes ? writer.position(children, child) : reader.position(children, child);
            if (position.kind == QueuePosition::Kind::held) ++(writes ? writers : readers);
        }
        EXPECT_EQ(writers, first_kind ? 1 : 0);
        EXPECT_EQ(readers == 0, first_kind);
    }
}

TEST(QueueRuleTest, WritersAndReadersKeepTheirOrderAcrossTheOverflow) {  // H11
    const Names children = {curator(1, kMax - 1, "__WRIT__"), curator(2, kMax, "__READ__"),
                            curator(3, kMin, "__READ__"), curator(4, kMin + 1, "__WRIT__"),
                            curator(5, kMin + 2, "__READ__")};
    EXPECT_EQ(rule_shared()->position(children, children[1]).predecessor, children[0]);
    EXPECT_EQ(rule_shared()->position(children, children[2]).predecessor, children[0]);
    EXPECT_EQ(rule_exclusive()->position(children, children[3]).predecessor, children[2]);
    EXPECT_EQ(rule_shared()->position(children, children[4]).predecessor, children[3]);
    const Names readers(children.begin() + 1, children.end());
    EXPECT_EQ(rule_shared()->position(readers, children[2]).kind, QueuePosition::Kind::held);
    EXPECT_EQ(rule_shared()->position(readers, children[4]).predecessor, children[3]);
}

TEST(QueueRuleTest, AMutexAWriterAndAReaderOnOnePathNeverHoldTogetherWhateverTheQueue) {
    std::mt19937 random(6);
    const std::string kinds[] = {"lock-", "__WRIT__", "__READ__"};
    for (int round = 0; round < 2000; ++round) {
        const auto start = start_of(round, random);
        Names children;
        for (std::uint32_t i = 0; i < 8; ++i) {
            children.push_back(curator(static_cast<int>(i), static_cast<std::int32_t>(start + i), kinds[random() % 3]));
        }
        const auto reads = [](const std::string& name) { return name.find("__READ__") != std::string::npos; };
        const bool first_reads = reads(children.front());
        std::shuffle(children.begin(), children.end(), random);
        int alone = 0, shares = 0;
        for (const auto& child : children) {
            const auto rule = reads(child) ? rule_shared() : rule_exclusive();
            if (rule->position(children, child).kind == QueuePosition::Kind::held) ++(reads(child) ? shares : alone);
        }
        EXPECT_EQ(alone, first_reads ? 0 : 1);
        EXPECT_EQ(shares > 0, first_reads);
    }
}

TEST(QueueRuleTest, BehindAMutexAloneNobodyAppearsButBehindAWriterAShareMay) {
    for (const std::string kind : {"lock-", "__WRIT__", "__READ__"}) {
        const Names children = {curator(1, 1, kind), curator(2, 2)};
        const auto position = rule_exclusive()->position(children, children[1]);
        EXPECT_EQ(position.predecessor, children[0]);
        EXPECT_EQ(position.only_predecessor, kind == "lock-") << kind;
    }
    const Names children = {curator(1, 1), curator(2, 2, "__READ__")};
    EXPECT_TRUE(rule_shared()->position(children, children[1]).only_predecessor);
}

TEST(QueueRuleTest, ExactlyOneOfAnySetOfNodesHolds) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        const auto start = start_of(round, random);
        Names children;
        std::set<std::uint32_t> used;
        for (int i = 0; i < 12; ++i) {
            const auto offset = static_cast<std::uint32_t>(random() % 1000);
            if (used.insert(offset).second) children.push_back(curator(i, static_cast<std::int32_t>(start + offset)));
        }
        int holders = 0;
        std::set<std::string> predecessors;
        for (const auto& child : children) {
            const auto position = exclusive().position(children, child);
            holders += position.kind == QueuePosition::Kind::held;
            if (position.kind == QueuePosition::Kind::wait) {
                EXPECT_TRUE(predecessors.insert(position.predecessor).second);
            }
        }
        EXPECT_EQ(holders, 1);
        const auto queue = sorted_queue(children, kLock);
        EXPECT_EQ(exclusive().position(children, queue.front().name).kind, QueuePosition::Kind::held);
    }
}

}  // namespace
}  // namespace zkrecipes::internal
