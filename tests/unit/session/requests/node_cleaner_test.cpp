#include "session/requests/node_cleaner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NodeCleanerTest : public ::testing::Test, protected NodeCleaner::Port {
protected:
    void cleaner_remove(const std::string& path, NodeCleaner::Ticket t) override { send("remove " + path, t); }
    void cleaner_remove_all(const std::vector<std::string>& paths, NodeCleaner::Ticket t) override {
        std::string what = "remove together";
        for (const auto& path : paths) what += " " + path;
        send(what, t);
    }
    void cleaner_sync(const std::string& path, NodeCleaner::Ticket t) override { send("sync " + path, t); }
    void cleaner_children(const std::string& path, NodeCleaner::Ticket t) override { send("children " + path, t); }
    void cleaner_exists(const std::string& path, NodeCleaner::Ticket t) override { send("exists " + path, t); }
    bool cleaner_can_send() const override { return connected; }
    Instant cleaner_now() const override { return now; }
    std::uint64_t cleaner_random() override { return 0; }
    void cleaner_refused(const std::string&, const char*, Rc, std::uint64_t) override { ++refusals; }

    void send(std::string what, NodeCleaner::Ticket t) {
        sent.push_back(std::move(what));
        tickets.push_back(t);
    }
    NodeCleaner::Ticket next() {
        if (tickets.empty()) {
            ADD_FAILURE() << "nothing was sent";
            return 0;
        }
        const auto ticket = tickets.front();
        tickets.erase(tickets.begin());
        return ticket;
    }
    void removed_all(Rc rc = Rc::ok) { cleaner.on_removed_all(next(), rc); }
    void removed(Rc rc = Rc::ok) { cleaner.on_removed(next(), rc); }
    NodeCleaner::Done done() {
        return [this](bool gone) { ends.push_back(gone); };
    }
    void identity() { cleaner.add_identity("/dir", "_c_1-", 77, done()); }

    NodeCleaner cleaner{*this};
    bool connected = true;
    Instant now{100h};
    std::vector<std::string> sent;
    std::vector<NodeCleaner::Ticket> tickets;
    std::vector<bool> ends;
    int refusals = 0;
};

TEST_F(NodeCleanerTest, ANodeIsDeletedAtOnce) {
    cleaner.add_node("/dir/n", done());
    EXPECT_THAT(sent, ElementsAre("remove /dir/n"));
    EXPECT_EQ(cleaner.pending(), 1u);
    removed();
    EXPECT_THAT(ends, ElementsAre(true));
    EXPECT_EQ(cleaner.pending(), 0u);
}

TEST_F(NodeCleanerTest, SeveralNodesAreDeletedByOneRequest) {
    cleaner.add_nodes({"/a/n", "/b/n"}, done());
    EXPECT_THAT(sent, ElementsAre("remove together /a/n /b/n"));
    removed_all();
    EXPECT_THAT(ends, ElementsAre(true));
    EXPECT_EQ(cleaner.pending(), 0u);
}

TEST_F(NodeCleanerTest, WhenOneOfSeveralIsGoneOrMayNotBeDeletedEachIsDeletedByItself) {
    for (const Rc rc : {Rc::no_node, Rc::no_auth}) {
        sent.clear();
        ends.clear();
        cleaner.add_nodes({"/a/n", "/b/n"}, done());
        removed_all(rc);
        EXPECT_THAT(sent, ElementsAre("remove together /a/n /b/n", "remove /a/n", "remove /b/n"));
        removed(Rc::no_node);
        EXPECT_THAT(ends, IsEmpty());
        removed();
        EXPECT_THAT(ends, ElementsAre(true));
        EXPECT_EQ(cleaner.pending(), 0u);
    }
}

TEST_F(NodeCleanerTest, AnUnknownEndOfSeveralDeletionsIsTriedAgainAndTheSessionsEndIsTheEndOfAll) {
    cleaner.add_nodes({"/a/n", "/b/n"}, done());
    connected = false;
    removed_all(Rc::connection_loss);
    EXPECT_THAT(ends, IsEmpty());
    connected = true;
    cleaner.go_on();
    removed_all(Rc::no_node);  // it had been done after all
    EXPECT_EQ(sent.size(), 4u);
    cleaner.session_over();
    EXPECT_THAT(ends, ElementsAre(false));
    EXPECT_EQ(cleaner.pending(), 0u);
}

TEST_F(NodeCleanerTest, ANodeThatIsGoneAlreadyCountsAsDeleted) {
    cleaner.add_node("/dir/n", done());
    removed(Rc::no_node);
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, NothingIsSentBeforeConnected) {
    connected = false;
    cleaner.add_node("/dir/n", done());
    identity();
    EXPECT_THAT(sent, IsEmpty());
    connected = true;
    cleaner.go_on();
    EXPECT_THAT(sent, ElementsAre("remove /dir/n", "sync /dir"));
}

