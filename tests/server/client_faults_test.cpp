// What the C client does when the connection breaks, the session ends or the handle is closed: docs/design/c-client.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include <zkrecipes/error.hpp>
#include <zkrecipes/testenv/gate.hpp>

#include "support/client_test_handle.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using testenv::Gate;
using testenv::Match;
using testenv::Opcode;
using testing::AnyOf;
using testing::Each;
using testing::SizeIs;
using Hosts = std::vector<std::string>;

std::size_t client_threads() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
    return count;
}

/// Whether each other thread of this program waits for something at this moment.
bool all_other_threads_sleep() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == std::to_string(gettid())) continue;
        std::ifstream file(task.path() / "stat");
        std::string text;
        std::getline(file, text);
        const std::size_t name_end = text.rfind(')');
        if (name_end != std::string::npos && text.compare(name_end, 4, ") S ") != 0) return false;
    }
    return true;
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

/// A log that tells when a line with a certain text has come.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    LineSink(std::string text, WaitEvent& seen) : text_(std::move(text)), seen_(seen) {}

protected:
    void sink_it_(const spdlog::details::log_msg& line) override {
        if (std::string_view(line.payload.data(), line.payload.size()).find(text_) != std::string_view::npos)
            seen_.set();
    }
    void flush_() override {}

private:
    const std::string text_;
    WaitEvent& seen_;
};

class ClientFaultsTest : public test::ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        gate_ = std::make_unique<Gate>(server().endpoint());
        open(20s);
        observer_ = std::make_unique<TestHandle>(connect_string());
        ASSERT_TRUE(observer_->connected());
        ASSERT_EQ(observer_->async_create(root()).wait().rc, Rc::ok);
    }
    void open(std::chrono::milliseconds timeout) {
        handle_ = std::make_unique<TestHandle>(gate_->connect_string(), timeout);
        ASSERT_TRUE(handle_->connected());
    }
    TestHandle& h() { return *handle_; }
    TestHandle& observer() { return *observer_; }
    Gate& gate() { return *gate_; }
    std::int64_t session() { return h().client->status().session_id; }

    std::unique_ptr<Gate> gate_;
    std::unique_ptr<TestHandle> handle_;
    std::unique_ptr<TestHandle> observer_;
};

// ---- closing ------------------------------------------------------------------------------------------------------

TEST_F(ClientFaultsTest, AThousandRequestsUnderWayAreEachAnsweredOnceWhenTheHandleIsClosed) {
    for (int round = 0; round < 10; ++round) {
        TestHandle closing(connect_string());
        ASSERT_TRUE(closing.connected());
        std::vector<OneAnswer> answers;
        for (int i = 0; i < 1000; ++i) answers.push_back(closing.async_exists(root()));
        closing.close();
        std::size_t closed = 0;
        for (OneAnswer& answer : answers) {
            ASSERT_TRUE(answer.answered()) << "close() was done before";
            const Rc rc = answer.wait().rc;
            EXPECT_THAT(rc, AnyOf(Rc::ok, Rc::closed));
            closed += rc == Rc::closed ? 1 : 0;
        }
        SCOPED_TRACE(closed);
    }
}

TEST_F(ClientFaultsTest, RequestsThatNoServerAnswersAreAnsweredWhenTheHandleIsClosed) {
    gate().blackhole(testenv::Direction::to_client);
    std::vector<OneAnswer> answers;
    for (int i = 0; i < 6000; ++i) answers.push_back(h().async_exists(root()));  // some wait for their turn
    h().close();
    for (OneAnswer& answer : answers) ASSERT_EQ(answer.wait().rc, Rc::closed);
}

