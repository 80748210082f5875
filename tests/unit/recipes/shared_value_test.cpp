// SharedValue on scripted handles: a new session may be with a server that is behind the one before.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/shared_value.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class SharedValueUnitTest : public SessionTest {
protected:
    ~SharedValueUnitTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    /// What a server that knows this version of the value answers.
    void answer(const Request& request, const std::string& data, std::int32_t version) {
        ASSERT_TRUE(request.answer);
        Reply reply;
        reply.text = data;
        reply.stat.czxid = 1;
        reply.stat.mzxid = reply.stat.version = version;
        reply.results.resize(request.ops.size());
        for (auto& result : reply.results) result.stat.version = version;
        request.answer(reply);
        runtime->run();
    }
    void answer_all(const std::string& data, std::int32_t version) {
        for (int i = 0; i < 20; ++i) {
            boost::this_fiber::yield();
            runtime->run();
            const Request request = client().take();
            if (request.answer) answer(request, data, version);
        }
    }
    void next_session(std::int64_t id) {
        client().expire();
        runtime->run();
        client().connect(id);
        runtime->run();
    }

    std::optional<Session> session;
};

TEST_F(SharedValueUnitTest, AServerThatIsBehindTellsNothingOlderThanWhatWasWrittenBefore) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    SharedValue value(*session, "/value", "seed");
    boost::fibers::fiber writing(boost::fibers::launch::dispatch, [&] { value.set("new"); });
    answer_all("", 5);
    writing.join();
    next_session(kNextSession);

    std::vector<VersionedValue> seen;
    const auto look = [&] { seen.push_back(value.get()); };
    boost::fibers::fiber first(boost::fibers::launch::dispatch, look);
    runtime->run();
    const Request watch = client().take("get");
    EXPECT_TRUE(watch.watch);
    answer(watch, "old", 4);
    boost::fibers::fiber second(boost::fibers::launch::dispatch, look);
    boost::this_fiber::yield();
    EXPECT_TRUE(seen.empty()) << "the watch alone is not believed";
    const Request sync = client().take();
    EXPECT_EQ(sync.op, "sync");
    answer(sync, "", 0);
    answer_all("new", 5);
    first.join();
    second.join();
    EXPECT_EQ(seen, std::vector<VersionedValue>(2, VersionedValue{"new", 5}));
    look();  // asks nobody
    EXPECT_EQ(seen.back(), (VersionedValue{"new", 5}));
    EXPECT_FALSE(client().take().answer);
}

TEST_F(SharedValueUnitTest, WhatWasWrittenIsKnownBeforeTheWatchTells) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    SharedValue value(*session, "/value", "seed");
    boost::fibers::fiber looking(boost::fibers::launch::dispatch, [&] { value.get(); });
    answer_all("old", 3);
    looking.join();
    boost::fibers::fiber writing(boost::fibers::launch::dispatch, [&] { value.set("new"); });
    answer_all("", 4);
    writing.join();
    EXPECT_EQ(value.get(), (VersionedValue{"new", 4}));
}

TEST_F(SharedValueUnitTest, WithoutAConnectionItIsWhatWasKnownLast) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    SharedValue value(*session, "/value", "seed");
    boost::fibers::fiber looking(boost::fibers::launch::dispatch, [&] { value.get(); });
    answer_all("known", 3);
    looking.join();
    client().expire();
    runtime->run();
    EXPECT_EQ(value.get(), (VersionedValue{"known", 3}));
    std::optional<VersionedValue> told;
    value.get_async(Deadline::never(), {}, [&](const Result<VersionedValue>& result) { told = result.value; });
    runtime->run();
    EXPECT_EQ(told, (VersionedValue{"known", 3}));
}

class ServedValueTest : public ServedTest {
protected:
    ServedValueTest() { connect(); }
    std::function<void(SetResult)> teller() {
        return [this](const SetResult& result) {
            told.push_back(!result.error ? (result.value ? "yes" : "no")
                                         : outcome_of([&] { std::rethrow_exception(result.error); }));
        };
    }
    std::vector<std::string> told;
};

