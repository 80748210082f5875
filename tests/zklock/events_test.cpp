#include "zklock/report/events.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <zkrecipes/testenv/scratch.hpp>
#include "zklock/parsed_json.hpp"

#include "modes_count.hpp"
#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/result.hpp"
#include "zklock/system/result_file.hpp"

namespace zkrecipes::zklock {
namespace {

bool write_object(const std::string& file, const boost::json::object& object) {
    return write_result(file, dump(object) + "\n");
}

std::string all_of(std::ifstream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

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
        log.write("connected", {});
    }
    std::ifstream stream(file);
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0]["event"], "acquired");
    EXPECT_EQ(lines[0]["token"], 7);
    EXPECT_EQ(lines[0]["v"], 1);
    EXPECT_EQ(lines[0]["ts"].text().size(), 24u);
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
    log.write("resumed", {});
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
    EXPECT_TRUE(write_object(file, {{"exit_code", 0}, {"text", std::string("\xff")}}));
    std::ifstream stream(file);
    EXPECT_EQ(Json::parse(all_of(stream))["exit_code"], 0);
    int entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) ++entries;
    EXPECT_EQ(entries, 1);
    EXPECT_FALSE(write_object("/nonexistent/result", {}));
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(EventsTest, AResultInAPipeOrBehindALinkLeavesThemWhatTheyAre) {
    const std::string pipe = (directory_ / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(write_object(pipe, {{"exit_code", 1}})) << "nobody reads, and nobody is waited for";
    EXPECT_EQ(errno, ENXIO);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    forget_result(pipe);
    EXPECT_TRUE(write_object(pipe, {{"exit_code", 7}}));
    char text[100] = {};
    EXPECT_GT(::read(reader, text, sizeof text - 1), 0);
    ::close(reader);
    EXPECT_EQ(Json::parse(text)["exit_code"], 7);
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));

    std::ofstream(directory_ / "file") << "a long line of yesterday, longer than what is written today";
    std::filesystem::create_symlink("file", directory_ / "link");
    EXPECT_TRUE(write_object((directory_ / "link").string(), {{"exit_code", 7}}));
    EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
    std::ifstream stream(directory_ / "file");
    EXPECT_EQ(Json::parse(all_of(stream))["exit_code"], 7);
}

TEST_F(EventsTest, AnOldResultIsForgottenAndNothingElse) {
    for (const char* name : {"old", "target"}) std::ofstream(directory_ / name) << "old";
    std::filesystem::create_symlink("target", directory_ / "link");
    ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
    for (const char* name : {"old", "link", "pipe", "missing"}) forget_result((directory_ / name).string());
    EXPECT_FALSE(std::filesystem::exists(directory_ / "old"));
    EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
    EXPECT_EQ(std::filesystem::file_size(directory_ / "target"), 0u);
    EXPECT_TRUE(std::filesystem::is_fifo(directory_ / "pipe"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "missing"));
}

TEST_F(EventsTest, WhereTheDirectoryTakesNoFileAResultIsForgottenAndWrittenInPlace) {
    const std::filesystem::path shut = directory_ / "shut";
    const std::string file = (shut / "result").string();
    std::filesystem::create_directory(shut);
    std::ofstream(file) << "a long line of yesterday, longer than what is written today";
    const test::ModesCount count;
    ASSERT_TRUE(count);
    std::filesystem::permissions(shut, std::filesystem::perms(0555));
    forget_result(file);
    EXPECT_EQ(std::filesystem::file_size(file), 0u);
    EXPECT_TRUE(write_object(file, {{"exit_code", 70000}}));
    EXPECT_TRUE(write_object(file, {{"exit_code", 7}}));
    std::ifstream stream(file);
    EXPECT_EQ(Json::parse(all_of(stream))["exit_code"], 7);
    EXPECT_FALSE(write_object((shut / "other").string(), {}));
    EXPECT_EQ(errno, EACCES);
    std::filesystem::permissions(shut, std::filesystem::perms(0755));
}

TEST_F(EventsTest, ADraftThatSomebodyElseHasPutThereIsNotWrittenTo) {
    const std::string file = (directory_ / "result").string();
    std::ofstream(directory_ / "precious") << "theirs";
    std::filesystem::create_hard_link(directory_ / "precious", file + ".tmp" + std::to_string(::getpid()));
    EXPECT_TRUE(write_object(file, {{"exit_code", 7}}));
    std::ifstream stream(directory_ / "precious");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "theirs");
}

TEST_F(EventsTest, AResultIsLookedAfterBeforehandWithoutATrace) {
    Options options;
    options.result = (directory_ / "result").string();
    EXPECT_NO_THROW(require_result(options));
    options.result = (directory_ / std::string(255, 'r')).string();  // no room for a draft
    EXPECT_NO_THROW(require_result(options));
    EXPECT_TRUE(std::filesystem::is_empty(directory_));
    options.result = (directory_ / "pipe").string();
    ASSERT_EQ(::mkfifo(options.result.c_str(), 0600), 0);
    EXPECT_NO_THROW(require_result(options)) << "its reader may come later";
    options.result = (directory_ / "missing" / "result").string();
    EXPECT_THROW(require_result(options), Failure);
    EXPECT_EQ(options.result, "") << "it would be tried again";
}

TEST_F(EventsTest, AResultWhoseNameLeavesNoRoomForADraftIsWrittenInPlace) {
    const std::string file = (directory_ / std::string(255, 'r')).string();
    EXPECT_TRUE(write_object(file, {{"exit_code", 7}}));
    std::ifstream stream(file);
    EXPECT_EQ(Json::parse(all_of(stream))["exit_code"], 7);
}

TEST_F(EventsTest, TheRestOfALongLineComesBeforeTheNextOne) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_GT(::fcntl(ends[1], F_SETPIPE_SZ, 8192), 0);
    const std::string path(10'000, 'x');
    EventLog log(std::to_string(ends[1]));
    log.write("acquired", {{"path", path}});
    log.write("child_started", {});  // dropped: the pipe is full, in the middle of the line before
    std::string text;
    const auto read_some = [&] {
        char buffer[16384];
        const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
        ASSERT_GT(size, 0);
        text.append(buffer, static_cast<std::size_t>(size));
    };
    read_some();
    log.write("released", {});
    read_some();
    ::close(ends[0]);
    ::close(ends[1]);
    std::istringstream stream(text);
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    ASSERT_EQ(lines.size(), 2u) << text;
    EXPECT_EQ(lines[0]["path"], path);
    EXPECT_EQ(lines[1]["event"], "released");
    EXPECT_EQ(lines[1]["dropped"], 1);
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
