#include "base/default_logger.hpp"

#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "base/threads/about_to_block.hpp"

namespace zkrecipes::internal {
namespace {

class GuardedSink final : public spdlog::sinks::sink {
public:
    explicit GuardedSink(std::shared_ptr<spdlog::logger> users) : users_(std::move(users)) {}

    void log(const spdlog::details::log_msg& line) override {
        if (!users_->should_log(line.level)) return;
        about_to_block();
        try {
            users_->log(line.source, line.level, line.payload);
        } catch (...) {
            // The line is lost. spdlog catches what is a std::exception; its error handler may throw, too.
        }
    }
    void flush() override {}
    void set_pattern(const std::string&) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

private:
    const std::shared_ptr<spdlog::logger> users_;
};

}  // namespace

std::shared_ptr<spdlog::logger> guarded(std::shared_ptr<spdlog::logger> users) {
    const std::string name = users->name();
    auto out = std::make_shared<spdlog::logger>(name, std::make_shared<GuardedSink>(std::move(users)));
    out->set_level(spdlog::level::trace);  // the level of `users` decides, also when it changes
    return out;
}

std::shared_ptr<spdlog::logger> default_logger() {
    if (auto registered = spdlog::get("zkrecipes")) return guarded(std::move(registered));
    // Not registered by us: the name is the user's to take, at any time. Never destroyed: a session may outlive main().
    static const auto& to_stderr = *new std::shared_ptr<spdlog::logger>(
        guarded(std::make_shared<spdlog::logger>("zkrecipes", std::make_shared<spdlog::sinks::stderr_sink_mt>())));
    return to_stderr;
}

}  // namespace zkrecipes::internal
