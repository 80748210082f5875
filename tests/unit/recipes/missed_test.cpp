// Grant::missed() of every recipe that grants, of both forms of a call: busy, unreachable, stopped.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include <gmock/gmock.h>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

/// One call of a recipe, in its two forms.
struct Acquire {
    std::function<Grant(Deadline, std::stop_token)> blocking;
    std::function<void(Deadline, std::stop_token, std::function<void(AcquireResult)>)> async;
};
template <class Lock>
Acquire acquire_of(std::shared_ptr<Lock> lock) {
    return {[lock](Deadline deadline, std::stop_token stop) { return lock->try_acquire_until(deadline, stop); },
            [lock](Deadline deadline, std::stop_token stop, auto done) { lock->acquire_async(deadline, stop, done); }};
}

struct Recipe {
    const char* name;
    const char* base;  // of the nodes of another client that holds; "": it holds a lease
    Acquire (*make)(Session&);
};
const Recipe kRecipes[] = {
    {"Mutex", "lock-", [](Session& s) { return acquire_of(std::make_shared<ExclusiveMutex>(s, "/l")); }},
    {"HandedOver", "lock-",
     [](Session& s) {
         LockOptions options;
         options.local_handovers = 5;
         return acquire_of(std::make_shared<ExclusiveMutex>(s, "/l", options));
     }},
    {"Delayed", "lock-",
     [](Session& s) {
         LockOptions options;
         options.delay_after_loss = 1h;
         return acquire_of(std::make_shared<ExclusiveMutex>(s, "/l", options));
     }},
    {"Writer", "__WRIT__", [](Session& s) { return acquire_of(std::make_shared<ReadWriteLock>(s, "/l")); }},
    {"Reader", "__WRIT__",
     [](Session& s) -> Acquire {
         const auto lock = std::make_shared<ReadWriteLock>(s, "/l");
         return {[lock](Deadline at, std::stop_token stop) { return lock->try_acquire_shared_until(at, stop); },
                 [lock](Deadline at, std::stop_token stop, auto done) { lock->acquire_shared_async(at, stop, done); }};
     }},
    {"Semaphore", "", [](Session& s) { return acquire_of(std::make_shared<Semaphore>(s, "/l", 1)); }},
    {"SemaphoreMutex", "", [](Session& s) { return acquire_of(std::make_shared<SemaphoreMutex>(s, "/l")); }},
    {"Set", "lock-",
     [](Session& s) {
         return acquire_of(std::make_shared<MultiLock>(s, std::vector<MultiLock::Member>{"/l", "/m"}));
     }},
    {"Election", "latch-",
     [](Session& s) -> Acquire {
         const auto election = std::make_shared<LeaderElection>(s, "/l");
         return {
             [election](Deadline at, std::stop_token stop) { return election->try_campaign_until(at, stop); },
             [election](Deadline at, std::stop_token stop, auto done) { election->campaign_async(at, stop, done); }};
     }},
};

class GrantMissedTest : public ServedTest, public ::testing::WithParamInterface<Recipe> {
protected:
    GrantMissedTest() {
        connect();
        put("/l");
        put("/m");
        acquire = GetParam().make(*session);
    }
    ~GrantMissedTest() override {
        serve();
        runtime->while_running([this] { acquire = {}; });
        serve();
    }
    void somebody_holds() {
        const std::string identity = "_c_00000000-0000-4000-8000-000000000001-";
        if (std::string(GetParam().base).empty()) {
            put("/l/locks");
            put("/l/leases", R"({"v":1,"leases":1})");
            return put("/l/leases/" + identity + "lease-0000000000", "", 0x77);
        }
        put("/l/" + identity + GetParam().base + "0000000000", "", 0x77);
        nodes["/l"].next_number = 1;
    }
    void start(Deadline deadline, std::stop_token stop = {}) {
        acquire.async(deadline, stop, [this](AcquireResult result) {
            EXPECT_FALSE(result.error);
            EXPECT_FALSE(result.value);
            missed = result.value.missed();
        });
        runtime->run();
    }
    Missed missed_blocking(Deadline deadline, const std::stop_token& stop = {}) {
        Missed out{};
        served([&] { out = acquire.blocking(deadline, stop).missed(); });
        return out;
    }

    Acquire acquire;
    std::optional<Missed> missed;
};

TEST_P(GrantMissedTest, BehindAHolderItIsBusy) {
    somebody_holds();
    start(in(1s));
    serve();
    EXPECT_FALSE(missed);
    runtime->advance(2s);
    serve();
    EXPECT_EQ(missed, Missed::busy);
    EXPECT_EQ(missed_blocking(in(1s)), Missed::busy);
}

TEST_P(GrantMissedTest, ATryBehindAHolderIsBusy) {
    somebody_holds();
    start(Deadline::passed());
    serve();
    EXPECT_EQ(missed, Missed::busy);
    EXPECT_EQ(missed_blocking(Deadline::passed()), Missed::busy);
}

