// Leases of one semaphore, held and waited for by C++ and Curator 5.4. (kazoo's semaphore has other nodes.)
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/session.hpp>

#include "interop/interop_test.hpp"
#include "server/exclusive_mutex_support.hpp"
#include "support/whole.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr const char* kMutex = "semaphore_mutex";
constexpr const char* kTwo = "semaphore2";

class SemaphoreInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS(Who::curator);
    }
    std::size_t count(const char* directory) {
        return observer().children(lock_path() + directory).value_or(std::vector<std::string>()).size();
    }
    /// Whoever waits has come as far as it can: at the head of the queue Curator has made its lease already.
    bool await_waiting() {
        return await([&] { return count("/locks") == 1; });
    }
    bool await_free() {
        return await([&] { return count("/locks") + count("/leases") == 0; });
    }
};

class SemaphorePairTest : public SemaphoreInteropTest, public ::testing::WithParamInterface<std::pair<Who, Who>> {};

TEST_P(SemaphorePairTest, WhoeverHoldsTheMutexTheOtherWaits) {
    const auto holder = client(GetParam().first), waiter = client(GetParam().second);
    ASSERT_TRUE(holder->acquire(kMutex, lock_path()).yes());
    EXPECT_FALSE(waiter->acquire(kMutex, lock_path(), 50ms).yes());
    const Answer acquire = waiter->acquire(kMutex, lock_path());
    ASSERT_TRUE(await_waiting());
    EXPECT_FALSE(acquire.done());
    holder->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(acquire.yes());
    EXPECT_FALSE(holder->acquire(kMutex, lock_path(), 50ms).yes());
    waiter->release(kMutex, lock_path()).fields();
    EXPECT_TRUE(await_free());
}

TEST_P(SemaphorePairTest, TwoLeasesAreHeldByTwoOfWhateverKindAndNotByThree) {
    const auto a = client(GetParam().first), b = client(GetParam().second), c = client(GetParam().first),
               d = client(GetParam().second);
    ASSERT_TRUE(a->acquire(kTwo, lock_path()).yes());
    ASSERT_TRUE(b->acquire(kTwo, lock_path()).yes());
    EXPECT_EQ(count("/leases"), 2u);
    const auto says = [](Who who) -> ::testing::Matcher<std::string> {
        if (who == Who::cpp) return HasSubstr("\"id\":\"a C++ client\"");
        return AllOf(Not(""), Not(HasSubstr("client")));  // the address of its host
    };
    for (const auto* reader : {&a, &b}) {
        EXPECT_THAT((*reader)->participants(kTwo, lock_path()).fields(),
                    UnorderedElementsAre(says(GetParam().first), says(GetParam().second)));
    }
    EXPECT_FALSE(c->acquire(kTwo, lock_path(), 50ms).yes());
    EXPECT_FALSE(d->acquire(kTwo, lock_path(), 50ms).yes());
    // Who gave up deletes its place afterwards. Until that is gone, it may be taken for that of the third one.
    ASSERT_TRUE(await([&] { return count("/locks") == 0; }));
    const Answer third = c->acquire(kTwo, lock_path());
    ASSERT_TRUE(await_waiting());
    const Answer fourth = d->acquire(kTwo, lock_path());
    ASSERT_TRUE(await([&] { return count("/locks") == 2; }));
    b->release(kTwo, lock_path()).fields();  // the younger one
    EXPECT_TRUE(third.yes());
    EXPECT_FALSE(fourth.done());
    a->release(kTwo, lock_path()).fields();
    EXPECT_TRUE(fourth.yes());
    c->release(kTwo, lock_path()).fields();
    d->release(kTwo, lock_path()).fields();
    EXPECT_TRUE(await_free());
}

