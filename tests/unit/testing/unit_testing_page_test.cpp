// The tests of docs/unit_testing.md.
// [includes]
#include <gtest/gtest.h>

#include <functional>
#include <future>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testing.hpp>

using namespace std::chrono_literals;
using namespace zkrecipes;
using namespace zkrecipes::testkit;
// [/includes]

namespace {

// [code]
/// Writes pages while it holds the lock. Returns how many it has written.
int write_pages(const Grant& grant, int count, const std::function<void(int)>& write) {
    int page = 0;
    while (page < count && grant.held()) write(++page);
    return page;
}

/// Returns false if another client has the lock for 30 seconds.
bool write_report(Session& session, const std::function<void(int)>& write) {
    ExclusiveMutex mutex(session, "/locks/report");
    const Grant grant = mutex.try_acquire_for(30s);
    return grant && write_pages(grant, 10, write) == 10;
}

/// In place of a function that writes a page.
void nothing(int) {}
// [/code]

// [lost]
TEST(ReportTest, NoPageIsWrittenAfterTheLockIsLost) {
    FakeServer server;
    Session session = server.session();
    ExclusiveMutex mutex(session, "/locks/report");
    const Grant grant = mutex.acquire();
    const int written = write_pages(grant, 10, [&](int page) {
        if (page == 3) server.lose(grant);
    });
    EXPECT_EQ(written, 3);
}
// [/lost]

// [busy]
TEST(ReportTest, ItGivesUpAfter30Seconds) {
    FakeServer server(Time::manual);
    Session session = server.session(), other = server.session();
    ExclusiveMutex theirs(other, "/locks/report");
    const Grant busy = theirs.acquire();
    auto result = std::async(std::launch::async, [&] { return write_report(session, nothing); });
    ASSERT_TRUE(server.await([&] { return server.children("/locks/report").size() == 2; }));  // it waits
    server.advance(30s);
    EXPECT_FALSE(result.get());
}
// [/busy]

// [away]
TEST(ReportTest, ALockIsLostBeforeAnotherClientCanGetIt) {
    FakeServer server(Time::manual);
    Session session = server.session();
    ExclusiveMutex mutex(session, "/locks/report");
    const Grant grant = mutex.acquire();
    server.cut(session);
    server.advance(1s);
    EXPECT_EQ(session.state(), SessionState::suspended);
    EXPECT_TRUE(grant.held());  // a short outage is no loss
    server.advance(grant.remaining_lease() + 1ms);
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(server.exists(grant.node()));  // the server has not ended the session yet
}
// [/away]

// [fault]
TEST(ReportTest, ALostAnswerDoesNotTakeTheLockTwice) {
    FakeServer server;
    Session session = server.session();
    const Fault lost = server.cut_after(Match::create().path("/locks/report/"));
    EXPECT_TRUE(write_report(session, nothing));
    EXPECT_TRUE(lost.reached());
    EXPECT_TRUE(server.await([&] { return server.children("/locks/report").empty(); }));  // released
}
// [/fault]

}  // namespace
