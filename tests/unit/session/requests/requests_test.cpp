// What a session asks after a watch event was relied on, and the connection has broken; and lists that many share.
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RequestsTest : public SessionTest {
protected:
    ~RequestsTest() override { destroy(); }  // what is still open is answered here
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
        client().connect(kFirstSession);
        runtime->run();
    }
    std::vector<std::string> told;
};

TEST_F(RequestsTest, WithoutAnEventAReconnectAsksNothing) {
    reconnect();
    EXPECT_THAT(client().open, IsEmpty());
}

TEST_F(RequestsTest, AfterAConnectionWithoutAnAnswerTheNextOneAsksWhy) {
    client().answers_touches = false;
    reconnect();
    ASSERT_EQ(client().open.size(), 1u);
    answer("exists", Rc::credentials_demanded);
    EXPECT_EQ(core->state(), SessionState::closed);
}

TEST_F(RequestsTest, AfterAConnectionWithAnAnswerTheNextOneAsksNothing) {
    client().answers_touches = false;
    get("/data");
    answer("get");
    reconnect();
    EXPECT_THAT(client().open, IsEmpty());
}

TEST_F(RequestsTest, ServersThatDemandCredentialsEndTheSessionBeforeTheRequestIsAnswered) {
    get("/data");
    answer("get", Rc::credentials_demanded);
    EXPECT_EQ(core->state(), SessionState::closed);
    EXPECT_THAT(told, ElementsAre("/data: session expired"));
}

TEST_F(RequestsTest, WhileSomethingIsHeldADemandForCredentialsDoesNotCloseTheSession) {
    auto held = hold("/l/n");
    get("/data");
    answer("get", Rc::credentials_demanded);
    EXPECT_EQ(core->state(), SessionState::connected);
    EXPECT_TRUE(held->held());
    EXPECT_FALSE(client().closed) << "that would free the lock";
    EXPECT_THAT(told, ElementsAre("/data: connection lost"));
    EXPECT_THAT(core->info().problem, ::testing::HasSubstr("demand credentials"));
    runtime->advance(options.timeout);
    EXPECT_FALSE(held->held()) << "the lease has ended";
    get("/data");
    answer("get", Rc::credentials_demanded);
    EXPECT_EQ(core->state(), SessionState::closed);
}

