#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/runtime.hpp"

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

enum class ClientLogLevel { trace, debug, warn, error };

/// What the C client writes is one line of text: "<time>:<pid>(<thread>):ZOO_WARN@<function>@<line>: <message>".
struct ClientLogLine {
    enum class Severity { debug, info, warn, error } severity = Severity::error;
    std::string_view function;
    std::string_view message;
};
/// A line of another form is an error with the whole line as its message.
ClientLogLine parse_client_log_line(std::string_view line);

/// How much of a line matters to a person. Connecting, closing and authenticating are news for debug only. A server
/// that refuses is worth a warning the first time, and then each time that the number of failures has doubled, until a
/// connection is made. Not thread-safe.
class ClientLogFilter {
public:
    ClientLogLevel level(const ClientLogLine& line);

private:
    std::uint64_t failures_ = 0;  // of connections since the last one that worked
};

using ClientLogFunction = void (*)(const char* line);

/// Carries the lines of a handle to its logger. The C client's function for that has no context, so that each logger in
/// use takes one of a fixed number of functions; those that come when all are taken share the last one, which writes to
/// default_logger().
///
/// The lines come from any thread that calls the C client, mostly with ZkHandle::client_mutex_ held. They are only
/// queued there; the logger, whose sinks may be slow, is called on the notifier lane. When more lines are queued than
/// anybody will read, the rest is counted and dropped.
class ClientLog {
public:
    static std::shared_ptr<ClientLog> open(std::shared_ptr<spdlog::logger> logger, std::shared_ptr<Runtime> runtime);
    virtual ~ClientLog() = default;  // not before the handle has been closed
    virtual ClientLogFunction function() const noexcept = 0;
};

}  // namespace zkrecipes::internal
