// A grant on the event that the predecessor has gone, in a whole session: what is known of the own node afterwards.
#include <zkrecipes/exclusive_mutex.hpp>

#include <gmock/gmock.h>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EventGrantTest : public ServedTest {
protected:
    EventGrantTest() {
        connect();
        put("/l");
        put(predecessor, "", 0x999);
        nodes["/l"].next_number = 1;
        mutex.emplace(*session, "/l");
        mutex->acquire_async(Deadline::never(), {}, [this](AcquireResult result) { grant = std::move(result.value); });
        serve();
        asked.clear();
    }
    void be_granted() {
        erase(predecessor);
        runtime->run();
    }
    ~EventGrantTest() override {
        runtime->while_running([this] {
            grant.release();
            mutex.reset();
        });
        serve();
    }
    const std::string predecessor = "/l/_c_00000000-0000-4000-8000-00000000000a-lock-0000000000";
    std::optional<ExclusiveMutex> mutex;
    Grant grant;
};

TEST_F(EventGrantTest, NothingIsAskedFor) {
    be_granted();
    EXPECT_TRUE(grant.held());
    serve();
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(EventGrantTest, TheWatchOnTheDirectoryThatIsAboutToFireIsNotTakenAway) {
    ends_in_the_middle = true;
    const std::string two[] = {"/m/_c_00000000-0000-4000-8000-00000000000a-lock-0000000000",
                               "/m/_c_00000000-0000-4000-8000-00000000000b-lock-0000000001"};
    put("/m");
    for (const auto& node : two) put(node, "", 0x999);
    nodes["/m"].next_number = 2;
    Grant behind_two;
    ExclusiveMutex other(*session, "/m");
    other.acquire_async(Deadline::never(), {}, [&](AcquireResult result) { behind_two = std::move(result.value); });
    serve();
    erase(two[0]);
    serve();
    ASSERT_THAT(asked, Contains("children /m"));
    asked.clear();
    erase(two[1]);
    serve();
    EXPECT_TRUE(behind_two.held());
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(EventGrantTest, TheWatchOnTheOwnNodeGoesOnForTheHold) {
    be_granted();
    erase(grant.node());
    runtime->run();
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(grant.lost().stop_requested());
}

// The servers tell nobody of a node that he may not read, or no longer.
TEST_F(EventGrantTest, ANodeThatWasDeletedWithoutAnEventIsNotHeldByAHeartbeatLater) {
    const std::string own = "/l/" + children("/l").at(1);
    nodes.erase(own);
    runtime->advance(1100ms);
    serve();
    be_granted();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.node(), own);
    EXPECT_TRUE(nodes.contains(grant.node()));
}

TEST_F(EventGrantTest, WhoeverIsNextAgainAfterARefusalIsNamedAgain) {
    ends_in_the_middle = true;
    const std::string check = "multi /l/" + children("/l").at(1);
    const auto asked_later = [&] {
        asked.clear();
        runtime->advance(1100ms);
        serve();
        return asked;
    };
    refusals = {{check, Rc::no_auth}};
    EXPECT_THAT(asked_later(), Contains(check));
    EXPECT_THAT(asked_later(), Not(Contains(check))) << "it may not read its node, so it is not next any more";
    refusals.clear();
    write(predecessor, "other data");  // so that it prepares anew
    serve();
    EXPECT_THAT(asked_later(), Contains(check));
}

TEST_F(EventGrantTest, TheWatchOnTheOwnNodeIsSetAgainAfterAnEventThatIsNoDeletion) {
    const std::string own = "/l/" + children("/l").at(1);
    write(own, "other data");
    serve();
    erase(own);
    serve();
    be_granted();
    EXPECT_TRUE(grant.held());
    EXPECT_NE(grant.node(), own);
}

TEST_F(EventGrantTest, ALongHoldAsksForNoOtherWatch) {
    be_granted();
    runtime->advance(700ms);
    serve();
    EXPECT_THAT(asked, Not(Contains(HasSubstr("get"))));
    grant.release();
    serve();
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
