// Calls that give up faster than the servers answer: what they leave behind does not pile up, and nobody fails for it.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include <exception>

#include "session/common/given_up.hpp"
#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

using AcquireAsync = std::function<void(Deadline, std::function<void(AcquireResult)>)>;

template <class Lock, class... More>
AcquireAsync acquire_async_of(Session& session, More... more) {
    const auto lock = std::make_shared<Lock>(session, std::move(more)...);
    return [lock](Deadline by, auto done) { lock->acquire_async(by, {}, std::move(done)); };
}

struct AsyncRecipe {
    const char* name;
    AcquireAsync (*make)(Session&);
};
const AsyncRecipe kAsyncRecipes[] = {
    {"ExclusiveMutex", [](Session& s) { return acquire_async_of<ExclusiveMutex>(s, "/l"); }},
    {"Reader",
     [](Session& s) -> AcquireAsync {
         const auto lock = std::make_shared<ReadWriteLock>(s, "/l");
         return [lock](Deadline by, auto done) { lock->acquire_shared_async(by, {}, std::move(done)); };
     }},
    {"SemaphoreMutex", [](Session& s) { return acquire_async_of<SemaphoreMutex>(s, "/l"); }},
    {"Semaphore", [](Session& s) { return acquire_async_of<Semaphore>(s, "/l", 1); }},
    {"MultiLock",
     [](Session& s) {
         return acquire_async_of<MultiLock>(s, std::vector<MultiLock::Member>{"/l", "/m"});
     }},
    {"LeaderElection", [](Session& s) -> AcquireAsync {
         const auto election = std::make_shared<LeaderElection>(s, "/l");
         return [election](Deadline by, auto done) { election->campaign_async(by, {}, std::move(done)); };
     }}};

class GivenUpTest : public ServedTest, public ::testing::WithParamInterface<AsyncRecipe> {
protected:
    GivenUpTest() {
        connect();
        acquire = GetParam().make(*session);
        acquire(in(60s), [](const AcquireResult& result) { EXPECT_TRUE(result.value); });
        serve();  // now the directories are there
        asked.clear();
        client().sent.clear();
    }
    /// Calls of 50 ms, one after the other, that nobody answers.
    void give_up(std::size_t calls) {
        const auto before = given_up;
        for (std::size_t i = 0; i < calls; ++i) {
            acquire(Deadline(runtime->steady_now() + 50ms), [this](const AcquireResult& result) {
                EXPECT_FALSE(result.error);
                EXPECT_EQ(result.value.missed(), Missed::unreachable);
                ++given_up;
            });
            runtime->advance(50ms);
        }
        EXPECT_EQ(given_up - before, calls);
    }
    /// As serve(), but nobody may delete a node.
    void serve_but_refuse_deletions() {
        for (;;) {
            runtime->run();
            if (client().open.empty()) return;
            const Request request = client().take();
            const bool deletes =
                request.op == "remove" || (!request.ops.empty() && request.ops.front().kind == MultiOp::Kind::remove);
            if (!deletes) {
                answer(request);
                continue;
            }
            Reply refused;
            refused.rc = Rc::no_auth;
            refused.results.resize(request.ops.size());
            for (auto& result : refused.results) result.rc = Rc::no_auth;
            request.answer(refused);
        }
    }
    std::size_t creates() { return client().count("create") + client().count("multi"); }
    void wait_for_a_grant() {
        acquire(in(60s), [this](const AcquireResult& result) { granted = bool(result.value); });
        runtime->run();
    }

    AcquireAsync acquire;
    std::size_t given_up = 0;
    bool granted = false;
};

TEST_P(GivenUpTest, SoManyNodesAreMadeAndNoMoreUntilTheServersAnswer) {
    give_up(3 * GivenUp::kMany);
    EXPECT_EQ(creates(), GivenUp::kMany);
    wait_for_a_grant();
    EXPECT_EQ(creates(), GivenUp::kMany);
    serve();
    EXPECT_TRUE(granted);
    EXPECT_EQ(leftovers(), "");
    give_up(1);  // as if nothing had been
    EXPECT_EQ(leftovers(), "");
}

TEST_P(GivenUpTest, ABreakOrTheEndOfTheSessionDoesNotLeaveTheOthersWaiting) {
    for (const bool ends : {false, true}) {
        granted = false;
        give_up(GivenUp::kMany);
        wait_for_a_grant();
        ends ? next_session() : break_connection();
        settle();
        EXPECT_TRUE(granted);
        EXPECT_EQ(leftovers(), "");
    }
}

TEST_P(GivenUpTest, WhatMayNotBeDeletedKeepsNobodyWaiting) {
    ends_in_the_middle = true;
    Grant held;
    acquire(in(60s), [&held](AcquireResult result) { held = std::move(result.value); });
    serve();
    for (std::size_t i = 0; i < 2 * GivenUp::kMany; ++i) {
        acquire(Deadline(runtime->steady_now() + 50ms),
                [](const AcquireResult& result) { EXPECT_FALSE(result.error); });
        serve_but_refuse_deletions();
        runtime->advance(50ms);
        serve_but_refuse_deletions();
    }
    EXPECT_GE(creates(), 2 * GivenUp::kMany);
    ExclusiveMutex good(*session, "/good");
    good.acquire_async(in(60s), {}, [this](const AcquireResult& result) { granted = bool(result.value); });
    serve_but_refuse_deletions();
    EXPECT_TRUE(granted);
}

TEST_P(GivenUpTest, ACloseEndsTheWait) {
    give_up(GivenUp::kMany);
    std::optional<Errc> ended;
    acquire(in(60s), [&](const AcquireResult& result) {
        try {
            if (result.error) std::rethrow_exception(result.error);
        } catch (const Error& error) {
            ended = error.errc();
        }
    });
    runtime->run();
    runtime->while_running([this] { session->close(); });
    runtime->run();
    EXPECT_EQ(ended, Errc::closed);
}

INSTANTIATE_TEST_SUITE_P(EachRecipe, GivenUpTest, ::testing::ValuesIn(kAsyncRecipes),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace zkrecipes::testing
