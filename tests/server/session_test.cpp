// The session layer on a real server, behind a gate that plays the bad network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "session/session_core.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using namespace internal;  // NOLINT: for tests only
using testenv::Direction;
using testenv::Match;
using testenv::Opcode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionServerTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        gate_.emplace(server().endpoint());
        options_.hosts = gate().connect_string();
        options_.timeout = scaled(8000ms);
        options_.server_tick = server().options().tick_time;
        raw_.emplace(server().connect_string());
        raw().make_path(root());
    }
    testenv::Gate& gate() { return *gate_; }
    testenv::RawClient& raw() { return *raw_; }

    void open() { core_ = SessionCore::open(options_, SessionCore::real_environment()); }
    void open_connected() {
        open();
        ASSERT_TRUE(core().wait_connected(kMaxWait, {}));
    }
    SessionCore& core() { return *core_; }

    /// Makes a request under the session lock and waits for its answer.
    template <class... Values, class Ask>
    Rc ask(Ask request) {
        auto answer = std::make_shared<std::atomic<int>>(kNone);
        core().run_locked(
            [&] { request([answer](Rc rc, Values..., Instant) { answer->store(static_cast<int>(rc)); }); });
        EXPECT_TRUE(await([&] { return answer->load() != kNone; })) << "no answer";
        return static_cast<Rc>(answer->load());
    }
    Rc create(const std::string& path, const std::vector<Acl>& acl = Acl::open()) {
        return ask<std::string, const NodeStat&>(
            [&](auto done) { core().create(path, "", acl, CreateMode::persistent, std::move(done)); });
    }

    /// Makes an ephemeral node and holds it.
    std::shared_ptr<Hold> hold(const std::string& path) {
        auto out = std::make_shared<std::shared_ptr<Hold>>();
        auto failed = std::make_shared<std::atomic<bool>>(false);
        auto made = std::make_shared<std::atomic<bool>>(false);
        SessionCore* session = &core();
        core().run_locked([&] {
            session->create(path, "", Acl::open(), CreateMode::ephemeral,
                            [=](Rc rc, const std::string&, const NodeStat& stat, Instant sent_at) {
                                if (rc != Rc::ok) {
                                    failed->store(true);
                                    return;
                                }
                                session->lease_committed(sent_at);
                                session->renew_lease({path}, [=](Rc verified, Instant) {
                                    if (verified == Rc::ok) *out = session->begin_hold(path, stat.czxid);
                                    made->store(*out != nullptr);
                                    failed->store(*out == nullptr);
                                });
                            });
        });
        EXPECT_TRUE(await([&] { return made->load() || failed->load(); }));
        EXPECT_FALSE(failed->load());
        return *out;
    }
    /// Gives it back and waits until the servers have confirmed that.
    bool end(const std::shared_ptr<Hold>& held) {
        auto told = std::make_shared<std::atomic<int>>(kNone);
        core().run_locked([&] { core().end_hold(held, [told](bool gone) { told->store(gone ? 1 : 0); }); });
        EXPECT_TRUE(await([&] { return told->load() != kNone; }));
        return told->load() == 1;
    }
    bool reaches(SessionState state) {
        return await([&] { return core().state() == state; });
    }

    static constexpr int kNone = 1'000'000;
    SessionOptions options_;
    std::optional<testenv::Gate> gate_;
    std::optional<testenv::RawClient> raw_;
    std::shared_ptr<SessionCore> core_;
};

TEST_F(SessionServerTest, ItsSessionsAreKnownAsZooKeepers) {  // H127
    for (int i = 0; i < 3; ++i) {
        open_connected();
        EXPECT_TRUE(core().incarnation().by_zookeeper);
        core().close();
    }
}

TEST_F(SessionServerTest, ConnectsAndSaysWhatWasNegotiated) {
    open_connected();
    const auto info = core().info();
    EXPECT_EQ(info.state, SessionState::connected);
    EXPECT_EQ(info.timeout, options_.timeout);
    EXPECT_EQ(info.incarnation, 1u);
    EXPECT_THAT(gate().sessions(), Contains(info.session_id));
}

