// What a session counts and tells of itself, on a real server.
#include <algorithm>
#include <deque>

#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/session_events.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

/// Writes down what it is told.
class Diary : public SessionEvents {
public:
    std::vector<std::string> lines() {
        const std::lock_guard guard(lock_);
        return {lines_.begin(), lines_.end()};
    }
    bool has(const std::string& line) {
        const auto all = lines();
        return std::find(all.begin(), all.end(), line) != all.end();
    }

private:
    void add(const std::string& line) {
        const std::lock_guard guard(lock_);
        lines_.push_back(line);
    }
    void on_queued(const EventSubject& subject, std::int64_t in_front) override {
        add("queued " + subject.path + " " + std::to_string(in_front));
    }
    void on_acquired(const EventSubject& subject, FencingToken, std::chrono::nanoseconds) override {
        add("acquired " + subject.path);
    }
    void on_missed(const EventSubject& subject, Missed why, std::chrono::nanoseconds) override {
        add("missed " + subject.path + " " + to_string(why));
    }
    void on_failed(const EventSubject& subject, const Error& error, std::chrono::nanoseconds) override {
        add("failed " + subject.path + " " + error.code().message());
    }
    void on_released(const EventSubject& subject, FencingToken, std::chrono::nanoseconds) override {
        add("released " + subject.path);
    }
    void on_lost(const EventSubject& subject, FencingToken, LossReason reason, std::chrono::nanoseconds) override {
        add("lost " + subject.path + " " + to_string(reason));
    }
    void on_state(SessionState state, const SessionInfo&) override { add(std::string("state ") + to_string(state)); }

    std::mutex lock_;
    std::deque<std::string> lines_;
};

class SessionStatsTest : public ZkServerTest {
protected:
    Session session(std::shared_ptr<SessionEvents> events = nullptr) {
        SessionOptions options = session_options(server().connect_string());
        options.events = std::move(events);
        options.name_of_path = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
        Session out(std::move(options));
        EXPECT_TRUE(out.wait_connected(kMaxWait));
        return out;
    }
    static LockStats of(const Session& session, const std::string& name) {
        for (auto& each : session.stats().locks) {
            if (each.name == name) return each;
        }
        return {};
    }
};

TEST_F(SessionStatsTest, AcquiresAndReleasesAreCounted) {
    Session mine = session();
    ExclusiveMutex mutex(mine, root() + "/one");
    {
        const Grant grant = mutex.acquire();
        const LockStats held = of(mine, "one");
        EXPECT_EQ(held.recipe, "ExclusiveMutex");
        EXPECT_EQ(held.mode, "exclusive");
        EXPECT_EQ(held.acquired, 1u);
        EXPECT_EQ(held.held, 1u);
        EXPECT_EQ(held.wait.count(), 1u);
        const auto holds = mine.holds();
        ASSERT_EQ(holds.size(), 1u);
        EXPECT_EQ(holds.front().path, root() + "/one");
        EXPECT_EQ(holds.front().token, grant.token());
        EXPECT_EQ(holds.front().nodes, grant.nodes());
        EXPECT_GT(holds.front().remaining_lease, 0ns);
        EXPECT_GT(mine.stats().node_bytes, 0u);
        const Grant again = grant.again();  // no acquire
        EXPECT_EQ(of(mine, "one").acquired, 1u);
    }
    EXPECT_TRUE(await([&] { return of(mine, "one").released == 1; }));
    const LockStats after = of(mine, "one");
    EXPECT_EQ(after.held, 0u);
    EXPECT_EQ(after.hold.count(), 1u);
    EXPECT_THAT(mine.holds(), IsEmpty());
    const SessionStats all = mine.stats();
    EXPECT_EQ(all.connects, 1u);
    EXPECT_EQ(all.sessions, 1u);
    EXPECT_TRUE(all.connected);
    EXPECT_GE(all.requests[static_cast<std::size_t>(RequestKind::create)], 1u);
    EXPECT_GT(all.session_timeout, 0ns);
    EXPECT_EQ(all.node_bytes_max, 900'000u);
}

TEST_F(SessionStatsTest, WhoWaitsIsSeenWithItsPosition) {
    Session holder = session();
    Session between = session();
    const auto diary = std::make_shared<Diary>();
    Session mine = session(diary);
    const std::string path = root() + "/queue";
    ExclusiveMutex first(holder, path);
    ExclusiveMutex second(between, path);
    ExclusiveMutex third(mine, path);
    Grant held = first.acquire();
    std::atomic<int> granted{0};
    Grant of_second;
    second.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
        of_second = std::move(result.value);
        ++granted;
    });
    ASSERT_TRUE(await([&] { return first.participants().size() == 2; }));
    Grant of_third;
    third.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
        of_third = std::move(result.value);
        ++granted;
    });
    ASSERT_TRUE(await([&] { return diary->has("queued " + path + " 2"); }));
    const auto waits = mine.waits();
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits.front().path, path);
    EXPECT_EQ(waits.front().in_front, 2);
    EXPECT_EQ(of(mine, "queue").waiting, 1u);
    held.release();
    ASSERT_TRUE(await([&] { return granted == 1; }));
    ASSERT_TRUE(await([&] { return diary->has("queued " + path + " 1"); }));  // or it might never stand there
    of_second.release();
    ASSERT_TRUE(await([&] { return granted == 2; }));
    EXPECT_THAT(mine.waits(), IsEmpty());
    of_third.release();
    ASSERT_TRUE(await([&] { return diary->has("released " + path); }));
    EXPECT_THAT(diary->lines(), IsSupersetOf({"queued " + path + " 2", "queued " + path + " 1", "acquired " + path}));
}

