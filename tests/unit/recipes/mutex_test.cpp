// ExclusiveMutex on scripted handles: what needs no server.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include <gmock/gmock.h>

#include "core/acquire/acquire.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::HasSubstr;

class MutexTest : public SessionTest {
protected:
    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~MutexTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    /// The servers answer everything as an empty, well-behaved directory would.
    void serve() {
        for (int i = 0; i < 100; ++i) {
            runtime->run();
            Request request = client().take();
            if (!request.answer) return;
            Reply reply;
            if (request.op == "create" && request.mode == CreateMode::ephemeral_sequential) {
                reply.text = request.path + "0000000000";
                reply.stat.ephemeral_owner = kFirstSession;
                reply.stat.czxid = ++zxid;
                ++nodes;
            }
            if (request.op == "exists") {
                reply.stat.num_children = nodes;
                reply.stat.pzxid = reply.stat.czxid = zxid;
                reply.stat.ephemeral_owner = kFirstSession;
            }
            const bool lease = request.path.find("/leases/") != std::string::npos;
            if (request.op == "remove" && !lease) --nodes;
            if (request.op == "multi") reply.results.resize(request.ops.size());
            for (std::size_t op = 0; op < request.ops.size(); ++op) {
                if (request.ops[op].kind == MultiOp::Kind::remove) --nodes;
                if (request.ops[op].kind != MultiOp::Kind::set) continue;
                reply.results[op].stat.czxid = reply.results[op].stat.mzxid = ++zxid;
                reply.results[op].stat.ephemeral_owner = kFirstSession;
            }
            request.answer(reply);
        }
    }
    /// Runs a blocking call while the servers answer.
    template <class Call>
    void served(Call call) {
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, call);
        for (int i = 0; i < 50; ++i) {
            serve();
            boost::this_fiber::yield();
        }
        fiber.join();
    }
    template <class Call>
    static Errc code_of(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error.errc();
        }
        return Errc{};
    }

    std::optional<Session> session;
    std::int64_t zxid = 10;
    int nodes = 0;
};

TEST_F(MutexTest, ADialectWithoutTheRecipeIsRefusedByTheConstructor) {
    connect();
    LockOptions kazoo;
    kazoo.dialect = Dialect::kazoo;
    const auto rule = std::make_shared<const PredecessorRule>(PredecessorRule::Kinds{{"lease-", true}});
    EXPECT_EQ(code_of([&] { make_queue(*core, "/l", kazoo, "lease-", rule, "Semaphore"); }), Errc::unsupported);
    const auto queue = make_queue(*core, "/l", kazoo, {"lock-", "__lock__"}, rule, "ExclusiveMutex");
    EXPECT_EQ(queue->spec.base, "__lock__");
    EXPECT_EQ(make_queue(*core, "/l", {}, {"lock-", "__lock__"}, rule, "ExclusiveMutex")->spec.base, "lock-");
}

TEST_F(MutexTest, BadPathsAreRefusedByTheConstructorWithThePathAndTheRemedy) {
    connect();
    for (const std::string& path :
         {std::string(""), std::string("relative"), std::string("/"), std::string("/a//b"), std::string("/a/./b"),
          std::string("/a/../b"), std::string("/a/"), std::string("/a\x01"), std::string("/a\0b", 4),
          std::string("/zookeeper/quota"), std::string("/zookeeper"), "/" + std::string(1'000'000, 'x')}) {
        try {
            ExclusiveMutex mutex(*session, path);
            ADD_FAILURE() << path.substr(0, 20);
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::bad_path);
            EXPECT_THAT(error.what(), HasSubstr("ExclusiveMutex"));
        }
    }
    EXPECT_NO_THROW(ExclusiveMutex(*session, "/ünï/code"));
}

