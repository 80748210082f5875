// The tests that a real server has to pass, too (tests/server/double_contract_test.cpp), on the server in memory.
#include "support/double_contract.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <zkrecipes/testing.hpp>

namespace zkrecipes::test {
namespace {

class FakeBackend {
public:
    static constexpr int kRounds = 20;
    static std::string why_unavailable() { return {}; }
    Session session(SessionOptions options) { return server_.session(std::move(options)); }
    static std::string path(const std::string& name) { return "/test/" + name; }
    void expire(const Session& session) { server_.expire(session); }
    void lose(const Grant& grant) { server_.lose(grant); }
    void cut() { server_.cut(); }
    void heal() { server_.heal(); }
    testkit::Fault cut_after_create(const std::string& part) {
        return server_.cut_after(testkit::Match::create().path(part));
    }
    std::vector<std::string> children(const std::string& path) const { return server_.children(path); }
    std::optional<std::string> data(const std::string& path) const { return server_.data(path); }

    static bool exists_needs_read() { return true; }

protected:
    testkit::FakeServer server_;
};

/// As servers before 3.8.4 and 3.9.2.
class OldFakeBackend : public FakeBackend {
public:
    OldFakeBackend() { server_.exists_needs_read(false); }
    static bool exists_needs_read() { return false; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, DoubleContract, FakeBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(OldFake, DoubleContract, OldFakeBackend);

/// This thread, and those that it starts, share one processor: how fast the machine wakes another one is not measured.
class OnOneProcessor {
public:
    OnOneProcessor() {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
        sched_setaffinity(0, sizeof here, &here);
    }
    ~OnOneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
    OnOneProcessor(const OnOneProcessor&) = delete;
    OnOneProcessor& operator=(const OnOneProcessor&) = delete;

private:
    cpu_set_t before_{};
};

/// Each with a server and a session of its own, as the tests of a user have them.
TEST(FakeServerSpeedTest, AThousandTestsTakeMilliseconds) {
    using Clock = std::chrono::steady_clock;
    using Millis = std::chrono::duration<double, std::milli>;
    const OnOneProcessor here;
    std::vector<double> starts, rounds;
    for (int round = 0; round < 1000; ++round) {
        const auto begin = Clock::now();
        FakeBackend server;
        const auto started = Clock::now();
        ASSERT_EQ(lose_and_expire(server, "/lock"), 2) << "round " << round;
        starts.push_back(Millis(started - begin).count());
        rounds.push_back(Millis(Clock::now() - begin).count());
    }
    std::sort(starts.begin(), starts.end());
    std::sort(rounds.begin(), rounds.end());
    std::printf("start of a server: median %.3f ms, 99 of 100 within %.3f ms\n", starts[500], starts[989]);
    std::printf(
        "a test that loses a lock and a session: median %.3f ms, 99 of 100 within %.3f ms, the longest %.3f ms\n",
        rounds[500], rounds[989], rounds[999]);
    // A wait for a timer would make each of them longer, and a busy machine does not delay all of a thousand.
    EXPECT_LT(starts.front(), 20 * slowdown());
    EXPECT_LT(rounds.front(), 50 * slowdown());
}

TEST(FakeServerSpeedTest, AnHourOfManualTimeIsShort) {
    testkit::FakeServer server(testkit::Time::manual);
    Session session = server.session();
    ExclusiveMutex mutex(session, "/lock");
    const Grant grant = mutex.acquire();
    const auto begin = std::chrono::steady_clock::now();
    server.advance(std::chrono::hours(1));
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    std::printf("an hour of manual time, with a session that holds a lock: %.0f ms\n", taken.count());
    EXPECT_TRUE(grant.held());
    EXPECT_LT(taken.count(), 60'000 * slowdown());
}

}  // namespace
}  // namespace zkrecipes::test
