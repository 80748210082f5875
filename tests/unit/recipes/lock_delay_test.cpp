// ExclusiveMutex with delay_after_loss on scripted handles: how what comes behind the queue ends.
#include <zkrecipes/exclusive_mutex.hpp>

#include <optional>

#include "unit/recipes/served_fixture.hpp"

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

class ServedDelayTest : public ServedTest {
protected:
    ServedDelayTest() {
        connect();
        put("/l");
        LockOptions with_delay;
        with_delay.delay_after_loss = std::chrono::seconds(10);
        mutex.emplace(*session, "/l", with_delay);
    }
    ~ServedDelayTest() override { mutex.reset(); }
    void ask(std::stop_token stop = {}) {
        mutex->acquire_async(Deadline::never(), std::move(stop),
                             [this](AcquireResult result) { answers.push_back(std::move(result.value)); });
        serve();
    }
    static std::string word(std::int64_t token, bool held) {
        return R"({"v":1,"token":)" + std::to_string(token) + R"(,"held":)" + (held ? "1}" : "0}");
    }

    std::optional<ExclusiveMutex> mutex;
    std::vector<Grant> answers;
};

TEST_F(ServedDelayTest, AReleaseLeavesTheWordThatNobodyHasToWait) {
    for (int i = 0; i < 2; ++i) {
        ask();
        ASSERT_EQ(answers.size(), 1u);
        ASSERT_TRUE(answers.front().held());
        const auto token = answers.front().token();
        EXPECT_EQ(nodes["/l"].data, word(token, true));
        answers.clear();
        serve();
        EXPECT_EQ(nodes["/l"].data, word(token, false));
        EXPECT_TRUE(children("/l").empty());
    }
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedDelayTest, WhoGivesUpInTheDelayLeavesTheWordOfTheOneThatVanished) {
    nodes["/l"].data = word(5, true);
    std::stop_source stop;
    ask(stop.get_token());
    EXPECT_TRUE(answers.empty());
    ASSERT_EQ(children("/l").size(), 1u);
    stop.request_stop();
    serve();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_FALSE(answers.front());
    EXPECT_TRUE(children("/l").empty());
    EXPECT_EQ(nodes["/l"].data, word(5, true)) << "the next one has to wait";
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedDelayTest, WhoGivesUpWhileItIsWrittenDownLeavesTheWordOfARelease) {
    std::stop_source stop;
    before_answer = [&](const std::string& what) {
        if (what.starts_with("multi ")) stop.request_stop();
    };
    ask(stop.get_token());
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_FALSE(answers.front());
    EXPECT_TRUE(children("/l").empty());
    EXPECT_THAT(nodes["/l"].data, ::testing::HasSubstr(R"("held":0)"));
    EXPECT_EQ(nodes["/l"].version, 2) << "the one that held, and that does not hold any more";
    EXPECT_EQ(leftovers(), "");
}

TEST_F(ServedDelayTest, AStopInTheQueueTakesTheNodeAway) {
    const std::string other = "/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000000";
    put(other, "", 0x999);
    nodes["/l"].next_number = 1;
    std::stop_source stop;
    ask(stop.get_token());
    ASSERT_EQ(children("/l").size(), 2u);
    stop.request_stop();
    serve();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers.front().missed(), Missed::stopped);
    EXPECT_EQ(children("/l").size(), 1u);
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
