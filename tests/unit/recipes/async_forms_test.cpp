// Every call that blocks has an asynchronous form, which asks the same and answers the same.
#include "unit/recipes/async_forms.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(AsyncFormsTest, AskTheSameAndAnswerTheSame) {
    connect();
    for (const auto& form : forms()) {
        SCOPED_TRACE(form.name);
        serve();  // what the objects of the last one leave
        plant();
        std::string expected;
        {
            World world(*session);
            expected = blocking(form, world, Deadline::never());
        }
        const auto asked_before = asked_since();
        EXPECT_NE(asked_before.size(), 0u);
        serve();
        plant();
        World world(*session);
        Told told;
        form.async(world, Deadline::never(), {}, told);
        EXPECT_EQ(told.times, 0) << "on the caller's thread";
        serve();
        EXPECT_EQ(told.times, 1);
        EXPECT_EQ(told.what, expected);
        EXPECT_THAT(asked_since(), ::testing::ElementsAreArray(asked_before));
    }
}

TEST_F(AsyncFormsTest, OneAttemptAfterTheDeadline) {
    connect();
    for (const auto& form : forms()) {
        SCOPED_TRACE(form.name);
        serve();  // what the objects of the last one leave
        plant();
        std::string expected;
        {
            World world(*session);
            expected = blocking(form, world, Deadline::passed());
        }
        serve();
        plant();
        World world(*session);
        Told told;
        form.async(world, Deadline::passed(), {}, told);
        serve();
        EXPECT_EQ(told.times, 1);
        EXPECT_EQ(told.what, expected);
    }
}

/// Not connected: nothing is ever sent.
TEST_F(AsyncFormsTest, EndAtTheDeadlineAndByAStop) {
    connect();
    client().disconnect();
    runtime->run();
    const std::string unreachable = "Error " + std::to_string(static_cast<int>(Errc::unreachable));
    for (const auto& form : forms()) {
        SCOPED_TRACE(form.name);
        World world(*session);
        const bool nothing =
            form.name.starts_with("counter_c") || form.name.starts_with("counter_e") || form.name == "subtract";
        const std::string expected = form.unreachable ? unreachable : nothing ? "nothing" : "false";
        Told late;
        form.async(world, in(1s), {}, late);
        Told stopped;
        std::stop_source stop;
        form.async(world, Deadline::never(), stop.get_token(), stopped);
        std::stop_source before;
        before.request_stop();
        Told stopped_before;
        form.async(world, Deadline::never(), before.get_token(), stopped_before);
        runtime->run();
        EXPECT_EQ(late.times + stopped.times, 0);
        EXPECT_EQ(stopped_before.what, expected);
        stop.request_stop();
        runtime->run();
        EXPECT_EQ(stopped.times, 1);
        EXPECT_EQ(stopped.what, expected);
        runtime->advance(1100ms);
        EXPECT_EQ(late.times, 1);
        EXPECT_EQ(late.what, expected);
    }
    EXPECT_EQ(leftovers(), "");
}

TEST_F(AsyncFormsTest, EndWithTheSession) {
    connect();
    client().disconnect();
    runtime->run();
    const auto all = forms();
    World world(*session);
    std::vector<Told> told(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].async(world, Deadline::never(), {}, told[i]);
    runtime->while_running([this] { session->close(); });
    runtime->run();
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(told[i].times, 1) << all[i].name;
        EXPECT_EQ(told[i].what, "Error " + std::to_string(static_cast<int>(Errc::closed))) << all[i].name;
        Told never;
        EXPECT_EQ(code_of([&] { all[i].async(world, Deadline::never(), {}, never); }), Errc::closed) << all[i].name;
        EXPECT_EQ(never.times, 0) << all[i].name;
    }
}

TEST_F(AsyncFormsTest, RefuseAnEmptyCallback) {
    connect();
    plant();
    World w(*session);
    const auto refused = [&](auto call) { return code_of(call) == Errc::bad_option; };
    EXPECT_TRUE(refused([&] { w.mutex.participants_async(1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { w.value.get_async(1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { w.count.get_async(1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { w.counter.exchange_async(1, 1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { w.counter.force_set_async(1, 1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { session->wait_connected_async(1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { Grant().release_and_wait_async(1s, {}, nullptr); }));
    PersistentNode node(*session, "/node");
    EXPECT_TRUE(refused([&] { node.wait_present_async(1s, {}, nullptr); }));
    EXPECT_TRUE(refused([&] { node.close_and_wait_async(1s, {}, nullptr); }));
    EXPECT_NE(node.state(), PersistentNodeState::closed) << "it was not closed either";
    serve();
}

/// The connection breaks between the steps of one call.
TEST_F(AsyncFormsTest, GoOnAfterALostAnswer) {
    connect();
    for (int lost = 1; lost <= 12; ++lost) {
        plant();
        lose_answer = lost;
        World world(*session);
        Told told;
        find_locks_async(*session, "/", {}, Deadline::never(), {}, told.taker<FoundLocks>());
        settle();
        EXPECT_EQ(told.times, 1);
        EXPECT_THAT(told.what, HasSubstr("/semaphore semaphore of 2 [/semaphore/leases/"));
        EXPECT_THAT(told.what, HasSubstr("[/lock [/lock/"));
    }
}

}  // namespace
}  // namespace zkrecipes::testing