TEST_F(SessionStatsTest, WaitersOfOneSessionAreBehindEachOther) {
    Session mine = session();
    ExclusiveMutex mutex(mine, root() + "/crowd");
    Grant held = mutex.acquire();
    std::atomic<int> granted{0};
    for (int i = 0; i < 3; ++i) {
        mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult) { ++granted; });
    }
    std::vector<std::int64_t> in_front;
    ASSERT_TRUE(await([&] {
        in_front.clear();
        for (const auto& wait : mine.waits()) in_front.push_back(wait.in_front);
        return in_front == std::vector<std::int64_t>{3, 2, 1};
    })) << ::testing::PrintToString(in_front);
    held.release();
    EXPECT_TRUE(await([&] { return granted == 3; }));
    EXPECT_TRUE(await([&] { return of(mine, "crowd").released == 4; }));
    EXPECT_EQ(of(mine, "crowd").acquired, 4u);
}

TEST_F(SessionStatsTest, ALossIsCountedAndToldWithItsReason) {
    const auto diary = std::make_shared<Diary>();
    Session mine = session(diary);
    ExclusiveMutex mutex(mine, root() + "/lost");
    Grant grant = mutex.acquire();
    testenv::RawClient raw(server().connect_string());
    raw.remove(grant.node());
    ASSERT_TRUE(await([&] { return diary->has("lost " + root() + "/lost node_gone"); }));
    EXPECT_EQ(of(mine, "lost").lost[static_cast<std::size_t>(LossReason::node_gone)], 1u);
    EXPECT_EQ(of(mine, "lost").held, 0u);
    grant.release();
    mine.close();
    EXPECT_EQ(of(mine, "lost").released, 0u) << "a lost hold is not released, too";
    EXPECT_TRUE(await([&] { return diary->has("state closed"); }));
}

TEST_F(SessionStatsTest, HoldsOfAClosedSessionAreLost) {
    Session mine = session();
    Semaphore semaphore(mine, root() + "/leases", 2);
    ReadWriteLock lock(mine, root() + "/rw");
    MultiLock both(mine, {{root() + "/left"}, {root() + "/right"}});
    const Grant set = both.acquire();
    const Grant lease = semaphore.acquire();
    const Grant shared = lock.acquire_shared();
    EXPECT_EQ(mine.stats().held, 3u);
    EXPECT_EQ(of(mine, "leases").mode, "semaphore");
    EXPECT_EQ(of(mine, "left").recipe, "MultiLock");
    mine.close();
    const SessionStats after = mine.stats();
    EXPECT_EQ(after.held, 0u);
    std::uint64_t lost = 0;
    for (const auto& each : after.locks) lost += each.lost[static_cast<std::size_t>(LossReason::closed)];
    EXPECT_EQ(lost, 3u);
}

TEST_F(SessionStatsTest, ManyPathsDoNotMakeManyNames) {
    Session mine = session();
    for (int i = 0; i < 10'000; ++i) ExclusiveMutex(mine, root() + "/n" + std::to_string(i));
    const auto locks = mine.stats().locks;
    EXPECT_EQ(locks.size(), 129u);
    EXPECT_TRUE(std::any_of(locks.begin(), locks.end(), [](const auto& each) { return each.name == "other"; }));
}

TEST_F(SessionStatsTest, AnOutageIsCountedAndTold) {
    testenv::Gate gate(server().endpoint());
    const auto diary = std::make_shared<Diary>();
    SessionOptions options = session_options(gate.connect_string());
    options.events = diary;
    Session mine(options);
    ASSERT_TRUE(mine.wait_connected(kMaxWait));
    gate.refuse();
    gate.reset_all();
    ASSERT_TRUE(await([&] { return diary->has("state suspended"); }));
    EXPECT_FALSE(mine.stats().connected);
    gate.pass();
    ASSERT_TRUE(await([&] { return mine.stats().connects == 2; }));
    EXPECT_EQ(mine.stats().suspensions, 1u);
    EXPECT_EQ(mine.stats().sessions, 1u);
}

TEST_F(SessionStatsTest, LogLinesGoToAFunction) {
    SessionOptions options = session_options(server().connect_string());
    const auto logger = std::exchange(options.logger, nullptr);
    auto lines = std::make_shared<std::vector<std::string>>();
    auto lock = std::make_shared<std::mutex>();
    options.log = [=](LogLevel level, const std::string& line) {
        const std::lock_guard guard(*lock);
        lines->push_back(std::string(to_string(level)) + ": " + line);
    };
    {
        Session mine(options);
        ASSERT_TRUE(mine.wait_connected(kMaxWait));
    }
    const std::lock_guard guard(*lock);
    EXPECT_TRUE(std::any_of(lines->begin(), lines->end(), [](const std::string& line) {
        return line.starts_with("info: session") && line.find("connected to") != std::string::npos;
    })) << ::testing::PrintToString(*lines);
    options.logger = logger;
    EXPECT_EQ(error_of([&] { Session both(options); }).errc(), Errc::bad_option);
}

}  // namespace
}  // namespace zkrecipes::test
