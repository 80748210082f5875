// The options of the commands that look at locks and settings, and what is common to all commands.
#include "options_fixture.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LookOptionsTest : public OptionsTest {};

TEST_F(LookOptionsTest, TheVersionHasAShortOption) {
    EXPECT_EQ(parse({"-V"}).command, Command::version);
    EXPECT_EQ(parse({"status", "-V"}).command, Command::version);
    EXPECT_TRUE(parse({"-V", "--json"}).json);
    EXPECT_EQ(parse({"-v", "/l", "cmd"}).verbose, 1) << "the small letter prints more";
}

TEST_F(LookOptionsTest, DurationsMayBeDays) {
    EXPECT_EQ(parse({"--max-run", "1d", "/l", "c"}).max_run, 24h);
    EXPECT_EQ(parse({"-w", "0.5d", "/l", "c"}).wait_limit, 12h);
    EXPECT_THAT(refusal({"-w", "1w", "/l", "c"}).second, HasSubstr("250ms, 2m, 1h, 1d"));
    EXPECT_THAT(refusal({"-w", "36500d", "/l", "c"}).second, HasSubstr("at most ten years"));
}

TEST_F(LookOptionsTest, ARelativePathAfterACommandIsAnsweredWithTheAbsoluteOne) {
    for (const char* command : {"run", "elect", "hold", "status", "ls", "leader", "leases"}) {
        EXPECT_THAT(refusal({command, "locks/a"}).second,
                    HasSubstr("\"locks/a\" is not an absolute path: write /locks/a"));
    }
}

TEST_F(LookOptionsTest, AMistypedWordIsAnsweredWithTheNearestOne) {
    const std::pair<std::vector<const char*>, const char*> wrong[] = {
        {{"hlod", "/l"}, "did you mean \"hold\"?"},
        {{"pnig"}, "did you mean \"ping\"?"},
        {{"help", "satus"}, "did you mean \"status\"?"},
        {{"--connect", "a:1", "statsu", "/l"}, "did you mean \"status\"?"},
        {{"--verison"}, "did you mean \"--version\"?"},
        {{"status", "--jsno", "/l"}, "did you mean \"--json\"?"},
    };
    for (const auto& [arguments, hint] : wrong) {
        const auto [code, text] = refusal(arguments);
        EXPECT_EQ(code, 64) << hint;
        EXPECT_THAT(text, HasSubstr(hint));
    }
}

TEST_F(LookOptionsTest, TopPrintsPicturesInAnInterval) {
    EXPECT_EQ(parse({"top"}).lock, "/");
    EXPECT_EQ(parse({"top"}).pictures, 0u);
    EXPECT_EQ(parse({"top"}).interval, 2s);
    const Options options = parse({"top", "--count", "3", "--interval", "500ms", "/locks"});
    EXPECT_EQ(options.pictures, 3u);
    EXPECT_EQ(options.interval, 500ms);
    EXPECT_EQ(options.lock, "/locks");
    EXPECT_EQ(parse({"top", "--once"}).pictures, 1u);
    for (const auto& wrong : std::vector<std::vector<const char*>>{{"top", "--once", "--count", "2"},
                                                                   {"top", "--count", "0"},
                                                                   {"top", "--count", "x"},
                                                                   {"top", "--interval", "99ms"},
                                                                   {"top", "--interval", "x"},
                                                                   {"top", "-q"},
                                                                   {"top", "/a", "/b"}}) {
        EXPECT_EQ(refusal(wrong).first, 64);
    }
}

TEST_F(LookOptionsTest, StatusMayKeepWatching) {
    EXPECT_TRUE(parse({"status", "--watch", "/l"}).watch);
    EXPECT_FALSE(parse({"status", "/l"}).watch);
    EXPECT_THAT(refusal({"status", "--watch", "-q", "/l"}).second, HasSubstr("cannot be combined with -q"));
}

TEST_F(LookOptionsTest, TheNumberOfLeasesIsShownOrChanged) {
    EXPECT_EQ(parse({"leases", "/l"}).new_leases, 0);
    EXPECT_EQ(parse({"leases", "/l", "6"}).new_leases, 6);
    EXPECT_EQ(parse({"leases", "/l", "2147483647"}).new_leases, 2147483647);
    for (const char* number : {"0", "-1", "", "x", "2147483648"}) {
        EXPECT_EQ(refusal({"leases", "/l", number}).first, 64) << number;
    }
    EXPECT_THAT(refusal({"leases", "/l", "0"}).second, HasSubstr("N: \"0\" is not a number of at least 1"));
    EXPECT_THAT(refusal({"leases", "/l", "1", "2"}).second, HasSubstr("write: zklock leases [--json] LOCK [N]"));
    EXPECT_THAT(refusal({"leases"}).second, HasSubstr("the lock is missing"));
}

}  // namespace
}  // namespace zkrecipes::zklock
