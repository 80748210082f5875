#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/wait_event.hpp"
#include "session/common/internal_thread.hpp"
#include "session/common/state_notifier.hpp"
#include "support/refusals.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A runtime that refuses the next timers or posts.
class RefusingRuntime final : public Runtime {
public:
    explicit RefusingRuntime(std::shared_ptr<Runtime> real) : real_(std::move(real)) {}
    Instant now() const noexcept override { return real_->now(); }
    Deadline::TimePoint steady_now() const noexcept override { return real_->steady_now(); }
    std::chrono::system_clock::time_point wall_now() const noexcept override { return real_->wall_now(); }
    std::uint64_t random() noexcept override { return real_->random(); }
    TimerId at(Instant when, std::function<void()> work) override {
        refuse(timers);
        return real_->at(when, std::move(work));
    }
    bool cancel(TimerId timer) noexcept override { return real_->cancel(timer); }
    void post(Lane lane, std::function<void()> work) override {
        refuse(posts);
        real_->post(lane, std::move(work));
    }
    void stop() noexcept override {
        stopped_by = std::this_thread::get_id();
        real_->stop();
    }

    int timers = 0;
    int posts = 0;
    std::atomic<std::thread::id> stopped_by;

private:
    static void refuse(int& left) {
        if (left == 0) return;
        --left;
        throw std::runtime_error("refused");
    }
    const std::shared_ptr<Runtime> real_;
};

/// A session whose surroundings refuse things, and what it writes about that.
class SessionRefusalTest : public SessionTest {
protected:
    SessionRefusalTest() {
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
    }
    ~SessionRefusalTest() override {
        destroy();  // it writes to the log
    }
    void open_refusing(std::shared_ptr<ServerProbe> with_probe = nullptr) {
        core = SessionCore::open(options, {refusing, clients, std::move(with_probe)});
    }
    std::ostringstream log;
    std::shared_ptr<RefusingRuntime> refusing = std::make_shared<RefusingRuntime>(runtime);
};

TEST_F(SessionRefusalTest, ThreadsAndDescriptorsThatTheSystemRefusesAreToldWithARemedy) {
    const auto expect_refused = [] {
        try {
            (void)SessionCore::real_environment();
            ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::out_of_resources);
            EXPECT_THAT(error.what(), HasSubstr("ulimit"));
        }
    };
    {
        const test::NoThreads refused;
        expect_refused();
    }
    const test::NoDescriptors refused;
    expect_refused();
}

TEST_F(SessionRefusalTest, AConstructorThatThrowsHasEndedItsThreadsItself) {
    auto environment = SessionCore::real_environment();
    const auto real = std::make_shared<RefusingRuntime>(environment.runtime);
    environment.runtime = real;
    environment.clients = clients;
    clients->refuse = true;
    EXPECT_THROW((void)SessionCore::open(options, environment), Error);
    EXPECT_EQ(real->stopped_by.load(), std::this_thread::get_id());
}

TEST_F(SessionRefusalTest, ATimerThatCannotBeSetClosesTheSessionAndLosesWhatIsHeld) {
    open_refusing();
    client().connect(1);
    runtime->run();
    std::shared_ptr<Hold> held;
    refusing->timers = 1;
    EXPECT_THROW(inside([&] {
                     core->lease_committed(now());
                     held = core->begin_hold("/n", 7);
                 }),
                 std::runtime_error);
    ASSERT_TRUE(held);
    EXPECT_FALSE(held->held());
    runtime->run();
    EXPECT_TRUE(held->lost().stop_requested());
    EXPECT_THAT(log.str(), HasSubstr("an internal step failed: refused; make a new Session"));
}

TEST_F(SessionRefusalTest, AfterAFailureTheNodesStayUntilWhatAHolderWasToldIsOver) {
    open_refusing();
    client().connect(1);
    runtime->run();
    const auto held = hold("/n");
    const Nanoseconds told = held->remaining_lease();  // it begins something that takes that long
    ASSERT_GT(told, 1s);
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_FALSE(held->held());
    runtime->advance(std::chrono::duration_cast<std::chrono::milliseconds>(told) - 1ms);
    EXPECT_FALSE(client().closed) << "the servers would delete the node";
    runtime->advance(200ms);
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionRefusalTest, AFailureEndsTheWaitForAConnection) {
    open_refusing();
    runtime->at(now() + 1s, [&] { EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc); });
    const Deadline deadline(runtime->steady_now() + 5s);  // it would be false then
    runtime->while_running([&] { EXPECT_THROW(core->wait_connected(deadline, {}), Error); });
}

TEST_F(SessionRefusalTest, AfterAFailureTheOwnerMayCloseTheSessionAtOnce) {
    open_refusing();
    client().connect(1);
    runtime->run();
    const auto held = hold("/n");
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_FALSE(client().closed);
    runtime->while_running([this] { core->close(); });
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionRefusalTest, AFailureWhileItIsBeingClosedDelaysTheEndNoFurther) {
    open_refusing();
    client().connect(1);
    runtime->run();
    const auto held = hold("/n");
    inside([&] { core->delete_node("/deleted"); });  // for which closing waits
    {
        const InternalThread mark;  // so that close() does not wait
        core->close();
    }
    ASSERT_FALSE(client().closed);
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_TRUE(client().closed) << "the owner had closed it: nobody acts under its holds";
}