TEST_F(MutexTest, OptionsThatCannotWorkAreRefusedByTheConstructor) {
    connect();
    LockOptions labels;
    labels.labels["x"] = std::string(1000, 'y');
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", labels); }), Errc::bad_option);
    LockOptions acl;
    acl.acl.emplace();
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", acl); }), Errc::bad_option);
    EXPECT_TRUE(client().sent.empty());
}

TEST_F(MutexTest, AnEmptyCallbackIsRefused) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_EQ(code_of([&] { mutex.acquire_async(Deadline::never(), {}, nullptr); }), Errc::bad_option);
}

TEST_F(MutexTest, LockAndUnlockAreReEntrantAndCostNothingInside) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        mutex.lock();
        const auto requests = client().sent.size();
        mutex.lock();
        EXPECT_TRUE(mutex.try_lock());
        EXPECT_EQ(client().sent.size(), requests);
        EXPECT_TRUE(mutex.held_by_caller());
        EXPECT_GT(mutex.token(), 0);
        mutex.unlock();
        mutex.unlock();
        EXPECT_TRUE(mutex.held_by_caller());
        EXPECT_EQ(client().count("remove"), 0u);
        mutex.unlock();
        EXPECT_FALSE(mutex.held_by_caller());
        EXPECT_EQ(mutex.token(), 0);
        EXPECT_EQ(client().count("remove"), 1u);
    });
    serve();
    EXPECT_EQ(nodes, 0);
}

TEST_F(MutexTest, UnlockDoesNotTakeAwayWhatAGrantHolds) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        const Grant grant = mutex.acquire();
        EXPECT_DEBUG_DEATH(mutex.unlock(), "");
        EXPECT_TRUE(grant.held());
    });
}

TEST_F(MutexTest, UnlockByAnotherIsAnAssertionOrIgnored) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_DEBUG_DEATH(mutex.unlock(), "");
    served([&] { mutex.lock(); });
    // This fiber is another one than that of served().
    EXPECT_DEBUG_DEATH(mutex.unlock(), "");
    EXPECT_EQ(client().count("remove"), 0u);
}

TEST_F(MutexTest, AFiberDoesNotEnterTheHoldOfAnother) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    Grant grant;
    served([&] { grant = mutex.acquire(); });
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(mutex.held_by_caller());  // the thread's own fiber
    EXPECT_FALSE(mutex.lost().stop_possible());
    grant.release();  // by another than the one that acquired it (H36)
    serve();
    EXPECT_EQ(nodes, 0);
}

TEST_F(MutexTest, AGrantMovesAndIsReleasedOnce) {  // H37
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        Grant one = mutex.acquire();
        Grant two = std::move(one);
        EXPECT_FALSE(one);  // NOLINT: what a moved-from grant is
        EXPECT_FALSE(one.held());
        EXPECT_EQ(one.node(), "");
        EXPECT_EQ(one.token(), 0);
        EXPECT_FALSE(one.lost().stop_possible());
        one.release();
        EXPECT_TRUE(one.release_and_wait(Deadline::passed()));
        EXPECT_TRUE(two.held());
        EXPECT_EQ(two.token(), zxid) << "of the transaction that made its node";
        Grant& same = two;
        two = std::move(same);
        EXPECT_TRUE(two.held());
        two.release();
        two.release();
        EXPECT_EQ(client().count("remove"), 1u);
    });
}

TEST_F(MutexTest, ALostHoldIsNotEnteredAgain) {  // H30
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        mutex.lock();
        runtime->freeze_for(std::chrono::hours(1));
        EXPECT_EQ(code_of([&] { mutex.lock(); }), Errc::lock_lost);
        EXPECT_EQ(code_of([&] { (void)mutex.try_lock(); }), Errc::lock_lost);
        mutex.unlock();
    });
}

TEST_F(MutexTest, AGrantReleasedTwiceGivesBackItsOwnLevelOnly) {  // H37
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        const Grant outer = mutex.acquire();
        Grant inner = outer.again();
        inner.release();
        inner.release();
        EXPECT_TRUE(outer.held());
        EXPECT_EQ(client().count("remove"), 0u);
    });
}