TEST_F(NodeCleanerTest, ADeleteWithUnknownOutcomeIsRepeatedWhenConnectedAgain) {
    cleaner.add_node("/dir/n", done());
    for (const Rc rc : {Rc::connection_loss, Rc::operation_timeout, Rc::runtime_inconsistency}) {
        connected = false;
        removed(rc);
        EXPECT_TRUE(tickets.empty());
        connected = true;
        cleaner.go_on();
        EXPECT_EQ(tickets.size(), 1u);
    }
    removed(Rc::no_node);
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, ARefusedDeleteIsTriedOnSlowlyAndReported) {
    cleaner.add_node("/dir/n", done());
    Instant last = now;
    for (int i = 1; i <= 12; ++i) {
        removed(Rc::no_auth);
        EXPECT_EQ(refusals, i);
        EXPECT_TRUE(tickets.empty()) << "no hot loop";
        EXPECT_GE(cleaner.wake_at() - now, 500ms);
        EXPECT_LE(cleaner.wake_at() - now, 6s);
        last = now;
        now = cleaner.wake_at();
        cleaner.go_on();
        ASSERT_EQ(tickets.size(), 1u);
    }
    EXPECT_GT(now - last, 2s);
    removed();
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, TheNextNodeOfAnUnknownCreateDoesNotWaitForTheRefusalsOfTheFormerOne) {
    identity();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::ok, {"_c_1-lock-1", "_c_1-lock-2"});
    const auto pause_after_a_refusal = [&] {
        removed(Rc::no_auth);
        const auto pause = cleaner.wake_at() - now;
        now = cleaner.wake_at();
        cleaner.go_on();
        return pause;
    };
    cleaner.on_exists(next(), Rc::ok, 77);
    const auto first = pause_after_a_refusal();
    for (int i = 0; i < 5; ++i) pause_after_a_refusal();
    ASSERT_GT(pause_after_a_refusal(), first);
    removed();
    cleaner.on_exists(next(), Rc::ok, 77);
    EXPECT_EQ(pause_after_a_refusal(), first);
    removed();
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, AThrottledDeleteWaitsAMoment) {
    cleaner.add_node("/dir/n", done());
    removed(Rc::throttled);
    EXPECT_TRUE(tickets.empty());
    EXPECT_EQ(refusals, 0);
    now = cleaner.wake_at();
    cleaner.go_on();
    EXPECT_EQ(tickets.size(), 1u);
}

TEST_F(NodeCleanerTest, WhatHasNoClearAnswerOnAConnectionThatStandsIsRepeatedAfterAPause) {
    cleaner.add_node("/dir/n", done(), DeletedFor::giving_up);
    EXPECT_EQ(cleaner.given_up(), 1u);
    for (const Rc rc : {Rc::marshalling_error, Rc::connection_loss, Rc::not_connected, Rc::throttled, Rc::no_auth}) {
        sent.clear();
        removed(rc);
        EXPECT_THAT(sent, IsEmpty()) << to_string(rc);
        EXPECT_GT(cleaner.wake_at(), now);
        now = cleaner.wake_at();
        cleaner.go_on();
        EXPECT_THAT(sent, ElementsAre("remove /dir/n"));
        EXPECT_EQ(cleaner.given_up(), 0u) << "it is in nobody's way";
    }
    removed(Rc::ok);
    EXPECT_EQ(cleaner.given_up(), 0u);
}

TEST_F(NodeCleanerTest, AnIdentityIsFoundBySyncListAndOwner) {
    identity();
    EXPECT_THAT(sent, ElementsAre("sync /dir"));
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::ok, {"_c_1-lock-0000000004", "_c_2-lock-0000000005", "junk"});
    EXPECT_EQ(sent.back(), "exists /dir/_c_1-lock-0000000004");
    cleaner.on_exists(next(), Rc::ok, 77);
    EXPECT_EQ(sent.back(), "remove /dir/_c_1-lock-0000000004");
    removed();
    EXPECT_THAT(ends, ElementsAre(true));
    EXPECT_EQ(sent.size(), 4u);
}

TEST_F(NodeCleanerTest, AnIdentityThatIsNotListedAfterASyncWasNeverMade) {
    identity();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::ok, {"_c_2-lock-0000000005"});
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, ADirectoryThatIsGoneHasNoNodes) {
    identity();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::no_node, {});
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, AnotherSessionsNodeIsLeftAlone) {
    identity();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::ok, {"_c_1-lock-0000000004"});
    cleaner.on_exists(next(), Rc::ok, 78);
    EXPECT_TRUE(tickets.empty());
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, ANodeOfASharedNameIsDeletedIfItIsOurs) {
    cleaner.add_owned("/dir/n", 77, done());
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_exists(next(), Rc::ok, 77);
    connected = false;
    removed(Rc::connection_loss);  // it may be another's by now
    connected = true;
    cleaner.go_on();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_exists(next(), Rc::ok, 78);
    EXPECT_THAT(sent, ElementsAre("sync /dir/n", "exists /dir/n", "remove /dir/n", "sync /dir/n", "exists /dir/n"));
    EXPECT_THAT(ends, ElementsAre(true));
    cleaner.add_owned("/dir/n", 77, done());
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_exists(next(), Rc::no_node, 0);
    EXPECT_THAT(ends, ElementsAre(true, true));
    EXPECT_EQ(cleaner.pending(), 0u);
}

