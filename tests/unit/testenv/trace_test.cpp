#include <gtest/gtest.h>

#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/trace.hpp>

namespace zkrecipes::test {
namespace {

using namespace testenv;  // NOLINT

Record record(Record::Kind kind, int xid, Opcode opcode = Opcode::exists, std::int64_t session = 1) {
    Record made;
    made.kind = kind;
    made.opcode = opcode;
    made.xid = xid;
    made.session = session;
    return made;
}
Record request(int xid, Opcode opcode = Opcode::exists) { return record(Record::Kind::request, xid, opcode); }
Record reply(int xid, Opcode opcode = Opcode::exists) { return record(Record::Kind::reply, xid, opcode); }

TEST(RoundTripsTest, RequestsSentBackToBackAreOne) {
    EXPECT_EQ(round_trips({request(1), request(2), reply(1), reply(2)}, 1), 1);
}

TEST(RoundTripsTest, RequestAfterAReplyIsTheNext) {
    EXPECT_EQ(round_trips({request(1), reply(1), request(2), reply(2)}, 1), 2);
    EXPECT_EQ(round_trips({request(1), request(2), reply(1), request(3), reply(2), request(4)}, 1), 2);
}

TEST(RoundTripsTest, RequestAfterAnEventIsTheNext) {
    EXPECT_EQ(round_trips({request(1), reply(1), record(Record::Kind::event, -1, Opcode::notification), request(2)}, 1),
              2);
}

TEST(RoundTripsTest, PingsAndOtherSessionsDoNotCount) {
    EXPECT_EQ(round_trips({request(1), request(-2, Opcode::ping), reply(-2, Opcode::ping), request(2)}, 1), 1);
    EXPECT_EQ(round_trips({request(1), reply(1)}, 2), 0);
    EXPECT_EQ(round_trips({}, 1), 0);
}

TEST(CountsTest, SumsLeaveOutPingsAndTheHandshake) {
    const auto counts = count({request(0, Opcode::connect), request(1, Opcode::create), request(2, Opcode::multi),
                               request(3), request(-2, Opcode::ping), reply(1, Opcode::create)});
    EXPECT_EQ(counts.total(), 3U);
    EXPECT_EQ(counts.writes(), 2U);
    EXPECT_EQ(counts.reads(), 1U);
    EXPECT_EQ(counts.pings(), 1U);
    EXPECT_EQ(counts[Opcode::set_data], 0U);
    EXPECT_EQ(to_string(counts), "connect 1, create 1, exists 1, ping 1, multi 1");
}

TEST(MatchTest, AllConditionsMustFit) {
    Record made = request(1, Opcode::multi);
    made.path = "/a";
    made.parts = {{Opcode::check, "/a"}, {Opcode::remove, "/b/lock-1"}};
    EXPECT_TRUE(Match::any().fits(made));
    EXPECT_TRUE(Match::op(Opcode::multi).path("lock-").session(1).fits(made));
    EXPECT_TRUE(Match::any().path_is("/b/lock-1").fits(made));
    EXPECT_FALSE(Match::any().path_is("/b/lock-").fits(made));
    EXPECT_FALSE(Match::op(Opcode::create).path("lock-").fits(made));
    EXPECT_FALSE(Match::op(Opcode::multi).session(2).fits(made));
    EXPECT_FALSE(Match::any().where([](const Record& seen) { return seen.xid == 2; }).fits(made));
    EXPECT_THROW(Match::any().nth(0), testenv::Error);
}

TEST(MatchTest, CreateFitsEveryRequestThatCreatesANode) {
    for (const Opcode opcode : {Opcode::create, Opcode::create2, Opcode::create_container, Opcode::create_ttl}) {
        Record made = request(1, opcode);
        made.path = "/b/lock-1";
        EXPECT_TRUE(Match::create().path("lock-").fits(made)) << to_string(opcode);
        EXPECT_FALSE(Match::create().path("lease-").fits(made)) << to_string(opcode);
    }
    Record multi = request(1, Opcode::multi);
    multi.parts = {{Opcode::check, "/a"}, {Opcode::create2, "/b/lock-1"}};
    EXPECT_TRUE(Match::create().path("lock-").fits(multi));
    multi.parts = {{Opcode::check, "/a"}, {Opcode::remove, "/b/lock-1"}};
    EXPECT_FALSE(Match::create().fits(multi));
    EXPECT_FALSE(Match::create().fits(request(1, Opcode::set_data)));
}

}  // namespace
}  // namespace zkrecipes::test
