#include "session/stats/session_log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/default_logger.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::string_view kFromClient = "zookeeper client: ";

LogLevel level_of(spdlog::level::level_enum level) {
    switch (level) {
        case spdlog::level::trace: return LogLevel::trace;
        case spdlog::level::debug: return LogLevel::debug;
        case spdlog::level::info: return LogLevel::info;
        case spdlog::level::warn: return LogLevel::warning;
        default: return LogLevel::error;
    }
}

/// Calls a function for each line, one at a time.
template <class Take>
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit FunctionSink(Take take) : take_(std::move(take)) {}

private:
    void sink_it_(const spdlog::details::log_msg& line) override {
        take_(level_of(line.level), std::string(line.payload.data(), line.payload.size()));
    }
    void flush_() override {}

    Take take_;
};

template <class Take>
spdlog::sink_ptr sink_of(Take take) {
    return std::make_shared<FunctionSink<Take>>(std::move(take));
}

}  // namespace

std::shared_ptr<spdlog::logger> logger_of(const SessionOptions& options, const std::shared_ptr<EventQueue>& events) {
    std::shared_ptr<spdlog::logger> logger = options.logger ? guarded(options.logger) : default_logger();
    if (options.log) {
        auto own = std::make_shared<spdlog::logger>("zkrecipes", sink_of(options.log));
        own->set_level(spdlog::level::trace);
        logger = guarded(std::move(own));
    }
    if (!events) return logger;
    events->log_to(logger);
    auto sinks = logger->sinks();
    auto to_events = sink_of([weak = std::weak_ptr<EventQueue>(events)](LogLevel, std::string text) {
        if (text.starts_with(kFromClient)) return;  // it says so of each connection that fails
        if (const auto queue = weak.lock()) {
            queue->push(EventQueue::Kind::prompt,
                        [text = std::move(text)](SessionEvents& listener) { listener.on_error(text); });
        }
    });
    to_events->set_level(spdlog::level::err);
    sinks.push_back(std::move(to_events));
    auto both = std::make_shared<spdlog::logger>(logger->name(), sinks.begin(), sinks.end());
    both->set_level(logger->level());
    return both;
}

}  // namespace zkrecipes::internal
