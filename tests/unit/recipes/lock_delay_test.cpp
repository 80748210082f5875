// ExclusiveMutex with delay_after_loss on scripted handles: how what comes behind the queue ends.
#include <zkrecipes/exclusive_mutex.hpp>

#include <optional>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class DelayedMutexTest : public SessionTest {
protected:
    ~DelayedMutexTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    /// Comes first in the queue, where the lock asks who the last holder was.
    void pass_the_queue(Deadline deadline = Deadline::never(), std::stop_token stop = {}) {
        open_connected();
        session.emplace(SessionAccess::make(core));
        timers = runtime->timers();
        LockOptions with_delay;
        with_delay.delay_after_loss = std::chrono::seconds(10);
        ExclusiveMutex mutex(*session, "/l", with_delay);
        mutex.acquire_async(deadline, std::move(stop),
                            [&](AcquireResult result) { results.push_back(std::move(result)); });
        runtime->run();
        const Request create = client().take("create");
        Reply made, parent;
        node = made.text = create.path + "0000000007";
        made.stat.ephemeral_owner = kFirstSession;
        made.stat.czxid = parent.stat.pzxid = 20;
        create.answer(made);
        parent.stat.num_children = 1;
        client().take("exists").answer(parent);
        runtime->run();
        last_holder = client().take("get");
        ASSERT_EQ(last_holder.path, "/l");
    }
    void expect_given_up() {
        runtime->run();
        ASSERT_EQ(results.size(), 1u);
        EXPECT_FALSE(results[0].value);
        EXPECT_FALSE(results[0].error);
        EXPECT_EQ(client().take("remove").path, node);
    }

    std::optional<Session> session;
    std::size_t timers = 0;  // of the session alone
    std::string node;
    Request last_holder;
    std::vector<AcquireResult> results;
};

TEST_F(DelayedMutexTest, AHoldThatIsLostBeforeTheHolderIsWrittenDownIsGivenBackBeforeTheNextTurn) {
    pass_the_queue();
    runtime->advance(std::chrono::seconds(5));  // the servers commit nothing, and the lease passes
    last_holder.answer({});
    runtime->run();
    EXPECT_EQ(client().take("remove").path, node) << "it would wait for its own node, without end";
    EXPECT_NE(client().take("create").path, "");
    EXPECT_TRUE(results.empty());
}

TEST_F(DelayedMutexTest, TheDirectoryStaysSinceTheHolderIsWrittenDownInIt) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    for (const auto& [delay, mode] : {std::pair(std::chrono::seconds(10), CreateMode::persistent),
                                      std::pair(std::chrono::seconds(0), CreateMode::container)}) {
        LockOptions with_delay;
        with_delay.delay_after_loss = delay;
        ExclusiveMutex mutex(*session, "/l", with_delay);
        mutex.acquire_async(Deadline::never(), {}, [](AcquireResult) {});
        runtime->run();
        Reply missing;
        missing.rc = Rc::no_node;
        client().take("create").answer(missing);
        client().take("exists").answer(missing);
        runtime->run();
        const Request directory = client().take("create");
        EXPECT_EQ(directory.path, "/l");
        EXPECT_EQ(directory.mode, mode);
    }
}

TEST_F(DelayedMutexTest, ADeadlineHoldsBehindTheQueueToo) {
    pass_the_queue(Deadline(runtime->steady_now() + std::chrono::seconds(2)));
    runtime->advance(std::chrono::milliseconds(1999));
    EXPECT_TRUE(results.empty());
    runtime->advance(std::chrono::milliseconds(1));
    expect_given_up();
}

TEST_F(DelayedMutexTest, AGrantLeavesNoTimerOfItsDeadline) {
    pass_the_queue(Deadline(runtime->steady_now() + std::chrono::hours(1)));
    last_holder.answer({});  // nobody yet
    runtime->run();
    Reply written;
    written.results.resize(2);
    client().take("multi").answer(written);
    runtime->run();
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].value.held());
    EXPECT_EQ(runtime->timers(), timers);
    results.clear();  // gives it back
    runtime->run();
    while (!client().open.empty()) {
        const Request rest = client().take();
        Reply done;
        done.results.resize(rest.ops.size());
        rest.answer(done);
        runtime->run();
    }
    inside([this] { EXPECT_EQ(core->leftovers(), ""); });
}

TEST_F(DelayedMutexTest, AStopEndsItBehindTheQueueToo) {
    std::stop_source stop;
    pass_the_queue(Deadline::never(), stop.get_token());
    stop.request_stop();
    expect_given_up();
}

TEST_F(DelayedMutexTest, ASessionThatEndsDuringTheDelayEndsTheDelayToo) {
    pass_the_queue();
    Reply vanished;
    vanished.text = R"({"v":1,"token":5,"held":1})";
    last_holder.answer(vanished);
    runtime->run();
    client().expire();
    runtime->run();
    client().connect(kNextSession);
    runtime->advance(std::chrono::seconds(1));
    EXPECT_NE(client().take("create").path, "") << "in the queue of the new session, before the delay is over";
    EXPECT_TRUE(results.empty());
}

TEST_F(DelayedMutexTest, AClosedSessionIsAnErrorDuringTheDelayToo) {
    pass_the_queue();
    Reply vanished;
    vanished.text = R"({"v":1,"token":5,"held":1})";
    last_holder.answer(vanished);
    runtime->while_running([&] { session->close(); });
    ASSERT_EQ(results.size(), 1u);
    ASSERT_TRUE(results[0].error);
    try {
        std::rethrow_exception(results[0].error);
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::closed);
    }
}

}  // namespace
}  // namespace zkrecipes::testing
