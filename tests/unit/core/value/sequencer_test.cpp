// The text of a sequencer, and the register that compares tokens.
#include "core/value/sequencer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/fenced_register.hpp>
#include <zkrecipes/sequencer.hpp>

namespace zkrecipes::internal {
namespace {

using ::testing::HasSubstr;

const std::string kMutexNode = "/locks/report/_c_00000000-0000-4000-8000-000000000001-lock-0000000007";
const std::string kShareNode = "/rw/_c_00000000-0000-4000-8000-000000000002-__READ__0000000003";
const std::string kLeaseNode = "/limits/leases/_c_00000000-0000-4000-8000-000000000003-lease-0000000000";
const std::string kGoodText = "zkr1:10000002b:x" + kMutexNode;

std::string why_not(const std::string& text) {
    const auto parsed = parse_sequencer(text);
    const auto* problem = std::get_if<SequencerProblem>(&parsed);
    return problem == nullptr ? "" : std::to_string(problem->at) + ": " + problem->what;
}

TEST(SequencerTest, TheTextSaysTokenModeAndNodes) {
    const auto one = Sequencer::parse(kGoodText);
    EXPECT_EQ(one.token(), 0x10000002b);
    EXPECT_EQ(one.mode(), HoldMode::exclusive);
    EXPECT_EQ(one.bearer(), Sequencer::Bearer::may_check);
    EXPECT_EQ(one.directory(), "/locks/report");
    EXPECT_EQ(one.text(), kGoodText);

    const auto many = Sequencer::parse("zkr1r:7:x" + kMutexNode + ",s" + kShareNode);
    EXPECT_EQ(many.bearer(), Sequencer::Bearer::may_release);
    EXPECT_EQ(many.mode(), HoldMode::exclusive);
    ASSERT_EQ(many.nodes().size(), 2u);
    EXPECT_EQ(many.nodes()[1].path, kShareNode);
    EXPECT_EQ(Sequencer::parse("zkr1:7:s" + kShareNode).mode(), HoldMode::shared);
    EXPECT_EQ(Sequencer::parse("zkr1:7:l" + kLeaseNode).mode(), HoldMode::lease);
    EXPECT_NE(many, one);
    EXPECT_EQ(Sequencer::parse(many.text()), many);
}

TEST(SequencerTest, PathsOfAnyBytesBecomeOneWordOfPlainCharacters) {
    const std::string path =
        "/l\xC3\xB6"
        "ck s,:%/a/x-lock-0000000001";
    const auto text = write_sequencer({1, 0, false, {{path, HoldMode::exclusive}}});
    EXPECT_EQ(text, "zkr1:1:x/l%C3%B6ck%20s%2C%3A%25/a/x-lock-0000000001");
    EXPECT_EQ(Sequencer::parse(text).nodes()[0].path, path);
}

TEST(SequencerTest, WhatIsNotExactlyTheTextIsRefusedWithThePlaceAndTheReason) {
    EXPECT_EQ(why_not(kGoodText), "");
    const std::string node = ":x" + kMutexNode;
    EXPECT_THAT(why_not(""), HasSubstr("0: it does not begin"));
    EXPECT_THAT(why_not("zkr2:1" + node), HasSubstr("0: it does not begin"));
    EXPECT_THAT(why_not(" " + kGoodText), HasSubstr("0: it does not begin"));
    EXPECT_THAT(why_not("zkr1x:1" + node), HasSubstr("4: a colon"));
    for (const std::string token : {"", "0", "01", "-1", "+1", "0x1", "1F", "8000000000000000", "11111111111111111"}) {
        EXPECT_THAT(why_not("zkr1:" + token + node), HasSubstr("5: not a token")) << token;
    }
    EXPECT_THAT(why_not("zkr1:1"), HasSubstr("6: a colon"));
    EXPECT_THAT(why_not("zkr1:1:"), HasSubstr("7: a node begins"));
    EXPECT_THAT(why_not("zkr1:1:y" + kMutexNode), HasSubstr("7: a node begins"));
    EXPECT_THAT(why_not("zkr1:1:s" + kMutexNode), HasSubstr("the mode is not that"));
    EXPECT_THAT(why_not("zkr1:1:xlocks/a"), HasSubstr("not a path"));
    EXPECT_THAT(why_not("zkr1:1:x/a//b"), HasSubstr("not a path"));
    EXPECT_THAT(why_not("zkr1:1:x/a/../b"), HasSubstr("not a path"));
    EXPECT_THAT(why_not("zkr1:1:x/x-lock-0000000001"), HasSubstr("not in the root"));
    EXPECT_THAT(why_not(kGoodText + ","), HasSubstr("a node begins"));
    EXPECT_THAT(why_not(kGoodText + ",x" + kMutexNode), HasSubstr("second time"));
    EXPECT_THAT(why_not(kGoodText + "\n"), HasSubstr("must be written as %XX"));
    EXPECT_THAT(why_not("zkr1:1:x/a/%6C-lock-0000000001"), HasSubstr("must not"));
    EXPECT_THAT(why_not("zkr1:1:x/a/%c3%b6-lock-0000000001"), HasSubstr("capitals"));
    EXPECT_THAT(why_not("zkr1:1:x/a/%C"), HasSubstr("%XX"));
    EXPECT_THAT(why_not(kGoodText + std::string(Sequencer::max_bytes, 'a')), HasSubstr("longer than"));
    std::string many = "zkr1:1:x/a/n-lock-0000000000";
    for (int i = 1; i <= 1000; ++i) many += ",x/a/n-lock-" + std::to_string(1'000'000'000 + i);
    EXPECT_THAT(why_not(many), HasSubstr("more than 1000 nodes"));
    try {
        Sequencer::parse("zkr1:0");
        FAIL() << "taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_data);
        EXPECT_THAT(error.what(), HasSubstr("byte 5: not a token"));
    }
}

TEST(SequencerTest, TheNumberOfHandOversStandsBehindTheToken) {
    const std::string node = ":x" + std::string(kMutexNode);
    const auto sequencer = Sequencer::parse("zkr1:10000002b.1f" + node);
    EXPECT_EQ(sequencer.token(), 0x10000002b);
    EXPECT_EQ(sequencer.handovers(), 31u);
    EXPECT_EQ(sequencer.text(), "zkr1:10000002b.1f" + node);
    EXPECT_EQ(Sequencer::parse("zkr1:10000002b.7fffffffffffffff" + node).handovers(), 0x7fff'ffff'ffff'ffffu);
    for (const char* number : {".0", ".", ".01", ".1F", ".8000000000000000", ".-1"}) {
        EXPECT_TRUE(std::holds_alternative<SequencerProblem>(parse_sequencer("zkr1:10000002b" + (number + node))))
            << number;
    }
}

TEST(SequencerTest, WhateverIsTakenIsWrittenAgainAsItWas) {
    std::minstd_rand random(1);
    const std::string good = "zkr1r:10000002b.2a:x" + kMutexNode + ",s" + kShareNode + ",l" + kLeaseNode;
    int taken = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string text = good;
        const auto changes = 1 + random() % 3;
        for (unsigned change = 0; change < changes; ++change) {
            const auto at = random() % text.size();
            switch (random() % 4) {
                case 0: text[at] = static_cast<char>(random() % 256); break;
                case 1: text.erase(at, 1 + random() % 5); break;
                case 2: text.insert(at, 1, "%,:/x0"[random() % 6]); break;
                default: text.insert(at, text.substr(random() % text.size(), random() % 20)); break;
            }
            if (text.empty()) break;
        }
        const auto parsed = parse_sequencer(text);
        if (const auto* what = std::get_if<SequencerText>(&parsed)) {
            ++taken;
            ASSERT_EQ(write_sequencer(*what), text);
        }
    }
    EXPECT_GT(taken, 100);
}

TEST(FencedRegisterTest, NobodyIsLetInWhoHeldBeforeTheLatestThatWas) {
    FencedRegister fence;
    EXPECT_TRUE(fence.admit_exclusive("a", 5));
    EXPECT_TRUE(fence.admit_exclusive("a", 5)) << "the same hold";
    EXPECT_FALSE(fence.admit_exclusive("a", 4));
    EXPECT_TRUE(fence.admit_exclusive("a", 9));
    EXPECT_FALSE(fence.admit_exclusive("a", 5));
    EXPECT_TRUE(fence.admit_exclusive("b", 1)) << "another resource";
    EXPECT_FALSE(fence.admit_exclusive("c", 0)) << "an empty grant";
    EXPECT_FALSE(fence.admit_exclusive("c", -1));
    EXPECT_FALSE(fence.admit_shared("c", 0));
}

TEST(FencedRegisterTest, HoldersOfOneNodeAreToldApartByTheirHandovers) {
    FencedRegister fence;
    EXPECT_TRUE(fence.admit_exclusive("a", {5, 2}));
    EXPECT_FALSE(fence.admit_exclusive("a", {5, 1}));
    EXPECT_FALSE(fence.admit_exclusive("a", 5));
    EXPECT_TRUE(fence.admit_exclusive("a", {5, 2}));
    FencedRegister restarted;
    restarted.remember("a", fence.highest("a"));
    EXPECT_FALSE(restarted.admit_exclusive("a", {5, 1}));
    EXPECT_FALSE(restarted.admit_shared("a", 5));
    EXPECT_TRUE(restarted.admit_exclusive("a", 6));
    EXPECT_TRUE(restarted.admit_exclusive("b", {5, 0xffff'ffff}));
    EXPECT_TRUE(restarted.admit_exclusive("b", {5, 0x1'0000'0000}));
    EXPECT_FALSE(restarted.admit_exclusive("b", {5, 0xffff'ffff}));
}

TEST(FencedRegisterTest, SharesGoBesideEachOtherAndBetweenWhoIsAlone) {
    FencedRegister fence;
    EXPECT_TRUE(fence.admit_shared("a", 7));
    EXPECT_TRUE(fence.admit_shared("a", 6)) << "shares come in any order";
    EXPECT_TRUE(fence.admit_exclusive("a", 8));
    EXPECT_FALSE(fence.admit_shared("a", 7)) << "the writer came later";
    EXPECT_FALSE(fence.admit_shared("a", 8));
    EXPECT_TRUE(fence.admit_shared("a", 9)) << "also the downgraded share of 8";
    EXPECT_FALSE(fence.admit_exclusive("a", 8)) << "a later reader has been let in";
    EXPECT_TRUE(fence.admit_exclusive("a", 10));
}

// A writer has 100, the next one waits with 101. The first one downgrades: its share has 101, too.
TEST(FencedRegisterTest, ADowngradedShareIsRefusedAfterAWriterWithTheSameToken) {
    FencedRegister fence;
    EXPECT_TRUE(fence.admit_exclusive("a", 100));
    EXPECT_TRUE(fence.admit_shared("a", 101)) << "the share, while it holds";
    EXPECT_TRUE(fence.admit_shared("a", 101));
    EXPECT_FALSE(fence.admit_exclusive("a", 100)) << "the exclusive hold that was given back";
    EXPECT_TRUE(fence.admit_exclusive("a", 101)) << "the next writer";
    EXPECT_FALSE(fence.admit_shared("a", 101)) << "a late write under the share";
    FencedRegister restarted;
    restarted.remember("a", fence.highest("a"));
    EXPECT_FALSE(restarted.admit_shared("a", 101));
    EXPECT_TRUE(restarted.admit_exclusive("a", 101));
}

TEST(FencedRegisterTest, HoldersOfOneNodeAreToldApartByTheirNumber) {
    FencedRegister fence;
    EXPECT_TRUE(fence.admit_exclusive("a", {100, 0}));
    EXPECT_TRUE(fence.admit_exclusive("a", {100, 2}));
    EXPECT_TRUE(fence.admit_exclusive("a", {100, 2})) << "the same hold";
    EXPECT_FALSE(fence.admit_exclusive("a", {100, 1})) << "it gave the lock back in its process, and writes late";
    FencedRegister restarted;
    restarted.remember("a", fence.highest("a"));
    EXPECT_FALSE(restarted.admit_exclusive("a", {100, 1}));
    EXPECT_TRUE(restarted.admit_exclusive("a", {100, 2}));
    EXPECT_TRUE(restarted.admit_exclusive("a", {101, 0})) << "the next node";
    EXPECT_FALSE(restarted.admit_exclusive("a", {100, 9}));
}

TEST(FencedRegisterTest, RunsTellWhatCameOfIt) {
    FencedRegister fence;
    EXPECT_EQ(fence.run_exclusive("a", 2, [] { return 42; }), 42);
    EXPECT_EQ(fence.run_exclusive("a", 1, [] { return 42; }), std::nullopt);
    EXPECT_EQ(fence.run_shared("a", 3, [] { return std::string("x"); }), "x");
    EXPECT_THROW(fence.run_exclusive("a", 4, []() -> int { throw 1; }), int);
    EXPECT_FALSE(fence.admit_exclusive("a", 3)) << "it may have done a part of it";
    EXPECT_EQ(fence.highest("a").exclusive, 4);
    EXPECT_EQ(fence.highest("a").shared, 3);
    EXPECT_EQ(fence.highest("b").exclusive, 0);
    fence.remember("b", {5, 6, 0});
    fence.remember("b", {1, 1, 0});
    EXPECT_FALSE(fence.admit_exclusive("b", 5));
    EXPECT_TRUE(fence.admit_exclusive("b", 6));
}

TEST(FencedRegisterTest, SharesRunBesideEachOther) {
    FencedRegister fence;
    const bool beside =
        fence
            .run_shared("a", 5,
                        [&] {
                            return std::async(std::launch::async,
                                              [&] { return fence.admit_shared("a", 4) && fence.admit_shared("a", 6); })
                                .get();
                        })
            .value();
    EXPECT_TRUE(beside);
    EXPECT_EQ(fence.highest("a").shared, 6);
}

TEST(FencedRegisterTest, NoActOfAFormerHolderEndsAfterOneOfALaterHolderHasBegun) {
    FencedRegister fence;
    FencingToken last = 0;  // guarded by the register alone
    bool went_back = false;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (FencingToken token = 1 + t; token < 2000; token += 3) {
                fence.run_exclusive("a", token, [&] {
                    went_back = went_back || last > token;
                    last = token;
                });
            }
        });
    }
    threads.clear();
    EXPECT_FALSE(went_back);
    EXPECT_EQ(fence.highest("a").exclusive, last);
}

}  // namespace
}  // namespace zkrecipes::internal
