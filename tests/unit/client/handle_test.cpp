// A handle of the real C client against a server that does as the test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "client/client.hpp"
#include "support/client_test_handle.hpp"
#include "support/scripted_server.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Opcode = testenv::Opcode;
using Hosts = std::vector<std::string>;
using Watched = std::pair<WatchEventType, std::string>;

class ClientHandleTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(h().connected()); }
    TestHandle& h() { return *handle_; }
    bool connects(std::size_t times) {
        return test::await([&] { return h().events->times(ClientState::connected) == times; });
    }
    std::vector<OneAnswer> reads(int count) {
        std::vector<OneAnswer> answers;
        for (int i = 0; i < count; ++i) answers.push_back(h().async_exists("/" + std::to_string(i)));
        return answers;
    }
    static bool has_thread(const std::string& wanted) {
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::ifstream file(task.path() / "comm");
            std::string name;
            if (std::getline(file, name) && name == wanted) return true;
        }
        return false;
    }
    OneAnswer nudge() {
        OneAnswer one;
        h().client->nudge([take = one.taker()](Rc rc, const NodeStat&) { take({.rc = rc}); });
        return one;
    }

    std::ostringstream log_;
    const std::shared_ptr<spdlog::logger> logger_ =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    test::ScriptedServer server_;
    std::unique_ptr<TestHandle> handle_ = std::make_unique<TestHandle>(server_.host(), 20s);
};

// ---- answers ------------------------------------------------------------------------------------------------------

TEST_F(ClientHandleTest, EachRequestIsAnsweredWithAllThatTheServerSays) {
    EXPECT_EQ(h().async_create("/a").wait().text, "/a7");
    EXPECT_EQ(h().async_create("/a", "x", CreateMode::container).wait().text, "/a7");
    EXPECT_EQ(h().async_get("/a").wait().text, "data of /a");
    EXPECT_EQ(h().async_set("/a", "x").wait().stat.version, 5);
    EXPECT_EQ(h().async_sync("/a").wait().rc, Rc::ok);
    EXPECT_EQ(h().async_remove("/a").wait().rc, Rc::ok);
    server_.list_children({"b", "c"});
    EXPECT_THAT(h().async_children("/a").wait().names, ElementsAre("b", "c"));
    const NodeStat stat = h().async_exists("/a").wait().stat;
    EXPECT_THAT((std::vector<std::int64_t>{stat.czxid, stat.mzxid, stat.ctime_ms, stat.mtime_ms, stat.version,
                                           stat.cversion, stat.aversion, stat.ephemeral_owner, stat.data_length,
                                           stat.num_children, stat.pzxid}),
                ElementsAre(101, 102, 103, 104, 5, 6, 7, 108, 9, 10, 111));
    EXPECT_THAT(server_.seen(), ElementsAre("create2 /a", "create_container /a", "get_data /a", "set_data /a",
                                            "sync /a", "remove /a", "get_children2 /a", "exists /a"));
}

TEST_F(ClientHandleTest, ANoOfTheServerIsTheAnswer) {
    for (const Opcode opcode : {Opcode::create2, Opcode::get_data, Opcode::get_children2, Opcode::remove}) {
        server_.answer_with(opcode, testenv::zk_error::no_node);
    }
    EXPECT_EQ(h().async_create("/a").wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_get("/a").wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_children("/a").wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_remove("/a").wait().rc, Rc::no_node);
}

TEST_F(ClientHandleTest, AMultiAnswersEachOfItsOperations) {
    const Answer multi = h().async_multi({{.kind = MultiOp::Kind::create, .path = "/a", .acl = Acl::open()},
                                          {.kind = MultiOp::Kind::create,
                                           .path = "/b/",
                                           .acl = Acl::open(),
                                           .mode = CreateMode::ephemeral_sequential},
                                          {.kind = MultiOp::Kind::set, .path = "/c", .data = "x"},
                                          {.kind = MultiOp::Kind::remove, .path = "/d"},
                                          {.kind = MultiOp::Kind::check, .path = "/e"}})
                             .wait();
    EXPECT_EQ(multi.rc, Rc::ok);
    ASSERT_THAT(multi.results, SizeIs(5));
    for (const MultiResult& result : multi.results) EXPECT_EQ(result.rc, Rc::ok);
    EXPECT_EQ(multi.results[0].path, "/a7");
    EXPECT_EQ(multi.results[1].path, "/b/7");
    EXPECT_EQ(multi.results[2].stat.version, 5);
    EXPECT_EQ(multi.results[2].stat.mzxid, 102);
    EXPECT_THAT((std::vector{multi.results[2].path, multi.results[3].path, multi.results[4].path}), Each(IsEmpty()));
    EXPECT_EQ(multi.results[4].stat.mzxid, 0);
}

