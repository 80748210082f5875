#include "zklock/command_line/exit_codes.hpp"

#include <gtest/gtest.h>

#include <map>

namespace zkrecipes::zklock {
namespace {

/// What docs/zklock.md says, for every error that the library knows.
const std::map<Errc, int> kTable = {
    {Errc::bad_path, 64},        {Errc::bad_data, 65},           {Errc::too_large, 65},
    {Errc::unreachable, 69},     {Errc::connection_lost, 69},    {Errc::session_lost, 69},
    {Errc::closed, 70},          {Errc::not_owner, 70},          {Errc::would_deadlock, 70},
    {Errc::budget_exceeded, 70}, {Errc::protocol, 70},           {Errc::out_of_resources, 71},
    {Errc::no_parent, 73},       {Errc::quota_exceeded, 73},     {Errc::sequence_exhausted, 73},
    {Errc::auth_failed, 77},     {Errc::no_permission, 77},      {Errc::bad_option, 78},
    {Errc::unsupported, 78},     {Errc::bad_connect_string, 78}, {Errc::lock_lost, 79},
    {Errc::outcome_unknown, 69}, {Errc::node_exists, 65},        {Errc::no_node, 65},
    {Errc::bad_version, 65},     {Errc::not_empty, 65},
};

TEST(ExitCodesTest, EveryErrorHasTheCodeOfTheManual) {
    int number = 1;
    for (; make_error_code(static_cast<Errc>(number)).message() != make_error_code(static_cast<Errc>(0)).message();
         ++number) {
        const auto expected = kTable.find(static_cast<Errc>(number));
        ASSERT_NE(expected, kTable.end()) << "an error that the table does not know: " << number;
        EXPECT_EQ(exit_code_for(expected->first), expected->second) << make_error_code(expected->first).message();
    }
    EXPECT_EQ(number - 1, static_cast<int>(kTable.size()));
}

}  // namespace
}  // namespace zkrecipes::zklock
