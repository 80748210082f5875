// What a session asks after a watch event was relied on, and the connection has broken.
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RequestsTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
    void get(const std::string& path) {
        inside([&] {
            core->get(path, [this, path](Rc rc, const std::string&, const NodeStat&, Instant) {
                told.push_back(path + ": " + to_string(rc));
            });
        });
    }
    void remove(const std::string& path) {
        inside([&] {
            core->remove(path, -1, [this, path](Rc rc, Instant) { told.push_back(path + ": " + to_string(rc)); });
        });
    }
    void answer(const std::string& op, Rc rc = Rc::ok) {
        Request request = client().take(op);
        ASSERT_TRUE(request.answer) << op;
        Reply reply;
        reply.rc = rc;
        request.answer(reply);
    }
    void event() {
        inside([&] { core->seen_by_event(); });
    }
    void reconnect() {
        client().disconnect();
        client().connect(0x100);
        runtime->run();
    }
    std::vector<std::string> told;
};

TEST_F(RequestsTest, WithoutAnEventAReconnectAsksNothing) {
    reconnect();
    EXPECT_THAT(client().open, IsEmpty());
}

TEST_F(RequestsTest, AfterAnEventACommittedRequestComesFirstOnTheNextConnection) {
    event();
    std::shared_ptr<Hold> held = hold("/l/n");
    ASSERT_NE(held, nullptr);
    reconnect();
    get("/data");
    ASSERT_EQ(client().open.size(), 3u);
    EXPECT_EQ(client().open.at(0).op, "multi");
    EXPECT_TRUE(client().open.at(0).heartbeat);
    EXPECT_EQ(client().open.at(0).path, "/");
    EXPECT_EQ(client().open.at(1).path, "/l/n");  // that of the hold
    EXPECT_EQ(client().open.at(2).op, "get");
    commit_heartbeats();
    answer("get");
    EXPECT_THAT(told, ElementsAre("/data: ok"));
    reconnect();
    EXPECT_EQ(client().open.size(), 1u) << "once is enough";
    EXPECT_EQ(client().open.at(0).path, "/l/n");
}

TEST_F(RequestsTest, AnAnswerToWhatWasAskedAfterTheEventIsAsNewAsTheEvent) {
    event();
    get("/data");
    answer("get");
    reconnect();
    EXPECT_THAT(client().open, IsEmpty());
}

TEST_F(RequestsTest, AnAnswerToWhatWasAskedBeforeTheEventMayBeOlder) {
    get("/data");
    event();
    answer("get");
    reconnect();
    EXPECT_EQ(client().open.size(), 1u);
}

TEST_F(RequestsTest, AReadThatWentOutBeforeTheReconnectWasKnownIsLost) {
    event();
    get("/data");
    remove("/node");
    Request read = client().take("get"), write = client().take("remove");
    client().say(ClientState::connecting);  // both are queued in the client, and sent on the next connection
    client().connect(0x100);
    runtime->run();
    read.answer(Reply{});
    write.answer(Reply{});
    EXPECT_THAT(told, ElementsAre("/data: connection lost", "/node: ok"));
    get("/data");
    answer("get");
    EXPECT_THAT(told, ElementsAre("/data: connection lost", "/node: ok", "/data: ok"));
}

TEST_F(RequestsTest, ThatReadDoesNotEndTheDoubt) {
    event();
    get("/data");
    Request read = client().take("get");
    client().say(ClientState::connecting);
    client().connect(0x100);
    runtime->run();
    read.answer(Reply{});
    reconnect();
    EXPECT_EQ(client().open.size(), 1u);
}

TEST_F(RequestsTest, WithoutAnEventSuchAReadIsAnsweredAsItIs) {
    get("/data");
    Request read = client().take("get");
    client().say(ClientState::connecting);
    client().connect(0x100);
    runtime->run();
    read.answer(Reply{});
    EXPECT_THAT(told, ElementsAre("/data: ok"));
}

}  // namespace
}  // namespace zkrecipes::testing
