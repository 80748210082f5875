#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zkrecipes/testenv/gate.hpp>

#include "support/client_test_handle.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class ClientWatchesTest : public test::ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        gate_ = std::make_unique<testenv::Gate>(server().endpoint());
        handle_ = std::make_unique<TestHandle>(gate_->connect_string());
        ASSERT_TRUE(handle_->connected());
        observer_ = std::make_unique<TestHandle>(connect_string());
        ASSERT_TRUE(observer_->connected());
        ASSERT_EQ(observer_->async_create(root()).wait().rc, Rc::ok);
        ASSERT_EQ(server().watch_count(), 0);
    }
    TestHandle& h() { return *handle_; }
    TestHandle& observer() { return *observer_; }
    auto watches() { return h().events->watches(); }
    /// All events so far have been told: they come in one order with the answers.
    void catch_up() { ASSERT_EQ(h().async_sync(root()).wait().rc, Rc::ok); }

    std::unique_ptr<testenv::Gate> gate_;
    std::unique_ptr<TestHandle> handle_;
    std::unique_ptr<TestHandle> observer_;
};

TEST_F(ClientWatchesTest, AWatchTellsOneEventAndIsThenUsedUp) {
    observer().async_create(path("a")).wait();
    EXPECT_EQ(h().async_get(path("a"), true).wait().rc, Rc::ok);
    observer().async_set(path("a"), "1").wait();
    observer().async_set(path("a"), "2").wait();
    observer().async_remove(path("a")).wait();
    catch_up();
    EXPECT_THAT(watches(), ElementsAre(Pair(WatchEventType::changed, path("a"))));
    EXPECT_EQ(server().watch_count(), 0);
}

TEST_F(ClientWatchesTest, EachKindOfReadSeesItsKindsOfEvents) {
    observer().async_create(path("a")).wait();
    h().async_get(path("a"), true).wait();
    observer().async_remove(path("a")).wait();
    catch_up();
    EXPECT_THAT(watches(), ElementsAre(Pair(WatchEventType::deleted, path("a"))));
    EXPECT_EQ(h().async_exists(path("b"), true).wait().rc, Rc::no_node);
    observer().async_create(path("b")).wait();
    catch_up();
    EXPECT_EQ(watches().back(), std::make_pair(WatchEventType::created, path("b")));
    h().async_children(root(), true).wait();
    observer().async_create(path("c")).wait();
    catch_up();
    EXPECT_EQ(watches().back(), std::make_pair(WatchEventType::children_changed, root()));
    EXPECT_THAT(watches(), SizeIs(3));
}

TEST_F(ClientWatchesTest, WhoMayNotReadANodeIsNotToldOfIt) {
    observer().client->add_auth({"digest", "user:secret"});
    ASSERT_TRUE(test::await([&] { return observer().events->auths().size() == 1; }));
    for (const char* name : {"secret", "open"}) {
        EXPECT_EQ(h().async_exists(path(name), true).wait().rc, Rc::no_node);
    }
    observer().async_create(path("secret"), "", CreateMode::persistent, {{Acl::all, "auth", ""}}).wait();
    observer().async_create(path("open")).wait();
    catch_up();
    EXPECT_THAT(watches(), ElementsAre(Pair(WatchEventType::created, path("open"))));
}

TEST_F(ClientWatchesTest, SeveralWatchesOnANodeTellOneEvent) {
    observer().async_create(path("a")).wait();
    h().async_get(path("a"), true).wait();
    h().async_get(path("a"), true).wait();
    h().async_exists(path("a"), true).wait();
    h().async_children(path("a"), true).wait();
    observer().async_remove(path("a")).wait();
    catch_up();
    EXPECT_THAT(watches(), ElementsAre(Pair(WatchEventType::deleted, path("a"))));
}

TEST_F(ClientWatchesTest, AGetOfANodeThatIsGoneLeavesNoWatch) {
    EXPECT_EQ(h().async_get(path("gone"), true).wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_children(path("gone"), true).wait().rc, Rc::no_node);
    EXPECT_EQ(server().watch_count(), 0);
    observer().async_create(path("gone")).wait();
    catch_up();
    EXPECT_THAT(watches(), IsEmpty());
}

