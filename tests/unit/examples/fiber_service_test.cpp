// One request of examples/fiber_service.cpp: it waits for the lock of its account, and is refused by the ledger if it
// comes too late.
#include <gtest/gtest.h>

#include <future>
#include <zkrecipes/testing.hpp>

#define main fiber_service_main
#include "examples/fiber_service.cpp"  // NOLINT: with its own names
#undef main

namespace {

using zkrecipes::testkit::FakeServer;
using zkrecipes::testkit::Match;

TEST(FiberServiceTest, RequestsForOneAccountFollowEachOther) {
    FakeServer server;
    zkrecipes::Session session = server.session();
    zkrecipes::LockRegistry locks(session, "/accounts");
    Ledger ledger(2);
    std::vector<boost::fibers::fiber> fibers;
    int done = 0;
    for (int i = 0; i < 50; ++i) fibers.emplace_back([&, i] { done += handle(locks, ledger, i % 2); });
    for (auto& fiber : fibers) fiber.join();
    EXPECT_EQ(done, 50);
    EXPECT_EQ(ledger.total(), 50);
}

TEST(FiberServiceTest, ARequestIsDoneOnceThoughTheAnswerToItsLockIsLost) {
    FakeServer server;
    zkrecipes::Session session = server.session();
    zkrecipes::LockRegistry locks(session, "/accounts");
    Ledger ledger(1);
    const auto lost = server.cut_after(Match::create().path("/accounts/account-0/"));
    EXPECT_TRUE(handle(locks, ledger, 0));
    EXPECT_TRUE(lost.reached());
    EXPECT_EQ(ledger.total(), 1);
}

TEST(FiberServiceTest, TheLedgerRefusesAFormerHolder) {
    FakeServer server;
    zkrecipes::Session session = server.session();
    zkrecipes::LockRegistry locks(session, "/accounts");
    Ledger ledger(1);
    auto lock = locks.get("account-0");
    const zkrecipes::Grant former = lock.acquire();
    server.lose(former);
    EXPECT_TRUE(std::async(std::launch::async, [&] { return handle(locks, ledger, 0); }).get());
    EXPECT_FALSE(ledger.add(0, 1, former.token()));
    EXPECT_EQ(ledger.total(), 1);
}

}  // namespace