TEST_F(RequestsTest, ATransactionInALocalSessionIsToldSo) {
    const auto commit = [this] {
        inside([&] {
            core->multi({MultiOp{}},
                        [this](Rc rc, const std::vector<MultiResult>&, Instant) { told.push_back(to_string(rc)); });
        });
        answer("multi", Rc::session_expired);
    };
    commit();
    commit();
    ASSERT_EQ(client().open.size(), 1u) << "one create that has no parent asks";
    EXPECT_EQ(client().open.at(0).mode, CreateMode::ephemeral);
    answer("create", Rc::local_session);
    commit();
    EXPECT_THAT(told, ElementsAre("session expired", "session expired", to_string(Rc::local_session)));
    reconnect();
    commit();
    EXPECT_EQ(told.back(), "session expired") << "another server may have another setting";
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

TEST_F(RequestsTest, UntilACommittedRequestIsExecutedReadsAreLost) {
    event();
    reconnect();
    get("/data");
    remove("/node");
    answer("multi", Rc::throttled);
    ASSERT_EQ(client().open.size(), 3u) << "it is sent again";
    answer("get");
    answer("remove");
    EXPECT_THAT(told, ElementsAre("/data: connection lost", "/node: ok"));
    commit_heartbeats();
    get("/data");
    answer("get");
    EXPECT_EQ(told.back(), "/data: ok");
    reconnect();
    EXPECT_THAT(client().open, IsEmpty());
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
    client().connect(kFirstSession);
    runtime->run();
    read.answer(Reply{});
    write.answer(Reply{});
    EXPECT_THAT(told, ElementsAre("/data: connection lost", "/node: ok"));
    commit_heartbeats();  // answers come in order
    get("/data");
    answer("get");
    EXPECT_THAT(told, ElementsAre("/data: connection lost", "/node: ok", "/data: ok"));
}

TEST_F(RequestsTest, ThatReadDoesNotEndTheDoubt) {
    event();
    get("/data");
    Request read = client().take("get");
    client().say(ClientState::connecting);
    client().connect(kFirstSession);
    runtime->run();
    read.answer(Reply{});
    reconnect();
    EXPECT_EQ(client().open.size(), 1u);
}

TEST_F(RequestsTest, WithoutAnEventSuchAReadIsAnsweredAsItIs) {
    get("/data");
    Request read = client().take("get");
    client().say(ClientState::connecting);
    client().connect(kFirstSession);
    runtime->run();
    read.answer(Reply{});
    EXPECT_THAT(told, ElementsAre("/data: ok"));
}

TEST_F(RequestsTest, WhatABrokenConnectionHasNotAnsweredYetIsNotLateOnTheNextOne) {
    get("/first");
    answer("get");
    get("/data");
    client().say(ClientState::connecting);  // what becomes of that read is told later
    client().connect(kFirstSession);
    runtime->advance(std::chrono::milliseconds(500));
    EXPECT_EQ(client().touches, 0) << "a nudge for a server that owes no answer";
    EXPECT_EQ(core->stats().stalled_replies, 0u);
    answer("get", Rc::connection_loss);
    EXPECT_EQ(told.back(), "/data: connection lost");
}

TEST_F(RequestsTest, TheRootNeedsNotBeMadeWhichIsToldAsEveryAnswer) {
    bool inside_call = true;
    inside([&] {
        core->make_directory("/", Acl::open(), [&](Rc rc, Instant sent_at) {
            EXPECT_FALSE(inside_call);
            EXPECT_EQ(sent_at, now());
            told.push_back(to_string(rc));
        });
        inside_call = false;
    });
    EXPECT_THAT(told, IsEmpty());
    runtime->run();
    EXPECT_THAT(told, ElementsAre("ok"));
    EXPECT_THAT(client().sent, IsEmpty());
}

// ---- lists of one directory -----------------------------------------------------------------------------------------

class ListsTest : public RequestsTest {
protected:
    void list(int times, const std::string& path = "/l") {
        for (int i = 0; i < times; ++i) {
            inside([&] {
                core->list(path, [this, number = ++asked](Rc rc, const std::vector<std::string>& names, const NodeStat&,
                                                          Instant) {
                    told.push_back(std::to_string(number) + ": " + (names.empty() ? to_string(rc) : names.front()));
                });
            });
        }
    }
    void answer_list(const std::string& name) {
        Request request = client().take("children");
        ASSERT_TRUE(request.answer);
        Reply reply;
        reply.names = {name};
        request.answer(reply);
        runtime->run();
    }
    int asked = 0;
};

TEST_F(ListsTest, AFewAreAskedAtOnce) {
    list(8);
    list(1, "/other");
    EXPECT_EQ(client().open.size(), 9u);
}

TEST_F(ListsTest, ManyShareTheNextOneWhichIsSentAfterTheyHaveAsked) {
    list(100);
    EXPECT_EQ(client().open.size(), 8u);
    answer_list("before");
    EXPECT_THAT(told, ElementsAre("1: before")) << "the others have asked after that list was sent";
    EXPECT_EQ(client().open.size(), 8u);
    list(1);
    told.clear();
    for (int i = 0; i < 7; ++i) answer_list("before");
    ASSERT_EQ(client().open.size(), 2u) << "one for 92 of them, and one for the last";
    told.clear();
    answer_list("behind");
    EXPECT_EQ(told.size(), 92u);
    EXPECT_EQ(told.front(), "9: behind");
    answer_list("last");
    EXPECT_EQ(told.back(), "101: last");
    EXPECT_THAT(client().open, IsEmpty());
    list(9);
    EXPECT_EQ(client().open.size(), 8u) << "as in the beginning";
}

TEST_F(ListsTest, WhoeverWaitsForOneIsToldThatTheConnectionBroke) {
    list(10);
    client().disconnect();  // which answers what is open
    runtime->run();
    EXPECT_EQ(told.size(), 10u);
    EXPECT_EQ(told.back(), "10: connection lost");
}

// ---- what a refused request lacks ----------------------------------------------------------------------------------

class MissingRightTest : public RequestsTest {
protected:
    void SetUp() override {
        options.auth = {{"digest", "job:secret:more"}, {"other", "token"}};
        RequestsTest::SetUp();
        for (int i = 0; i < 2; ++i) client().answer_auth(Rc::ok);
    }
    std::string why(const std::string& detail = "create was refused") {
        return core->explained(Errc::no_permission, detail);
    }
    static std::string lacks(const std::string& right, const std::string& path) {
        return "create was refused; the access list of " + path + " does not grant the right '" + right +
               "' to this session, which is authenticated as digest:job, other; change the list, or present other "
               "credentials (SessionOptions::auth)";
    }
};

TEST_F(MissingRightTest, SaysTheRightThePathAndTheSessionAndNeverASecret) {
    EXPECT_EQ(why(), "create was refused") << "nothing was refused yet";
    inside([&] { core->create("/d/n", "", {}, CreateMode::ephemeral, [&](auto&&...) { told.push_back(why()); }); });
    answer("create", Rc::no_auth);
    get("/d/n");
    answer("get", Rc::no_auth);
    told.push_back(why());
    remove("/d/n");
    answer("remove", Rc::no_auth);
    told.push_back(why());
    inside([&] { core->set("/d/n", "", -1, [&](auto&&...) { told.push_back(why()); }); });
    answer("set", Rc::no_auth);
    EXPECT_THAT(told, ElementsAre(lacks("create", "/d"), "/d/n: not permitted", lacks("read", "/d/n"),
                                  "/d/n: not permitted", lacks("delete", "/d"), lacks("write", "/d/n")));
    EXPECT_EQ(core->explained(Errc::quota_exceeded, "text"), "text");
}

TEST_F(MissingRightTest, OfATransactionItIsTheOperationThatWasRefused) {
    std::vector<MultiOp> ops(4);
    ops[0].path = "/a";
    ops[1].kind = MultiOp::Kind::create;
    ops[1].path = "/b/n";
    ops[2].kind = MultiOp::Kind::set;
    ops[2].path = "/c";
    ops[3].kind = MultiOp::Kind::remove;
    ops[3].path = "/d/n";
    const std::string expected[] = {lacks("read", "/a"), lacks("create", "/b"), lacks("write", "/c"),
                                    lacks("delete", "/d")};
    for (std::size_t refused = 0; refused < ops.size(); ++refused) {
        inside([&] { core->multi(ops, [&](auto&&...) { told.push_back(why()); }); });
        Reply reply;
        reply.rc = Rc::no_auth;
        reply.results.resize(ops.size());
        for (std::size_t i = refused + 1; i < ops.size(); ++i) reply.results[i].rc = Rc::runtime_inconsistency;
        reply.results[refused].rc = Rc::no_auth;
        client().take("multi").answer(reply);
        EXPECT_EQ(told.back(), expected[refused]);
    }
}

TEST_F(MissingRightTest, OfADirectoryItIsTheAncestorAlsoIfOthersAreRefusedMeanwhile) {
    inside([&] { core->make_directory("/a/b/c", {}, [&](Rc, Instant) { told.push_back(why()); }); });
    answer("create", Rc::no_node);
    answer("create", Rc::no_auth);  // of /a/b: is it there all the same?
    get("/x");
    Request exists = client().take("exists");
    answer("get", Rc::no_auth);
    Reply missing;
    missing.rc = Rc::no_node;
    exists.answer(missing);
    EXPECT_THAT(told, ElementsAre("/x: not permitted", lacks("create", "/a")));
}

}  // namespace
}  // namespace zkrecipes::testing
