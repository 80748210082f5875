#include <zkrecipes/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace zkrecipes {
namespace {

TEST(ErrorTest, EachCodeHasANameOfItsOwnAndWordsOfItsOwn) {
    std::set<std::string> names, words;
    for (int code = static_cast<int>(Errc::bad_path); code <= static_cast<int>(Errc::out_of_resources); ++code) {
        names.insert(to_string(static_cast<Errc>(code)));
        words.insert(make_error_code(static_cast<Errc>(code)).message());
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Errc::out_of_resources));
    EXPECT_EQ(words.size(), names.size());
    EXPECT_FALSE(names.contains("?"));
    EXPECT_STREQ(to_string(Errc::no_permission), "no_permission");
    EXPECT_STREQ(to_string(Errc{0}), "?");
}

TEST(ErrorTest, ItsTextSaysTheOperationThePathTheKindAndTheDetail) {
    const Error error(Errc::no_permission, "acquire", "/l", "change the list");
    EXPECT_STREQ(error.what(), "acquire /l: not permitted: change the list");
    EXPECT_EQ(error.code().message(), "not permitted");
}

}  // namespace
}  // namespace zkrecipes
