// The functions of examples/guarded_counter.cpp, which a program would have in a file of their own.
#include <gtest/gtest.h>

#include <future>

#include <zkrecipes/testing.hpp>

#define main guarded_counter_main
#include "examples/guarded_counter.cpp"  // NOLINT: with its own names
#undef main

namespace {

using zkrecipes::testkit::FakeServer;
using zkrecipes::testkit::Match;
using zkrecipes::testkit::Time;

class GuardedCounterTest : public ::testing::Test {
protected:
    void SetUp() override { prepare(session); }
    FakeServer server;
    zkrecipes::Session session = server.session();
};

TEST_F(GuardedCounterTest, ItIsRaisedByOne) {
    EXPECT_TRUE(raise(session));
    EXPECT_TRUE(raise(session));
    EXPECT_EQ(server.data("/counter/value"), "2");
    prepare(session);  // again
    EXPECT_EQ(server.data("/counter/value"), "2");
}

TEST_F(GuardedCounterTest, ALostAnswerDoesNotRaiseItTwice) {
    const auto lost = server.cut_after(Match::set().path_is("/counter/value"));
    EXPECT_TRUE(raise(session));
    EXPECT_TRUE(lost.reached());
    EXPECT_EQ(server.data("/counter/value"), "1");
}

TEST_F(GuardedCounterTest, AWorkerThatDoesNotGetTheLockRaisesNothing) {
    FakeServer later(Time::manual);
    zkrecipes::Session one = later.session(), other = later.session();
    prepare(one);
    zkrecipes::ExclusiveMutex mutex(other, "/counter/lock");
    const Grant grant = mutex.acquire();
    auto raised = std::async(std::launch::async, [&] { return raise(one); });
    ASSERT_TRUE(later.await([&] { return later.children("/counter/lock").size() == 2; }));
    later.advance(61s);  // it waits for a minute
    EXPECT_FALSE(raised.get());
    EXPECT_EQ(later.data("/counter/value"), "0");
}

TEST_F(GuardedCounterTest, TheBearerOfASequencerFinishes) {
    zkrecipes::ExclusiveMutex mutex(session, "/counter/lock");
    const Grant grant = mutex.acquire();
    const zkrecipes::Sequencer sequencer(grant, zkrecipes::Sequencer::Bearer::may_release);
    zkrecipes::Session other = server.session();
    EXPECT_TRUE(zkrecipes::still_held(other, zkrecipes::Sequencer::parse(sequencer.text()), 10s));
    server.lose(grant);
    EXPECT_FALSE(zkrecipes::still_held(other, zkrecipes::Sequencer::parse(sequencer.text()), 10s));
}

}  // namespace
