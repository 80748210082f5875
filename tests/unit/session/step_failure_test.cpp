// Memory is short in the middle of a step: one allocation after the other is refused, and whatever was half done, every
// waiter is answered, the session is closed, and what was held is lost. The objects of a step that failed may stay in
// memory until the program ends.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/shared_value.hpp>

#include <gmock/gmock.h>

#include <cstdlib>
#include <new>
#include <optional>

#include "core/hold/reentrant_lock.hpp"
#include "support/session_fixture.hpp"

namespace {

int allocations_left = -1;  // before the one that is refused; negative: none is

struct NoMoreMemory {
    explicit NoMoreMemory(int after) { allocations_left = after; }
    ~NoMoreMemory() { allocations_left = -1; }
    static bool struck() { return allocations_left < 0; }
};

}  // namespace

extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT: its name
extern "C" const char* __lsan_default_options() { return "detect_leaks=0"; }  // NOLINT: its name

// Not inlined: g++ would take an inlined free() for one of memory that the usual operator new has made.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kDirectory = "/l";

/// A session in which a lock is held, and somebody waits for something.
class StepFailureTest : public SessionTest {
protected:
    /// Brings somebody to wait; answers the step that is to fail.
    using Prepare = std::function<std::function<void()>()>;

    StepFailureTest() { options.retry = RetryPolicy::n_times(5, 10ms); }

    void connect() {
        clients = std::make_shared<FakeClientFactory>(runtime = std::make_shared<FakeRuntime>());
        open_connected();
        session.emplace(SessionAccess::make(core));
        held = hold("/held", 7);
        told.clear();
    }
    /// Runs `call`, which blocks, on a fiber. What becomes of it is put down.
    void wait_in(std::function<void()> call) {
        waiter.emplace(boost::fibers::launch::dispatch, [this, call = std::move(call)] {
            try {
                call();
                told = "returned";
            } catch (const std::exception& error) {
                told = error.what();
            }
        });
    }
    std::function<void()> answer(const std::string& op, Reply reply) {
        Request request = client().take(op);
        EXPECT_TRUE(request.answer) << op << " was not sent; " << ::testing::PrintToString(client().sent);
        return [answer = std::move(request.answer), reply] { answer(reply); };
    }
    static std::string node(int number) {
        return kDirectory + "/_c_00000000-0000-4000-8000-00000000000" + std::to_string(number) + "-lock-000000000" +
               std::to_string(number);
    }
    Reply created() {
        Reply out;
        const Request& request = *std::ranges::find(client().open, "create", &Request::op);
        out.text = request.path + "0000000005";
        own = out.text.substr(kDirectory.size() + 1);
        out.stat.ephemeral_owner = kFirstSession;
        out.stat.czxid = 9;
        return out;
    }
    Reply listed() const {
        Reply out;
        out.names = {own, node(1).substr(kDirectory.size() + 1)};
        return out;
    }
    static Reply children(int count) {
        Reply out;
        out.stat.num_children = count;
        out.stat.czxid = out.stat.pzxid = 9;
        return out;
    }
    /// An acquire that waits for its predecessor.
    void queue_up() {
        wait_in([this] { grant = ExclusiveMutex(*session, kDirectory).acquire(); });
        answer("create", created())();
        answer("exists", children(2))();
        answer("children", listed())();
        answer("get", {})();
    }