TEST_F(MutexTest, TwoObjectsOfOneSessionMakeNodesOfTheirOwn) {  // H29
    connect();
    ExclusiveMutex one(*session, "/l");
    LockOptions other_id;
    other_id.id = "another owner";
    ExclusiveMutex two(*session, "/l", other_id);
    one.acquire_async(Deadline::never(), {}, [](AcquireResult) {});
    two.acquire_async(Deadline::never(), {}, [](AcquireResult) {});
    runtime->run();
    const auto first = client().take("create"), second = client().take("create");
    ASSERT_TRUE(first.answer && second.answer);
    EXPECT_NE(first.path, second.path);
    Reply refused;
    refused.rc = Rc::no_auth;
    first.answer(refused);
    second.answer(refused);
}

TEST_F(MutexTest, EachLockOfAMutexOfLeasesIsGivenBackByAnUnlockOfItsOwn) {  // H38
    connect();
    SemaphoreMutex mutex(*session, "/l");
    served([&] {
        mutex.lock();
        mutex.lock();  // the servers know of no lease of ours: it was lost
        mutex.unlock();
        EXPECT_TRUE(mutex.held());
        mutex.unlock();
        EXPECT_FALSE(mutex.held());
        EXPECT_EQ(client().count("remove"), 2u);
    });
}

TEST_F(MutexTest, GrantsOutliveMutexAndSession) {
    connect();
    Grant grant;
    served([&] {
        ExclusiveMutex mutex(*session, "/l");
        grant = mutex.acquire();
    });
    EXPECT_TRUE(grant.held());
    core.reset();
    runtime->while_running([this] { session.reset(); });
    runtime->run();
    EXPECT_FALSE(grant.held());
    EXPECT_TRUE(grant.lost().stop_requested());
    EXPECT_NE(grant.token(), 0);
    runtime->while_running([&] { grant.release(); });  // the last that uses the session: its threads end here
    EXPECT_TRUE(runtime->stopped());
}

TEST_F(MutexTest, AStopRequestedBeforeSendsNothing) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    std::stop_source stop;
    stop.request_stop();
    served([&] {
        EXPECT_FALSE(mutex.try_acquire_until(Deadline::never(), stop.get_token()));
        EXPECT_FALSE(mutex.try_lock_until(Deadline::passed(), stop.get_token()));
    });
    EXPECT_TRUE(client().sent.empty());
    served([&] { EXPECT_TRUE(mutex.acquire().held()); });  // H39: the next attempt is not affected
}

TEST_F(MutexTest, WithoutAServerATryAnswersAtOnceAndAWaitAtItsDeadline) {
    open();
    session.emplace(SessionAccess::make(core));
    ExclusiveMutex mutex(*session, "/l");
    bool tried = true;
    boost::fibers::fiber(boost::fibers::launch::dispatch, [&] { tried = mutex.try_lock(); }).join();
    EXPECT_FALSE(tried);
    const auto start = now();
    bool ended = false;
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch, [&] {
        EXPECT_FALSE(mutex.try_acquire_until(Deadline(runtime->steady_now() + std::chrono::seconds(5))));
        ended = true;
    });
    runtime->advance(std::chrono::milliseconds(4999));
    boost::this_fiber::yield();
    EXPECT_FALSE(ended);
    runtime->advance(std::chrono::milliseconds(2));
    waiting.join();
    EXPECT_TRUE(ended);
    EXPECT_LT(now() - start, std::chrono::seconds(6));
}