INSTANTIATE_TEST_SUITE_P(Interop, SemaphorePairTest,
                         ::testing::Values(std::pair(Who::cpp, Who::curator), std::pair(Who::curator, Who::cpp)),
                         [](const auto& pair) {
                             return std::string(to_string(pair.param.first)) + "And" + to_string(pair.param.second);
                         });

TEST_F(SemaphoreInteropTest, AMixedCrowdLosesNoUpdate) {
    const int rounds = share_of(170, 15);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 8; ++i) clients.push_back(client(Who::cpp));
    for (int i = 0; i < 4; ++i) clients.push_back(client(Who::curator));
    const auto file = counter_file();
    std::vector<Answer> counts;
    for (const auto& each : clients) counts.push_back(each->count(kMutex, lock_path(), rounds, file));
    for (const auto& count : counts) EXPECT_TRUE(count.fields().empty());
    EXPECT_EQ(counted(), rounds * 12);
    EXPECT_TRUE(await_free());
}

TEST_F(SemaphoreInteropTest, SeveralLeasesAtOnceCountOnBothSides) {
    auto s = connected_session(connect_string());
    Semaphore ours(s, lock_path(), 2);
    const auto curator = client(Who::curator), other = client(Who::curator);
    const auto acquire_two = [&](Client& client, std::chrono::milliseconds wait) {
        return client.ask({"acquire_many", kTwo, lock_path(), std::to_string(wait.count()), "2"});
    };
    Grant two = ours.acquire(2);
    EXPECT_FALSE(curator->acquire(kTwo, lock_path(), 50ms).yes());
    const Answer one = curator->acquire(kTwo, lock_path());
    ASSERT_TRUE(await_waiting());
    EXPECT_FALSE(one.done());
    two.release();
    EXPECT_TRUE(one.yes());
    // One is free: too few for two, on either side, and what was taken of them is given back.
    EXPECT_FALSE(ours.try_acquire(2));
    EXPECT_FALSE(acquire_two(*other, 50ms).yes());
    EXPECT_TRUE(await([&] { return count("/leases") == 1; }));
    EXPECT_TRUE(ours.try_acquire(1));
    curator->release(kTwo, lock_path()).fields();
    ASSERT_TRUE(await_free());
    ASSERT_TRUE(acquire_two(*other, kMaxWait).yes());
    EXPECT_FALSE(ours.try_acquire(1));
    Acquiring waiting([&] { return ours.try_acquire_until(2, kMaxWait); });
    ASSERT_TRUE(await_waiting());
    other->release(kTwo, lock_path()).fields();
    ASSERT_TRUE(await([&] { return count("/leases") == 1; }));
    EXPECT_FALSE(waiting.done());
    other->release(kTwo, lock_path()).fields();
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(SemaphoreInteropTest, APeerKilledWhileItHoldsAndWaitsMakesRoom) {
    PeerProcess peer(PeerLanguage::curator);
    const auto holds = peer.client(connect_string(), 6s), waits = peer.client(connect_string(), 6s);
    const auto ours = client(Who::cpp), after = client(Who::cpp);
    ASSERT_TRUE(holds->acquire(kTwo, lock_path()).yes());
    ASSERT_TRUE(ours->acquire(kTwo, lock_path()).yes());
    const Answer never = waits->acquire(kTwo, lock_path());
    // It is at the head, and has made its lease before there is one.
    ASSERT_TRUE(await([&] { return count("/leases") == 3; }));
    const Answer acquire = after->acquire(kTwo, lock_path());
    ASSERT_TRUE(await([&] { return count("/locks") == 2; }));
    EXPECT_FALSE(acquire.done());
    peer.kill();
    EXPECT_TRUE(acquire.yes());
    EXPECT_THROW(never.fields(), std::runtime_error);
    EXPECT_EQ(count("/leases"), 2u);
    ours->release(kTwo, lock_path()).fields();
    after->release(kTwo, lock_path()).fields();
    EXPECT_TRUE(await_free());
}

}  // namespace
}  // namespace zkrecipes::test