    /// Lets the step fail at each of its allocations.
    void fail_everywhere(const Prepare& prepare) {
        for (int n = 0; n < 1000; ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            connect();
            const auto step = prepare();
            ASSERT_EQ(told, "") << "the step is not the one that is waited for";
            bool in_time = false;
            bool outside = false;
            {
                const NoMoreMemory memory(n);
                try {
                    step();
                } catch (const std::bad_alloc&) {
                    outside = true;  // of the library, or told to the caller
                }
                in_time = !NoMoreMemory::struck();
            }
            if (!in_time && !outside) check();
            finish();
            if (in_time || HasFailure()) return;
            ++refused;
        }
    }
    void check() {
        runtime->while_running([] {});
        ASSERT_EQ(core->state(), SessionState::closed);
        EXPECT_FALSE(held->held());
        EXPECT_TRUE(held->lost().stop_requested());
        EXPECT_TRUE(client().closed);
        EXPECT_FALSE(grant && grant->held());
        if (told != "returned") {
            EXPECT_THAT(told, HasSubstr("internal step failed: std::bad_alloc"));
        }
        try {
            (void)ExclusiveMutex(*session, "/later").try_acquire();
            ADD_FAILURE() << "a closed session grants";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("make a new Session"));
        }
    }
    void finish() {
        runtime->while_running([this] { session->close(); });
        if (waiter) waiter->join();
        EXPECT_NE(told, "") << "the waiter was not answered";
        EXPECT_EQ(core->stats().waiting, 0u);
        EXPECT_THAT(core->waits(), IsEmpty());
        waiter.reset();
        grant.reset();
        runtime->while_running([this] { session.reset(); });
        held.reset();
        destroy();
    }

    std::optional<Session> session;
    std::shared_ptr<Hold> held;
    std::optional<Grant> grant;
    std::optional<boost::fibers::fiber> waiter;
    std::string told;
    std::string own;
    int refused = 0;
};