TEST_F(ClientFaultsTest, ClosingEndsTheSessionAndItsEphemeralNodesAtOnce) {
    h().async_create(path("e"), {}, CreateMode::ephemeral).wait();
    EXPECT_EQ(observer().async_exists(path("e")).wait().rc, Rc::ok);
    h().close();
    EXPECT_EQ(gate().counts()[Opcode::close_session], 1);
    EXPECT_EQ(observer().async_exists(path("e")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().client->status().state, ClientState::dead);
}

TEST_F(ClientFaultsTest, RequestsBeforeTheCloseAreExecutedAndTheSessionIsOverNevertheless) {
    // Without care the C client resets the connection while replies are on their way, and the end of the session is
    // lost.
    for (int round = 0; round < 20; ++round) {
        TestHandle closing(connect_string(), 60s);
        ASSERT_TRUE(closing.connected());
        const std::string prefix = "r" + std::to_string(round) + "-";
        for (int i = 0; i < 50; ++i) closing.async_create(path(prefix + "p" + std::to_string(i)));
        for (int i = 0; i < 50; ++i) {
            closing.async_create(path(prefix + "e" + std::to_string(i)), {}, CreateMode::ephemeral);
        }
        closing.close();
        // 50 lasting nodes, and none of the others.
        EXPECT_THAT(observer().async_children(root()).wait().names, SizeIs((round + 1) * 50));
    }
}

TEST_F(ClientFaultsTest, RequestsAfterTheCloseAreAnsweredWithClosed) {
    OneAnswer done;
    h().client->close([take = done.taker()] { take({}); });
    OneAnswer during = h().async_exists(root());
    EXPECT_EQ(during.wait().rc, Rc::closed);
    done.wait();
    EXPECT_EQ(h().async_create(path("late")).wait().rc, Rc::closed);
    EXPECT_EQ(h().async_multi({MultiOp{.path = root()}}).wait().rc, Rc::closed);
    h().client->add_auth({"digest", "a:b"});
    h().client->set_servers({"127.0.0.1:1"});
    EXPECT_EQ(observer().async_exists(path("late")).wait().rc, Rc::no_node);
}

TEST_F(ClientFaultsTest, AHandleMayBeClosedFromItsOwnEvents) {
    struct CloseAtOnce final : ClientEvents {
        void on_status(const ClientStatus&) override {
            if (client) std::exchange(client, nullptr)->close([this] { closed.set(); });
        }
        void on_watch(WatchEventType, const std::string&) override {}
        void on_auth(Rc) override {}
        std::shared_ptr<Client> client;
        WaitEvent closed;
    };
    const auto runtime = make_thread_runtime();
    const auto events = std::make_shared<CloseAtOnce>();
    const auto client = make_zk_client_factory(runtime)->open({{connect_string()}, 20s, nullptr}, events);
    ASSERT_TRUE(test::await([&] { return client->status().state == ClientState::connected; }));
    client->exists(root(), false, [&](Rc, const NodeStat&) {
        events->client = client;  // on the thread that all events come on, and may be coming on
        events->on_status({});
    });
    EXPECT_TRUE(test::await([&] { return events->closed.is_set(); }));
    runtime->stop();
}

TEST_F(ClientFaultsTest, AHandleThatIsDroppedClosesItself) {
    const auto runtime = make_thread_runtime();
    const std::size_t connections = static_cast<std::size_t>(server().connection_count());
    const auto events = std::make_shared<RecordedEvents>();
    auto client = make_zk_client_factory(runtime)->open({{connect_string()}, 20s, nullptr}, events);
    ASSERT_TRUE(test::await([&] { return client->status().state == ClientState::connected; }));
    OneAnswer answer;
    client->exists(root(), false, [take = answer.taker()](Rc rc, const NodeStat&) { take({.rc = rc}); });
    client.reset();
    EXPECT_THAT(answer.wait().rc, AnyOf(Rc::ok, Rc::closed));
    EXPECT_TRUE(test::await([&] { return static_cast<std::size_t>(server().connection_count()) == connections; }));
    runtime->stop();
    EXPECT_EQ(events.use_count(), 1);
}

TEST_F(ClientFaultsTest, ClosingIsBoundedWhenTheServerIsSilent) {
    open(3 * test::kMaxWait);  // the client itself would give the server up after two thirds of it
    gate().blackhole();
    h().close();
}

TEST_F(ClientFaultsTest, HandlesLeaveNoThreadAndNoDescriptorBehind) {
    const std::size_t threads = client_threads();
    const std::size_t descriptors = open_descriptors();
    for (int i = 0; i < 20; ++i) {
        TestHandle one(i % 2 == 0 ? connect_string() : "127.0.0.1:1");
        if (i % 4 == 0) {
            ASSERT_TRUE(one.connected());
        }
    }
    EXPECT_TRUE(test::await([&] { return client_threads() <= threads; })) << client_threads() << " " << threads;
    EXPECT_TRUE(test::await([&] { return open_descriptors() <= descriptors; }));
}

// ---- expiry -------------------------------------------------------------------------------------------------------

TEST_F(ClientFaultsTest, RequestsUnderWayAreAnsweredWhenTheSessionExpires) {
    const std::int64_t id = session();
    const auto held = gate().hold_reply(Match::op(Opcode::exists).session(id));
    std::vector<OneAnswer> answers;
    for (int i = 0; i < 100; ++i) answers.push_back(h().async_exists(root()));
    ASSERT_TRUE(held.wait_reached());
    gate().expire(id);
    held.drop();
    ASSERT_TRUE(h().wait_for(ClientState::expired));
    for (OneAnswer& answer : answers) {
        EXPECT_THAT(answer.wait().rc, AnyOf(Rc::connection_loss, Rc::session_expired));
    }
}

TEST_F(ClientFaultsTest, RequestsAfterTheExpiryAreAnsweredAndNotLeftHanging) {
    open(2s);
    gate().expire(session());
    std::vector<OneAnswer> answers;
    // Without a pause, so that some reach the C client between the expiry and the news of it.
    while (h().client->status().state != ClientState::expired) {
        answers.push_back(h().async_exists(root()));
        if (answers.size() > 200'000) break;
    }
    ASSERT_TRUE(h().wait_for(ClientState::expired));
    for (int i = 0; i < 100; ++i) answers.push_back(h().async_get(root()));
    for (OneAnswer& answer : answers) {
        const Rc rc = answer.wait().rc;
        ASSERT_THAT(rc, AnyOf(Rc::ok, Rc::connection_loss, Rc::operation_timeout, Rc::not_connected,
                              Rc::session_expired, Rc::invalid_state));
    }
    EXPECT_EQ(answers.back().wait().rc, Rc::session_expired);
    EXPECT_EQ(h().events->times(ClientState::expired), 1U);
    EXPECT_EQ(h().events->statuses().back().state, ClientState::expired);
}

TEST_F(ClientFaultsTest, AHandleOfAnExpiredSessionCanBeClosed) {
    gate().expire(session());
    ASSERT_TRUE(h().wait_for(ClientState::expired));
    h().close();
    EXPECT_EQ(h().client->status().state, ClientState::expired);
}

// ---- broken connections -------------------------------------------------------------------------------------------

TEST_F(ClientFaultsTest, ARequestWhoseConnectionIsCutBeforeItsExecutionIsUnknown) {
    const auto cut = gate().cut_before(Match::op(Opcode::create2).path("n"));
    const Answer answer = h().async_create(path("n")).wait();
    EXPECT_EQ(answer.rc, Rc::connection_loss);
    EXPECT_EQ(meaning(answer.rc), Meaning::unknown);
    EXPECT_TRUE(cut.reached());
    EXPECT_EQ(observer().async_exists(path("n")).wait().rc, Rc::no_node);
}

TEST_F(ClientFaultsTest, ARequestWhoseConnectionIsCutAfterItsExecutionIsUnknown) {
    gate().cut_after(Match::op(Opcode::create2).path("n"));
    EXPECT_EQ(h().async_create(path("n")).wait().rc, Rc::connection_loss);
    EXPECT_EQ(observer().async_exists(path("n")).wait().rc, Rc::ok);
    gate().cut_after(Match::op(Opcode::multi));
    ASSERT_TRUE(h().connected());
    const Answer multi = h().async_multi({MultiOp{.kind = MultiOp::Kind::remove, .path = path("n")}}).wait();
    EXPECT_EQ(multi.rc, Rc::connection_loss);
    EXPECT_THAT(multi.results, SizeIs(1));
    EXPECT_EQ(observer().async_exists(path("n")).wait().rc, Rc::no_node);
}

TEST_F(ClientFaultsTest, TheNewsOfTheBreakComesBeforeTheAnswersItCaused) {
    ASSERT_EQ(h().events->times(ClientState::connecting), 0U);
    gate().cut_before(Match::op(Opcode::exists));
    std::atomic<std::size_t> breaks_at_answer = 99;
    OneAnswer answer;
    h().client->exists(root(), false, [&](Rc rc, const NodeStat&) {
        breaks_at_answer = h().events->times(ClientState::connecting);
        answer.taker()({.rc = rc});
    });
    EXPECT_EQ(answer.wait().rc, Rc::connection_loss);
    EXPECT_EQ(breaks_at_answer, 1U);
}

TEST_F(ClientFaultsTest, WhileNotConnectedNothingIsSentAndTheAnswerSaysSo) {
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(h().wait_for(ClientState::connecting));
    EXPECT_EQ(h().client->status().server, "");
    EXPECT_NE(h().client->status().session_id, 0);
    const Answer answer = h().async_create(path("n")).wait();
    EXPECT_EQ(answer.rc, Rc::not_connected);
    EXPECT_EQ(meaning(answer.rc), Meaning::not_done);
    gate().pass();
    ASSERT_TRUE(h().connected());
    EXPECT_EQ(observer().async_exists(path("n")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().events->times(ClientState::connected), 2U);
}

TEST_F(ClientFaultsTest, RequestsThatWaitForTheirTurnWhenTheConnectionBreaksWereNeverSent) {
    gate().blackhole(testenv::Direction::to_client);
    std::vector<OneAnswer> answers;
    for (int i = 0; i < 5000; ++i) answers.push_back(h().async_exists(root()));
    gate().reset_all();
    std::size_t never_sent = 0;
    for (OneAnswer& answer : answers) {
        const Rc rc = answer.wait().rc;
        ASSERT_THAT(rc, AnyOf(Rc::connection_loss, Rc::not_connected));
        never_sent += rc == Rc::not_connected ? 1 : 0;
    }
    EXPECT_EQ(never_sent, 4000U) << "the window of the handle is 1000 requests";
}

TEST_F(ClientFaultsTest, ASilentServerIsUnknownAfterTwoThirdsOfTheTimeout) {
    open(6s);
    gate().blackhole();
    EXPECT_EQ(h().async_exists(root()).wait().rc, Rc::operation_timeout);
    EXPECT_EQ(meaning(Rc::operation_timeout), Meaning::unknown);
}

TEST_F(ClientFaultsTest, TheSameSessionComesBackAfterABreak) {
    const std::int64_t id = session();
    h().async_create(path("e"), {}, CreateMode::ephemeral).wait();
    for (int i = 0; i < 5; ++i) {
        gate().reset_all();
        ASSERT_TRUE(test::await([&] { return h().events->times(ClientState::connected) == 2U + i; }));
    }
    EXPECT_EQ(session(), id);
    EXPECT_EQ(h().async_exists(path("e")).wait().stat.ephemeral_owner, id);
}

TEST_F(ClientFaultsTest, CredentialsCountAgainAfterABreak) {
    h().client->add_auth({"digest", "alice:secret"});
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 1; }));
    h().async_create(path("mine"), "x", CreateMode::persistent, Acl::creator_all()).wait();
    gate().reset_all();
    ASSERT_TRUE(test::await([&] { return h().events->times(ClientState::connected) == 2; }));
    EXPECT_EQ(h().async_get(path("mine")).wait().rc, Rc::ok);
    EXPECT_THAT(h().events->auths(), SizeIs(1));
}

