// A crowd on one lock, and the lease of another lock of the same session.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/gate.hpp>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kWaiters = 300;
#elif !defined(__OPTIMIZE__)
constexpr int kWaiters = 1000;  // each reads a list of all: with 2,000, seconds in which a heartbeat waits
#else
constexpr int kWaiters = 4000;  // a session may own 5,000 nodes
#endif
constexpr std::chrono::milliseconds kTimeout = 30s;  // a slow machine may take as many seconds for the crowd

/// Watches from a thread of its own how much is left of the lease of a hold.
class LeaseGauge {
public:
    explicit LeaseGauge(const Grant& grant) : grant_(grant) {}

    std::chrono::nanoseconds least() const { return std::chrono::nanoseconds(least_.load()); }
    /// When the servers confirmed the lease last: a moment after the end of the lease moved.
    Clock::time_point renewed() const { return Clock::time_point(Clock::duration(renewed_.load())); }
    int renewals() const { return renewals_; }

private:
    void watch(const std::stop_token& stop) {
        auto end = Clock::time_point::min();
        while (!stop.stop_requested()) {
            const auto now = Clock::now();
            const std::chrono::nanoseconds left = grant_.remaining_lease();
            least_ = std::min<std::int64_t>(least_, left.count());
            if (now + left > end + 5ms) {
                end = now + left;
                renewed_ = now.time_since_epoch().count();
                ++renewals_;
            }
            std::this_thread::sleep_for(500us);
        }
    }

    const Grant& grant_;
    std::atomic<std::int64_t> least_{std::chrono::nanoseconds::max().count()};
    std::atomic<std::int64_t> renewed_{0};
    std::atomic<int> renewals_{0};
    std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

class SessionCrowdTest : public ZkServerTest {
protected:
    void TearDown() override {
        if (HasFailure()) std::cerr << "--- log:\n" << log_.str();
        ZkServerTest::TearDown();
    }
    Session session(const std::string& hosts) {
        SessionOptions options;
        options.hosts = hosts;
        options.timeout = kTimeout;
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
        Session out(std::move(options));
        EXPECT_TRUE(out.wait_connected(kMaxWait));
        return out;
    }

private:
    std::ostringstream log_;
};

TEST_F(SessionCrowdTest, ACrowdOnOneLockCostsTheSessionsOtherLockNoLeaseNotEvenOverAReconnect) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    gate.limit_trace(1000);
    // Each waiter lists the queue when it has joined it; many share one answer.
    const auto joined = [&gate] { return gate.counts()[testenv::Opcode::create2]; };
    const auto lists = [&gate] { return gate.counts()[testenv::Opcode::get_children2]; };
    Session writers = session(connect_string());
    ReadWriteLock alone(writers, path("crowd"));
    Grant writer = alone.acquire();

    std::atomic<int> granted{0}, failed{0};  // outlive the session, whose last answers may come while it closes
    Session crowded = session(gate.connect_string());
    const Grant other = ExclusiveMutex(crowded, path("other")).acquire();
    const LeaseGauge gauge(other);
    ReadWriteLock shared(crowded, path("crowd"));
    for (int i = 0; i < kWaiters; ++i) {
        shared.acquire_shared_async(Deadline::never(), {},
                                    [&](AcquireResult result) { ++(result.value ? granted : failed); });
    }
    ASSERT_TRUE(await([&] { return joined() >= kWaiters; }, 4 * kMaxWait));
    std::cout << "queued: least " << gauge.least() / 1ms << " ms\n";

    // Closed and refused when nearly a whole interval has passed since the last heartbeat.
    const int renewals = gauge.renewals();
    ASSERT_TRUE(await([&] { return gauge.renewals() > renewals; }));
    const auto last_heartbeat = gauge.renewed();
    ASSERT_TRUE(await([&] { return Clock::now() >= last_heartbeat + kTimeout / 12 - 60ms; }));
    gate.refuse();
    gate.reset_all();
    const auto cut = Clock::now();
    ASSERT_TRUE(await([&] { return crowded.state() == SessionState::suspended; }));
    ASSERT_TRUE(await([&] { return Clock::now() >= cut + kTimeout / 8; }));
    gate.pass();
    ASSERT_TRUE(await([&] { return crowded.state() == SessionState::connected; }));
    const int reconnected = gauge.renewals();
    ASSERT_TRUE(await([&] { return gauge.renewals() >= reconnected + 3; }));
    std::cout << "reconnected: least " << gauge.least() / 1ms << " ms\n";

    EXPECT_TRUE(other.held());
    writer.release();
    EXPECT_TRUE(await([&] { return granted + failed == kWaiters; }, 4 * kMaxWait));
    EXPECT_EQ(failed, 0);
    EXPECT_LT(lists(), kWaiters / 2);
    EXPECT_TRUE(other.held());
    EXPECT_GE(gauge.least() / 1ms, kTimeout / 12 / 1ms) << "milliseconds were left of the lease at the worst moment";
    std::cout << "served: least " << gauge.least() / 1ms << " ms\n";
}

}  // namespace
}  // namespace zkrecipes::test
