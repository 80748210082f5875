// What ends while it waits to try again leaves nothing in its session: no timer, no observer, no watch, no room.
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/shared_value.hpp>

#include <exception>
#include <optional>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class LeftoversTest : public SessionTest {
protected:
    LeftoversTest() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~LeftoversTest() override {
        runtime->while_running([this] { session.reset(); });
    }
    void answer_all(Rc rc) {
        runtime->run();
        while (!client().open.empty()) {
            const Request request = client().take();
            Reply reply;
            reply.rc = rc;
            reply.results.resize(request.ops.size());
            request.answer(reply);
            runtime->run();
        }
    }
    /// Everything that is asked is refused, until nothing is asked any more but after a pause.
    void refuse_everything() {
        answer_all(Rc::no_auth);
        EXPECT_NE(leftovers(), "") << "it has given up, instead of trying again";
    }
    void expect_nothing_left() {
        answer_all(Rc::ok);
        EXPECT_EQ(leftovers(), "");
        const auto sent = client().sent;
        runtime->advance(std::chrono::seconds(60));
        EXPECT_EQ(client().sent, sent);
    }
    std::string leftovers() {
        std::string text;
        inside([&] { text = core->leftovers(); });
        return text;
    }

    std::optional<Session> session;
};

TEST_F(LeftoversTest, OfAWatchedValue) {
    SharedValue value(*session, "/value", "seed");
    auto subscription = value.observe([](const std::optional<VersionedValue>&) {});
    refuse_everything();
    subscription.reset();
    expect_nothing_left();
}

TEST_F(LeftoversTest, OfAWatchedGroup) {
    Group group(*session, "/group");
    auto subscription = group.observe([](const GroupMembers&) {});
    refuse_everything();
    subscription.reset();
    expect_nothing_left();
}

TEST_F(LeftoversTest, OfAWatchedLeader) {
    LeaderElection election(*session, "/election");
    auto subscription = election.observe([](const std::optional<Participant>&) {});
    refuse_everything();
    subscription.reset();
    expect_nothing_left();
}

TEST_F(LeftoversTest, OfANodeThatIsKept) {
    std::optional<PersistentNode> node;
    node.emplace(*session, "/node");
    refuse_everything();
    node.reset();
    expect_nothing_left();
}

TEST_F(LeftoversTest, ABarrierWithoutRoomForItsNodeHasNoneTheSecondTimeEither) {
    inside([this] { ASSERT_TRUE(core->reserve_ephemeral(899'990)); });
    DoubleBarrier barrier(*session, "/barrier", 2);
    for (int i = 0; i < 2; ++i) {
        std::exception_ptr error;
        barrier.enter_async(Deadline::never(), {}, [&](BarrierResult result) { error = result.error; });
        answer_all(Rc::ok);
        ASSERT_TRUE(error);
        try {
            std::rethrow_exception(error);
        } catch (const Error& why) {
            EXPECT_EQ(why.errc(), Errc::budget_exceeded);
        }
    }
    EXPECT_EQ(client().count("create"), 0u);
    inside([this] { core->release_ephemeral(899'990); });
    expect_nothing_left();
}

}  // namespace
}  // namespace zkrecipes::testing
