// A set of locks, and Curator clients that know nothing of sets: each member is an ordinary lock to them.
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/session.hpp>

#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

using As = MultiLock::As;

struct Member {
    const char* name;
    As as;
    const char* kept_out;  // what Curator must not get while we hold the set
};
constexpr Member kMembers[] = {
    {"m", As::mutex, "mutex"}, {"w", As::alone, "write"}, {"w", As::alone, "read"}, {"r", As::shared, "write"}};

class MultiLockInteropTest : public InteropTest {
protected:
    void SetUp() override {
        InteropTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS(Who::curator);
        session_.emplace(connect_string());
        lock_.emplace(*session_,
                      std::vector<MultiLock::Member>{{path("m")}, {path("w"), As::alone}, {path("r"), As::shared}});
    }
    MultiLock& lock() { return *lock_; }
    bool await_empty() {
        return await([&] {
            for (const char* name : {"m", "w", "r"}) {
                if (!observer().children(path(name)).value_or(std::vector<std::string>()).empty()) return false;
            }
            return true;
        });
    }

private:
    std::optional<Session> session_;
    std::optional<MultiLock> lock_;
};

TEST_F(MultiLockInteropTest, CuratorIsKeptOutOfEveryMemberAndSharesWhatIsShared) {
    const auto curator = client(Who::curator);
    Grant grant = lock().acquire_before(kMaxWait);
    ASSERT_TRUE(grant.held());
    for (const auto& member : kMembers) {
        SCOPED_TRACE(std::string(member.name) + " " + member.kept_out);
        EXPECT_FALSE(curator->acquire(member.kept_out, path(member.name), 50ms).yes());
    }
    EXPECT_TRUE(curator->acquire("read", path("r"), kMaxWait).yes());
    curator->release("read", path("r")).fields();
    const Answer waiting = curator->acquire("mutex", path("m"));
    ASSERT_TRUE(await([&] { return observer().children(path("m"))->size() == 2; }));
    EXPECT_FALSE(waiting.done());
    grant.release();
    EXPECT_TRUE(waiting.yes());
    curator->release("mutex", path("m")).fields();
    EXPECT_TRUE(await_empty());
}

TEST_F(MultiLockInteropTest, CuratorInAnyMemberKeepsTheSetOut) {
    const auto curator = client(Who::curator);
    for (const auto& member : kMembers) {
        SCOPED_TRACE(std::string(member.name) + " " + member.kept_out);
        ASSERT_TRUE(curator->acquire(member.kept_out, path(member.name), kMaxWait).yes());
        EXPECT_FALSE(lock().try_lock());
        EXPECT_FALSE(lock().try_lock_for(50ms));
        curator->release(member.kept_out, path(member.name)).fields();
        EXPECT_TRUE(lock().try_lock_for(kMaxWait));
        lock().unlock();
        EXPECT_TRUE(await_empty());
    }
    ASSERT_TRUE(curator->acquire("read", path("r"), kMaxWait).yes());
    EXPECT_TRUE(lock().try_lock());  // beside it
    lock().unlock();
    curator->release("read", path("r")).fields();
}

}  // namespace
}  // namespace zkrecipes::test
