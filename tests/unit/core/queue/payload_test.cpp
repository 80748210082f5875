#include "core/queue/payload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include <random>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::system_clock::time_point kSomeDay{std::chrono::seconds(1'767'323'045)};  // 2026-01-02 03:04:05

Participant read(std::string data) {
    Participant participant;
    read_payload(std::move(data), participant);
    return participant;
}

std::string write_payload(const LockOptions& options, std::chrono::system_clock::time_point since,
                          const char* operation, const char* path) {
    return Payload(options, operation, path).at(since);
}

TEST(PayloadTest, TheUserIsThatOfTheProcessWhateverTheEnvironmentSays) {
    ::setenv("LOGNAME", "somebody else", 1);
    ::setenv("USER", "somebody else", 1);
    const std::string text = write_payload({}, kSomeDay, "acquire", "/l");
    ::unsetenv("LOGNAME");
    ::unsetenv("USER");
    const passwd* entry = ::getpwuid(::getuid());
    EXPECT_EQ(read(text).user, entry != nullptr ? entry->pw_name : "uid " + std::to_string(::getuid()));
    EXPECT_THAT(text, HasSubstr(",\"uid\":" + std::to_string(::getuid()) + ","));
}

TEST(PayloadTest, HowManyMoreWaitIsSaidIfThereIsRoom) {
    const Payload payload({}, "acquire", "/l");
    EXPECT_EQ(read(payload.at(kSomeDay, 12)).waiting, 12u);
    EXPECT_EQ(read(payload.at(kSomeDay)).waiting, 0u);
    EXPECT_EQ(payload.at(kSomeDay).find("waiting"), std::string::npos);
    EXPECT_EQ(read(R"({"v":1,"waiting":-3})").waiting, 0u);
    LockOptions full;
    full.name = std::string(1000, 'x');
    EXPECT_EQ(Payload(full, "acquire", "/l").at(kSomeDay, 12), Payload(full, "acquire", "/l").at(kSomeDay));
}

TEST(PayloadTest, WhatIsWrittenIsReadBack) {
    LockOptions options;
    options.id = "web1";
    options.name = "deploy \"now\"\n\\ ünïcode";
    options.labels = {{"ticket", "OPS-7"}, {"", "empty"}};
    const auto text = write_payload(options, kSomeDay, "acquire", "/l");
    EXPECT_LE(text.size(), kMaxPayload);
    EXPECT_THAT(text, HasSubstr("{\"v\":1,\"id\":\"web1\","));
    EXPECT_THAT(text, HasSubstr("\"since\":\"2026-01-02T03:04:05Z\""));
    const auto participant = read(text);
    EXPECT_EQ(participant.id, "web1");
    EXPECT_EQ(participant.name, options.name);
    EXPECT_EQ(participant.pid, getpid());
    EXPECT_FALSE(participant.host.empty());
    EXPECT_FALSE(participant.user.empty());
    EXPECT_EQ(participant.labels, options.labels);
    EXPECT_EQ(participant.raw, text);
}

TEST(PayloadTest, TheIdIsHostAndPidByDefaultAndTheDataIsNeverEmpty) {  // H14
    const auto text = write_payload({}, kSomeDay, "acquire", "/l");
    EXPECT_FALSE(text.empty());
    const auto participant = read(text);
    EXPECT_EQ(participant.id, participant.host + ":" + std::to_string(getpid()));
    EXPECT_THAT(participant.labels, IsEmpty());
}

TEST(PayloadTest, ALongNameIsCutAndSaysSo) {
    LockOptions options;
    for (int i = 0; i < 300; ++i) options.name += "ä\n";
    const auto text = write_payload(options, kSomeDay, "acquire", "/l");
    EXPECT_LE(text.size(), kMaxPayload);
    EXPECT_GT(text.size(), kMaxPayload - 20);
    const auto name = read(text).name;
    EXPECT_TRUE(name.ends_with("…"));
    EXPECT_TRUE(options.name.starts_with(name.substr(0, name.size() - std::string("…").size())));
}

TEST(PayloadTest, ANameOfManyBytesForEachCharacterKeepsWhatHasRoom) {
    LockOptions options;
    for (int i = 0; i < 300; ++i) options.name += "я";
    const auto text = write_payload(options, kSomeDay, "acquire", "/l");
    EXPECT_LE(text.size(), kMaxPayload);
    EXPECT_GT(text.size(), kMaxPayload - 4);
}

TEST(PayloadTest, ANameOfAnyLengthIsCutWithoutWritingItAgainAndAgain) {
    LockOptions options;
    options.name = std::string(10'000'000, '\n');
    EXPECT_LE(write_payload(options, kSomeDay, "acquire", "/l").size(), kMaxPayload);
}

TEST(PayloadTest, LabelsThatDoNotFitAreRefused) {
    LockOptions options;
    options.labels["story"] = std::string(600, 'x');
    try {
        write_payload(options, kSomeDay, "ExclusiveMutex", "/l");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_option);
        EXPECT_THAT(error.what(), HasSubstr("/l"));
        EXPECT_THAT(error.what(), HasSubstr("labels"));
    }
}

TEST(PayloadTest, WhatIsNotUtf8BecomesReplacementCharacters) {
    LockOptions options;
    options.id = std::string("a\xff\xc3(\xed\xa0\x80z\0e", 9);
    const auto participant = read(write_payload(options, kSomeDay, "acquire", "/l"));
    EXPECT_THAT(participant.id, HasSubstr("a\xEF\xBF\xBD"));
    EXPECT_THAT(participant.id, HasSubstr("z"));
}

