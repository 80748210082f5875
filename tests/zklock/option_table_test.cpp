#include "zklock/command_line/option_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zkrecipes::zklock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Of some options, those that are made for these words.
std::vector<std::string> made(const std::vector<std::string>& words) {
    OptionTable table("", "", &words);
    table.set_help_flag();
    bool flag = false;
    std::string value;
    for (const char* const names : {"-V,--version", "-e,--exclusive", "-n,--nonblock", "-q,--quiet"}) {
        table.add_flag(names, flag);
    }
    table.add_option("-w,--timeout,--wait", value);
    std::vector<std::string> names;
    for (const CLI::Option* const option : table.get_options()) names.push_back(option->get_lnames().back());
    return names;
}

TEST(OptionTableTest, OnlyWhatTheWordsMayNameIsMade) {
    EXPECT_THAT(made({"/lock", "command"}), IsEmpty());
    EXPECT_THAT(made({"--version"}), ElementsAre("version")) << "there is an e and an n in it, but no -e and no -n";
    EXPECT_THAT(made({"-nq", "/lock"}), ElementsAre("nonblock", "quiet"));
    EXPECT_THAT(made({"-nw5", "/lock"}), ElementsAre("nonblock", "wait"));
    EXPECT_THAT(made({"--timeout=5", "/lock"}), ElementsAre("wait"));
    EXPECT_THAT(made({"--timeouts", "/lock"}), IsEmpty());
    EXPECT_EQ(made({"--help"}).size(), 5U) << "it shows them all";
}

}  // namespace
}  // namespace zkrecipes::zklock
