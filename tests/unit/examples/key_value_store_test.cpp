// The store of examples/key_value, as somebody who copies it would test it: answers get lost, and leaderships end.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testing.hpp>

#include "examples/key_value/store.hpp"

namespace {

using key_value::Request;
using key_value::Store;
using zkrecipes::Errc;
using zkrecipes::Error;
using zkrecipes::testkit::FakeServer;
using zkrecipes::testkit::Match;

class KeyValueStoreTest : public ::testing::Test {
protected:
    static Request line(const std::string& text) { return Request::parse(text).value(); }
    static std::unique_ptr<Store> lead(zkrecipes::Session& candidate) {
        auto leadership = zkrecipes::LeaderElection(candidate, "/kv/leader").campaign();
        auto leading = std::make_unique<Store>(candidate, "/kv", std::move(leadership));
        leading->prepare();
        return leading;
    }

    FakeServer server;
    zkrecipes::Session session = server.session();
    std::unique_ptr<Store> store = lead(session);
};

TEST_F(KeyValueStoreTest, AWriteThatIsAskedAgainHappensOnce) {
    EXPECT_EQ(store->answer(line("hello me")), "ok");
    EXPECT_EQ(store->answer(line("add me 1 visits 5")), "ok 5");
    EXPECT_EQ(store->answer(line("add me 1 visits 5")), "ok 5");
    EXPECT_EQ(store->answer(line("add me 2 visits 1")), "ok 6");
    EXPECT_EQ(store->answer(line("add me 1 visits 5")), "refused out of order");
    EXPECT_EQ(server.data("/kv/data/visits"), "6");
}

TEST_F(KeyValueStoreTest, AWriteWhoseAnswerIsLostIsFoundOutAbout) {
    store->answer(line("hello me"));
    store->answer(line("put me 1 motto before"));
    const auto lost = server.cut_after(Match::set().path_is("/kv/data/motto"));
    try {
        store->answer(line("put me 2 motto as one"));
        ADD_FAILURE() << "the answer was not lost";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::outcome_unknown) << error.what();
    }
    EXPECT_TRUE(lost.reached());
    EXPECT_EQ(store->answer(line("put me 2 motto as one")), "ok as one");
    EXPECT_EQ(store->answer(line("get motto")), "ok as one");
}

TEST_F(KeyValueStoreTest, AFormerLeaderWritesNothingAndTheNextOneGoesOn) {
    store->answer(line("hello me"));
    store->answer(line("add me 1 visits 1"));
    server.expire(session);
    EXPECT_FALSE(store->leads());
    EXPECT_TRUE(store->lost().stop_requested());
    EXPECT_THROW(store->answer(line("add me 2 visits 1")), Error);
    EXPECT_EQ(server.data("/kv/data/visits"), "1");

    zkrecipes::Session other = server.session();
    const auto next = lead(other);
    EXPECT_EQ(next->answer(line("add me 2 visits 1")), "ok 2");
}

}  // namespace
