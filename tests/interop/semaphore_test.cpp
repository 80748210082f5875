// Leases of one semaphore, held and waited for by C++ and Curator 5.4. (kazoo's semaphore has other nodes.)
#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

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
    EXPECT_EQ(a->participants(kTwo, lock_path()).fields().size(), 2u);
    EXPECT_FALSE(c->acquire(kTwo, lock_path(), 50ms).yes());
    EXPECT_FALSE(d->acquire(kTwo, lock_path(), 50ms).yes());
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

TEST_P(SemaphorePairTest, ACrowdOfBothCountsWithoutLosingOne) {
    const auto a = client(GetParam().first), b = client(GetParam().second), c = client(GetParam().first),
               d = client(GetParam().second);
    const auto file = counter_file();
    std::vector<Answer> answers;
    for (const auto* each : {&a, &b, &c, &d}) answers.push_back((*each)->count(kMutex, lock_path(), 25, file));
    for (const auto& answer : answers) answer.fields();
    EXPECT_EQ(counted(), 100);
    EXPECT_TRUE(await_free());
}

INSTANTIATE_TEST_SUITE_P(Interop, SemaphorePairTest,
                         ::testing::Values(std::pair(Who::cpp, Who::curator), std::pair(Who::curator, Who::cpp)),
                         [](const auto& pair) {
                             return std::string(to_string(pair.param.first)) + "And" + to_string(pair.param.second);
                         });

}  // namespace
}  // namespace zkrecipes::test
