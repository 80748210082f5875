#include "zklock/events.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "zklock/console.hpp"
#include "zklock/options.hpp"

namespace zkrecipes::zklock {
namespace {

using Json = nlohmann::json;

class EventsTest : public testing::Test {
protected:
    const testenv::Scratch scratch_;
    const std::filesystem::path directory_ = scratch_.path();
};

TEST_F(EventsTest, EachEventIsOneLineOfJson) {
    const std::string file = (directory_ / "events").string();
    {
        EventLog log(file);
        log.write("acquired", {{"token", 7}});
        log.write("released", {{"held_ms", 12}});
    }
    {
        EventLog log(file);  // appends
        log.write("connected", Json::object());
    }
    std::ifstream stream(file);
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0]["event"], "acquired");
    EXPECT_EQ(lines[0]["token"], 7);
    EXPECT_EQ(lines[0]["v"], 1);
    EXPECT_EQ(lines[0]["ts"].get<std::string>().size(), 24u);
    EXPECT_EQ(lines[2]["event"], "connected");
}

TEST_F(EventsTest, AReaderThatDoesNotReadIsNotWaitedFor) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EventLog log(std::to_string(ends[1]));
    for (int i = 0; i < 5000; ++i) log.write("waiting", {{"position", i}});
    std::string text(1 << 20, '\0');
    const ssize_t size = ::read(ends[0], text.data(), text.size());
    ASSERT_GT(size, 0);
    log.write("resumed", Json::object());
    const ssize_t more = ::read(ends[0], text.data(), text.size());
    const Json last = Json::parse(text.substr(0, static_cast<std::size_t>(more)));
    EXPECT_EQ(last["event"], "resumed");
    EXPECT_GT(last["dropped"], 0);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(EventsTest, WhereNobodyCanWriteIsRefused) {
    EXPECT_THROW(EventLog("987"), Failure);
    EXPECT_THROW(EventLog("99999999999"), Failure);
    EXPECT_THROW(EventLog("/nonexistent/dir/file"), Failure);
    EXPECT_FALSE(EventLog("").wanted());
}

TEST_F(EventsTest, AResultReplacesTheFileInOneStep) {
    const std::string file = (directory_ / "result").string();
    std::ofstream(file) << "old";
    EXPECT_TRUE(write_result(file, {{"exit_code", 0}, {"text", std::string("\xff")}}));
    std::ifstream stream(file);
    EXPECT_EQ(Json::parse(stream)["exit_code"], 0);
    int entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) ++entries;
    EXPECT_EQ(entries, 1);
    EXPECT_FALSE(write_result("/nonexistent/result", {}));
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(EventsTest, AFullPipeTakesNothing) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_TRUE(write_if_ready(ends[1], "x"));
    while (write_if_ready(ends[1], std::string(4096, 'x'))) {
    }
    EXPECT_FALSE(write_if_ready(ends[1], "x"));
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
}  // namespace zkrecipes::zklock