TEST_F(SessionServerTest, AnUnreachableServerIsJustFalseAtTheDeadline) {
    gate().refuse();
    open();
    EXPECT_FALSE(core().wait_connected(200ms, {}));
    EXPECT_EQ(core().state(), SessionState::connecting);
    gate().pass();
    EXPECT_TRUE(core().wait_connected(kMaxWait, {}));
}

TEST_F(SessionServerTest, AnExpiredSessionIsFollowedByANewOneAndListenersAreToldOfTheLoss) {
    open_connected();
    std::mutex mutex;
    std::vector<SessionState> told;
    const auto subscription = core().watch_state([&](SessionState state) {
        const std::lock_guard lock(mutex);
        told.push_back(state);
    });
    const auto held = hold(path("n"));
    const auto first = core().info().session_id;
    gate().expire(first);
    EXPECT_TRUE(await([&] { return core().info().incarnation == 2; }));
    EXPECT_TRUE(reaches(SessionState::connected));
    EXPECT_NE(core().info().session_id, first);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(await([&] { return held->lost().stop_requested(); }));
    EXPECT_TRUE(await([&] {
        const std::lock_guard lock(mutex);
        return told.back() == SessionState::connected && told.size() > 1;
    }));
    const std::lock_guard lock(mutex);
    EXPECT_THAT(told, Contains(SessionState::lost));
}

TEST_F(SessionServerTest, AHoldSurvivesAShortBreakOfTheConnection) {
    open_connected();
    const auto held = hold(path("n"));
    const auto first = core().info().session_id;
    std::atomic<int> connects{0};
    const auto subscription = core().watch_state([&](SessionState state) {
        if (state == SessionState::connected) ++connects;
    });
    EXPECT_TRUE(await([&] { return connects == 1; }));
    gate().reset_all();
    EXPECT_TRUE(await([&] { return connects == 2; }));
    EXPECT_EQ(core().info().session_id, first);
    EXPECT_EQ(core().info().incarnation, 1u);
    // The end, not what is left until then: nothing is ever longer than right after a renewal.
    const auto sure_until = [&] { return core().runtime().now() + held->remaining_lease(); };
    const auto before = sure_until();
    EXPECT_TRUE(await([&] { return sure_until() > before + 50ms; })) << "not renewed after the break";
    EXPECT_TRUE(end(held));
}

TEST_F(SessionServerTest, HeartbeatsGoOutOnlyWhileSomethingIsHeld) {
    open_connected();
    gate().reset_trace();
    EXPECT_TRUE(await([&] { return gate().counts()[Opcode::exists] >= 2; })) << "an idle session is kept touched";
    EXPECT_EQ(gate().counts()[Opcode::multi], 0u);
    const auto held = hold(path("n"));
    EXPECT_TRUE(await([&] { return gate().counts()[Opcode::multi] >= 4; }));
    EXPECT_TRUE(held->held());
    EXPECT_TRUE(end(held));
    EXPECT_FALSE(raw().exists(path("n")));
    gate().reset_trace();
    EXPECT_TRUE(await([&] { return gate().counts()[Opcode::exists] >= 2; }));
    EXPECT_EQ(gate().counts()[Opcode::multi], 0u);
    EXPECT_EQ(gate().counts().writes(), 0u);
}

TEST_F(SessionServerTest, InABlackHoleTheHoldIsLostFirstThenTheStateIs) {
    open_connected();
    const auto held = hold(path("n"));
    std::atomic<bool> held_when_lost{true};
    const auto subscription = core().watch_state([&](SessionState state) {
        if (state == SessionState::lost) held_when_lost = held->held() || !held->lost().stop_requested();
    });
    gate().blackhole();
    EXPECT_TRUE(await([&] { return held->lost().stop_requested(); }));
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(raw().exists(path("n"))) << "lost by our own clock before the servers ended the session";
    EXPECT_TRUE(reaches(SessionState::lost));
    EXPECT_TRUE(await([&] { return !held_when_lost; }));
    gate().pass();
    EXPECT_TRUE(reaches(SessionState::connected));
    EXPECT_FALSE(held->held());
}

