// Who owns a hold: whoever has its Grant, or the fiber or thread that called lock().
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include <spdlog/sinks/ostream_sink.h>

#include <sstream>
#include <thread>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class OwnerTest : public ServedTest {
protected:
    OwnerTest() {
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
        connect();
    }
    ~OwnerTest() override {
        runtime->while_running([this] { session.reset(); });  // which writes into `log`
        destroy();
    }
    int warnings() const {
        int found = 0;
        const std::string text = log.str();
        for (auto at = text.find("waits for itself"); at != text.npos; at = text.find("waits for itself", at + 1))
            ++found;
        return found;
    }
    template <class Call>
    static void by_another_thread(Call call) {
        std::thread(call).join();
    }

    std::ostringstream log;
};

/// Each lock that has an owner, by a fresh object where the caller asks a registry.
template <class Use>
void with_each_lock(Session& session, Use use) {
    LockRegistry keys(session, "/keys");
    ReadWriteLockRegistry pairs(session, "/pairs");
    const auto named = [&](const char* name, auto lock) {
        SCOPED_TRACE(name);
        use(lock);
    };
    const auto same = [](auto lock) {
        const auto shared = std::make_shared<decltype(lock)>(std::move(lock));
        return [shared]() -> auto& { return *shared; };
    };
    named("ExclusiveMutex", same(ExclusiveMutex(session, "/mutex")));
    named("ReadWriteLock", same(ReadWriteLock(session, "/pair")));
    named("MultiLock", same(MultiLock(session, {{"/one"}, {"/two"}})));
    named("LockRegistry", [&] { return keys.get("a"); });
    named("ReadWriteLockRegistry", [&] { return pairs.get("a"); });
}

TEST_F(OwnerTest, NoCallEntersTheHoldOfAGrant) {  // H121
    with_each_lock(*session, [this](auto lock) {
        EXPECT_EQ(served([&] {
                      Grant grant = lock().acquire();
                      EXPECT_EQ(lock().try_acquire().missed(), Missed::busy);
                      EXPECT_FALSE(lock().try_lock());
                      EXPECT_FALSE(lock().try_acquire_until(in(1s)));
                      EXPECT_FALSE(lock().held_by_caller()) << "grants do not count";
                      EXPECT_EQ(lock().token(), 0);
                      EXPECT_FALSE(lock().lost().stop_possible());
                      EXPECT_TRUE(grant.held());
                      by_another_thread([&] { grant.release(); });
                      EXPECT_TRUE(lock().acquire().held());
                  }),
                  "ok");
    });
}

TEST_F(OwnerTest, NoGrantEntersWhatLockHolds) {  // H121
    with_each_lock(*session, [this](auto lock) {
        EXPECT_EQ(served([&] {
                      lock().lock();
                      EXPECT_EQ(lock().try_acquire().missed(), Missed::busy);
                      EXPECT_TRUE(lock().held_by_caller());
                      EXPECT_TRUE(lock().try_lock()) << "lock() is re-entrant";
                      lock().unlock();
                      lock().unlock();
                      EXPECT_FALSE(lock().held_by_caller());
                      EXPECT_TRUE(lock().acquire().held());
                  }),
                  "ok");
    });
}

