// What a retry policy, or a log sink, does that calls the library while the session waits for it.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/shared_value.hpp>

#include <gmock/gmock.h>
#include <spdlog/sinks/base_sink.h>

#include <optional>
#include <stop_token>

#include "core/hold/hold_ref.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class CallsFromAPolicyTest : public SessionTest {
protected:
    CallsFromAPolicyTest() {
        options.retry = RetryPolicy([this](const RetryState&) -> std::optional<std::chrono::milliseconds> {
            ++asked;
            if (act) act();
            return std::nullopt;
        });
    }
    ~CallsFromAPolicyTest() override {
        act = nullptr;
        if (session) runtime->while_running([this] { session.reset(); });
    }
    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    /// A hold of another path.
    Grant granted() {
        Grant out;
        ExclusiveMutex mutex(*session, "/held");
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] { out = mutex.acquire(); });
        const Request create = client().take("create");
        Reply created{Rc::ok, held_node = create.path + "0000000000", {}, {}, {}};
        created.stat.ephemeral_owner = kFirstSession;
        created.stat.czxid = 7;
        create.answer(created);
        Reply alone;
        alone.stat.num_children = 1;
        alone.stat.czxid = alone.stat.pzxid = 7;
        client().take("exists").answer(alone);
        boost::this_fiber::yield();
        fiber.join();
        EXPECT_TRUE(out.held());
        return out;
    }
    /// The policy is asked in the middle of an acquire, and does `what`. The error with which the acquire ends.
    std::string asked_while(std::function<void()> what) {
        std::string ended;
        ExclusiveMutex mutex(*session, "/l");
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] {
            try {
                (void)mutex.acquire();
            } catch (const Error& error) {
                ended = error.what();
                if (error.errc() != Errc::connection_lost) ended += " (not connection_lost)";
            }
        });
        act = std::move(what);
        FakeClient& broken = client();
        broken.say(ClientState::connecting);
        for (Request open = broken.take(); open.answer; open = broken.take())
            open.answer({Rc::connection_loss, {}, {}, {}, {}});
        act = nullptr;
        EXPECT_EQ(asked, 1);
        boost::this_fiber::yield();
        fiber.join();
        return ended;
    }

    std::function<void()> act;
    std::optional<Session> session;
    int asked = 0;
    std::string held_node;
};

TEST_F(CallsFromAPolicyTest, WhatThePolicyThrowsEndsTheCallAndIsTold) {
    connect();
    EXPECT_THAT(asked_while([] { throw std::runtime_error("no such table"); }),
                HasSubstr("the retry policy threw: no such table"));
}

TEST_F(CallsFromAPolicyTest, SomethingElseThatThePolicyThrowsEndsTheCallToo) {
    connect();
    EXPECT_THAT(asked_while([] { throw 7; }), HasSubstr("the retry policy threw: something"));
}

TEST_F(CallsFromAPolicyTest, ACallThatEntersTheSessionIsRefusedWithTheRemedy) {
    connect();
    ExclusiveMutex other(*session, "/other");
    Grant grant = granted();
    const std::vector<std::pair<const char*, std::function<void()>>> calls{
        {"acquire", [&] { (void)other.acquire(); }},
        {"acquire, one attempt", [&] { (void)other.try_acquire(); }},
        {"try_lock", [&] { (void)other.try_lock(); }},
        {"acquire_async", [&] { other.acquire_async(Deadline::never(), {}, [](AcquireResult) { FAIL(); }); }},
        {"wait_connected", [&] { (void)session->wait_connected(Deadline::never()); }},
        {"watch_state", [&] { (void)session->watch_state([](SessionState) {}); }},
        {"participants", [&] { (void)other.participants(Deadline::never()); }},
        {"revocation", [&] { (void)grant.revocation(); }},
    };
    for (const auto& [name, call] : calls) {
        SCOPED_TRACE(name);
        asked = 0;
        EXPECT_THAT(asked_while(call), AllOf(HasSubstr("would deadlock"), HasSubstr("on a thread of your own")));
        client().connect(kFirstSession);
        runtime->run();
        commit_heartbeats();
    }
    EXPECT_TRUE(grant.held());
}

TEST_F(CallsFromAPolicyTest, TheSameGoesForCallsIntoAnotherSession) {
    // Its policy may be calling into this one at the same time.
    connect();
    const auto its_runtime = std::make_shared<FakeRuntime>();
    const auto its_clients = std::make_shared<FakeClientFactory>(its_runtime);
    auto second =
        std::make_optional(SessionAccess::make(SessionCore::open(options, {its_runtime, its_clients, nullptr})));
    its_clients->last().connect(kNextSession);
    its_runtime->run();
    auto other = std::make_optional<ExclusiveMutex>(*second, "/other");
    EXPECT_THAT(asked_while([&] { (void)other->try_acquire(); }), HasSubstr("would deadlock"));
    EXPECT_TRUE(its_clients->last().sent.empty());
    its_runtime->while_running([&] {
        other.reset();
        second.reset();
    });
}