TEST_F(SessionRefusalTest, WhereTheClosingFailsTooItIsTriedAgain) {
    open_refusing();
    client().connect(1);
    runtime->run();
    const auto held = hold("/n");
    refusing->timers = refusing->posts = 3;
    EXPECT_THROW(inside([] { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_FALSE(held->held());
    EXPECT_EQ(core->state(), SessionState::closed);
    for (int i = 0; i < 5; ++i) {
        try {
            inside([] {});
        } catch (const std::runtime_error&) {
        }
    }
    runtime->advance(5s);
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionRefusalTest, AnErrorThatIsMeantForTheCallerClosesNothing) {
    open_connected(1);
    const auto held = hold("/n");
    EXPECT_THROW(inside([] { throw Error(Errc::bad_option, "x", "/n", "y"); }), Error);
    EXPECT_EQ(core->state(), SessionState::connected);
    EXPECT_TRUE(held->held());
}

TEST_F(SessionRefusalTest, AProbeThatCannotBeBegunIsTriedAgain) {
    class Probe final : public ServerProbe {
    public:
        void probe(std::vector<std::string>, std::chrono::milliseconds, Done) override {
            if (++asked == 1) throw std::runtime_error("refused");
        }
        int asked = 0;
    };
    const auto with_probe = std::make_shared<Probe>();
    open_refusing(with_probe);
    runtime->advance(100ms);
    EXPECT_EQ(with_probe->asked, 1);
    runtime->advance(2s);
    EXPECT_EQ(with_probe->asked, 2);
}

TEST_F(SessionRefusalTest, AListenerWhosePostWasRefusedIsToldWithTheNextChange) {
    StateNotifier notifier(refusing, options.logger);
    std::vector<SessionState> told;
    const auto subscription =
        notifier.subscribe([&](SessionState state) { told.push_back(state); }, SessionState::connecting);
    runtime->run();
    refusing->posts = 1;
    EXPECT_THROW(notifier.publish(SessionState::connected), std::runtime_error);
    notifier.publish(SessionState::suspended);
    runtime->run();
    EXPECT_THAT(told, ElementsAre(SessionState::connecting, SessionState::suspended));
}

TEST_F(SessionRefusalTest, WhatACallbackOwnsDiesOnAThreadThatKnowsThatItIsTheNotifier) {
    open();
    bool ran = false;
    bool marked = false;
    core->notify([&ran, owned = std::shared_ptr<void>(nullptr, [&](void*) { marked = NotifierThread::here(); })] {
        ran = owned == nullptr;
    });
    runtime->run();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(marked);
}

TEST_F(SessionRefusalTest, ASessionThatIsGivenUpIsReported) {
    open_connected();
    client().disconnect();
    runtime->advance(1min);
    EXPECT_THAT(log.str(), HasSubstr("no server has taken the session back for long; making a new one"));
    EXPECT_EQ(clients->clients.size(), 2u);
}

TEST_F(SessionRefusalTest, AShorterTimeoutIsNotBlamedWhenTheLeaseHadPassedBefore) {
    open_connected(1);
    const auto held = hold("/n");
    ASSERT_TRUE(held);
    client().disconnect();
    runtime->freeze_for(5s);
    client().connect(1);
    EXPECT_FALSE(held->held());
    EXPECT_THAT(log.str(), HasSubstr("no committed heartbeat"));
    EXPECT_THAT(log.str(), Not(HasSubstr("shorter session timeout")));
}

TEST_F(SessionRefusalTest, AShorterTimeoutThatEndsALeaseIsReported) {
    open_connected(1);
    const auto held = hold("/n");
    ASSERT_TRUE(held);
    client().disconnect();
    runtime->freeze_for(2s);
    client().connect(1, 2000ms);
    EXPECT_FALSE(held->held());
    EXPECT_THAT(log.str(), HasSubstr("shorter session timeout"));
    EXPECT_THAT(log.str(), HasSubstr("ms to 2000 ms; give all"));
}

TEST_F(SessionRefusalTest, AShorterTimeoutCountsBeforeItIsReported) {
    struct Sink final : spdlog::sinks::base_sink<std::mutex> {
        void sink_it_(const spdlog::details::log_msg& line) override {
            const std::string text(line.payload.data(), line.payload.size());
            if (text.find("changed the session timeout") != text.npos) held.push_back(hold->held());
        }
        void flush_() override {}
        std::shared_ptr<Hold> hold;
        std::vector<bool> held;
    };
    const auto sink = std::make_shared<Sink>();
    options.logger = std::make_shared<spdlog::logger>("test", sink);
    open_connected(1);
    sink->hold = hold("/n");
    client().disconnect();
    runtime->freeze_for(2s);
    client().connect(1, 2000ms);
    EXPECT_THAT(sink->held, ElementsAre(false)) << "a sink that is slow would hold it up";
    sink->hold.reset();
}

TEST_F(SessionRefusalTest, ACloseThatHasEndedDoesNotSayLaterThatItGaveUp) {
    open_connected();
    runtime->while_running([&] { core->close(); });
    runtime->advance(options.close_timeout);
    EXPECT_THAT(log.str(), HasSubstr("closed"));
    EXPECT_THAT(log.str(), AllOf(Not(HasSubstr("gives up")), Not(HasSubstr("[error]"))));
    destroy();
}

TEST_F(SessionRefusalTest, WhatIsLetGoWhereFibersDoNotWorkDiesOnAThreadThatKnowsThatItIsTheLibrarys) {
    struct Late {
        ~Late() {
            if (work) work();
        }
        std::function<void()> work;
    };
    open();
    bool ran = false;
    bool marked = false;
    std::thread([&] {
        static thread_local Late late;  // made before Boost.Fiber's data of the thread, so destroyed after them
        EXPECT_TRUE(fibers_work_here());
        late.work = [&] {
            EXPECT_FALSE(fibers_work_here());
            std::shared_ptr<void> owned(nullptr, [&](void*) {
                ran = true;
                marked = InternalThread::here();
            });
            inside([&] { core->let_go(std::move(owned)); });
            EXPECT_FALSE(ran);
        };
    }).join();
    runtime->run();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(marked);
}

TEST_F(SessionRefusalTest, ThatNoServerServesIsReportedAndSoIsTheEndOfThat) {
    probe = std::make_shared<FakeProbe>();
    open_refusing(probe);
    runtime->advance(100ms);
    probe->answer({});
    runtime->run();
    EXPECT_THAT(log.str(), HasSubstr("no server of a:1,b:2,c:3 answers and serves (1 attempts)"));
    client().connect(1);
    EXPECT_THAT(log.str(), HasSubstr("servers answer again after 1 failed"));
    log.str("");
    client().disconnect();
    client().connect(1);
    EXPECT_THAT(log.str(), AllOf(HasSubstr("connected again"), Not(HasSubstr("answer again"))));
}

TEST_F(SessionRefusalTest, TheEndOfASessionNamesItsServersAndItsPath) {
    for (const std::string prefix : {"", "/root"}) {
        options.path_prefix = prefix;
        log.str("");
        open();
        client().say(ClientState::auth_failed);
        EXPECT_THAT(log.str(), HasSubstr(options.hosts + (prefix.empty() ? ":" : " /root:")));
        destroy();
    }
}

TEST_F(SessionRefusalTest, ThatAllServersCutTheConnectionIsKnown) {
    probe = std::make_shared<FakeProbe>();
    open_refusing(probe);
    runtime->advance(100ms);
    const auto done = std::move(probe->waiting.back());
    probe->waiting.pop_back();
    done({.best = {"a:1"}, .all_cut = true});
    runtime->run();
    EXPECT_THAT(core->info().problem, HasSubstr("raise their maxClientCnxns"));
}

TEST_F(SessionRefusalTest, AHeartbeatThatIsRefusedIsReportedAndCounted) {
    open_connected();
    const auto held = hold("/l/n");
    runtime->advance(1s);
    Reply refused;
    refused.rc = Rc::no_auth;
    client().take("multi").answer(refused);
    EXPECT_THAT(log.str(), HasSubstr("the heartbeat of 1 hold(s) was refused: not permitted"));
    EXPECT_EQ(core->stats().heartbeats_refused, 1u);
    EXPECT_TRUE(held->held());
}

TEST_F(SessionRefusalTest, ANodeThatMayNotBeDeletedIsReported) {
    open_connected();
    inside([&] { core->delete_node("/l/n"); });
    Reply refused;
    refused.rc = Rc::no_auth;
    client().take("remove").answer(refused);
    EXPECT_THAT(log.str(), HasSubstr("cannot clean up /l/n: delete was answered 'not permitted' (1 times)"));
    runtime->advance(1s);
    client().take("remove").answer({});
}

TEST_F(SessionRefusalTest, ACodeThatIsNotKnownIsReported) {
    open_connected();
    inside([&] { core->sync("/n", [](Rc, Instant) {}); });
    Reply reply;
    reply.rc = static_cast<Rc>(-999);
    client().take("sync").answer(reply);
    EXPECT_THAT(log.str(), HasSubstr("(-999); its outcome is unknown (1 times)"));
}

TEST_F(SessionRefusalTest, ManyLossesAtOnceTakeAFewLines) {
    open_connected();
    std::vector<std::shared_ptr<Hold>> held;
    for (int i = 0; i < 100; ++i) held.push_back(hold("/l/" + std::to_string(i)));
    client().disconnect();
    runtime->advance(5s);
    const auto count = [this](const std::string& text) {
        const std::string all = log.str();
        std::size_t n = 0;
        for (auto at = all.find(text); at != all.npos; at = all.find(text, at + 1)) ++n;
        return n;
    };
    EXPECT_EQ(count(": lost /l/"), 20u);
    EXPECT_EQ(count(" more: "), 1u);
    EXPECT_EQ(count("lost 80 more: "), 1u);
}

}  // namespace
}  // namespace zkrecipes::testing
