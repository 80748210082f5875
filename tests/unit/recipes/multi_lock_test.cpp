// MultiLock on scripted handles: what needs no server.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/multi_lock.hpp>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using As = MultiLock::As;
using Members = std::vector<MultiLock::Member>;

class MultiLockUnitTest : public SessionTest {
protected:
    std::optional<AcquireResult> result;  // a failed test may leave a call behind that still tells

    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~MultiLockUnitTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    template <class Call>
    static Error error_of(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error;
        }
        return Error(Errc::protocol, "nothing was thrown", "");
    }
    Error refused(Members members, LockOptions lock_options = {}) {
        return error_of([&] { MultiLock(*session, std::move(members), std::move(lock_options)); });
    }
    /// Answers the oldest open request of this kind.
    Request answer(const std::string& op, const Reply& reply) {
        runtime->run();
        auto request = client().take(op);
        EXPECT_TRUE(request.answer) << op;
        if (request.answer) request.answer(reply);
        runtime->run();
        return request;
    }
    /// Lets an acquire of these many free members succeed.
    void grant_all(std::size_t members, std::int64_t czxid, const std::string& number = "0000000000") {
        answer_create(members, true, czxid, number);
    }
    /// One whose transaction makes no marker.
    void grant_unmarked(std::size_t members, std::int64_t czxid) {
        answer_create(members, false, czxid, "0000000000");
        Reply own;
        own.stat.czxid = czxid;
        own.stat.ephemeral_owner = kFirstSession;
        answer("exists", own);
    }
    void answer_create(std::size_t members, bool marked, std::int64_t czxid, const std::string& number) {
        runtime->run();
        auto create = client().take("multi");
        ASSERT_EQ(create.ops.size(), members + (marked ? 3 : 0));
        Reply created;
        for (const auto& op : create.ops) created.results.push_back({Rc::ok, op.path + number, {}});
        if (marked) {
            NodeStat& marker = created.results[members + 1].stat;
            marker.czxid = marker.mzxid = czxid;
            marker.ephemeral_owner = kFirstSession;
        }
        create.answer(created);
        Reply parent;
        parent.stat.num_children = 1;
        parent.stat.pzxid = czxid;
        for (std::size_t i = 0; i < members; ++i) answer("exists", parent);
    }

    std::optional<Session> session;
};

