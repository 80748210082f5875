#include "zklock/report/result.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "zklock/command_line/exit_codes.hpp"
#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/system/result_file.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {
namespace {

nlohmann::json with_message(nlohmann::json object, const char* message) {
    const std::string_view text = message;
    object["message"] = std::string(text.substr(0, text.find('\n')));  // without the advice to read the help
    return object;
}

/// Of the exception that is being handled.
nlohmann::json failure_object(const Options& options) {
    try {
        throw;
    } catch (const Failure& failure) {
        return with_message(result_object(options, failure.outcome, failure.code), failure.what());
    } catch (const Interrupted& interrupted) {
        nlohmann::json object = result_object(options, "interrupted", kSignalBase + interrupted.signal);
        object["signal"] = interrupted.signal;
        return object;
    } catch (const std::system_error& error) {
        return with_message(result_object(options, "error", kOsError), error.what());
    } catch (const std::exception& error) {
        return with_message(result_object(options, "error", kInternal), error.what());
    }
}

}  // namespace

nlohmann::json lock_fields(const Options& options, const std::vector<std::string>& nodes) {
    if (!options.together) {
        nlohmann::json fields = {{"path", options.lock}};
        if (!nodes.empty()) fields["node"] = nodes.front();
        return fields;
    }
    nlohmann::json locks = nlohmann::json::array();
    for (std::size_t i = 0; i < options.locks.size(); ++i) {
        locks.push_back({{"path", options.locks[i].path}, {"mode", mode_name(options.locks[i].mode)}});
        if (i < nodes.size()) locks.back()["node"] = nodes[i];
    }
    return {{"locks", std::move(locks)}};
}

nlohmann::json result_object(const Options& options, const char* outcome, int code,
                             const std::vector<std::string>& nodes) {
    nlohmann::json object = {{"v", 1}, {"ts", timestamp_now()}, {"outcome", outcome}, {"exit_code", code}};
    object.update(lock_fields(options, nodes));
    return object;
}

void require_result(Options& options) {
    if (options.result.empty() || can_write_result(options.result)) return;
    const std::string why = std::strerror(errno);
    throw Failure(kIoError, "--result " + std::exchange(options.result, {}) + ": " + why);
}

bool report(const Options& options, Console& console, const nlohmann::json& object) {
    if (options.result.empty() || write_result(options.result, dump(object) + "\n")) return true;
    console.error("--result " + options.result + ": " + std::strerror(errno));
    return false;
}

int conclude(const Options& options, Console& console, EventLog& events, nlohmann::json object) {
    int code = object["exit_code"];
    if (const std::string why = events.failure(); !why.empty()) {
        console.error(why + "; what happened is not written there in full");
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
