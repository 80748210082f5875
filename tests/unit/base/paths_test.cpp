#include "base/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PathsTest, OrdinaryPathsAreTaken) {
    for (const char* path : {"/", "/a", "/locks/billing", "/a.b/..c/d..", "/...", "/ with blanks ", "/zookeepers",
                             "/\xc3\xa4/\xe2\x82\xac", "/\xef\xa4\x80", "/\xef\xbf\xaf"}) {
        EXPECT_THAT(path_problem(path), IsEmpty()) << path;
    }
}

TEST(PathsTest, PathsThatTheServersRefuseAreRefusedWithTheRemedy) {
    const auto problem = [](std::string_view path) { return path_problem(path); };
    EXPECT_THAT(problem(""), HasSubstr("empty"));
    EXPECT_THAT(problem("a/b"), HasSubstr("does not begin with /"));
    EXPECT_THAT(problem("/a/"), HasSubstr("leave the last / out"));
    EXPECT_THAT(problem("//"), HasSubstr("leave the last / out"));
    EXPECT_THAT(problem("/a//b"), HasSubstr("empty component"));
    EXPECT_THAT(problem("//a"), HasSubstr("empty component"));
    EXPECT_THAT(problem("/a/./b"), HasSubstr("component . is"));
    EXPECT_THAT(problem("/a/../b"), HasSubstr("component .. is"));
    EXPECT_THAT(problem("/.."), HasSubstr("component .. is"));
    EXPECT_THAT(problem("/."), HasSubstr("component . is"));
}

TEST(PathsTest, CharactersThatTheServersRefuseAreNamedWithTheirPlace) {
    EXPECT_THAT(path_problem(std::string_view("/a\0b", 4)), HasSubstr("U+0000 at byte 3"));
    EXPECT_THAT(path_problem("/a\n"), HasSubstr("U+000A at byte 3"));
    EXPECT_THAT(path_problem("/\x1f"), HasSubstr("U+001F"));
    EXPECT_THAT(path_problem("/\x7f"), HasSubstr("U+007F"));
    EXPECT_THAT(path_problem("/\xc2\x9f"), HasSubstr("U+009F"));
    EXPECT_THAT(path_problem("/\xc2\xa0"), IsEmpty());
    EXPECT_THAT(path_problem("/\xed\x9f\xbf"), IsEmpty());  // U+D7FF
    EXPECT_THAT(path_problem("/\xee\x80\x80"), HasSubstr("U+E000"));
    EXPECT_THAT(path_problem("/\xef\xa3\xbf"), HasSubstr("U+F8FF"));
    EXPECT_THAT(path_problem("/\xef\xbf\xb0"), HasSubstr("U+FFF0"));
    EXPECT_THAT(path_problem("/\xf0\x9f\x94\x92"), HasSubstr("U+1F512"));  // needs surrogates in UTF-16
}

TEST(PathsTest, BrokenUtf8IsRefused) {
    for (const char* path : {"/\x80", "/\xc3", "/\xc3/", "/\xe2\x82", "/\xc0\xaf", "/\xe0\x80\xaf", "/\xed\xa0\x80",
                             "/\xf4\x90\x80\x80", "/\xff", "/\xf8\x88\x80\x80\x80"}) {
        EXPECT_THAT(path_problem(path), HasSubstr("not valid UTF-8")) << path;
    }
}

TEST(PathsTest, TheLengthIsLimited) {
    const std::string longest = "/" + std::string(kMaxPathBytes - 1, 'x');
    EXPECT_THAT(path_problem(longest), IsEmpty());
    EXPECT_THAT(path_problem(longest + "x"), HasSubstr("use at most 32768"));
}

TEST(PathsTest, TheErrorNamesOperationPathAndRemedy) {
    try {
        check_path("/a//\x1b[31m", "ExclusiveMutex");
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_path);
        EXPECT_EQ(error.operation(), "ExclusiveMutex");
        EXPECT_EQ(error.path(), "/a//\\x1b[31m");  // an escape sequence must not reach a terminal through what()
        EXPECT_THAT(error.what(), HasSubstr("ExclusiveMutex /a//\\x1b[31m: bad path"));
    }
    try {
        check_path("/" + std::string(100'000, 'x'), "acquire");
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_LT(error.path().size(), 300U);
    }
}

TEST(PathsTest, ZooKeepersOwnTreeIsNoPlaceForLocks) {
    EXPECT_THROW(check_lock_path("/zookeeper", "acquire"), Error);
    EXPECT_THROW(check_lock_path("/zookeeper/quota", "acquire"), Error);
    EXPECT_THROW(check_lock_path("relative", "acquire"), Error);
    EXPECT_NO_THROW(check_lock_path("/zookeeper2", "acquire"));
    EXPECT_NO_THROW(check_lock_path("/a/zookeeper", "acquire"));
}

TEST(PathsTest, JoinTakesCareOfTheSlashes) {
    EXPECT_EQ(join_path("/a", "b"), "/a/b");
    EXPECT_EQ(join_path("/a", "/b/c"), "/a/b/c");
    EXPECT_EQ(join_path("/", "/b"), "/b");
    EXPECT_EQ(join_path("", "/b"), "/b");
    EXPECT_EQ(join_path("/a", "/"), "/a");
    EXPECT_EQ(join_path("/a", ""), "/a");
    EXPECT_EQ(join_path("", ""), "/");
    EXPECT_EQ(join_path("/", "/"), "/");
}

TEST(PathsTest, ParentBaseNameAndAncestors) {
    EXPECT_EQ(parent_path("/a/b"), "/a");
    EXPECT_EQ(parent_path("/a"), "/");
    EXPECT_EQ(parent_path("/"), "/");
    EXPECT_EQ(base_name("/a/b"), "b");
    EXPECT_EQ(base_name("/"), "");
    EXPECT_THAT(ancestors("/a/b/c"), ElementsAre("/a", "/a/b"));
    EXPECT_THAT(ancestors("/a"), IsEmpty());
    EXPECT_THAT(ancestors("/"), IsEmpty());
}

TEST(PathsTest, BelowMeansAWholeComponent) {
    EXPECT_TRUE(is_at_or_below("/a", "/a"));
    EXPECT_TRUE(is_at_or_below("/a/b", "/a"));
    EXPECT_FALSE(is_at_or_below("/ab", "/a"));
    EXPECT_FALSE(is_at_or_below("/", "/a"));
    EXPECT_TRUE(is_at_or_below("/a", "/"));
}

}  // namespace
}  // namespace zkrecipes::internal
