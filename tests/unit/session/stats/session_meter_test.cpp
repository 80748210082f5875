#include "session/stats/session_meter.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "support/fake_runtime.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using internal::SessionMeter;
using internal::WaitRecord;
using ::testing::IsEmpty;

TEST(SessionMeterTest, ACallThatIsDestroyedBeforeItHasEndedDoesNotWaitAnyMore) {
    SessionMeter meter(std::make_shared<FakeRuntime>(), SessionOptions(), nullptr);
    const auto label = meter.label("ExclusiveMutex", "exclusive", "/l");
    WaitRecord first, second, third;
    meter.wait_begins(first, label);
    meter.wait_begins(second, label);
    meter.wait_begins(third, label);
    EXPECT_EQ(meter.stats().waiting, 3u);
    meter.forget(second);
    EXPECT_EQ(meter.stats().waiting, 2u);
    EXPECT_EQ(meter.waits().size(), 2u);
    meter.forget(second);
    EXPECT_EQ(meter.stats().waiting, 2u);
    meter.missed(first, Missed::busy);
    meter.forget(first);  // when it is destroyed
    meter.forget(third);
    EXPECT_EQ(meter.stats().waiting, 0u);
    EXPECT_EQ(meter.stats().locks.front().busy, 1u);
    EXPECT_THAT(meter.waits(), IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::testing