TEST_F(NodeCleanerTest, ANodeOfASharedNameIsLookedAtBeforeEachDelete) {
    for (const Rc rc : {Rc::no_auth, Rc::throttled}) {
        sent.clear();
        ends.clear();
        cleaner.add_owned("/dir/n", 77, done());
        cleaner.on_synced(next(), Rc::ok);
        cleaner.on_exists(next(), Rc::ok, 77);
        removed(rc);
        now = cleaner.wake_at();
        cleaner.go_on();
        EXPECT_EQ(sent.back(), "exists /dir/n") << "it may be another's by now";
        cleaner.on_exists(next(), Rc::ok, 78);
        EXPECT_THAT(ends, ElementsAre(true));
        EXPECT_TRUE(tickets.empty());
    }
}

TEST_F(NodeCleanerTest, EveryNodeOfTheIdentityIsDeleted) {
    identity();
    cleaner.on_synced(next(), Rc::ok);
    cleaner.on_children(next(), Rc::ok, {"_c_1-lock-0000000004", "_c_1-lock-0000000005"});
    for (int i = 0; i < 2; ++i) {
        cleaner.on_exists(next(), Rc::ok, 77);
        EXPECT_THAT(ends, IsEmpty());
        removed();
    }
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, ABrokenConnectionInTheMiddleOfASearchStartsItAgainWithASync) {
    for (int step = 0; step < 4; ++step) {
        sent.clear();
        identity();
        if (step > 0) cleaner.on_synced(next(), Rc::ok);
        if (step > 1) cleaner.on_children(next(), Rc::ok, {"_c_1-lock-0000000004"});
        if (step > 2) cleaner.on_exists(next(), Rc::ok, 77);
        connected = false;
        const auto ticket = next();
        if (step == 0) cleaner.on_synced(ticket, Rc::connection_loss);
        if (step == 1) cleaner.on_children(ticket, Rc::connection_loss, {});
        if (step == 2) cleaner.on_exists(ticket, Rc::connection_loss, 0);
        if (step == 3) cleaner.on_removed(ticket, Rc::connection_loss);
        connected = true;
        cleaner.go_on();
        EXPECT_EQ(sent.back(), "sync /dir") << "step " << step;
        cleaner.session_over();
        tickets.clear();
    }
}

TEST_F(NodeCleanerTest, TheEndOfTheSessionEndsAllWork) {
    cleaner.add_node("/dir/n", done());
    identity();
    cleaner.session_over();
    EXPECT_THAT(ends, ElementsAre(false, false));
    EXPECT_EQ(cleaner.pending(), 0u);
    removed(Rc::session_expired);
    cleaner.on_synced(next(), Rc::session_expired);
    EXPECT_EQ(ends.size(), 2u);
    cleaner.add_node("/dir/m", done());
    removed(Rc::no_auth);
    EXPECT_LT(cleaner.wake_at(), Instant::max());
    cleaner.session_over();
    EXPECT_EQ(cleaner.wake_at(), Instant::max());
}

TEST_F(NodeCleanerTest, TenThousandNodesAreDeletedWithABoundedNumberOfRequestsAtATime) {
    for (int i = 0; i < 10'000; ++i) cleaner.add_node("/dir/n" + std::to_string(i), done());
    std::size_t most = 0;
    while (!tickets.empty()) {
        most = std::max(most, tickets.size());
        removed();
    }
    EXPECT_EQ(ends.size(), 10'000u);
    EXPECT_LE(most, 256u);
}

TEST_F(NodeCleanerTest, WhoIsToldMayAddMore) {
    cleaner.add_node("/dir/n", [this](bool) { cleaner.add_node("/dir/m", done()); });
    removed();
    removed();
    EXPECT_THAT(sent, ElementsAre("remove /dir/n", "remove /dir/m"));
    EXPECT_THAT(ends, ElementsAre(true));
}

TEST_F(NodeCleanerTest, WhatWaitedForAConnectionEndsWithTheSessionToo) {
    connected = false;
    cleaner.add_node("/dir/n", done());
    cleaner.session_over();
    EXPECT_THAT(ends, ElementsAre(false));
    connected = true;
    EXPECT_NO_THROW(cleaner.go_on());
    EXPECT_THAT(sent, IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::internal