TEST_F(StepFailureTest, ACreateIsAnswered) {
    fail_everywhere([this] {
        wait_in([this] { grant = ExclusiveMutex(*session, kDirectory).acquire(); });
        return answer("create", created());
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, AnAcquireIsGranted) {
    fail_everywhere([this] {
        wait_in([this] { grant = ExclusiveMutex(*session, kDirectory).acquire(); });
        answer("create", created())();
        return answer("exists", children(1));
    });
    EXPECT_GT(refused, 3);
}

TEST_F(StepFailureTest, AListIsAnswered) {
    fail_everywhere([this] {
        wait_in([this] { grant = ExclusiveMutex(*session, kDirectory).acquire(); });
        answer("create", created())();
        answer("exists", children(2))();
        return answer("children", listed());
    });
    EXPECT_GT(refused, 3);
}

TEST_F(StepFailureTest, AWatchFires) {
    fail_everywhere([this] {
        queue_up();
        return [this] { client().fire(WatchEventType::deleted, node(1)); };
    });
    EXPECT_GT(refused, 3);
}

TEST_F(StepFailureTest, TheCheckAfterTheWaitIsAnswered) {
    fail_everywhere([this] {
        queue_up();
        client().fire(WatchEventType::deleted, node(1));
        Reply checked;
        checked.results.resize(1);
        return answer("multi", checked);
    });
    EXPECT_GT(refused, 3);
}

TEST_F(StepFailureTest, ADeadlinePasses) {
    fail_everywhere([this] {
        wait_in([this] {
            grant = ExclusiveMutex(*session, kDirectory).try_acquire_until(Deadline(runtime->steady_now() + 1ms));
        });
        runtime->freeze_for(2ms);
        return [this] { runtime->run(); };
    });
    EXPECT_EQ(refused, 0) << "it takes no memory, and cannot fail";
}

TEST_F(StepFailureTest, ADeadlinePassesInTheDelayAfterALoss) {
    fail_everywhere([this] {
        wait_in([this] {
            LockOptions with_delay;
            with_delay.delay_after_loss = 10s;
            grant = ExclusiveMutex(*session, kDirectory, with_delay)
                        .try_acquire_until(Deadline(runtime->steady_now() + 1ms));
        });
        answer("create", created())();
        answer("exists", children(1))();
        Reply somebody_holds;
        somebody_holds.text = R"({"v":1,"token":3,"held":1})";
        answer("get", somebody_holds)();
        runtime->freeze_for(2ms);
        return [this] { runtime->run(); };
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, TheConnectionBreaksUnderAnAcquire) {
    fail_everywhere([this] {
        queue_up();
        return [this] { client().disconnect(); };
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, ItIsConnectedAgainAndTheRetryTimerFires) {
    fail_everywhere([this] {
        wait_in([this] { grant = ExclusiveMutex(*session, kDirectory).acquire(); });
        client().disconnect();  // whether there is a node is not known
        client().connect(kFirstSession);
        runtime->freeze_for(20ms);
        return [this] { runtime->run(); };
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, AHeartbeatIsAnsweredAndTheNextOneIsSent) {
    fail_everywhere([this] {
        queue_up();
        runtime->advance(1s);
        Reply refusal = refusal_at(0, 1);
        return answer("multi", refusal);
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, ADeleteIsAnsweredForWhichSomebodyWaits) {
    fail_everywhere([this] {
        wait_in([this] {
            grant = ExclusiveMutex(*session, kDirectory).acquire();
            (void)grant->release_and_wait(Deadline::never());
        });
        answer("create", created())();
        answer("exists", children(1))();
        for (int i = 0; i < 5; ++i) {
            boost::this_fiber::yield();
            runtime->run();
        }
        return answer("remove", {});
    });
    EXPECT_EQ(refused, 0) << "it takes no memory, and cannot fail";
}

TEST_F(StepFailureTest, AReadForPeopleIsAnswered) {
    fail_everywhere([this] {
        wait_in([this] { (void)ExclusiveMutex(*session, kDirectory).participants(); });
        client().take("sync");
        Reply empty;
        return answer("children", empty);
    });
    EXPECT_GT(refused, 1);
}

TEST_F(StepFailureTest, ASharedValueIsRead) {
    fail_everywhere([this] {
        wait_in([this] { (void)SharedValue(*session, "/v", "seed").get(); });
        runtime->run();
        const std::string first = client().open.front().op;
        return answer(first, {});
    });
    EXPECT_GT(refused, 0);
}

TEST_F(StepFailureTest, AnAsynchronousAcquireIsToldOnce) {
    int calls = 0;
    fail_everywhere([&] {
        calls = 0;
        ExclusiveMutex(*session, kDirectory).acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            ++calls;
            ASSERT_EQ(calls, 1);
            try {
                if (result.error) std::rethrow_exception(result.error);
                grant = std::move(result.value);
                told = "returned";
            } catch (const Error& error) {
                told = error.what();
            }
        });
        answer("create", created())();
        return answer("exists", children(1));
    });
    EXPECT_GT(refused, 3);
}

TEST_F(StepFailureTest, AHoldThatItsOwnerCannotNoteIsGivenBack) {
    for (int n = 0; n < 100; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        connect();
        bool in_time = false;
        {
            const auto share = std::make_shared<HoldRef>(core, hold(node(1)), 0, 9);
            const ReentrantLock lock(core, kDirectory);
            {
                const NoMoreMemory memory(n);
                try {
                    lock.lock("lock", [&] { return Acquired{share}; });
                } catch (const std::bad_alloc&) {
                }
                in_time = !NoMoreMemory::struck();
            }
            EXPECT_EQ(share->hold().held(), in_time);
            told = "returned";
            if (in_time) lock.unlock("unlock");
        }
        finish();
        if (in_time || HasFailure()) break;
        ++refused;
    }
    EXPECT_GT(refused, 0);
}

class StepFailureInACallTest : public StepFailureTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(WithADelay, StepFailureInACallTest, ::testing::Bool());

TEST_P(StepFailureInACallTest, ACallOfAUserFailsAndIsTold) {
    LockOptions of_lock;
    if (GetParam()) of_lock.delay_after_loss = 10s;
    for (int n = 0; n < 300; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        connect();
        bool in_time = false;
        {
            const NoMoreMemory memory(n);
            try {
                wait_in([&] { grant = ExclusiveMutex(*session, kDirectory, of_lock).acquire(); });
            } catch (const std::bad_alloc&) {
                told = "not begun";
            }
            in_time = !NoMoreMemory::struck();
        }
        EXPECT_TRUE(in_time || told != "") << "the caller hangs";
        finish();
        if (in_time || HasFailure()) return;
        ++refused;
    }
}

}  // namespace
}  // namespace zkrecipes::testing
