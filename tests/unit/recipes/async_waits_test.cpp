// Asynchronous calls that wait without a request of their own; and coroutines that await calls.
#include <zkrecipes/awaitable.hpp>

#include <coroutine>

#include "core/operation/steps.hpp"
#include "unit/recipes/async_forms.hpp"

namespace zkrecipes::testing {
namespace {

TEST_F(AsyncFormsTest, AStepThatFailsEndsTheWaitForTheConnection) {
    connect();
    client().disconnect();
    runtime->run();
    Told told;
    session->wait_connected_async(Deadline::never(), {}, told.taker<bool>());
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    runtime->run();
    EXPECT_EQ(told.times, 1);
}

TEST_F(AsyncFormsTest, WaitForTheConnection) {
    connect();
    Told at_once;
    session->wait_connected_async(Deadline::never(), {}, at_once.taker<bool>());
    runtime->run();
    EXPECT_EQ(at_once.what, "true");
    client().disconnect();
    runtime->run();
    Told one_look, late, stopped, connected;
    std::stop_source stop;
    session->wait_connected_async(Deadline::passed(), {}, one_look.taker<bool>());
    session->wait_connected_async(in(1s), {}, late.taker<bool>());
    session->wait_connected_async(Deadline::never(), stop.get_token(), stopped.taker<bool>());
    session->wait_connected_async(Deadline::never(), {}, connected.taker<bool>());
    runtime->run();
    EXPECT_EQ(one_look.what, "false");
    EXPECT_EQ(late.times + stopped.times + connected.times, 0);
    stop.request_stop();
    runtime->advance(1100ms);
    EXPECT_EQ(stopped.what + late.what, "falsefalse");
    EXPECT_EQ(connected.times, 0);
    client().connect(owner);
    runtime->run();
    EXPECT_EQ(connected.what, "true");
    EXPECT_EQ(leftovers(), "");
    client().disconnect();
    runtime->run();
    Told closed;
    session->wait_connected_async(Deadline::never(), {}, closed.taker<bool>());
    runtime->while_running([this] { session->close(); });
    runtime->run();
    EXPECT_EQ(closed.what, "Error " + std::to_string(static_cast<int>(Errc::closed)));
    EXPECT_EQ(code_of([&] { session->wait_connected_async(1s, {}, closed.taker<bool>()); }), Errc::closed);
}

TEST_F(AsyncFormsTest, WaitForAPersistentNodeAndForItsEnd) {
    connect();
    PersistentNode node(*session, "/node", {.data = "x"});
    Told present, impatient;
    node.wait_present_async(Deadline::never(), {}, present.taker<bool>());
    node.wait_present_async(Deadline::passed(), {}, impatient.taker<bool>());
    runtime->run();
    EXPECT_EQ(impatient.what, "false");
    EXPECT_EQ(present.times, 0);
    serve();
    EXPECT_EQ(present.what, "true");
    EXPECT_TRUE(nodes.contains("/node"));
    client().disconnect();
    runtime->run();
    Told late, stopped, gone;
    std::stop_source stop;
    node.close_and_wait_async(in(1s), {}, late.taker<bool>());
    node.close_and_wait_async(Deadline::never(), stop.get_token(), stopped.taker<bool>());
    node.close_and_wait_async(Deadline::never(), {}, gone.taker<bool>());
    stop.request_stop();
    runtime->advance(1100ms);
    EXPECT_EQ(stopped.what + late.what, "falsefalse");
    EXPECT_EQ(gone.times, 0);
    client().connect(owner);
    settle();
    EXPECT_EQ(gone.what, "true");
    EXPECT_FALSE(nodes.contains("/node"));
    Told closed;
    node.wait_present_async(Deadline::never(), {}, closed.taker<bool>());
    serve();
    EXPECT_EQ(closed.what, "Error " + std::to_string(static_cast<int>(Errc::closed)));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(AsyncFormsTest, ReleaseAndWaitForTheServers) {
    connect();
    ExclusiveMutex mutex(*session, "/mine");
    const auto acquired = [&] {
        Grant grant;
        EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
        return grant;
    };
    Told empty;
    Grant().release_and_wait_async(Deadline::never(), {}, empty.taker<bool>());
    EXPECT_EQ(empty.what, "true");

    Grant grant = acquired();
    Told gone;
    grant.release_and_wait_async(Deadline::never(), {}, gone.taker<bool>());
    EXPECT_FALSE(grant);
    EXPECT_EQ(gone.times, 0);
    serve();
    EXPECT_EQ(gone.what, "true");
    EXPECT_EQ(children("/mine").size(), 0u);

    Grant again;
    EXPECT_EQ(served([&] {
                  grant = mutex.acquire();
                  again = grant.again();
              }),
              "ok");
    Told inner;
    again.release_and_wait_async(Deadline::never(), {}, inner.taker<bool>());
    serve();
    EXPECT_EQ(inner.what, "true");
    EXPECT_TRUE(grant.held()) << "the outer one";
    EXPECT_EQ(children("/mine").size(), 1u);

    client().disconnect();
    runtime->run();
    Told late;
    grant.release_and_wait_async(in(1s), {}, late.taker<bool>());
    runtime->run();
    EXPECT_EQ(late.times, 0);
    runtime->advance(1100ms);
    EXPECT_EQ(late.what, "false");
    client().connect(owner);
    settle();
    EXPECT_EQ(children("/mine").size(), 0u) << "the session goes on";

    std::stop_source stop;
    stop.request_stop();
    for (const Deadline deadline : {Deadline::never(), Deadline::passed()}) {
        grant = acquired();
        Told impatient;
        const bool by_stop = deadline.is_never();
        grant.release_and_wait_async(deadline, by_stop ? stop.get_token() : std::stop_token(), impatient.taker<bool>());
        runtime->run();
        EXPECT_EQ(impatient.what, "false");
        settle();
        EXPECT_EQ(children("/mine").size(), 0u);
    }
    EXPECT_EQ(leftovers(), "");
}

TEST_F(AsyncFormsTest, ReleaseOnAClosedSession) {
    connect();
    ExclusiveMutex mutex(*session, "/mine");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    runtime->while_running([this] { session->close(); });
    Told told;
    grant.release_and_wait_async(Deadline::never(), {}, told.taker<bool>());
    runtime->run();
    EXPECT_EQ(told.times, 1);
    EXPECT_FALSE(grant);
}

/// Its end is told to the notifier lane before the call that has started it returns.
class EndsAtOnce final : public ReadOp {
public:
    EndsAtOnce(std::shared_ptr<SessionCore> core, std::shared_ptr<FakeRuntime> runtime)
        : ReadOp(std::move(core), "test", "/"), runtime_(std::move(runtime)) {}

    int found = 0;

private:
    void begin() override {
        found = 7;
        core().let_go(std::shared_ptr<void>(nullptr, [runtime = runtime_](void*) { runtime->run(); }));
        done();
    }
    const std::shared_ptr<FakeRuntime> runtime_;
};

Steps<std::int32_t> sum_of_two(std::shared_ptr<EndsAtOnce> one, std::shared_ptr<EndsAtOnce> other) {
    co_await one;
    co_await other;
    co_return one->found + other->found;
}

TEST_F(AsyncFormsTest, AnEndThatTheLaneIsToldBeforeTheCallReturnsIsNotMissed) {
    connect();
    const auto step = [this] { return std::make_shared<EndsAtOnce>(core, runtime); };
    Told told;
    run_later(core, "test", "/", sum_of_two(step(), step()), Deadline::never(), {}, told.taker<std::int32_t>());
    EXPECT_EQ(told.times, 0) << "on the caller's thread";
    runtime->run();
    EXPECT_EQ(told.times, 1);
    EXPECT_EQ(told.what, "14");
    EXPECT_EQ(leftovers(), "");
}

// ---- awaitable ---------------------------------------------------------------------------------------------------

/// A coroutine that begins at once and is destroyed with this object.
class Coroutine {
public:
    struct promise_type {
        Coroutine get_return_object() { return Coroutine(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    Coroutine(Coroutine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Coroutine& operator=(Coroutine&&) = delete;
    ~Coroutine() {
        if (handle_) handle_.destroy();
    }
    bool done() const { return handle_.done(); }

private:
    explicit Coroutine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

Coroutine acquire_into(ExclusiveMutex& mutex, Deadline deadline, std::stop_token stop, Grant& grant, Told& told) {
    try {
        grant = co_await awaitable<Grant>([&](auto done) { mutex.acquire_async(deadline, stop, done); });
        told.what = grant ? "held" : "nothing";
    } catch (const Error&) {
        told.what = text_of(std::current_exception());
    }
    ++told.times;
}

TEST_F(AsyncFormsTest, ACoroutineAwaitsWhatTheBlockingFormReturns) {
    connect();
    ExclusiveMutex mutex(*session, "/mine");
    Grant grant, second;
    Told told, stopped;
    std::stop_source stop;
    const auto holder = acquire_into(mutex, Deadline::never(), {}, grant, told);
    EXPECT_EQ(told.times, 0);
    serve();
    EXPECT_EQ(told.what, "held");
    EXPECT_TRUE(holder.done());
    EXPECT_TRUE(grant.held());
    const auto waiter = acquire_into(mutex, Deadline::never(), stop.get_token(), second, stopped);
    serve();
    EXPECT_EQ(stopped.times, 0);
    stop.request_stop();
    settle();
    EXPECT_EQ(stopped.what, "nothing");
    EXPECT_EQ(children("/mine").size(), 1u);
}

TEST_F(AsyncFormsTest, ACoroutineIsToldWhyACallIsNotStarted) {
    connect();
    ExclusiveMutex mutex(*session, "/mine");
    runtime->while_running([this] { session->close(); });
    Grant grant;
    Told told;
    const auto coroutine = acquire_into(mutex, Deadline::never(), {}, grant, told);
    EXPECT_TRUE(coroutine.done());
    EXPECT_EQ(told.what, "Error " + std::to_string(static_cast<int>(Errc::closed)));
}

TEST_F(AsyncFormsTest, ACoroutineMayGoOnBeforeTheCallReturns) {
    connect();
    Told told;
    const auto release = [&]() -> Coroutine {
        told.what = text(
            co_await awaitable<bool>([](auto done) { Grant().release_and_wait_async(Deadline::never(), {}, done); }));
        ++told.times;
    };
    const auto coroutine = release();
    EXPECT_TRUE(coroutine.done());
    EXPECT_EQ(told.what, "true");
}

/// A coroutine that is begun by resume(), out of which its exceptions come.
struct Throwing {
    struct promise_type {
        Throwing get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {
            ++unhandled;
            throw;
        }
        int unhandled = 0;
    };
    std::coroutine_handle<promise_type> handle;
};

TEST_F(AsyncFormsTest, ACoroutineThatWasAnsweredAtOnceIsEnteredOnce) {
    connect();
    const auto release = [](Told& told) -> Throwing {
        told.what = text(
            co_await awaitable<bool>([](auto done) { Grant().release_and_wait_async(Deadline::never(), {}, done); }));
        ++told.times;
        throw Error(Errc::protocol, "test", {}, {});
    };
    Told told;
    const auto coroutine = release(told).handle;
    EXPECT_THROW(coroutine.resume(), Error);
    EXPECT_TRUE(coroutine.done());
    EXPECT_EQ(coroutine.promise().unhandled, 1);
    EXPECT_EQ(told.what, "true");
    EXPECT_EQ(told.times, 1);
    coroutine.destroy();
}

TEST_F(AsyncFormsTest, ACoroutineThatThrowsLaterIsEnteredOnce) {
    connect();
    const auto wait = [this](Told& told) -> Throwing {
        const auto start = [this](auto done) { session->wait_connected_async(Deadline::never(), {}, done); };
        told.what = text(co_await awaitable<bool>(start));
        throw Error(Errc::protocol, "test", {}, {});
    };
    Told told;
    const auto coroutine = wait(told).handle;
    coroutine.resume();
    EXPECT_FALSE(coroutine.done());
    runtime->run();
    EXPECT_EQ(told.what, "true");
    EXPECT_TRUE(coroutine.done());
    EXPECT_EQ(coroutine.promise().unhandled, 1);
    coroutine.destroy();
}

/// What the function that starts the call has captured is destroyed once.
TEST_F(AsyncFormsTest, ACoroutineMayCaptureWhatItAwaitsWith) {
    connect();
    const auto captured = std::make_shared<std::string>("captured");
    Told told;
    const auto wait = [&]() -> Coroutine {
        const auto start = [&, kept = captured](auto done) {
            session->wait_connected_async(Deadline::never(), {},
                                          [kept, done](const Result<bool>& result) { done(result); });
        };
        told.what = text(co_await awaitable<bool>(start));
    };
    {
        const auto coroutine = wait();
        runtime->run();
        EXPECT_EQ(told.what, "true");
    }
    EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(AsyncFormsTest, AGrantForADestroyedCoroutineIsReleased) {
    connect();
    ExclusiveMutex mutex(*session, "/mine");
    Grant grant;
    Told told;
    { const auto coroutine = acquire_into(mutex, Deadline::never(), {}, grant, told); }
    settle();
    EXPECT_EQ(told.times, 0);
    EXPECT_EQ(children("/mine").size(), 0u);
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
