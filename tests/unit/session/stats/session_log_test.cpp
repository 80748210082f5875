// Log sinks of the user that throw, and those whose level changes.
#include "session/stats/session_log.hpp"

#include <gmock/gmock.h>
#include <spdlog/sinks/base_sink.h>

#include <functional>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include <spdlog/sinks/ostream_sink.h>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ThrowingSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit ThrowingSink(std::function<void()> act) : act_(std::move(act)) {}

private:
    void sink_it_(const spdlog::details::log_msg&) override { act_(); }
    void flush_() override { act_(); }
    const std::function<void()> act_;
};

class Errors final : public SessionEvents {
public:
    void on_error(const std::string& text) override { told.push_back(text); }
    std::vector<std::string> told;
};

class SessionLogTest : public SessionTest {
protected:
    static std::shared_ptr<spdlog::logger> throwing(std::function<void()> act) {
        auto out = std::make_shared<spdlog::logger>("test", std::make_shared<ThrowingSink>(std::move(act)));
        out->flush_on(spdlog::level::info);
        return out;
    }
    /// Loses a hold, and writes lines on the way.
    void expect_a_whole_life() {
        std::vector<SessionState> states;
        clients = std::make_shared<FakeClientFactory>(runtime = std::make_shared<FakeRuntime>());
        open_connected(1);
        const auto subscription = core->watch_state([&](SessionState state) {
            states.push_back(state);
            throw 1;
        });
        const auto held = hold("/l/a");
        runtime->run();
        client().disconnect();
        runtime->advance(5s);
        EXPECT_TRUE(held->lost().stop_requested());
        client().connect(1);
        runtime->run();
        EXPECT_THAT(states, ElementsAre(SessionState::connected, SessionState::suspended, SessionState::connected));
        core->notify([] { throw 1; });
        core->run_locked_or_post([] { throw 1; });  // a failed step closes the session
        runtime->run();
        EXPECT_EQ(states.back(), SessionState::closed);
        runtime->while_running([&] { core->close(); });
        destroy();
    }
};

TEST_F(SessionLogTest, ASinkThatThrowsDisturbsNobody) {
    options.logger = throwing([] { throw 1; });
    expect_a_whole_life();
    options.logger = throwing([] { throw std::runtime_error("full"); });
    options.logger->set_error_handler([](const std::string& text) { throw std::logic_error(text); });
    expect_a_whole_life();
}

TEST_F(SessionLogTest, AFunctionThatThrowsDisturbsNobody) {
    options.logger = nullptr;
    options.log = [](LogLevel, const std::string&) { throw 1; };
    expect_a_whole_life();
}

TEST_F(SessionLogTest, ErrorsAreToldWhateverTheSinkThrows) {
    const auto errors = std::make_shared<Errors>();
    options.events = errors;
    options.logger = throwing([] { throw 1; });
    expect_a_whole_life();
    EXPECT_THAT(errors->told, Contains(HasSubstr("an internal step failed: something that is not a std::exception")));
}

TEST_F(SessionLogTest, OnlyErrorsAreToldAsErrors) {
    const auto errors = std::make_shared<Errors>();
    options.events = errors;
    options.logger->set_level(spdlog::level::trace);
    open();
    core->log().warn("a warning");
    core->log().error("an error");
    runtime->run();
    EXPECT_THAT(errors->told, ElementsAre("an error"));
}

TEST_F(SessionLogTest, TheLevelOfTheLoggerMayChange) {
    std::ostringstream text;
    options.logger = std::make_shared<spdlog::logger>("mine", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    options.logger->set_level(spdlog::level::err);
    options.events = std::make_shared<Errors>();
    open();
    core->log().info("before");
    options.logger->set_level(spdlog::level::info);
    core->log().info("after");
    destroy();  // which writes into `text`
    EXPECT_THAT(text.str(), Not(HasSubstr("before")));
    EXPECT_THAT(text.str(), HasSubstr("[mine] [info] after"));
}

}  // namespace
}  // namespace zkrecipes::testing