TEST(PayloadTest, EveryCharacterOfUnicodeIsKeptAndNothingElse) {
    const auto kept = [](const std::string& id) {
        LockOptions options;
        options.id = id;
        return read(write_payload(options, kSomeDay, "acquire", "/l")).id;
    };
    // The first and the last of each length, and those beside the surrogates.
    for (const char* character :
         {"\x01", "\x1f", " ", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
          "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf3\x80\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_EQ(kept(character), character);
        EXPECT_EQ(kept(std::string("a") + character + "z"), std::string("a") + character + "z");
    }
    for (const char* none : {"\x80", "\xbf", "\xc1\x81", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x90\x80"}) {
        std::string marks;
        for (std::size_t i = 0; i < std::string(none).size(); ++i) marks += "\xEF\xBF\xBD";
        EXPECT_EQ(kept(none), marks);
    }
    EXPECT_EQ(kept("\xc3("), "\xEF\xBF\xBD(");
    LockOptions options;
    options.id = "\x1f\x7f \"\\";
    EXPECT_THAT(write_payload(options, kSomeDay, "acquire", "/l"), HasSubstr(R"("id":"\u001f\u007f \"\\")"));
}

TEST(PayloadTest, ForeignDataIsShownRawAndSaysNothingElse) {
    for (const std::string& data :
         {std::string(), std::string("127.0.0.1"), std::string("b'id'"), std::string("{"), std::string("[1]"),
          std::string("{}x"), std::string("{\"id\":\"a\"} trailing"), std::string("{\"id\":\"a\",}"),
          std::string("{\"id\" \"a\"}"), std::string("null"), std::string("\x12\x34\x00", 3),
          std::string("{\"id\":\"a"), std::string("{\"id\":\"\\u12\"}"), std::string("{\"pid\":}"),
          std::string("{\"id\":\"a\",\"name\":\"\\ud800\"}"), std::string("{\"id\":\"a\",\"name\":\"\xff\"}"),
          std::string("{\"id\":\"a\",\"pid\":01}")}) {
        const auto participant = read(data);
        EXPECT_EQ(participant.raw, data);
        EXPECT_EQ(participant.id, "") << data;
        EXPECT_EQ(participant.pid, 0);
    }
}

TEST(PayloadTest, OtherMembersAndTypesAreSkipped) {
    const auto participant = read(
        R"( { "future" : [ 1, {"a":[true,false,null,-1.5e+3]} ], "id" : "x\u00e9\ud83d\ude00", "pid" : "7",
              "name" : 3, "meta" : { "a" : "1", "b" : 2, "c" : {"d":"e"} }, "host" : "h" } )");
    EXPECT_EQ(participant.id, "xé😀");
    EXPECT_EQ(participant.pid, 0);
    EXPECT_EQ(participant.name, "");
    EXPECT_EQ(participant.host, "h");
    EXPECT_THAT(participant.labels, UnorderedElementsAre(Pair("a", "1"), Pair("b", ""), Pair("c", "")));
}

TEST(PayloadTest, ObjectsAndArraysAreReadUpToSixteenLevels) {
    const auto nested = [](std::size_t arrays) {
        return "{\"id\":\"a\",\"x\":" + std::string(arrays, '[') + std::string(arrays, ']') + "}";
    };
    EXPECT_EQ(read(nested(15)).id, "a");
    EXPECT_EQ(read(nested(16)).id, "");
}

TEST(PayloadTest, OfTwoMembersOfOneNameTheLastOneCounts) {
    EXPECT_EQ(read(R"({"id":"a","pid":1,"id":"b","pid":2})").id, "b");
    EXPECT_EQ(read(R"({"id":"a","pid":1,"id":"b","pid":2})").pid, 2);
}

TEST(PayloadTest, NumbersThatAreNoPidAreIgnored) {
    for (const char* number : {"9223372036854775808", "123456789012345678901234567890", "1e999", "1.5", "1e2"}) {
        EXPECT_EQ(read(R"({"id":"a","pid":)" + std::string(number) + "}").pid, 0) << number;
    }
}

TEST(PayloadTest, TheBytesThatAreWrittenStayTheSame) {  // other versions share the queue
    LockOptions options;
    options.id = "a\xff\n\x7f\"\\/é";
    EXPECT_THAT(write_payload(options, kSomeDay, "acquire", "/l"),
                HasSubstr(R"({"v":1,"id":"a\ufffd\u000a\u007f\"\\/é","host":)"));
}

TEST(PayloadTest, DeepNestingEnds) {
    EXPECT_EQ(read("{\"id\":\"a\",\"x\":" + std::string(100'000, '[') + "}").id, "");
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"x\":";
    EXPECT_EQ(read(objects).id, "");
}

TEST(PayloadTest, AnyBytesAreReadWithoutHarm) {
    std::mt19937 random(5);
    const auto good = write_payload({}, kSomeDay, "acquire", "/l");
    const std::string letters = "{}[]\",:\\u0d8ntrue-+.e";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const int rounds = 10'000;
#else
    const int rounds = 100'000;
#endif
    for (int i = 0; i < rounds; ++i) {
        std::string data = good;
        for (int edits = static_cast<int>(random() % 5) + 1; edits > 0; --edits) {
            const auto at = random() % data.size();
            switch (random() % 4) {
                case 0: data[at] = static_cast<char>(random()); break;
                case 1: data[at] = letters[random() % letters.size()]; break;
                case 2: data.erase(at, random() % 8); break;
                default: data.insert(at, 1, letters[random() % letters.size()]); break;
            }
            if (data.empty()) data = "{";
        }
        const auto participant = read(data);
        EXPECT_EQ(participant.raw, data);
    }
}

}  // namespace
}  // namespace zkrecipes::internal
