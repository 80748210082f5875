#include "client/result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <zkrecipes/version.hpp>

#include "client/resolver.hpp"

namespace zkrecipes::internal {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

TEST(ResultTest, ALostConnectionIsNeverDidNotHappen) {
    for (const Rc rc : {Rc::connection_loss, Rc::operation_timeout, Rc::runtime_inconsistency, Rc::data_inconsistency,
                        Rc::system_error, Rc::marshalling_error}) {
        EXPECT_EQ(meaning(rc), Meaning::unknown) << to_string(rc);
    }
}

TEST(ResultTest, OnlyWhatWasSurelyNotExecutedMayBeSentAgain) {
    for (const Rc rc : {Rc::not_connected, Rc::session_moved, Rc::throttled}) {
        EXPECT_EQ(meaning(rc), Meaning::not_done) << to_string(rc);
    }
}

TEST(ResultTest, AFinalAnswerOfTheHandleEndsTheSession) {
    for (const Rc rc : {Rc::session_expired, Rc::auth_failed, Rc::closing, Rc::closed, Rc::invalid_state}) {
        EXPECT_EQ(meaning(rc), Meaning::session_over) << to_string(rc);
    }
}

TEST(ResultTest, ANoOfTheDataTreeIsARefusal) {
    for (const Rc rc : {Rc::no_node, Rc::node_exists, Rc::bad_version, Rc::not_empty, Rc::no_children_for_ephemerals,
                        Rc::no_watcher}) {
        EXPECT_EQ(meaning(rc), Meaning::refused) << to_string(rc);
    }
}

TEST(ResultTest, WhatTryingAgainDoesNotMendIsAFailure) {
    for (const Rc rc : {Rc::no_auth, Rc::bad_arguments, Rc::invalid_acl, Rc::quota_exceeded, Rc::unimplemented,
                        Rc::too_large, Rc::not_read_only}) {
        EXPECT_EQ(meaning(rc), Meaning::failed) << to_string(rc);
    }
    EXPECT_EQ(meaning(static_cast<Rc>(-120)), Meaning::failed);
    EXPECT_STREQ(to_string(static_cast<Rc>(-120)), "unknown error");
}

TEST(ResultTest, OnlyAServersWordIsASignOfLife) {
    for (const Rc rc : {Rc::ok, Rc::no_node, Rc::no_auth, Rc::bad_version, Rc::not_empty, Rc::quota_exceeded}) {
        EXPECT_TRUE(said_by_server(rc)) << to_string(rc);
    }
    for (const Rc rc :
         {Rc::too_large, Rc::bad_arguments, Rc::unimplemented, Rc::not_connected, Rc::closed, Rc::no_watcher,
          Rc::connection_loss, Rc::session_expired, Rc::no_lease, Rc::marshalling_error}) {
        EXPECT_FALSE(said_by_server(rc)) << to_string(rc);
    }
}

TEST(ResolverTest, AddressesNeedNobodyAndAreWrittenAsTheCClientReadsThem) {
    std::string problem;
    const auto found = resolve_servers(parse_connect_string("127.0.0.1:1,[::1]:2").servers, problem);
    EXPECT_THAT(found, ElementsAre("127.0.0.1:1", "[::1]:2"));
    EXPECT_EQ(joined(found), "127.0.0.1:1,::1:2");
    EXPECT_THAT(problem, IsEmpty());
}

TEST(ResolverTest, UnknownNamesAreLeftOutAndNamed) {
    std::string problem;
    EXPECT_THAT(resolve_servers(parse_connect_string("name-that-nobody-knows.invalid:1,127.0.0.1:2").servers, problem),
                ElementsAre("127.0.0.1:2"));
    EXPECT_THAT(problem, HasSubstr("name-that-nobody-knows.invalid: "));
}

TEST(ResolverTest, NamesOfOneAddressCountOnce) {
    std::string problem;
    const auto found = resolve_servers(parse_connect_string("localhost:7,127.0.0.1:7").servers, problem);
    EXPECT_EQ(std::count(found.begin(), found.end(), "127.0.0.1:7"), 1);
}

TEST(ClientVersionTest, TheRunningClientSaysWhatItIs) {
    EXPECT_THAT(client_version(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
    for (const std::string& feature : features()) EXPECT_THAT(feature, AnyOf("tls", "sasl"));
}

}  // namespace
}  // namespace zkrecipes::internal