TEST_F(ClientFaultsTest, CredentialsWhoseConnectionBreaksAreAnsweredOnTheNextOne) {
    gate().cut_before(Match::op(Opcode::auth));
    h().client->add_auth({"digest", "alice:secret"});
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 1; }));
    EXPECT_THAT(h().events->auths(), Each(Rc::ok));
    EXPECT_EQ(h().async_create(path("mine"), "x", CreateMode::persistent, Acl::creator_all()).wait().rc, Rc::ok);
}

// ---- servers ------------------------------------------------------------------------------------------------------

TEST_F(ClientFaultsTest, ServersThatAreSetWhileConnectedCountFromTheNextConnectOn) {
    Gate other(server().endpoint());
    h().client->set_servers({other.connect_string()});
    EXPECT_EQ(h().async_exists(root()).wait().rc, Rc::ok);
    EXPECT_EQ(h().events->times(ClientState::connecting), 0U);
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(test::await([&] { return h().events->times(ClientState::connected) == 2; }));
    EXPECT_EQ(h().client->status().server, other.connect_string());
    EXPECT_EQ(h().async_exists(root()).wait().rc, Rc::ok);
}

TEST_F(ClientFaultsTest, ServersThatAreSetWhileASilentOneIsTriedAreTriedAtOnce) {
    Gate silent(server().endpoint());
    const auto held = silent.hold_reply(Match::op(Opcode::connect));
    handle_ = std::make_unique<TestHandle>(silent.connect_string(), 3 * test::kMaxWait);  // would try it 2 * kMaxWait
    ASSERT_TRUE(held.wait_reached());
    ASSERT_TRUE(test::await(all_other_threads_sleep));  // the driver waits for the silent server
    h().client->set_servers({gate().connect_string()});
    ASSERT_TRUE(h().connected());
    EXPECT_EQ(h().client->status().server, gate().connect_string());
}

