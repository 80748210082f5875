// ReadWriteLock on scripted handles: what needs no server.
#include <zkrecipes/read_write_lock.hpp>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::HasSubstr;

class ReadWriteLockUnitTest : public SessionTest {
protected:
    std::optional<AcquireResult> result;  // a failed test may leave a call behind that still tells

    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~ReadWriteLockUnitTest() override {
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
    /// Answers the oldest open request.
    void answer(const std::string& op, Reply reply) {
        runtime->run();
        auto request = client().take(op);
        ASSERT_TRUE(request.answer) << op;
        request.answer(reply);
        runtime->run();
    }
    void answer_create(const std::string& name, std::int64_t czxid) {
        Reply reply;
        reply.text = "/l/" + name;
        reply.stat.ephemeral_owner = kFirstSession;
        reply.stat.czxid = czxid;
        answer("create", reply);
    }
    std::string own_prefix() {
        runtime->run();
        const auto& path = client().open.front().path;
        return path.substr(path.rfind('/') + 1);
    }
    void answer_children(std::vector<std::string> names) {
        Reply reply;
        reply.names = std::move(names);
        answer("children", reply);
    }
    void answer_parent(int children, std::int64_t pzxid) {
        Reply reply;
        reply.stat.num_children = children;
        reply.stat.pzxid = pzxid;
        answer("exists", reply);
    }

    std::optional<Session> session;
};

TEST_F(ReadWriteLockUnitTest, WhatCannotWorkIsRefusedWithoutARequest) {
    connect();
    const auto bad = error_of([&] { ReadWriteLock(*session, "relative"); });
    EXPECT_EQ(bad.errc(), Errc::bad_path);
    EXPECT_THAT(bad.what(), HasSubstr("ReadWriteLock"));
    LockOptions acl;
    acl.acl.emplace();
    EXPECT_EQ(error_of([&] { ReadWriteLock(*session, "/l", acl); }).errc(), Errc::bad_option);
    ReadWriteLock lock(*session, "/l");
    EXPECT_EQ(error_of([&] { lock.acquire_async(Deadline::never(), {}, nullptr); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { lock.acquire_shared_async(Deadline::never(), {}, nullptr); }).errc(), Errc::bad_option);
    EXPECT_TRUE(client().sent.empty());
    EXPECT_EQ(lock.token(), 0);
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_DEBUG_DEATH(lock.unlock(), "");
    EXPECT_DEBUG_DEATH(lock.unlock_shared(), "");
}

TEST_F(ReadWriteLockUnitTest, AShareOfWhoeverHoldsAloneIsMadeBesideItsOwnNodeAndNoWriterComesBetween) {  // H45
    connect();
    ReadWriteLock lock(*session, "/l");
    Grant alone, share;
    runtime->while_running([&] {
        boost::fibers::fiber servers([&] {
            const auto me = own_prefix() + "0000000007";
            answer_create(me, 20);
            answer_parent(1, 20);
        });
        alone = lock.acquire();
        servers.join();
        boost::fibers::fiber more([&] {
            runtime->run();
            const auto made = client().take("multi");
            EXPECT_EQ(made.ops.size(), 2u);
            EXPECT_EQ(made.ops.front().kind, MultiOp::Kind::check);
            EXPECT_EQ(made.ops.front().path, alone.node()) << "only while the writer's node is there";
            EXPECT_THAT(made.ops.back().path, HasSubstr("-__READ__0000000007"));
            Reply reply;
            reply.results.resize(made.ops.size());
            made.answer(reply);
            Reply own;
            own.stat.ephemeral_owner = kFirstSession;
            own.stat.czxid = 25;
            answer("exists", own);
        });
        const auto timers = runtime->timers();
        share = lock.downgrade(alone, Deadline(runtime->steady_now() + std::chrono::hours(1)));
        more.join();
        EXPECT_EQ(runtime->timers(), timers) << "the timer of the deadline is left";
        EXPECT_TRUE(share.held());
        EXPECT_EQ(share.token(), 21) << "after the writer, and before any writer that may wait already";
    });
}

TEST_F(ReadWriteLockUnitTest, AShareBesideTheOwnExclusiveHoldIsGivenUpAtItsDeadlineAndLeavesNothing) {
    connect();
    ReadWriteLock lock(*session, "/l");
    Grant alone, share;
    std::stop_source stop;
    bool ended = false;
    boost::fibers::fiber caller(boost::fibers::launch::dispatch, [&] {
        alone = lock.acquire();
        share = lock.downgrade(alone, Deadline(runtime->steady_now() + std::chrono::seconds(1)), stop.get_token());
        ended = true;
    });
    answer_create(own_prefix() + "0000000007", 20);
    answer_parent(1, 20);
    boost::this_fiber::yield();
    runtime->run();
    const auto made = client().take("multi");
    ASSERT_EQ(made.ops.size(), 2u);
    EXPECT_EQ(made.ops.back().kind, MultiOp::Kind::create);
    runtime->advance(std::chrono::seconds(1));  // the servers do not answer the transaction
    boost::this_fiber::yield();
    EXPECT_TRUE(ended);
    stop.request_stop();
    runtime->run();
    caller.join();
    EXPECT_FALSE(share.held());
    EXPECT_TRUE(alone.held());
    EXPECT_EQ(client().count("remove"), 0u) << "whether there is a node, only the answer can tell";
    Reply late;
    late.results.resize(2);
    made.answer(late);
    runtime->run();
    EXPECT_EQ(client().take("remove").path, made.ops.back().path);
}

TEST_F(ReadWriteLockUnitTest, WhoeverHoldsAShareAndWantsItAloneIsRefusedWithoutARequest) {  // H44
    connect();
    ReadWriteLock lock(*session, "/l");
    runtime->while_running([&] {
        boost::fibers::fiber servers([&] {
            const auto me = own_prefix() + "0000000007";
            answer_create(me, 20);
            answer_parent(1, 20);
        });
        lock.lock_shared();
        servers.join();
        const auto requests = client().sent.size();
        const auto refusal =
            error_of([&] { (void)lock.try_lock_until(Deadline(runtime->steady_now() + std::chrono::seconds(1))); });
        EXPECT_EQ(refusal.errc(), Errc::would_deadlock);
        EXPECT_EQ(client().sent.size(), requests);
        lock.unlock_shared();
    });
}

TEST_F(ReadWriteLockUnitTest, AWriterLooksAgainWhenTheOneBeforeItIsGoneAndAReaderBehindOneWriterDoesNot) {
    connect();
    ReadWriteLock lock(*session, "/l");
    for (const bool shared : {false, true}) {
        result.reset();
        const auto done = [&](AcquireResult r) { result = std::move(r); };
        if (shared) {
            lock.acquire_shared_async(Deadline::never(), {}, done);
        } else {
            lock.acquire_async(Deadline::never(), {}, done);
        }
        const auto me = own_prefix() + "0000000007";
        EXPECT_THAT(me, HasSubstr(shared ? "-__READ__" : "-__WRIT__"));
        answer_create(me, 20);
        answer_parent(2, 20);
        const std::string peer = "_c_00000000-0000-4000-8000-000000000001-__WRIT__0000000006";
        answer_children({peer, me});
        answer("get", Reply{});
        const auto lists = client().count("children");
        client().fire(WatchEventType::deleted, "/l/" + peer);
        runtime->run();
        EXPECT_EQ(client().count("children"), lists + (shared ? 0 : 1));
        Reply checked;
        checked.results.resize(1);
        answer("multi", checked);
        if (!shared) {
            // The peer has kept a share under its own number.
            answer_children({"_c_00000000-0000-4000-8000-000000000002-__READ__0000000006", me});
            EXPECT_FALSE(result);
            EXPECT_EQ(client().open.front().op, "get");
            answer("get", Reply{});
            client().fire(WatchEventType::deleted, "/l/_c_00000000-0000-4000-8000-000000000002-__READ__0000000006");
            runtime->run();
            answer("multi", checked);
            answer_children({me});
        }
        ASSERT_TRUE(result) << shared;
        EXPECT_TRUE(result->value.held());
        EXPECT_EQ(result->value.token(), 20);
        result->value.release();
        answer("remove", Reply{});
    }
}

}  // namespace
}  // namespace zkrecipes::testing
