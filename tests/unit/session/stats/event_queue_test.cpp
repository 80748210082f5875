#include "session/stats/event_queue.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/fake_runtime.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using internal::EventQueue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Listener : public SessionEvents {
public:
    void on_error(const std::string& text) override { told.push_back(text); }
    std::vector<std::string> told;
};

class EventQueueTest : public ::testing::Test {
protected:
    void push(EventQueue::Kind kind, const std::string& text) {
        queue->push(kind, [text](SessionEvents& to) { to.on_error(text); });
    }
    const std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
    const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
    const std::shared_ptr<EventQueue> queue = std::make_shared<EventQueue>(runtime, listener);
};

TEST_F(EventQueueTest, CommonEventsWaitForTheOthersOfTheNextMilliseconds) {
    push(EventQueue::Kind::common, "first");
    push(EventQueue::Kind::common, "second");
    EXPECT_EQ(queue->flush_at(), runtime->now() + EventQueue::kWaitForOthers);
    runtime->run();
    EXPECT_THAT(listener->told, IsEmpty());
    push(EventQueue::Kind::certain, "a loss");
    EXPECT_EQ(queue->flush_at(), Instant::max());
    runtime->run();
    EXPECT_THAT(listener->told, ElementsAre("first", "second", "a loss"));
}

TEST_F(EventQueueTest, WhatCannotBePostedIsToldLaterAndIsNotDropped) {
    runtime->refuse_posts(true);
    push(EventQueue::Kind::certain, "a loss");
    EXPECT_EQ(queue->flush_at(), runtime->now() + EventQueue::kWaitForOthers);
    runtime->advance(EventQueue::kWaitForOthers);
    queue->flush();
    EXPECT_EQ(queue->flush_at(), runtime->now() + EventQueue::kWaitForOthers);
    EXPECT_THAT(listener->told, IsEmpty());
    runtime->refuse_posts(false);
    queue->flush();
    runtime->run();
    EXPECT_THAT(listener->told, ElementsAre("a loss"));
    EXPECT_EQ(queue->dropped(), 0u);
    EXPECT_EQ(queue->flush_at(), Instant::max());
}

TEST_F(EventQueueTest, ManyCommonEventsAreToldAtOnceBeforeTheyAreTooMany) {
    for (std::size_t i = 0; i < EventQueue::kMost / 2; ++i) push(EventQueue::Kind::common, "hold");
    runtime->run();
    EXPECT_EQ(listener->told.size(), EventQueue::kMost / 2);
}

TEST_F(EventQueueTest, OnlyLossesAndStatesAreKeptBeyondTheLimit) {
    for (std::size_t i = 0; i < EventQueue::kMost + 2; ++i) push(EventQueue::Kind::prompt, "error");
    push(EventQueue::Kind::certain, "a loss");
    EXPECT_EQ(queue->dropped(), 2u);
    runtime->run();
    EXPECT_EQ(listener->told.size(), EventQueue::kMost + 1);
    EXPECT_EQ(listener->told.back(), "a loss");
}

TEST_F(EventQueueTest, WhatMemoryDidNotSufficeForIsCounted) {
    queue->drop();
    EXPECT_EQ(queue->dropped(), 1u);
}

}  // namespace
}  // namespace zkrecipes::testing
