#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "client/zk_log.hpp"

namespace zkrecipes::internal {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Severity = ClientLogLine::Severity;

std::string line(const std::string& severity, const std::string& message, const std::string& function = "f") {
    return "2026-11-21 07:00:00,123:4242(0x7f0011223344):ZOO_" + severity + "@" + function + "@2528: " + message;
}

TEST(ClientLogTest, ALineIsTakenApart) {
    const std::string text = line("WARN", "Exceeded deadline by 11ms: really", "zookeeper_interest") + "\n";
    const ClientLogLine parsed = parse_client_log_line(text);
    EXPECT_EQ(parsed.severity, Severity::warn);
    EXPECT_EQ(parsed.function, "zookeeper_interest");
    EXPECT_EQ(parsed.message, "Exceeded deadline by 11ms: really");
    EXPECT_EQ(parse_client_log_line(line("ERROR", "x")).severity, Severity::error);
    EXPECT_EQ(parse_client_log_line(line("INFO", "x")).severity, Severity::info);
    EXPECT_EQ(parse_client_log_line(line("DEBUG", "x")).severity, Severity::debug);
}

TEST(ClientLogTest, ALineOfAnotherFormIsAnErrorAsItStands) {
    for (const char* text : {"", "something else", "a:ZOO_INFO@", "a:ZOO_INFO@f", ":ZOO_WARN@f@1 no colon"}) {
        const ClientLogLine parsed = parse_client_log_line(text);
        EXPECT_EQ(parsed.severity, Severity::error) << text;
        EXPECT_EQ(parsed.message, text);
    }
}

ClientLogLevel level_of(ClientLogFilter& filter, const std::string& text) {
    return filter.level(parse_client_log_line(text));
}

TEST(ClientLogTest, WhatHappensAlwaysIsForDebugOnly) {
    ClientLogFilter filter;
    for (const char* message : {"Initiating client connection, host=127.0.0.1:2181", "Closing zookeeper sessionId=0x1",
                                "session establishment complete on server 127.0.0.1:2181"}) {
        EXPECT_EQ(level_of(filter, line("INFO", message)), ClientLogLevel::debug);
    }
    EXPECT_EQ(level_of(filter, line("WARN", "Delaying connection after exhaustively trying all servers [a:1]")),
              ClientLogLevel::debug);
    EXPECT_EQ(level_of(filter, line("WARN", "Exceeded deadline by 11ms")), ClientLogLevel::debug);
    EXPECT_EQ(level_of(filter, line("DEBUG", "Got ping response in 1 ms")), ClientLogLevel::trace);
}

TEST(ClientLogTest, WhatAPersonMustKnowIsAWarningOrAnError) {
    ClientLogFilter filter;
    EXPECT_EQ(level_of(filter, line("WARN", "Timed out (1500ms) during waiting for server's reply")),
              ClientLogLevel::warn);
    EXPECT_EQ(level_of(filter, line("ERROR", "Authentication scheme digest failed. Connection closed.")),
              ClientLogLevel::error);
    EXPECT_EQ(level_of(filter, line("ERROR",
                                    "Socket 127.0.0.1:1 zk retcode=-112, errno=116(Stale file handle): "
                                    "sessionId=0x1 has expired.")),
              ClientLogLevel::warn);
}

TEST(ClientLogTest, AnOutageIsToldTheFirstTimeAndAtEachDoublingUntilAConnectionIsMade) {
    ClientLogFilter filter;
    const std::string refused =
        line("ERROR", "Socket 127.0.0.1:1 zk retcode=-4, errno=111(Connection refused): x", "handle_socket_error_msg");
    std::set<int> told;
    for (int i = 1; i <= 100; ++i) {
        if (level_of(filter, refused) == ClientLogLevel::warn) told.insert(i);
    }
    EXPECT_EQ(told, (std::set<int>{1, 2, 4, 8, 16, 32, 64}));
    level_of(filter, line("INFO", "session establishment complete on server 127.0.0.1:2181, sessionId=0x1"));
    EXPECT_EQ(level_of(filter, refused), ClientLogLevel::warn);
}

/// A logger whose text can be read, and the runtime that calls it.
class ClientLogFunctionTest : public testing::Test {
protected:
    std::shared_ptr<spdlog::logger> make_logger(std::ostringstream& out) {
        return std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
    }
    std::shared_ptr<Runtime> runtime_ = make_thread_runtime();
};

TEST_F(ClientLogFunctionTest, TheLinesOfEachHandleGoToItsLogger) {
    std::ostringstream first_text;
    std::ostringstream second_text;
    {
        const auto first = ClientLog::open(make_logger(first_text), runtime_);
        const auto second = ClientLog::open(make_logger(second_text), runtime_);
        EXPECT_NE(first->function(), second->function());
        first->function()(line("ERROR", "one").c_str());
        second->function()(line("ERROR", "two").c_str());
    }
    runtime_->stop();
    EXPECT_THAT(first_text.str(), HasSubstr("[error] zookeeper client: one"));
    EXPECT_THAT(first_text.str(), Not(HasSubstr("two")));
    EXPECT_THAT(second_text.str(), HasSubstr("[error] zookeeper client: two"));
}

TEST_F(ClientLogFunctionTest, HandlesWithTheSameLoggerShareAFunctionUntilTheLastOneIsClosed) {
    std::ostringstream text;
    const auto logger = make_logger(text);
    auto first = ClientLog::open(logger, runtime_);
    const auto second = ClientLog::open(logger, runtime_);
    EXPECT_EQ(first->function(), second->function());
    first.reset();
    second->function()(line("ERROR", "still there").c_str());
    runtime_->stop();
    EXPECT_THAT(text.str(), HasSubstr("still there"));
}

TEST_F(ClientLogFunctionTest, AFunctionThatNobodyUsesIsSilent) {
    std::ostringstream text;
    auto log = ClientLog::open(make_logger(text), runtime_);
    const ClientLogFunction function = log->function();
    log.reset();
    function(line("ERROR", "late").c_str());
    runtime_->stop();
    EXPECT_THAT(text.str(), IsEmpty());
}

TEST_F(ClientLogFunctionTest, WhatWasNotWrittenWhenTheLastHandleWasClosedIsForgotten) {
    std::ostringstream first_text;
    auto logger = make_logger(first_text);
    const std::weak_ptr<spdlog::logger> first = logger;
    auto log = ClientLog::open(std::move(logger), runtime_);
    const ClientLogFunction function = log->function();
    runtime_->stop();
    function(line("ERROR", "too late").c_str());
    log.reset();
    EXPECT_TRUE(first.expired());

    std::ostringstream second_text;
    const auto runtime = make_thread_runtime();
    log = ClientLog::open(make_logger(second_text), runtime);
    ASSERT_EQ(log->function(), function);
    function(line("ERROR", "of the next one").c_str());
    runtime->stop();
    EXPECT_THAT(second_text.str(), HasSubstr("of the next one"));
    EXPECT_THAT(second_text.str(), Not(HasSubstr("too late")));
    EXPECT_THAT(first_text.str(), IsEmpty());
}

/// A runtime that drops a line only when the next session writes with the same function.
class DropsLater final : public Runtime {
public:
    Instant now() const noexcept override { return {}; }
    Deadline::TimePoint steady_now() const noexcept override { return {}; }
    std::chrono::system_clock::time_point wall_now() const noexcept override { return {}; }
    std::uint64_t random() noexcept override { return 0; }
    TimerId at(Instant, std::function<void()>) override { return 0; }
    bool cancel(TimerId) noexcept override { return false; }
    void post(Lane, std::function<void()> work) override { kept_.push_back(std::move(work)); }
    void stop() noexcept override { kept_.clear(); }

private:
    std::vector<std::function<void()>> kept_;
};

TEST_F(ClientLogFunctionTest, ALineThatIsDroppedAfterTheNextHandleWasOpenedIsForgottenToo) {
    std::ostringstream first_text;
    std::ostringstream second_text;
    const auto drops = std::make_shared<DropsLater>();
    auto first = ClientLog::open(make_logger(first_text), drops);
    const ClientLogFunction function = first->function();
    function(line("ERROR", "one").c_str());
    first.reset();
    const auto second = ClientLog::open(make_logger(second_text), runtime_);
    ASSERT_EQ(second->function(), function);
    function(line("ERROR", "two").c_str());
    drops->stop();
    function(line("ERROR", "three").c_str());
    runtime_->stop();
    EXPECT_THAT(first_text.str(), IsEmpty());
    EXPECT_THAT(second_text.str(), HasSubstr("two"));
    EXPECT_THAT(second_text.str(), HasSubstr("three"));
}

TEST_F(ClientLogFunctionTest, MoreLoggersThanFunctionsWriteToTheDefaultLogger) {
    std::ostringstream text;
    std::vector<std::shared_ptr<ClientLog>> logs;
    std::set<ClientLogFunction> functions;
    for (int i = 0; i < 200; ++i) {
        logs.push_back(ClientLog::open(make_logger(text), runtime_));
        functions.insert(logs.back()->function());
    }
    EXPECT_EQ(functions.size(), 64U);
    EXPECT_EQ(logs.back()->function(), logs[100]->function());
    logs.clear();
    const auto again = ClientLog::open(make_logger(text), runtime_);
    again->function()(line("ERROR", "free again").c_str());
    runtime_->stop();
    EXPECT_THAT(text.str(), HasSubstr("free again"));
}

TEST_F(ClientLogFunctionTest, ThoseThatShareTheLastFunctionOutliveEachOther) {
    std::ostringstream text;
    std::ostringstream shared_text;
    const auto shared_logger =
        std::make_shared<spdlog::logger>("zkrecipes", std::make_shared<spdlog::sinks::ostream_sink_mt>(shared_text));
    spdlog::register_logger(shared_logger);
    std::vector<std::shared_ptr<ClientLog>> logs;
    for (int i = 0; i < 64; ++i) logs.push_back(ClientLog::open(make_logger(text), runtime_));
    const auto other_runtime = make_thread_runtime();
    auto other = ClientLog::open(make_logger(text), other_runtime);
    spdlog::drop("zkrecipes");
    ASSERT_EQ(other->function(), logs.back()->function());
    other_runtime->stop();
    other->function()(line("ERROR", "while it was stopped").c_str());
    other.reset();
    logs.back()->function()(line("ERROR", "after it was closed").c_str());
    runtime_->stop();
    EXPECT_THAT(shared_text.str(), HasSubstr("while it was stopped"));
    EXPECT_THAT(shared_text.str(), HasSubstr("after it was closed"));
}

TEST_F(ClientLogFunctionTest, ALoggerThatIsSlowHoldsUpNobodyAndTheRestIsCounted) {
    std::ostringstream text;
    const auto log = ClientLog::open(make_logger(text), runtime_);
    std::mutex mutex;
    std::condition_variable changed;
    bool go_on = false;
    runtime_->post(Lane::notifier, [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return go_on; });
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) log->function()(line("ERROR", "line").c_str());
        });
    }
    for (auto& thread : threads) thread.join();
    {
        const std::lock_guard lock(mutex);
        go_on = true;
        changed.notify_all();
    }
    runtime_->stop();
    std::size_t lines = 0;
    for (const char c : text.str()) lines += c == '\n' ? 1 : 0;
    EXPECT_EQ(lines, 1001U);
    EXPECT_THAT(text.str(), HasSubstr("1000 lines were dropped"));
}

TEST_F(ClientLogFunctionTest, TheLevelOfTheLoggerCounts) {
    std::ostringstream text;
    const auto logger = make_logger(text);
    logger->set_level(spdlog::level::info);
    const auto log = ClientLog::open(logger, runtime_);
    log->function()(line("INFO", "Initiating client connection").c_str());
    runtime_->stop();
    EXPECT_THAT(text.str(), IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::internal