TEST_F(ClientWatchesTest, RemovingWatchesRemovesThemOnTheServerToo) {
    observer().async_create(path("a")).wait();
    h().async_get(path("a"), true).wait();
    h().async_exists(path("a"), true).wait();
    h().async_children(path("a"), true).wait();
    EXPECT_GT(server().watch_count(), 0);
    EXPECT_EQ(h().async_remove_watches(path("a")).wait().rc, Rc::ok);
    EXPECT_EQ(server().watch_count(), 0);
    observer().async_remove(path("a")).wait();
    catch_up();
    EXPECT_THAT(watches(), IsEmpty());
    EXPECT_EQ(h().async_remove_watches(path("a")).wait().rc, Rc::no_watcher);
}

TEST_F(ClientWatchesTest, AWatchThatWasRemovedDoesNotComeBackWithTheNextConnection) {
    observer().async_create(path("a")).wait();
    h().async_get(path("a"), true).wait();
    h().async_remove_watches(path("a")).wait();
    gate_->reset_all();
    ASSERT_TRUE(test::await([&] { return h().events->times(ClientState::connected) == 2; }));
    catch_up();
    EXPECT_EQ(server().watch_count(), 0);
}

TEST_F(ClientWatchesTest, WatchesSurviveABrokenConnection) {
    observer().async_create(path("a")).wait();
    observer().async_create(path("b")).wait();
    h().async_get(path("a"), true).wait();
    h().async_get(path("b"), true).wait();
    gate_->refuse();
    gate_->reset_all();
    ASSERT_TRUE(h().wait_for(ClientState::connecting));
    observer().async_remove(path("a")).wait();  // while nobody can tell us
    gate_->pass();
    ASSERT_TRUE(h().connected());
    EXPECT_TRUE(test::await([&] { return watches().size() == 1; }));
    EXPECT_THAT(watches(), ElementsAre(Pair(WatchEventType::deleted, path("a"))));
    observer().async_set(path("b"), "x").wait();
    catch_up();
    EXPECT_EQ(watches().back(), std::make_pair(WatchEventType::changed, path("b")));
}

TEST_F(ClientWatchesTest, AWatchWhoseReadWasCutOffIsNotSet) {
    observer().async_create(path("a")).wait();
    gate_->cut_after(testenv::Match::op(testenv::Opcode::get_data).path("a"));
    EXPECT_EQ(h().async_get(path("a"), true).wait().rc, Rc::connection_loss);
    ASSERT_TRUE(h().connected());
    catch_up();
    EXPECT_EQ(server().watch_count(), 0);
}

TEST_F(ClientWatchesTest, AnEventComesBeforeTheAnswerToALaterRead) {
    observer().async_create(path("a"), "0").wait();
    for (int round = 0; round < 200; ++round) {
        h().async_get(path("a"), true).wait();
        const std::size_t before = watches().size();
        observer().async_set(path("a"), std::to_string(round)).wait();
        std::atomic<std::size_t> at_answer = 0;
        OneAnswer read;
        h().client->get(path("a"), false, [&](Rc rc, std::string data, const NodeStat&) {
            at_answer = watches().size();
            read.taker()({.rc = rc, .text = std::move(data)});
        });
        ASSERT_EQ(read.wait().text, std::to_string(round));
        ASSERT_EQ(at_answer, before + 1);
    }
}

TEST_F(ClientWatchesTest, TenThousandWatchesAreToldOfABreakOnce) {
    // Each (function, context) pair of a watch is told of a session event, and the C client finds pairs that are equal
    // by comparing each with each: with a context for each watch that is 10^8 comparisons under its lock.
    std::atomic<int> answered = 0;
    for (int i = 0; i < 10'000; ++i) {
        h().client->exists(path("w" + std::to_string(i)), true, [&](Rc rc, const NodeStat&) {
            EXPECT_EQ(rc, Rc::no_node);
            ++answered;
        });
    }
    ASSERT_TRUE(await_count(answered, 10'000));
    EXPECT_EQ(server().watch_count(), 10'000);
    gate_->reset_all();
    ASSERT_TRUE(test::await([&] { return h().events->times(ClientState::connected) == 2; }));
    catch_up();
    EXPECT_EQ(h().events->statuses().size(), 3U);
    EXPECT_THAT(watches(), IsEmpty());
    EXPECT_EQ(server().watch_count(), 10'000);
}

}  // namespace
}  // namespace zkrecipes::internal