TEST_F(ClientHandleTest, WhatCannotBeSentIsRefusedByAnAnswer) {
    EXPECT_EQ(h().async_create("relative").wait().rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({}).wait().rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({{.path = "/a"}, {.path = "/b/"}}).wait().rc, Rc::bad_arguments);
    const Answer container =
        h().async_multi({{.kind = MultiOp::Kind::create, .path = "/a", .mode = CreateMode::container}}).wait();
    EXPECT_EQ(container.rc, Rc::bad_arguments);
    ASSERT_THAT(container.results, SizeIs(1));
    EXPECT_EQ(container.results[0].rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_create("/large", std::string(900'001, 'x')).wait().rc, Rc::too_large);
    EXPECT_THAT(server_.seen(), IsEmpty());
    EXPECT_EQ(h().async_exists("/").wait().rc, Rc::ok) << "no room was left";
}

TEST_F(ClientHandleTest, EventsSayWhatHasHappened) {
    h().async_get("/changed", true).wait();
    h().async_get("/deleted", true).wait();
    h().async_children("/parent", true).wait();
    server_.answer_with(Opcode::exists, testenv::zk_error::no_node);
    h().async_exists("/created", true).wait();
    server_.fire(1, "/created");
    server_.fire(2, "/deleted");
    server_.fire(3, "/changed");
    server_.fire(4, "/parent");
    h().async_get("/changed", true).wait();
    EXPECT_EQ(h().async_remove_watches("/changed").wait().rc, Rc::ok);
    ASSERT_TRUE(test::await([&] { return h().events->watches().size() >= 4; }));
    EXPECT_THAT(h().events->watches(),
                ElementsAre(Watched{WatchEventType::created, "/created"}, Watched{WatchEventType::deleted, "/deleted"},
                            Watched{WatchEventType::changed, "/changed"},
                            Watched{WatchEventType::children_changed, "/parent"}));
}

// ---- what is under way at a time ----------------------------------------------------------------------------------

TEST_F(ClientHandleTest, OnlyUrgentRequestsOvertakeWhatWaits) {
    server_.hold();
    auto answers = reads(1200);
    ASSERT_TRUE(server_.sees("exists", 1000));
    OneAnswer urgent = nudge();
    ASSERT_TRUE(server_.sees("exists", 1001));
    EXPECT_EQ(server_.seen().back(), "exists /");
    OneAnswer last = h().async_get("/last");
    server_.hold(false);
    EXPECT_EQ(last.wait().rc, Rc::ok);
    for (OneAnswer& answer : answers) ASSERT_EQ(answer.wait().rc, Rc::ok);
    EXPECT_EQ(urgent.wait().rc, Rc::ok);
    const auto seen = server_.seen();
    for (std::size_t i = 0; i < 1200; ++i) ASSERT_EQ(seen[i < 1000 ? i : i + 1], "exists /" + std::to_string(i));
}

TEST_F(ClientHandleTest, AListCountsAsMuchAsItsAnswerIsExpectedToBeLong) {
    server_.list_children(Hosts(3200, "name"));
    h().async_children("/large").wait();
    server_.hold();
    std::vector<OneAnswer> answers;
    for (int i = 0; i < 20; ++i) answers.push_back(h().async_children("/large"));
    ASSERT_TRUE(server_.sees("get_children2", 1 + 9));  // 1000 / 101
    nudge();
    ASSERT_TRUE(server_.sees("exists"));
    EXPECT_EQ(server_.count("get_children2"), 1U + 9);
    server_.list_children({});
    server_.hold(false);
    for (OneAnswer& answer : answers) answer.wait();
    for (int i = 0; i < 300; ++i) h().async_exists("/").wait();  // large directories are forgotten
    server_.hold();
    for (int i = 0; i < 100; ++i) h().async_children("/small");
    EXPECT_TRUE(server_.sees("get_children2", 21 + 100));
    server_.hold(false);
}

// ---- broken connections -------------------------------------------------------------------------------------------

TEST_F(ClientHandleTest, ABreakIsToldBeforeItsAnswersAndWhatWasNotSentNeverWas) {
    server_.hold();
    auto answers = reads(1100);
    ASSERT_TRUE(server_.sees("exists", 1000));
    server_.refuse();
    server_.cut();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        ASSERT_EQ(answers[i].wait().rc, i < 1000 ? Rc::connection_loss : Rc::not_connected) << i;
    }
    EXPECT_EQ(h().client->status().state, ClientState::connecting);
    EXPECT_EQ(h().client->status().server, "");
    EXPECT_EQ(h().client->status().session_id, test::ScriptedServer::kSession);
    EXPECT_TRUE(h().client->status().by_zookeeper);
    EXPECT_EQ(h().async_exists("/late").wait().rc, Rc::not_connected);
    server_.hold(false);
    server_.refuse(false);
    ASSERT_TRUE(connects(2));
    EXPECT_EQ(h().client->status().server, server_.host());
    EXPECT_EQ(h().client->status().timeout, 20s);
    EXPECT_EQ(h().async_exists("/").wait().rc, Rc::ok);
    EXPECT_EQ(server_.count("exists"), 1001U);
    EXPECT_EQ(h().events->times(ClientState::connecting), 1U);
}

TEST_F(ClientHandleTest, TheEndOfTheSessionIsTheAnswerToEverything) {
    server_.hold();
    h().client->add_auth({"digest", "a:b"});
    h().client->add_auth({"digest", "c:d"});
    ASSERT_TRUE(server_.sees("auth"));
    server_.end_session();
    server_.cut();
    ASSERT_TRUE(h().wait_for(ClientState::expired));
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 2; }));
    EXPECT_EQ(h().async_exists("/late").wait().rc, Rc::session_expired);
    EXPECT_EQ(h().client->status().server, "");
    h().client->add_auth({"digest", "e:f"});
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 3; }));
    EXPECT_THAT(h().events->auths(), Each(Rc::session_expired));
    h().client->set_servers({"127.0.0.1:1"});
    h().close();
    EXPECT_EQ(h().client->status().state, ClientState::expired);
    EXPECT_EQ(h().events->times(ClientState::expired), 1U);
}