TEST_F(CallsFromAPolicyTest, FactsAreAnswered) {
    connect();
    Grant grant = granted();
    bool held = false;
    SessionState state{};
    asked_while([&] {
        state = session->state();
        held = session->info().session_id == kFirstSession && grant.held() && grant.token() == 7;
    });
    EXPECT_EQ(state, SessionState::suspended);
    EXPECT_TRUE(held);
}

TEST_F(CallsFromAPolicyTest, AGrantThatIsReleasedIsGivenBackSoonAfterwards) {
    connect();
    std::optional<Grant> grant(granted());
    EXPECT_THAT(asked_while([&] { grant->release(); }), HasSubstr("gave up"));
    client().connect(kFirstSession);
    runtime->run();
    EXPECT_EQ(client().take("remove").path, held_node);
}

TEST_F(CallsFromAPolicyTest, AGrantThatIsDestroyedIsGivenBackSoonAfterwards) {
    connect();
    std::optional<Grant> grant(granted());
    const std::weak_ptr<HoldRef> hold = GrantAccess::share(*grant);
    EXPECT_THAT(asked_while([&] {
                    grant.reset();
                    EXPECT_FALSE(hold.expired()) << "it is given back later, and must live until then";
                }),
                HasSubstr("gave up"));
    client().connect(kFirstSession);
    runtime->run();
    EXPECT_EQ(client().take("remove").path, held_node);
}

TEST_F(CallsFromAPolicyTest, AReleaseThatWaitsReleasesAndIsRefusedToWait) {
    connect();
    Grant grant = granted();
    EXPECT_THAT(asked_while([&] { (void)grant.release_and_wait(Deadline::never()); }), HasSubstr("would deadlock"));
    client().connect(kFirstSession);
    runtime->run();
    EXPECT_EQ(client().take("remove").path, held_node);
}

TEST_F(CallsFromAPolicyTest, ASessionThatIsClosedIsClosedSoonAfterwards) {
    connect();
    EXPECT_THAT(asked_while([&] { session->close(); }), HasSubstr("/l"));
    runtime->advance(10s);
    EXPECT_EQ(core->state(), SessionState::closed);
    EXPECT_TRUE(client().closed);
}

TEST_F(CallsFromAPolicyTest, ASessionThatIsDestroyedIsClosedSoonAfterwards) {
    connect();
    EXPECT_THAT(asked_while([&] { session.reset(); }), HasSubstr("/l"));
    runtime->advance(10s);
    EXPECT_EQ(core->state(), SessionState::closed);
    EXPECT_TRUE(client().closed);
}

TEST_F(CallsFromAPolicyTest, ACallIsStoppedSoonAfterwards) {
    connect();
    std::stop_source stop;
    bool stopped = false;
    ReadWriteLock other(*session, "/other");
    boost::fibers::fiber fiber(boost::fibers::launch::dispatch,
                               [&] { stopped = !other.try_acquire_shared_until(Deadline::never(), stop.get_token()); });
    auto created = client().take("create");
    client().take("exists").answer({});
    std::optional<SharedValue> value(std::in_place, *session, "/v", "");
    auto subscription = std::make_optional(session->watch_state([](SessionState) {}));
    asked_while([&] {
        if (asked > 1) return;
        stop.request_stop();
        value.reset();
        subscription.reset();
    });
    runtime->run();
    boost::this_fiber::yield();
    fiber.join();
    EXPECT_TRUE(stopped);
}

/// Asks the library for something when it writes that the connection is lost.
class CallingSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit CallingSink(std::function<void()> call) : call_(std::move(call)) {}

private:
    void sink_it_(const spdlog::details::log_msg& line) override {
        if (std::string(line.payload.data(), line.payload.size()).find("connection lost") != std::string::npos) call_();
    }
    void flush_() override {}
    const std::function<void()> call_;
};

TEST_F(CallsFromAPolicyTest, ALogSinkMayNotCallTheLibraryEitherAndHangsNothing) {
    int refused = 0;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<CallingSink>([&] {
                                                          try {
                                                              (void)session->wait_connected(Deadline::never());
                                                          } catch (const Error& error) {
                                                              refused += error.errc() == Errc::would_deadlock;
                                                          }
                                                      }));
    connect();
    client().disconnect();
    EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace zkrecipes::testing