TEST_F(SessionServerTest, AfterTheReplyToACreateWasCutOffTheGhostIsReapedInTheSameSession) {
    open_connected();
    const auto first = core().info().session_id;
    const auto fault = gate().cut_after(Match::op(Opcode::create2).path("_c_ghost-"));
    const Rc rc = ask<std::string, const NodeStat&>([&](auto done) {
        core().create(path("_c_ghost-lock-"), "", Acl::open(), CreateMode::ephemeral_sequential, std::move(done));
    });
    EXPECT_TRUE(fault.reached());
    EXPECT_EQ(meaning(rc), Meaning::unknown) << to_string(rc);
    EXPECT_EQ(raw().children(root())->size(), 1u) << "executed";
    std::atomic<int> gone{kNone};
    core().run_locked([&] { core().delete_by_identity(root(), "_c_ghost-", [&](bool is) { gone = is ? 1 : 0; }); });
    EXPECT_TRUE(await([&] { return gone != kNone; }));
    EXPECT_EQ(gone, 1);
    EXPECT_THAT(*raw().children(root()), IsEmpty());
    EXPECT_EQ(core().info().session_id, first);
}

TEST_F(SessionServerTest, ADeleteWhoseReplyWasCutOffIsFinished) {
    open_connected();
    const auto held = hold(path("n"));
    const auto fault = gate().cut_before(Match::op(Opcode::remove));
    EXPECT_TRUE(end(held));
    EXPECT_TRUE(fault.reached());
    EXPECT_FALSE(raw().exists(path("n")));
}

TEST_F(SessionServerTest, WatchesAreSharedAndGoneWhenNobodyAsks) {
    open_connected();
    ASSERT_EQ(create(path("n")), Rc::ok);
    ASSERT_TRUE(await([&] { return server().watch_count() == 0; }));  // those of the test before have gone
    std::vector<SessionCore::WatchId> ids;
    std::atomic<int> ready{0}, fired{0};
    core().run_locked([&] {
        for (int i = 0; i < 100; ++i) {
            SessionCore::WatchListener listener;
            listener.ready = [&](Rc rc, const std::string&, const NodeStat&) { ready += rc == Rc::ok ? 1 : 1000; };
            listener.fired = [&](WatchEventType) { ++fired; };
            ids.push_back(core().watch_node(path("n"), std::move(listener)));
        }
    });
    EXPECT_TRUE(await([&] { return ready == 100; }));
    EXPECT_EQ(server().watch_count(), 1);
    core().run_locked([&] {
        for (const auto id : ids) core().unwatch(id);
    });
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; }));
    raw().set(path("n"), "x");
    EXPECT_EQ(ask<const NodeStat&>([&](auto done) { core().exists(path("n"), std::move(done)); }), Rc::ok);
    EXPECT_EQ(fired, 0);
}

TEST_F(SessionServerTest, AWatchSurvivesAReconnectAndFiresForWhatWasMissed) {
    open_connected();
    ASSERT_EQ(create(path("n")), Rc::ok);
    std::atomic<int> ready{0}, fired{0};
    core().run_locked([&] {
        SessionCore::WatchListener listener;
        listener.ready = [&](Rc, const std::string&, const NodeStat&) { ++ready; };
        listener.fired = [&](WatchEventType type) { fired += type == WatchEventType::deleted ? 1 : 1000; };
        core().watch_node(path("n"), std::move(listener));
    });
    EXPECT_TRUE(await([&] { return ready == 1; }));
    gate().refuse();
    gate().reset_all();
    raw().remove(path("n"));
    gate().pass();
    EXPECT_TRUE(await([&] { return fired == 1; }));
}