TEST_F(ClientHandleTest, AnotherSessionInPlaceOfOursIsTheEndOfOurs) {  // as ClickHouse Keeper answers
    server_.make_another_session();
    server_.cut();
    ASSERT_TRUE(h().wait_for(ClientState::expired));
    EXPECT_EQ(h().async_exists("/late").wait().rc, Rc::session_expired);
    h().close();
}

// ---- credentials --------------------------------------------------------------------------------------------------

TEST_F(ClientHandleTest, CredentialsGoOneAtATime) {
    server_.hold();
    for (const char* who : {"a:b", "c:d", "e:f"}) h().client->add_auth({"digest", who});
    ASSERT_TRUE(server_.sees("auth"));
    h().async_exists("/");
    ASSERT_TRUE(server_.sees("exists"));
    EXPECT_EQ(server_.count("auth"), 1U);
    server_.hold(false);
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 3; }));
    EXPECT_THAT(h().events->auths(), Each(Rc::ok));
    EXPECT_EQ(server_.count("auth"), 3U);
}

TEST_F(ClientHandleTest, CredentialsWhoseConnectionBreaksAreAnsweredOnTheNextOne) {
    server_.hold();
    h().client->add_auth({"digest", "a:b"});
    ASSERT_TRUE(server_.sees("auth"));
    server_.cut();
    server_.hold(false);
    ASSERT_TRUE(test::await([&] { return !h().events->auths().empty(); }));
    EXPECT_THAT(h().events->auths(), ElementsAre(Rc::ok));
}

TEST_F(ClientHandleTest, RefusedCredentialsEndTheHandleAndAreToldOnce) {
    server_.answer_with(Opcode::auth, static_cast<int>(Rc::auth_failed));
    h().client->add_auth({"digest", "a:b"});
    h().client->add_auth({"digest", "c:d"});
    ASSERT_TRUE(h().wait_for(ClientState::auth_failed));
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 2; }));
    EXPECT_EQ(h().async_exists("/").wait().rc, Rc::auth_failed);
    h().close();
    EXPECT_THAT(h().events->auths(), ElementsAre(Rc::auth_failed, Rc::auth_failed));
    EXPECT_EQ(server_.count("auth"), 1U);
}

// ---- servers ------------------------------------------------------------------------------------------------------

TEST_F(ClientHandleTest, OtherServersCountFromTheNextConnectOn) {
    test::ScriptedServer other("127.0.0.2");
    h().client->set_servers({other.host()});
    EXPECT_EQ(h().async_exists("/").wait().rc, Rc::ok);
    EXPECT_EQ(h().events->times(ClientState::connecting), 0U);
    server_.refuse();
    server_.cut();
    ASSERT_TRUE(connects(2));
    EXPECT_EQ(h().client->status().server, other.host());
}