TEST_F(OwnerTest, NeitherModeEntersAGrantOfTheOther) {  // H121
    ReadWriteLock lock(*session, "/l");
    EXPECT_EQ(served([&] {
                  {
                      const Grant exclusive = lock.acquire();
                      EXPECT_EQ(lock.try_acquire_shared().missed(), Missed::busy) << "no downgrade";
                      EXPECT_FALSE(lock.try_lock_shared());
                  }
                  {
                      const Grant shared = lock.acquire_shared();
                      EXPECT_EQ(lock.try_acquire().missed(), Missed::busy);
                      EXPECT_FALSE(lock.try_lock());
                      EXPECT_TRUE(lock.try_acquire_shared()) << "another share";
                  }
                  lock.lock();
                  EXPECT_EQ(lock.try_acquire_shared().missed(), Missed::busy);
                  lock.unlock();
                  lock.lock_shared();
                  EXPECT_EQ(lock.try_acquire().missed(), Missed::busy) << "a grant has no owner";
                  lock.unlock_shared();
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(OwnerTest, AgainIsAnotherGrantOfTheSameHold) {
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_EQ(served([&] {
                  Grant outer = mutex.acquire();
                  Grant inner = outer.again();
                  EXPECT_EQ(inner.node(), outer.node());
                  EXPECT_EQ(inner.token(), outer.token());
                  outer.release();
                  EXPECT_FALSE(outer.again()) << "of an empty grant";
                  EXPECT_TRUE(inner.held());
                  EXPECT_EQ(children("/l").size(), 1u);
                  EXPECT_TRUE(inner.release_and_wait());
                  EXPECT_EQ(children("/l").size(), 0u);
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(OwnerTest, AWaitForAHoldOfItsOwnIsSaidOnce) {
    with_each_lock(*session, [this](auto lock) {
        const int before = warnings();
        EXPECT_EQ(served([&] {
                      auto&& same = lock();
                      Grant grant = same.acquire();
                      EXPECT_FALSE(same.try_acquire());
                      boost::fibers::fiber other([&] { EXPECT_FALSE(same.try_acquire_until(in(1s))); });
                      other.join();
                      EXPECT_EQ(warnings(), before) << "a try does not wait, and another fiber waits for this one";
                      for (int i = 0; i < 2; ++i) {
                          EXPECT_FALSE(same.try_acquire_until(in(1s)));
                          EXPECT_EQ(warnings(), before + 1);
                      }
                      grant.release();
                      EXPECT_TRUE(same.acquire().held());
                  }),
                  "ok");
    });
}

TEST_F(OwnerTest, AWaitForWhatTheCallerHasLockedIsSaidToo) {
    ExclusiveMutex mutex(*session, "/l");
    EXPECT_EQ(served([&] {
                  mutex.lock();
                  EXPECT_FALSE(mutex.try_acquire_until(in(1s)));
                  EXPECT_EQ(warnings(), 1);
                  mutex.unlock();
              }),
              "ok");
}

TEST_F(OwnerTest, ADowngradeKeepsTheExclusiveHoldUntilItsAnswer) {
    ReadWriteLock lock(*session, "/l");
    Grant exclusive, shared;
    EXPECT_EQ(served([&] { exclusive = lock.acquire(); }), "ok");
    lock.downgrade_async(exclusive, in(10s), {}, [&](AcquireResult result) { shared = std::move(result.value); });
    exclusive.release();  // before the servers have the share
    asked.clear();
    serve();
    EXPECT_TRUE(shared.held());
    ASSERT_GE(asked.size(), 3u);
    EXPECT_EQ(asked.front().substr(0, 5), "multi");
    EXPECT_EQ(asked.back().substr(0, 6), "remove");
    EXPECT_EQ(children("/l").size(), 1u);
}

TEST_F(OwnerTest, ALostExclusiveHoldIsNotDowngraded) {
    ReadWriteLock lock(*session, "/l");
    EXPECT_EQ(served([&] {
                  const Grant exclusive = lock.acquire();
                  runtime->freeze_for(std::chrono::hours(1));
                  EXPECT_EQ(code_of([&] { (void)lock.downgrade(exclusive); }), Errc::lock_lost);
              }),
              "ok");
}

TEST_F(OwnerTest, OnlyAnExclusiveGrantOfTheSameLockIsDowngraded) {
    ReadWriteLock lock(*session, "/l"), beside(*session, "/other");
    ExclusiveMutex mutex(*session, "/l");
    MultiLock two(*session, {{"/l", MultiLock::As::exclusive}, {"/m"}});
    const auto refused = [&](const Grant& grant) {
        asked.clear();
        EXPECT_EQ(code_of([&] { (void)lock.downgrade(grant); }), Errc::bad_option);
        EXPECT_TRUE(asked.empty());
    };
    EXPECT_EQ(served([&] {
                  refused(Grant());
                  refused(beside.acquire());
                  refused(lock.acquire_shared());
                  refused(mutex.acquire());
                  refused(two.acquire());
              }),
              "ok");
    // The same directory, of another session, which has a name of its own for its node.
    const auto its_runtime = std::make_shared<FakeRuntime>();
    const auto its_clients = std::make_shared<FakeClientFactory>(its_runtime);
    auto second =
        std::make_optional(SessionAccess::make(SessionCore::open(options, {its_runtime, its_clients, nullptr})));
    its_clients->last().connect(kNextSession);
    its_runtime->run();
    auto foreign = std::make_optional<ReadWriteLock>(*second, "/l");
    Grant theirs;
    foreign->acquire_async(Deadline::never(), {}, [&](AcquireResult result) { theirs = std::move(result.value); });
    its_runtime->run();
    const Request create = its_clients->last().take("create");
    Reply created, alone;
    created.text = create.path + "0000000000";
    created.stat.ephemeral_owner = kNextSession;
    created.stat.czxid = alone.stat.pzxid = 7;
    alone.stat.num_children = 1;
    create.answer(created);
    its_clients->last().take("exists").answer(alone);
    its_runtime->run();
    ASSERT_TRUE(theirs.held());
    asked.clear();
    EXPECT_EQ(code_served([&] { (void)lock.downgrade(theirs); }), Errc::bad_option);
    EXPECT_TRUE(asked.empty());
    its_runtime->while_running([&] {
        theirs.release();
        foreign.reset();
        second.reset();
    });
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