TEST_P(GrantMissedTest, BesideAHolderOfTheSameSessionItIsBusy) {
    if (GetParam().name == std::string("Reader")) return;  // shares it
    std::optional<Grant> held;
    acquire.async(Deadline::never(), {}, [&](AcquireResult result) { held = std::move(result.value); });
    serve();
    ASSERT_TRUE(held && *held);
    EXPECT_EQ(held->missed(), Missed::none);
    start(in(1s));
    serve();
    runtime->advance(2s);
    serve();
    EXPECT_EQ(missed, Missed::busy);
    start(Deadline::passed());
    serve();
    EXPECT_EQ(missed, Missed::busy);
    held.reset();
}

TEST_P(GrantMissedTest, AServerThatDoesNotAnswerIsUnreachableAlsoBehindAHolder) {
    somebody_holds();
    start(in(1s));
    runtime->advance(2s);
    EXPECT_EQ(missed, Missed::unreachable);
}

TEST_P(GrantMissedTest, AnOutageWhileItWaitsIsUnreachable) {
    somebody_holds();
    start(in(3s));
    serve();
    client().disconnect();
    runtime->advance(4s);
    EXPECT_EQ(missed, Missed::unreachable);
    client().connect(owner);
    runtime->run();
}

TEST_P(GrantMissedTest, ATryWithoutAConnectionIsUnreachable) {
    std::optional<Grant> held;
    acquire.async(Deadline::never(), {}, [&](AcquireResult result) { held = std::move(result.value); });
    serve();
    client().disconnect();
    runtime->run();
    start(Deadline::passed());
    EXPECT_EQ(missed, Missed::unreachable) << "also beside a holder of the same session";
    held.reset();
    client().connect(owner);
    runtime->run();
}

TEST_P(GrantMissedTest, AStopIsStoppedBeforeAndBehindTheFirstAnswer) {
    somebody_holds();
    std::stop_source first, second, third;
    start(Deadline::never(), first.get_token());
    runtime->while_running([&] { first.request_stop(); });
    runtime->run();
    EXPECT_EQ(missed, Missed::stopped);
    serve();
    missed.reset();
    start(Deadline::never(), second.get_token());
    serve();
    EXPECT_FALSE(missed);
    runtime->while_running([&] { second.request_stop(); });
    serve();
    EXPECT_EQ(missed, Missed::stopped);
    missed.reset();
    start(Deadline::passed(), third.get_token());
    runtime->while_running([&] { third.request_stop(); });
    serve();
    EXPECT_EQ(missed, Missed::stopped);
    EXPECT_EQ(missed_blocking(Deadline::never(), third.get_token()), Missed::stopped);
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, GrantMissedTest, ::testing::ValuesIn(kRecipes),
                         [](const auto& recipe) { return std::string(recipe.param.name); });

class GrantTest : public ServedTest {};

TEST_F(GrantTest, AGrantThatWasReleasedOrMovedFromHasMissedNothing) {
    connect();
    put("/l");
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_EQ(Grant().missed(), Missed::none);
    served([&] {
        Grant held = mutex.acquire();
        Grant missed;
        boost::fibers::fiber([&] { missed = mutex.try_acquire(); }).join();
        EXPECT_EQ(missed.missed(), Missed::busy);
        missed.release();
        EXPECT_EQ(missed.missed(), Missed::busy) << "there was nothing to release";
        Grant moved = std::move(missed);
        EXPECT_EQ(missed.missed(), Missed::none);  // NOLINT: what is left is what is tested
        EXPECT_EQ(moved.missed(), Missed::busy);
        moved = std::move(held);
        EXPECT_EQ(moved.missed(), Missed::none);
        moved.release();
        EXPECT_FALSE(moved);
        EXPECT_EQ(moved.missed(), Missed::none);
    });
    serve();
}

TEST_F(GrantTest, ADowngradeWithoutAnAnswerIsUnreachable) {
    connect();
    put("/l");
    ReadWriteLock lock(*session, "/l");
    served([&] {
        const Grant writer = lock.acquire();
        client().disconnect();
        const Grant reader = lock.downgrade(writer, Deadline::passed());
        EXPECT_EQ(reader.missed(), Missed::unreachable);
        EXPECT_TRUE(writer.held());
        client().connect(owner);
    });
    serve();
}

TEST_F(GrantTest, OneMoreWordAtMost) {
    EXPECT_LE(sizeof(Grant), sizeof(std::shared_ptr<int>) + sizeof(void*));
    EXPECT_STREQ(to_string(Missed::none), "none");
    EXPECT_STREQ(to_string(Missed::busy), "busy");
    EXPECT_STREQ(to_string(Missed::unreachable), "unreachable");
    EXPECT_STREQ(to_string(Missed::stopped), "stopped");
    EXPECT_STREQ(to_string(Missed{17}), "?");
}

}  // namespace
}  // namespace zkrecipes::testing
