// examples/lock_spans.hpp: what a session tells becomes spans.
#include "examples/lock_spans.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "support/await.hpp"
#include "support/zk_server_test.hpp"

#if __has_include(<opentelemetry/trace/tracer.h>)
#include "examples/lock_spans_opentelemetry.hpp"
#endif

namespace zkrecipes {
namespace {

using namespace std::chrono_literals;
using lock_spans::LockSpan;

class Spans {
public:
    void add(const LockSpan& span) {
        const std::lock_guard lock(mutex_);
        spans_.push_back(span);
    }
    std::vector<LockSpan> all() const {
        const std::lock_guard lock(mutex_);
        return spans_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<LockSpan> spans_;
};

TEST(LockSpansTest, EachEndIsASpan) {
    Spans spans;
    lock_spans::LockSpans events([&](const LockSpan& span) { spans.add(span); });
    EventSubject subject{"ExclusiveMutex", "exclusive", "/a", std::chrono::system_clock::time_point(100s), 7};
    events.on_queued(subject, 3);
    events.on_acquired(subject, 5, 2s);
    events.on_missed(subject, Missed::busy, 1s);
    events.on_failed(subject, Error(Errc::no_permission, "acquire", "/a"), 1s);
    events.on_released(subject, 5, 10s);
    events.on_lost(subject, 5, LossReason::node_gone, 20s);
    const auto all = spans.all();
    ASSERT_EQ(all.size(), 5U);
    EXPECT_EQ(all[0].name, "wait ExclusiveMutex");
    EXPECT_EQ(all[0].start.time_since_epoch(), 98s);
    EXPECT_EQ(all[0].end.time_since_epoch(), 100s);
    EXPECT_EQ(all[0].path, "/a");
    EXPECT_EQ(all[0].mode, "exclusive");
    EXPECT_EQ(all[0].outcome, "acquired");
    EXPECT_EQ(all[0].token, 5);
    EXPECT_EQ(all[0].acquire, 7U);
    EXPECT_FALSE(all[0].is_error);
    EXPECT_EQ(all[1].outcome, "busy");
    EXPECT_EQ(all[1].token, 0);
    EXPECT_FALSE(all[1].is_error);
    EXPECT_THAT(all[2].outcome, testing::HasSubstr("/a"));
    EXPECT_TRUE(all[2].is_error);
    EXPECT_EQ(all[3].name, "hold ExclusiveMutex");
    EXPECT_EQ(all[3].start.time_since_epoch(), 90s);
    EXPECT_EQ(all[3].outcome, "released");
    EXPECT_FALSE(all[3].is_error);
    EXPECT_EQ(all[4].start.time_since_epoch(), 80s);
    EXPECT_EQ(all[4].outcome, "node_gone");
    EXPECT_TRUE(all[4].is_error);
}

using LockSpansServerTest = test::ZkServerTest;

TEST_F(LockSpansServerTest, AWaitAndItsHoldBelongTogether) {
    Spans spans;
    const auto send = [&](const LockSpan& span) { spans.add(span); };
    SessionOptions options;
    options.hosts = connect_string();
    // [use]
    options.events = std::make_shared<lock_spans::LockSpans>([send](const auto& span) { send(span); });
    Session session(std::move(options));
    // [/use]
    ExclusiveMutex mutex(session, path("lock"));
    Grant grant = mutex.try_acquire_for(test::kMaxWait);
    ASSERT_TRUE(grant);
    const FencingToken token = grant.token();
    grant.release();
    grant = mutex.try_acquire_for(test::kMaxWait);
    ASSERT_TRUE(grant);
    testenv::RawClient other(connect_string());
    ASSERT_TRUE(other.remove(grant.node()));
    ASSERT_TRUE(test::await([&] { return spans.all().size() == 4; }));
    const auto all = spans.all();
    EXPECT_EQ(all[0].outcome, "acquired");
    EXPECT_EQ(all[1].outcome, "released");
    EXPECT_EQ(all[3].outcome, "node_gone");
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(all[i].name, i % 2 == 0 ? "wait ExclusiveMutex" : "hold ExclusiveMutex");
        EXPECT_EQ(all[i].path, path("lock"));
        EXPECT_EQ(all[i].acquire, all[i - i % 2].acquire);
        EXPECT_LE(all[i].start, all[i].end);
        EXPECT_LE(all[i].end, std::chrono::system_clock::now());
    }
    EXPECT_EQ(all[0].token, token);
    EXPECT_EQ(all[1].token, token);
    EXPECT_NE(all[0].acquire, all[2].acquire);
    EXPECT_LE(all[0].end, all[1].end);
}

}  // namespace
}  // namespace zkrecipes
