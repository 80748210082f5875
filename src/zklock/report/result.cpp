#include "zklock/report/result.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "zklock/command_line/exit_codes.hpp"
#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/system/result_file.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {
namespace {

boost::json::object with_message(boost::json::object object, const char* message) {
    const std::string_view text = message;
    object["message"] = std::string(text.substr(0, text.find('\n')));  // without the hint to the help
    return object;
}

/// The result of the exception that is being handled.
boost::json::object failure_object(const Options& options) {
    try {
        throw;
    } catch (const Failure& failure) {
        return with_message(result_object(options, failure.outcome, failure.code), failure.what());
    } catch (const Interrupted& interrupted) {
        boost::json::object object = result_object(options, "interrupted", kSignalBase + interrupted.signal);
        object["signal"] = interrupted.signal;
        return object;
    } catch (const std::system_error& error) {
        return with_message(result_object(options, "error", kOsError), error.what());
    } catch (const std::exception& error) {
        return with_message(result_object(options, "error", kInternal), error.what());
    }
}

}  // namespace

boost::json::object lock_fields(const Options& options, const std::vector<std::string>& nodes) {
    if (!options.together) {
        boost::json::object fields = {{"path", options.lock}};
        if (!nodes.empty()) fields["node"] = nodes.front();
        return fields;
    }
    boost::json::array locks;
    for (std::size_t i = 0; i < options.locks.size(); ++i) {
        boost::json::object fields = {{"path", options.locks[i].path}, {"mode", mode_name(options.locks[i].mode)}};
        if (i < nodes.size()) fields["node"] = nodes[i];
        locks.push_back(std::move(fields));
    }
    return {{"locks", std::move(locks)}};
}

boost::json::object result_object(const Options& options, const char* outcome, int code,
                                  const std::vector<std::string>& nodes) {
    boost::json::object object = {{"v", 1}, {"ts", timestamp_now()}, {"outcome", outcome}, {"exit_code", code}};
    merge(object, lock_fields(options, nodes));
    return object;
}

void require_result(Options& options) {
    if (options.result.empty() || can_write_result(options.result)) return;
    const std::string why = std::strerror(errno);
    throw Failure(kIoError, "--result " + std::exchange(options.result, {}) + ": " + why);
}

bool report(const Options& options, Console& console, const boost::json::object& object) {
    if (options.result.empty() || write_result(options.result, dump(object) + "\n")) return true;
    console.error("--result " + options.result + ": " + std::strerror(errno));
    return false;
}

int conclude(const Options& options, Console& console, EventLog& events, boost::json::object object) {
    int code = static_cast<int>(object.at("exit_code").as_int64());
    if (const std::string why = events.failure(); !why.empty()) {
        console.error(why + "; the events are incomplete");
        if (code == kOk) code = kIoError;
        object["exit_code"] = code;
    }
    return report(options, console, object) || code != kOk ? code : kIoError;
}

bool report_failure(const Options& options) {
    if (options.result.empty()) return true;
    Console console(options);  // there may be none yet
    return report(options, console, failure_object(options));
}

}  // namespace zkrecipes::zklock
