// Requests of one handle are answered in the order of the calls, also those that were never sent: whoever sends two
// together counts on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "client/wire_size.hpp"
#include "support/client_test_handle.hpp"
#include "support/scripted_server.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;

class AnswerOrderTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(handle_.connected()); }
    /// The protocol lane has done all that it was given so far.
    void await_lane() {
        const auto passed = std::make_shared<WaitEvent>();
        handle_.runtime->post(Lane::protocol, [passed] { passed->set(); });
        passed->wait();
    }
    /// `refused` was, and was sent behind `sent`, which the server has not answered yet.
    void expect_in_order(OneAnswer& sent, OneAnswer& refused, Rc why) {
        await_lane();
        EXPECT_FALSE(refused.answered()) << "before the one in front of it";
        server_.hold(false);
        EXPECT_EQ(refused.wait().rc, why);
        EXPECT_TRUE(sent.answered());
        EXPECT_EQ(sent.wait().rc, Rc::ok);
    }

    test::ScriptedServer server_;
    TestHandle handle_{server_.host()};
};

TEST_F(AnswerOrderTest, WhatIsNeverSentWaitsForTheAnswersToWhatWas) {
    server_.hold();
    OneAnswer sent = handle_.async_exists("/a");
    OneAnswer refused = handle_.async_create("/b", std::string(kMaxRequestBytes + 1, 'x'));
    expect_in_order(sent, refused, Rc::too_large);
}

/// The socket fails while something is sent, before the driver has heard of it. The C client then drops its connection
/// without a word, and would send what it has on the next one.
TEST_F(AnswerOrderTest, WhatASendThatFailsLeavesBehindIsAnsweredAndNotSentOnTheNextConnection) {
    WaitEvent entered, go_on;
    handle_.client->exists("/blocks", false, [&](Rc, const NodeStat&) {  // the driver
        entered.set();
        go_on.wait();
    });
    entered.wait();
    server_.cut();
    ASSERT_TRUE(test::await([&] { return server_.connections() == 0; }));
    std::vector<OneAnswer> answers;
    for (int i = 0; i < 10; ++i) answers.push_back(handle_.async_create("/a"));
    go_on.set();
    for (OneAnswer& answer : answers) EXPECT_THAT(answer.wait().rc, AnyOf(Rc::connection_loss, Rc::not_connected));
    EXPECT_EQ(answers.front().wait().rc, Rc::connection_loss);
    EXPECT_EQ(answers.back().wait().rc, Rc::not_connected);
    ASSERT_TRUE(test::await([&] { return handle_.events->times(ClientState::connected) == 2; }));
    EXPECT_EQ(handle_.async_exists("/after").wait().rc, Rc::ok);
    EXPECT_EQ(server_.count("create2"), 0U);
}

TEST_F(AnswerOrderTest, TheEndOfTheSessionAnswersAllOfThem) {
    server_.hold();
    OneAnswer sent = handle_.async_exists("/a");
    OneAnswer refused = handle_.async_create("/b", std::string(kMaxRequestBytes + 1, 'x'));
    await_lane();
    server_.end_session();
    server_.cut();
    EXPECT_EQ(refused.wait().rc, Rc::too_large);
    EXPECT_TRUE(sent.answered());
}

TEST_F(AnswerOrderTest, AHeartbeatThatCannotBeSentWaitsForNothing) {
    server_.hold();
    OneAnswer sent = handle_.async_exists("/a"), refused;
    const std::vector<std::string> too_many(200'000, "/a/node/of/mine");
    handle_.client->heartbeat(too_many,
                              [take = refused.taker()](Rc rc, const std::vector<MultiResult>&) { take({.rc = rc}); });
    EXPECT_EQ(refused.wait().rc, Rc::too_large);
    EXPECT_FALSE(sent.answered());
    server_.hold(false);  // or closing takes long
}

}  // namespace
}  // namespace zkrecipes::internal