TEST_F(ServedValueTest, WhatCannotWorkIsRefusedWithoutARequest) {
    SharedValueOptions bad;
    bad.acl.emplace();
    EXPECT_EQ(code_of([&] { SharedValue(*session, "/v", "", bad); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { SharedValue(*session, "/", ""); }), Errc::bad_path);
    EXPECT_EQ(code_of([&] { SharedValue(*session, "/v", std::string(2'000'000, 'x')); }), Errc::too_large);
    for (const char* below : {"/v", "/v/marks"}) {
        bad = {};
        bad.idempotent_in = below;
        EXPECT_EQ(code_of([&] { SharedValue(*session, "/v", "", bad); }), Errc::bad_option) << below;
        CounterOptions counter;
        counter.lock_path = below;
        EXPECT_EQ(code_of([&] { AtomicCounter(*session, "/v", counter); }), Errc::bad_option) << below;
    }
    SharedValue value(*session, "/v", "");
    const std::string huge(2'000'000, 'x');
    EXPECT_EQ(code_of([&] { value.set(huge); }), Errc::too_large);
    EXPECT_EQ(code_of([&] { value.set_async(huge, {}, {}, teller()); }), Errc::too_large);
    EXPECT_EQ(code_of([&] { value.set_async("a", {}, {}, nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { (void)value.observe(nullptr); }), Errc::bad_option);
    EXPECT_TRUE(client().sent.empty());
}

TEST_F(ServedValueTest, TheFirstWhoLooksMakesItWithTheSeedAndTheAccessListAskedFor) {
    SharedValueOptions guarded;
    guarded.acl.emplace().emplace_back().id = "some";
    SharedValue value(*session, "/p/v", "seed", guarded);
    EXPECT_EQ(served([&] { EXPECT_EQ(value.get(), (VersionedValue{"seed", 0})); }), "ok");
    EXPECT_EQ(nodes["/p/v"].acl.front().id, "some");
    EXPECT_EQ(nodes["/p/v"].owner, 0);
    EXPECT_EQ(nodes["/p"].mode, CreateMode::container);
    EXPECT_EQ(served([&] { value.set("a"); }), "ok");
    EXPECT_EQ(served([&] { EXPECT_FALSE(value.try_set(0, "b")); }), "ok");
    EXPECT_EQ(served([&] { EXPECT_TRUE(value.try_set(1, "c")); }), "ok");
    EXPECT_EQ(served([&] { EXPECT_EQ(value.get(), (VersionedValue{"c", 2})); }), "ok");
    guarded.create_parents = false;
    SharedValue strict(*session, "/none/v", "seed", guarded);
    EXPECT_EQ(code_served([&] { (void)strict.get(); }), Errc::no_parent);
    EXPECT_FALSE(nodes.contains("/none"));
    refusals = {{"get /w", Rc::no_auth}};
    SharedValue hidden(*session, "/w", "seed");
    EXPECT_EQ(code_served([&] { (void)hidden.get(); }), Errc::no_permission);
}

TEST_F(ServedValueTest, WhatWasNotSentIsAnErrorAndWritesNothing) {
    put("/v", "old");
    SharedValue value(*session, "/v", "seed");
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(code_served([&] { value.set("new", {}, stopped.get_token()); }), Errc::unreachable);
    EXPECT_EQ(code_served([&] { (void)value.try_set(0, "new", {}, stopped.get_token()); }), Errc::unreachable);
    EXPECT_EQ(code_served([&] { (void)value.get({}, stopped.get_token()); }), Errc::unreachable);
    value.set_async("new", {}, stopped.get_token(), teller());
    value.try_set_async(7, "new", {}, {}, teller());
    value.try_set_async(0, "new", {}, {}, teller());
    settle();
    ASSERT_EQ(told.size(), 3u);
    EXPECT_THAT(told, ::testing::Contains("yes"));
    EXPECT_THAT(told, ::testing::Contains("no"));
    EXPECT_THAT(told, ::testing::Contains(::testing::HasSubstr("nothing was written")));
    EXPECT_EQ(nodes["/v"].version, 1);
}

TEST_F(ServedValueTest, ThatTheOutcomeOfASeedIsUnknownIsNoErrorForWhoLooks) {
    for (const bool after : {false, true}) {
        lost_after = after;
        for (int request = 1; request <= 5; ++request) {
            SCOPED_TRACE(request);
            nodes = {{"/", {}}};
            asked.clear();
            lose_answer = request;
            SharedValue value(*session, "/p/v", "seed");
            EXPECT_EQ(served([&] { EXPECT_EQ(value.get(), (VersionedValue{"seed", 0})); }), "ok");
        }
        for (int request = 1; request <= 7; ++request) {
            SCOPED_TRACE(request);
            nodes = {{"/", {}}};
            asked.clear();
            lose_answer = request;
            std::vector<std::string> seen;
            SharedValue value(*session, "/p/v", "seed");
            auto subscription = value.observe(
                [&](const std::optional<VersionedValue>& now) { seen.push_back(now ? now->value : "none"); });
            settle();
            ASSERT_TRUE(nodes.contains("/p/v"));
            EXPECT_EQ(nodes["/p/v"].data, "seed");
            ASSERT_FALSE(seen.empty());
            EXPECT_EQ(seen.back(), "seed");
            subscription.reset();
            EXPECT_EQ(leftovers(), "");
        }
    }
}

TEST_F(ServedValueTest, AnObserverDoesNotSeedWhatMayNotBeMadeAgainAndAgain) {
    refusals = {{"multi /v", Rc::no_auth}};
    SharedValue value(*session, "/v", "seed");
    auto subscription = value.observe([](auto&&) {});
    settle();
    EXPECT_EQ(times("multi /v"), 1u);
    EXPECT_FALSE(nodes.contains("/v"));
}

TEST_F(ServedValueTest, AStopEndsTheWaitForTheLockOfACounter) {
    put("/v", std::string(8, '\0'));
    put("/lock");
    put("/lock/_c_00000000-0000-4000-8000-000000000001-lock-0000000000");
    nodes["/lock"].next_number = 1;
    before_answer = [this](const std::string& what) {
        if (what == "multi /v") write("/v", std::string(8, '\0'));  // somebody is faster each time
    };
    CounterOptions locking;
    locking.lock_path = "/lock";
    locking.conflicts = RetryPolicy::never();
    AtomicCounter counter(*session, "/v", locking);
    std::stop_source stop;
    int answers = 0;
    counter.add_async(1, {}, stop.get_token(), [&](const CounterResult& result) {
        ++answers;
        EXPECT_EQ(result.error, nullptr);
        EXPECT_FALSE(result.value);
    });
    serve();
    ASSERT_EQ(children("/lock").size(), 2u) << "it waits for the lock";
    EXPECT_EQ(answers, 0);
    stop.request_stop();
    serve();
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(children("/lock").size(), 1u);
    EXPECT_EQ(times("multi /v"), 1u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedValueTest, ACounterThatHasTakenItsLockGivesItBack) {
    put("/v", std::string(8, '\0'));
    bool conflict = true;
    before_answer = [&](const std::string& what) {
        if (what == "multi /v" && std::exchange(conflict, false)) write("/v", std::string("\0\0\0\0\0\0\0\5", 8));
    };
    CounterOptions locking;
    locking.lock_path = "/lock";
    locking.conflicts = RetryPolicy::never();
    AtomicCounter counter(*session, "/v", locking);
    EXPECT_EQ(served([&] { EXPECT_EQ(counter.add(1).after, 6); }), "ok");
    EXPECT_TRUE(nodes.contains("/lock")) << "after the conflict";
    EXPECT_TRUE(children("/lock").empty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedValueTest, AStopBehindTheWriteIsToldAtOnceThatTheOutcomeIsUnknown) {
    put("/v", "old");
    SharedValue value(*session, "/v", "seed");
    std::stop_source stop;
    value.set_async("new", {}, stop.get_token(), teller());
    runtime->run();
    ASSERT_FALSE(client().open.empty());
    stop.request_stop();
    runtime->run();
    ASSERT_EQ(told.size(), 1u) << "the answer is not waited for";
    EXPECT_THAT(told.front(), ::testing::HasSubstr("it was stopped before the answer came"));
    serve();
    EXPECT_EQ(nodes["/v"].data, "new");
    EXPECT_EQ(told.size(), 1u);
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
