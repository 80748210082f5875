// The function of examples/transfer.cpp.
#include <gtest/gtest.h>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/testing.hpp>

#include <future>

#define main transfer_main
#include "examples/transfer.cpp"  // NOLINT: with its own names
#undef main

namespace {

using namespace std::chrono_literals;
using zkrecipes::testkit::FakeServer;
using zkrecipes::testkit::Time;

TEST(TransferTest, MoneyMovesAndTheLocksAreFreeAgain) {
    FakeServer server;
    zkrecipes::Session session = server.session();
    const long before = balance[0] + balance[1];
    EXPECT_TRUE(transfer(session, 0, 1, 100));
    EXPECT_TRUE(transfer(session, 1, 0, 30));
    EXPECT_EQ(balance[0] + balance[1], before);
    EXPECT_TRUE(server.await([&] { return server.children("/accounts/0").empty(); }));
    EXPECT_TRUE(server.await([&] { return server.children("/rates").empty(); }));
}

TEST(TransferTest, NothingMovesWhileSomebodyElseHasOneOfTheAccounts) {
    FakeServer server(Time::manual);
    zkrecipes::Session session = server.session(), other = server.session();
    zkrecipes::ExclusiveMutex mutex(other, "/accounts/1");
    const zkrecipes::Grant grant = mutex.acquire();
    const long before[] = {balance[0], balance[1]};
    auto result = std::async(std::launch::async, [&] { return transfer(session, 0, 1, 100); });
    ASSERT_TRUE(server.await([&] { return server.children("/accounts/1").size() == 2; }));
    server.advance(61s);  // it waits for a minute
    EXPECT_FALSE(result.get());
    EXPECT_EQ(balance[0], before[0]);
    EXPECT_EQ(balance[1], before[1]);
    EXPECT_EQ(server.children("/accounts/1").size(), 1U);
}

}  // namespace