TEST_F(SessionServerTest, DeletingTheNodeOfAHoldThatLastsLosesIt) {
    open_connected();
    ASSERT_TRUE(await([&] { return server().watch_count() == 0; }));
    const auto held = hold(path("n"));
    EXPECT_TRUE(await([&] { return server().watch_count() == 1; })) << "its own node is watched";
    gate().reset_trace();
    raw().remove(path("n"));
    EXPECT_TRUE(await([&] { return held->lost().stop_requested(); }));
    EXPECT_FALSE(held->held());
    EXPECT_EQ(core().state(), SessionState::connected);
}

TEST_F(SessionServerTest, DirectoriesAreMadeAsContainersWithAllAncestors) {
    open_connected();
    EXPECT_EQ(ask<>([&](auto done) { core().make_directory(path("a/b/c"), Acl::open(), std::move(done)); }), Rc::ok);
    EXPECT_TRUE(raw().exists(path("a/b/c")));
    EXPECT_EQ(gate().counts()[Opcode::create_container], 5u);
    EXPECT_EQ(ask<>([&](auto done) { core().make_directory(path("a/b/c"), Acl::open(), std::move(done)); }), Rc::ok);
}

TEST_F(SessionServerTest, CredentialsArePresentedAgainAfterAnExpiry) {
    options_.auth.push_back({"digest", "user:password"});
    open_connected();
    ASSERT_EQ(create(path("secret"), Acl::creator_all()), Rc::ok);
    EXPECT_ANY_THROW((void)raw().get(path("secret"))) << "nobody else may read it";
    gate().expire(core().info().session_id);
    EXPECT_TRUE(await([&] { return core().info().incarnation == 2; }));
    const Rc read = ask<std::string, const NodeStat&>([&](auto done) { core().get(path("secret"), std::move(done)); });
    EXPECT_EQ(read, Rc::ok);
}

TEST_F(SessionServerTest, CredentialsOfAnUnknownSchemeAreAClearError) {
    options_.auth.push_back({"nonsense", "x"});
    open();
    try {
        core().wait_connected(kMaxWait, {});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::auth_failed) << error.what();
    }
    EXPECT_EQ(core().state(), SessionState::closed);
}

TEST_F(SessionServerTest, AServerThatIsSilentAboutTheCredentialsIsLeftForAnother) {
    options_.auth.push_back({"digest", "user:password"});
    options_.auth_timeout = 4s;
    const auto fault = gate().hold_reply(Match::op(Opcode::auth));
    open();
    EXPECT_TRUE(core().wait_connected(kMaxWait, {}));
    EXPECT_TRUE(fault.wait_reached(kMaxWait));
    fault.drop();
}

TEST_F(SessionServerTest, TheRequestThatIsAnsweredLateIsNudged) {
    open_connected();
    const auto fault = gate().hold_reply(Match::op(Opcode::sync));
    gate().reset_trace();
    std::atomic<bool> answered{false};
    core().run_locked([&] { core().sync("/", [&](Rc, Instant) { answered = true; }); });
    EXPECT_TRUE(await([&] { return gate().counts()[Opcode::exists] >= 3; }));
    ASSERT_TRUE(fault.wait_reached(kMaxWait));  // the server may have been slow, too
    fault.release();
    EXPECT_TRUE(await([&] { return answered.load(); }));
}

TEST_F(SessionServerTest, CloseDeletesWhatIsHeldAndEndsTheSession) {
    open_connected();
    const auto held = hold(path("n"));
    core().close();
    EXPECT_EQ(core().state(), SessionState::closed);
    EXPECT_FALSE(raw().exists(path("n")));
    EXPECT_FALSE(held->held());
    core().close();
    EXPECT_THROW(core().wait_connected(kMaxWait, {}), Error);
}

TEST_F(SessionServerTest, CloseInABlackHoleComesBack) {
    options_.close_timeout = 500ms;
    open_connected();
    const auto held = hold(path("n"));
    core().run_locked([&] { core().end_hold(held); });
    gate().blackhole();
    core().close();
    EXPECT_EQ(core().state(), SessionState::closed);
    gate().pass();
    core_.reset();
    EXPECT_TRUE(await([&] { return !raw().exists(path("n")); }));
}