TEST_F(MutexTest, AnAsynchronousAcquireAnswersOnceOnTheNotifier) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    int answers = 0;
    Grant grant;
    runtime->hold_lane(Lane::notifier, true);
    mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
        ++answers;
        EXPECT_EQ(result.error, nullptr);
        grant = std::move(result.value);
        throw std::runtime_error("what a callback throws is logged");
    });
    serve();
    EXPECT_EQ(answers, 0);
    runtime->hold_lane(Lane::notifier, false);
    serve();
    EXPECT_EQ(answers, 1);
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(mutex.held_by_caller());  // nobody's
    grant.release();
    serve();
    EXPECT_EQ(nodes, 0);
}

TEST_F(MutexTest, AnAsynchronousGrantThatNobodyTakesIsReleased) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    mutex.acquire_async(Deadline::never(), {}, [](AcquireResult) {});
    serve();
    EXPECT_EQ(client().count("remove"), 1u);
    EXPECT_EQ(nodes, 0);
}

TEST_F(MutexTest, AnAsynchronousAcquireIsStopped) {
    connect();
    std::stop_source stop;
    int answers = 0;
    {
        ExclusiveMutex mutex(*session, "/l");
        mutex.acquire_async(Deadline::never(), stop.get_token(), [&](AcquireResult result) {
            ++answers;
            EXPECT_FALSE(result.value);
            EXPECT_EQ(result.error, nullptr);
        });
    }  // the object may go; the call lives on
    stop.request_stop();
    runtime->run();
    EXPECT_EQ(answers, 1);
    serve();  // the create is answered: its node goes to the reaper
    EXPECT_EQ(client().count("remove"), 1u);
    EXPECT_EQ(nodes, 0);
}

TEST_F(MutexTest, TheRoomOfANodeThatWasRefusedComesBack) {
    connect();
    ExclusiveMutex mutex(*session, "/" + std::string(30'000, 'x'));
    for (int i = 0; i < 40; ++i) {  // more than a megabyte in all
        AcquireResult result;
        mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
        runtime->run();
        Reply refusal;
        refusal.rc = Rc::no_auth;
        while (!client().open.empty()) client().take().answer(refusal);
        runtime->run();
        ASSERT_TRUE(result.error);
        EXPECT_EQ(code_of([&] { std::rethrow_exception(result.error); }), Errc::no_permission);
    }
}

TEST_F(MutexTest, OnAClosedSessionEveryCallFailsAtOnce) {  // H40
    connect();
    ExclusiveMutex mutex(*session, "/l");
    runtime->while_running([&] { session->close(); });
    const auto requests = client().sent.size();
    EXPECT_EQ(code_of([&] { (void)mutex.acquire(); }), Errc::closed);
    EXPECT_EQ(code_of([&] { (void)mutex.try_lock(); }), Errc::closed);
    EXPECT_EQ(code_of([&] { mutex.lock(); }), Errc::closed);
    EXPECT_EQ(code_of([&] { mutex.participants(); }), Errc::closed);
    EXPECT_EQ(code_of([&] { inspect_lock(*session, "/l", Deadline::never()); }), Errc::closed);
    EXPECT_EQ(client().sent.size(), requests);
    EXPECT_EQ(code_of([&] { mutex.acquire_async(Deadline::never(), {}, [](AcquireResult) {}); }), Errc::closed);
}

TEST_F(MutexTest, DurationsOfAnyKindAreTaken) {
    connect();
    ExclusiveMutex mutex(*session, "/l");
    served([&] {
        EXPECT_TRUE(mutex.try_lock_for(std::chrono::duration<double>::max()));
        EXPECT_TRUE(mutex.try_lock_for(std::chrono::hours::max()));
        EXPECT_TRUE(mutex.try_lock_for(std::chrono::hours::min()));
        EXPECT_TRUE(mutex.try_lock_for(std::chrono::duration<float>(std::numeric_limits<float>::quiet_NaN())));
        EXPECT_TRUE(mutex.try_lock_until(std::chrono::system_clock::time_point::max()));
        EXPECT_TRUE(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
        for (int i = 0; i < 6; ++i) mutex.unlock();
    });
}

}  // namespace
}  // namespace zkrecipes::testing