TEST_F(MultiLockUnitTest, WhatCannotWorkIsRefusedWithoutARequest) {
    connect();
    EXPECT_EQ(refused({}).errc(), Errc::bad_option);
    EXPECT_THAT(refused({}).what(), HasSubstr("name at least one path"));
    EXPECT_EQ(refused({{"/a"}, {"relative"}}).errc(), Errc::bad_path);
    EXPECT_EQ(refused({{"/a"}, {"relative"}}).path(), "relative");
    EXPECT_EQ(refused({{"/"}}).errc(), Errc::bad_path);
    EXPECT_EQ(refused({{"/zookeeper/x"}}).errc(), Errc::bad_path);
    const auto both = refused({{"/a"}, {"/b"}, {"/a", As::shared}});
    EXPECT_EQ(both.errc(), Errc::bad_option);
    EXPECT_EQ(both.path(), "/a");
    EXPECT_THAT(both.what(), HasSubstr("both as a mutex and as a read-write lock"));
    EXPECT_EQ(refused({{"/a", static_cast<As>(7)}}).errc(), Errc::bad_option);
    LockOptions acl;
    acl.acl.emplace();
    EXPECT_EQ(refused({{"/a"}}, acl).errc(), Errc::bad_option);
    LockOptions kazoo;
    kazoo.dialect = Dialect::kazoo;
    EXPECT_EQ(refused({{"/a"}}, kazoo).errc(), Errc::unsupported);
    Members many;
    for (int i = 0; i < 256; ++i) many.push_back({"/a/" + std::to_string(i)});
    EXPECT_EQ(MultiLock(*session, many).members().size(), 256u);
    many.push_back({"/a/0"});  // one of them again
    EXPECT_EQ(MultiLock(*session, many).members().size(), 256u);
    many.push_back({"/a/256"});
    EXPECT_EQ(refused(many).errc(), Errc::bad_option);
    EXPECT_THAT(refused(many).what(), HasSubstr("more than 256"));
    Members large;
    for (int i = 0; i < 40; ++i) large.push_back({"/" + std::string(25'000, 'x') + std::to_string(i)});
    EXPECT_EQ(refused(large).errc(), Errc::too_large);
    EXPECT_THAT(refused(large).what(), HasSubstr("shorter paths or fewer"));
    MultiLock lock(*session, {{"/a"}});
    EXPECT_EQ(error_of([&] { lock.acquire_async(Deadline::never(), {}, nullptr); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { (void)lock.try_acquire_while_holding(Deadline::never()); }).errc(), Errc::bad_option);
    EXPECT_TRUE(client().sent.empty());
    EXPECT_EQ(lock.token(), 0);
    EXPECT_FALSE(lock.held_by_caller());
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_DEBUG_DEATH(lock.unlock(), "");
}

TEST_F(MultiLockUnitTest, APathThatOccursTwiceCountsOnceAndAloneWins) {  // H43
    connect();
    const MultiLock lock(*session, {{"/b", As::shared}, {"/a"}, {"/b", As::exclusive}, {"/a"}, {"/b", As::shared}});
    ASSERT_EQ(lock.members().size(), 2u);
    EXPECT_EQ(lock.members()[0].path, "/b");
    EXPECT_EQ(lock.members()[0].as, As::exclusive);
    EXPECT_EQ(lock.members()[1].path, "/a");
    EXPECT_EQ(lock.members()[1].as, As::mutex);
}

TEST_F(MultiLockUnitTest, OneTransactionWritesWhatEachRecipeWrites) {
    connect();
    MultiLock lock(*session, {{"/m"}, {"/w", As::exclusive}, {"/r", As::shared}});
    lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
    runtime->run();
    ASSERT_EQ(client().open.size(), 4u);
    EXPECT_EQ(client().open[0].op, "multi");
    const auto& ops = client().open[0].ops;
    ASSERT_EQ(ops.size(), 6u);
    const std::string identity = ops[0].path.substr(3, 40);
    EXPECT_EQ(ops[0].path, "/m/" + identity + "lock-");
    EXPECT_EQ(ops[1].path, "/w/" + identity + "__WRIT__");
    EXPECT_EQ(ops[2].path, "/r/" + identity + "__READ__");
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(ops[i].mode, CreateMode::ephemeral_sequential);
        EXPECT_THAT(ops[i].data, HasSubstr("\"v\":1"));
    }
    // The marker: what is created is deleted.
    for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(ops[i].path, "/m/" + identity + "marker");
    EXPECT_EQ(ops[3].kind, MultiOp::Kind::create);
    EXPECT_EQ(ops[3].mode, CreateMode::ephemeral);
    EXPECT_EQ(ops[4].kind, MultiOp::Kind::set);
    EXPECT_EQ(ops[5].kind, MultiOp::Kind::remove);
    EXPECT_EQ(client().open[3].path, "/r");
    grant_all(3, 33);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->value.held());
    EXPECT_EQ(result->value.token(), 33);
    EXPECT_EQ(result->value.node(), "/m/" + identity + "lock-0000000000");
    result->value.release();
    Reply gone;
    gone.results.resize(3);
    const auto release = answer("multi", gone);
    ASSERT_EQ(release.ops.size(), 3u);
    EXPECT_EQ(release.ops[2].kind, MultiOp::Kind::remove);
    EXPECT_TRUE(client().open.empty());
}

TEST_F(MultiLockUnitTest, AMarkerThatIsRefusedIsLeftOutFromThenOn) {
    connect();
    MultiLock lock(*session, {{"/a"}, {"/b"}});
    for (const bool first : {true, false}) {
        lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
        runtime->run();
        if (first) {
            Reply refusal;
            refusal.rc = Rc::no_auth;
            refusal.results.resize(5);
            refusal.results[3].rc = Rc::no_auth;
            refusal.results[4].rc = Rc::runtime_inconsistency;
            answer("multi", refusal);
            for (int i = 0; i < 2; ++i) answer("exists", {});
        }
        grant_unmarked(2, 33);
        ASSERT_TRUE(result && !result->error);
        EXPECT_EQ(result->value.token(), 33);
        result->value.release();
        Reply gone;
        gone.results.resize(2);
        answer("multi", gone);
    }
}

TEST_F(MultiLockUnitTest, WhenHalfOfTheNumbersAreUsedUpTheMarkerIsLeftOut) {  // H11
    connect();
    MultiLock lock(*session, {{"/a"}, {"/b"}});
    lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
    grant_all(2, 33, "1073741824");
    ASSERT_TRUE(result && result->value.held());
    result->value.release();
    Reply gone;
    gone.results.resize(2);
    answer("multi", gone);
    lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
    grant_unmarked(2, 44);
    EXPECT_EQ(result->value.token(), 44);
}

TEST_F(MultiLockUnitTest, ThatOneMemberIsGoneLosesTheGrant) {
    connect();
    MultiLock lock(*session, {{"/a"}, {"/b"}});
    lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
    grant_all(2, 33);
    ASSERT_TRUE(result);
    runtime->advance(std::chrono::seconds(1));
    Reply refusal;
    refusal.rc = Rc::no_node;
    refusal.results = {{Rc::ok, "", {}}, {Rc::no_node, "", {}}};
    answer("multi", refusal);
    EXPECT_FALSE(result->value.held());
    EXPECT_TRUE(result->value.lost().stop_requested());
    result->value.release();
    runtime->run();
    EXPECT_EQ(client().take("multi").ops.size(), 2u);
}

TEST_F(MultiLockUnitTest, WaitingWhileHoldingASetIsRefusedWithoutARequest) {
    connect();
    MultiLock one(*session, {{"/a"}}), two(*session, {{"/b"}});
    runtime->while_running([&] {
        boost::fibers::fiber servers([&] { grant_all(1, 33); });
        one.lock();
        servers.join();
        const auto requests = client().sent.size();
        const auto refusal =
            error_of([&] { (void)two.try_acquire_until(Deadline(runtime->steady_now() + std::chrono::seconds(1))); });
        EXPECT_EQ(refusal.errc(), Errc::would_deadlock);
        EXPECT_EQ(client().sent.size(), requests);
        one.unlock();
    });
}

TEST_F(MultiLockUnitTest, AGrantHasNoOwnerSoWaitingBesideItIsTheCallersDecision) {
    connect();
    MultiLock one(*session, {{"/a"}}), two(*session, {{"/b"}});
    runtime->while_running([&] {
        boost::fibers::fiber first([&] { grant_all(1, 33); });
        const Grant held = one.acquire();
        first.join();
        boost::fibers::fiber second([&] { grant_all(1, 34); });
        const Grant more = two.acquire();
        second.join();
        EXPECT_TRUE(held.held());
        EXPECT_TRUE(more.held());
    });
}

TEST_F(MultiLockUnitTest, TheRoomOfAllNodesInTheBudgetComesBackWithThem) {
    connect();
    Members large;
    for (int i = 0; i < 20; ++i) large.push_back({"/" + std::string(25'000, 'x') + std::to_string(i)});
    MultiLock lock(*session, large);
    std::vector<AcquireResult> results;
    const auto acquire = [&] {
        lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { results.push_back(std::move(r)); });
        runtime->run();
    };
    acquire();
    grant_all(20, 33);
    acquire();  // twice half a megabyte is too much
    ASSERT_EQ(results.size(), 2u);
    ASSERT_TRUE(results[1].error);
    EXPECT_EQ(error_of([&] { std::rethrow_exception(results[1].error); }).errc(), Errc::budget_exceeded);
    results[0].value.release();
    Reply gone;
    gone.results.resize(20);
    answer("multi", gone);
    acquire();
    grant_all(20, 44);
    ASSERT_EQ(results.size(), 3u);
    EXPECT_TRUE(results[2].value.held());
}

TEST_F(MultiLockUnitTest, TheRoomOfASetThatIsNotGrantedComesBackToo) {
    connect();
    Members large;
    for (int i = 0; i < 20; ++i) large.push_back({"/" + std::string(25'000, 'x') + std::to_string(i)});
    MultiLock lock(*session, large);
    for (int i = 0; i < 3; ++i) {  // twice half a megabyte would be too much
        result.reset();
        lock.acquire_async(Deadline::never(), {}, [&](AcquireResult r) { result = std::move(r); });
        Reply refusal;
        refusal.rc = Rc::no_auth;
        refusal.results.resize(23);
        answer("multi", refusal);
        while (!client().open.empty()) client().take().answer({});
        runtime->run();
        ASSERT_TRUE(result && result->error);
        EXPECT_EQ(error_of([&] { std::rethrow_exception(result->error); }).errc(), Errc::no_permission);
    }
}

TEST_F(MultiLockUnitTest, ASetIsGivenUpAtItsDeadlineAndTheLateAnswerLeavesNothing) {
    connect();
    MultiLock lock(*session, {{"/a"}, {"/b"}});
    lock.acquire_async(Deadline(runtime->steady_now() + std::chrono::seconds(1)), {},
                       [&](AcquireResult r) { result = std::move(r); });
    runtime->advance(std::chrono::milliseconds(999));
    EXPECT_FALSE(result);
    runtime->advance(std::chrono::milliseconds(1));
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->value);
    EXPECT_FALSE(result->error);
    const auto create = client().take("multi");
    Reply created;
    for (const auto& op : create.ops) created.results.push_back({Rc::ok, op.path + "0000000000", {}});
    create.answer(created);
    runtime->run();
    const auto removal = client().take("multi");
    ASSERT_EQ(removal.ops.size(), 2u);
    EXPECT_EQ(removal.ops[0].kind, MultiOp::Kind::remove);
    EXPECT_EQ(removal.ops[1].path, created.results[1].path);
}

TEST_F(MultiLockUnitTest, AGrantLeavesNoTimerOfItsDeadline) {
    connect();
    MultiLock lock(*session, {{"/a"}, {"/b"}});
    const auto timers = runtime->timers();
    lock.acquire_async(Deadline(runtime->steady_now() + std::chrono::hours(1)), {},
                       [&](AcquireResult r) { result = std::move(r); });
    grant_all(2, 33);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->value.held());
    EXPECT_EQ(runtime->timers(), timers);
}

}  // namespace
}  // namespace zkrecipes::testing