TEST_F(ClientHandleTest, OtherServersCountAtOnceWhileNoneIsConnected) {
    server_.refuse();
    server_.cut();
    ASSERT_TRUE(h().wait_for(ClientState::connecting));
    test::ScriptedServer other("127.0.0.2");
    h().client->set_servers({other.host()});
    ASSERT_TRUE(connects(2));
    EXPECT_EQ(h().client->status().server, other.host());
}

/// The C client tries every second one of its list (ZOOKEEPER-2466).
TEST_F(ClientHandleTest, AsLongAsNoneServesEachIsTriedAgainAndAgain) {
    test::ScriptedServer a("127.0.0.2"), b("127.0.0.3"), c("127.0.0.4"), d("127.0.0.5");
    const std::vector<test::ScriptedServer*> all{&a, &b, &c, &d};
    for (auto* server : all) server->refuse();
    const auto hosts = [&](std::size_t count) {
        Hosts out;
        for (std::size_t i = 0; i < count; ++i) out.push_back(all[i]->host());
        return out;
    };
    const auto each_is_tried = [&](std::size_t count) {
        std::vector<std::size_t> before;
        for (auto* server : all) before.push_back(server->connects());
        return test::await([&] {
            for (std::size_t i = 0; i < count; ++i) {
                if (all[i]->connects() < before[i] + 3) return false;
            }
            return true;
        });
    };
    for (const std::size_t count : {2, 4}) {
        const TestHandle handle(hosts(count), 1s, logger_);
        EXPECT_TRUE(each_is_tried(count)) << count << " from the beginning";
    }
    const TestHandle handle(hosts(3), 1s, logger_);
    for (const std::size_t count : {2, 4, 3, 2}) {
        handle.client->set_servers(hosts(count));
        EXPECT_TRUE(each_is_tried(count)) << count << " later";
    }
}

TEST_F(ClientHandleTest, ANameIsLookedUpOnceAndWithoutAWord) {
    {
        TestHandle named(Hosts{"localhost:" + server_.port()}, 20s, logger_);
        EXPECT_THAT(named.async_exists("/").wait().rc, AnyOf(Rc::not_connected, Rc::ok));
        ASSERT_TRUE(named.connected());
    }
    EXPECT_THAT(log_.str(), AllOf(Not(HasSubstr("cannot make a handle")), Not(HasSubstr("looked up"))));
}

TEST_F(ClientHandleTest, NamesThatNobodyKnowsAreLogged) {
    {
        TestHandle unknown(Hosts{"name-that-nobody-knows.invalid:1", server_.host()}, 20s, logger_);
        EXPECT_TRUE(unknown.connected());
    }
    EXPECT_THAT(log_.str(), HasSubstr("name-that-nobody-knows.invalid"));
}

TEST_F(ClientHandleTest, WithoutTlsTheClientConnectsToTheServersItself) {
    // A thread that was joined, of an earlier test, may still stand in the list for a moment.
    EXPECT_TRUE(test::await([] { return !has_thread("zkr-tls"); }));
    EXPECT_EQ(h().client->status().server, server_.host());
}

// ---- closing ------------------------------------------------------------------------------------------------------

/// So long it waits for what is under way.
constexpr auto kPatience = 1s;

TEST_F(ClientHandleTest, TheEndOfTheSessionIsSentOnceWhatIsUnderWayWasAnswered) {
    server_.hold();
    auto answers = reads(1001);
    ASSERT_TRUE(server_.sees("exists", 1000));
    OneAnswer closed;
    const auto begin = std::chrono::steady_clock::now();
    h().client->close([take = closed.taker()] { take({}); });
    EXPECT_EQ(h().async_exists("/late").wait().rc, Rc::closed);
    h().client->add_auth({"digest", "a:b"});
    const bool early = test::await([this] { return server_.count("close_session") != 0U; }, kPatience / 2);
    server_.hold(false);
    std::size_t answered = 0;
    for (OneAnswer& answer : answers) answered += answer.wait().rc == Rc::ok ? 1 : 0;
    closed.wait();
    EXPECT_EQ(server_.seen().back(), "close_session");
    if (std::chrono::steady_clock::now() - begin < kPatience) {  // a busy machine may need longer
        EXPECT_FALSE(early);
        EXPECT_EQ(answered, answers.size());
    }
    EXPECT_EQ(server_.count("auth"), 0U);
    EXPECT_EQ(h().client->status().state, ClientState::dead);
    EXPECT_EQ(h().client->status().server, "");
}