TEST_F(SessionServerTest, CloseComesBackWhileTheServerStandsStill) {
    testenv::ZkServer own(shared_server_options());
    options_.hosts = own.connect_string();
    options_.server_tick = own.options().tick_time;
    options_.close_timeout = 500ms;
    open_connected();
    ASSERT_EQ(create(root()), Rc::ok);
    const auto held = hold(path("n"));
    core().run_locked([&] { core().end_hold(held); });
    own.freeze();  // unlike in a black hole, its connections stay open and take in what is sent
    core().close();
    EXPECT_EQ(core().state(), SessionState::closed);
    EXPECT_FALSE(held->held());
    core_.reset();
    own.thaw();
    testenv::RawClient observer(own.connect_string());
    EXPECT_TRUE(await([&] { return !observer.exists(path("n")); }));
}

TEST_F(SessionServerTest, AListenerMayDestroyTheSessionThatCallsIt) {
    std::atomic<bool> destroyed{false};
    std::optional<Session> session;
    Subscription subscription;
    {
        SessionOptions options = options_;
        session.emplace(options);
        ASSERT_TRUE(session->wait_connected(kMaxWait));
    }
    subscription = session->watch_state([&](SessionState state) {
        if (state != SessionState::connected || destroyed) return;
        session.reset();
        destroyed = true;
    });
    EXPECT_TRUE(await([&] { return destroyed.load(); }));
    EXPECT_TRUE(await([&] { return gate().connection_count() == 0; }));
}

TEST_F(SessionServerTest, AHoldOutlivesItsSessionAsALostOne) {
    std::shared_ptr<Hold> held;
    {
        open_connected();
        held = hold(path("n"));
        core_.reset();
    }
    EXPECT_TRUE(await([&] { return held->lost().stop_requested(); }));
    EXPECT_FALSE(held->held());
}

class SessionProbeServerTest : public SessionServerTest {
protected:
    std::vector<std::string> probe(const std::vector<std::string>& hosts) {
        const auto runtime = make_thread_runtime();
        const auto probe = make_server_probe(runtime);
        std::atomic<bool> done{false};
        std::vector<std::string> out;
        probe->probe(hosts, scaled(5000ms), [&](const ServerProbe::Found& found) {
            out = found.best;
            done = true;
        });
        EXPECT_TRUE(await([&] { return done.load(); }));
        runtime->stop();
        return out;
    }
};

TEST_F(SessionProbeServerTest, ThoseThatServeComeBeforeThoseThatOnlyAccept) {
    testenv::GateOptions raw_gate;
    raw_gate.raw = true;
    testenv::Gate mute(server().endpoint(), raw_gate), refusing(server().endpoint(), raw_gate);
    mute.blackhole();
    refusing.refuse();
    const std::string serving = server().connect_string();
    EXPECT_THAT(probe({mute.connect_string(), refusing.connect_string(), serving}), ElementsAre(serving));
    EXPECT_THAT(probe({refusing.connect_string(), mute.connect_string()}), ElementsAre(mute.connect_string()));
    EXPECT_THAT(probe({refusing.connect_string(), "no-such-host.invalid:2181"}), IsEmpty());
}

TEST_F(SessionProbeServerTest, ASessionFindsTheOneServerThatIsNotBlackHoled) {
    testenv::GateOptions raw_gate;
    raw_gate.raw = true;
    testenv::Gate one(server().endpoint(), raw_gate), two(server().endpoint(), raw_gate);
    one.blackhole();
    two.blackhole();
    options_.hosts = one.connect_string() + "," + two.connect_string() + "," + server().connect_string();
    // The C client by itself waits two thirds of this for each dead server.
    options_.timeout = 60s * 10;
    for (int i = 0; i < 3; ++i) {
        open();
        EXPECT_TRUE(core().wait_connected(kMaxWait, {}));
        core().close();
        core_.reset();
    }
}

}  // namespace
}  // namespace zkrecipes::test
