#include "client/result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <zkrecipes/version.hpp>

#include "client/resolver.hpp"
#include "client/zk_secure.hpp"

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

/// Every code of servers up to 3.9, of the C client and of ours.
const std::map<Meaning, std::vector<Rc>> kCodes = {
    {Meaning::done, {Rc::ok}},
    {Meaning::refused,
     {Rc::no_node, Rc::node_exists, Rc::bad_version, Rc::not_empty, Rc::no_children_for_ephemerals, Rc::no_watcher}},
    // Only these may be sent again as they are.
    {Meaning::not_done, {Rc::not_connected, Rc::session_moved, Rc::throttled}},
    // A lost connection is never "did not happen".
    {Meaning::unknown,
     {Rc::connection_loss, Rc::operation_timeout, Rc::runtime_inconsistency, Rc::data_inconsistency, Rc::system_error,
      Rc::marshalling_error, Rc::tls_failed, Rc::request_timeout, Rc::api_error, Rc::nothing}},
    {Meaning::session_over,
     {Rc::session_expired, Rc::unknown_session, Rc::auth_failed, Rc::credentials_demanded, Rc::closing, Rc::closed,
      Rc::invalid_state}},
    {Meaning::failed,
     {Rc::no_auth, Rc::bad_arguments, Rc::invalid_acl, Rc::invalid_callback, Rc::quota_exceeded, Rc::unimplemented,
      Rc::too_large, Rc::not_read_only, Rc::local_session, Rc::reconfig_disabled, Rc::reconfig_in_progress,
      Rc::new_config_no_quorum, Rc::no_lease}}};

TEST(ResultTest, EveryCodeThatIsKnownHasAMeaningAndAText) {
    std::set<Rc> known;
    std::set<std::string> texts;
    for (const auto& [what, codes] : kCodes) {
        for (const Rc rc : codes) {
            EXPECT_EQ(meaning(rc), what) << to_string(rc);
            EXPECT_TRUE(texts.insert(to_string(rc)).second) << "two codes of this text: " << to_string(rc);
            known.insert(rc);
        }
    }
    for (int code = -2000; code <= 10; ++code) {
        const Rc rc = static_cast<Rc>(code);
        EXPECT_EQ(is_known(rc), known.contains(rc)) << code;
        if (!is_known(rc)) {
            EXPECT_EQ(meaning(rc), Meaning::unknown) << code;
            EXPECT_EQ(meaning_or_failed(rc), Meaning::failed) << code;
        }
    }
}

TEST(ResultTest, TheCodesAreThoseOfTheServers) {
    for (const int code :
         {0,    -1,   -2,   -3,   -4,   -5,   -6,   -7,   -8,   -12,  -13,  -14,  -100, -101, -102, -103,
          -108, -110, -111, -112, -113, -114, -115, -118, -119, -120, -121, -122, -123, -124, -125, -127}) {
        EXPECT_TRUE(is_known(static_cast<Rc>(code))) << code;
    }
}

TEST(ResultTest, OnlyAServersWordIsASignOfLife) {
    for (const Rc rc : {Rc::ok, Rc::no_node, Rc::no_auth, Rc::bad_version, Rc::not_empty, Rc::quota_exceeded}) {
        EXPECT_TRUE(said_by_server(rc)) << to_string(rc);
    }
    for (const Rc rc : {Rc::too_large, Rc::bad_arguments, Rc::unimplemented, Rc::not_connected, Rc::closed,
                        Rc::no_watcher, Rc::connection_loss, Rc::session_expired, Rc::no_lease, Rc::marshalling_error,
                        Rc::credentials_demanded, static_cast<Rc>(-126)}) {
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
    std::vector<std::string> expected;
    if (client_has_tls()) expected.emplace_back("tls");
    if (client_has_sasl()) expected.emplace_back("sasl");
    EXPECT_EQ(features(), expected);
}

}  // namespace
}  // namespace zkrecipes::internal