TEST_F(ClientHandleTest, TheCloseGoesOnAsSoonAsTheLastAnswerHasCome) {
    int times = 0;
    const auto before_its_limit = [&] {
        handle_ = std::make_unique<TestHandle>(server_.host(), 20s);
        EXPECT_TRUE(h().connected());
        server_.hold();
        auto answer = h().async_exists("/a");
        EXPECT_TRUE(server_.sees("exists /a", static_cast<std::size_t>(++times)));
        const auto begin = std::chrono::steady_clock::now();
        OneAnswer closed;
        h().client->close([take = closed.taker()] { take({}); });
        server_.hold(false);
        closed.wait();
        const bool in_time = std::chrono::steady_clock::now() - begin < kPatience;
        EXPECT_TRUE(answer.wait().rc == Rc::ok || !in_time);
        return in_time;
    };
    EXPECT_TRUE(test::await(before_its_limit));  // a busy machine may need several attempts
}

TEST_F(ClientHandleTest, WhatNoServerAnswersIsAnsweredByTheClose) {
    server_.hold();
    auto answers = reads(1100);
    ASSERT_TRUE(server_.sees("exists", 1000));
    h().close();
    for (OneAnswer& answer : answers) {
        ASSERT_TRUE(answer.answered()) << "close() was done before";
        ASSERT_EQ(answer.wait().rc, Rc::closed);
    }
}

TEST_F(ClientHandleTest, AHandleThatIsDroppedIsClosedInOrderBehindTheCaller) {
    const auto runtime = make_thread_runtime();
    const auto events = std::make_shared<RecordedEvents>();
    auto client = make_zk_client_factory(runtime)->open({{server_.host()}, 20s, nullptr}, events);
    ASSERT_TRUE(test::await([&] { return client->status().state == ClientState::connected; }));
    server_.hold();
    OneAnswer answer;
    client->exists("/", false, [take = answer.taker()](Rc rc, const NodeStat&) { take({.rc = rc}); });
    ASSERT_TRUE(server_.sees("exists"));
    std::promise<void> dropped;
    runtime->post(Lane::blocking, [&dropped] { dropped.get_future().wait(); });
    client.reset();
    EXPECT_FALSE(answer.answered()) << "closed by the caller";
    EXPECT_EQ(server_.count("close_session"), 0u);
    server_.hold(false);
    EXPECT_EQ(answer.wait().rc, Rc::ok);
    dropped.set_value();
    EXPECT_TRUE(server_.sees("close_session"));
    runtime->stop();
    EXPECT_EQ(events.use_count(), 1);
}

TEST_F(ClientHandleTest, AHandleMayGoWhereItTells) {
    const auto runtime = make_thread_runtime();
    const auto events = std::make_shared<RecordedEvents>();
    std::shared_ptr<Client> client;
    std::atomic<bool> gone = false;
    events->then = [&](const ClientStatus& status) {
        if (status.state == ClientState::connected) return;
        runtime->stop();  // so that nobody else closes it
        client.reset();
        gone = true;
    };
    client = make_zk_client_factory(runtime)->open({{server_.host()}, 20s, nullptr}, events);
    ASSERT_TRUE(test::await([&] { return events->times(ClientState::connected) == 1; }));
    server_.cut();
    EXPECT_TRUE(test::await([&] { return gone && events.use_count() == 1; }));
}

TEST_F(ClientHandleTest, WhatRequestsOwnEndsWithTheCloseAtTheLatest) {
    server_.hold();
    server_.answer_with(Opcode::auth, static_cast<int>(Rc::auth_failed));
    h().client->add_auth({"digest", "a:b"});
    ASSERT_TRUE(server_.sees("auth"));
    const auto owned = std::make_shared<int>();
    OneAnswer one;
    h().client->exists("/", false, [owned, take = one.taker()](Rc rc, const NodeStat&) { take({.rc = rc}); });
    ASSERT_TRUE(server_.sees("exists"));
    server_.hold(false);
    EXPECT_EQ(one.wait().rc, Rc::auth_failed);
    h().close();
    EXPECT_EQ(owned.use_count(), 1) << "although the handle itself lives on";
}

TEST_F(ClientHandleTest, RefusedCredentialsAreTheAnswerToAllThatIsOpen) {
    server_.hold();
    server_.answer_with(Opcode::auth, static_cast<int>(Rc::auth_failed));
    h().client->add_auth({"digest", "a:b"});
    ASSERT_TRUE(server_.sees("auth"));
    auto answers = reads(1100);  // 1000 under way, 100 that wait
    ASSERT_TRUE(server_.sees("exists", 1000));
    server_.hold(false);
    for (OneAnswer& answer : answers) ASSERT_EQ(answer.wait().rc, Rc::auth_failed);
    h().close();
}

}  // namespace
}  // namespace zkrecipes::internal