TEST_F(ClientFaultsTest, ServersThatCannotBeReadAreAnError) {
    EXPECT_THROW(h().client->set_servers({}), Error);
    EXPECT_THROW(h().client->set_servers({"a:b:c"}), Error);
    EXPECT_EQ(h().async_exists(root()).wait().rc, Rc::ok);
    const auto factory = make_zk_client_factory(h().runtime);
    EXPECT_THROW(factory->open({{}, 20s, nullptr}, h().events), Error);
    EXPECT_THROW(factory->open({{"127.0.0.1:99999"}, 20s, nullptr}, h().events), Error);
}

TEST_F(ClientFaultsTest, NamesAreLookedUpBehindTheCaller) {
    // localhost is known without a name service; the gate does not listen there.
    TestHandle named(Hosts{"name-that-nobody-knows.invalid:2181", "localhost:1"}, 20s);
    EXPECT_EQ(named.client->status().state, ClientState::connecting);
    EXPECT_EQ(named.async_exists("/").wait().rc, Rc::not_connected);
    named.client->set_servers({"name-that-nobody-knows.invalid:2181", connect_string()});
    EXPECT_TRUE(named.connected());
    EXPECT_EQ(named.client->status().server, connect_string());
}

TEST_F(ClientFaultsTest, AHandleWhoseNamesNobodyKnowsCanBeClosed) {
    TestHandle unknown(Hosts{"name-that-nobody-knows.invalid:2181"}, 20s);
    EXPECT_EQ(unknown.async_exists("/").wait().rc, Rc::not_connected);
    unknown.close();
    EXPECT_THAT(unknown.events->statuses(), SizeIs(0));
}

TEST_F(ClientFaultsTest, AnUnreachableServerIsTriedUntilItIsThere) {
    gate().refuse();
    TestHandle early(gate().connect_string(), 2s);
    EXPECT_EQ(early.async_exists("/").wait().rc, Rc::not_connected);
    EXPECT_EQ(early.client->status().session_id, 0);
    gate().pass();
    EXPECT_TRUE(early.connected());
}

// ---- threads ------------------------------------------------------------------------------------------------------

TEST_F(ClientFaultsTest, SignalsOfTheHostAreNotHandledOnTheClientsThreads) {
    sigset_t mask;
    OneAnswer answer;
    h().client->exists(root(), false, [&, take = answer.taker()](Rc rc, const NodeStat&) {
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        take({.rc = rc});
    });
    answer.wait();
    EXPECT_TRUE(sigismember(&mask, SIGTERM));
    EXPECT_TRUE(sigismember(&mask, SIGCHLD));
    EXPECT_FALSE(sigismember(&mask, SIGSEGV));
}

}  // namespace
}  // namespace zkrecipes::internal
