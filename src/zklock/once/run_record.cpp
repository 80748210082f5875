#include "zklock/once/run_record.hpp"

#include <signal.h>
#include <string.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <ctime>

#include "zklock/report/json.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

constexpr std::array<const char*, 3> kStates = {"running", "done", "unknown"};

std::optional<RunRecord::State> state_named(std::string_view name) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
        if (name == kStates[i]) return static_cast<RunRecord::State>(i);
    }
    return std::nullopt;
}

/// Times that no clock shows would overflow. This is the year 2255.
constexpr EpochTime kFar(9'000'000'000'000);

/// Reads fields of an object. A field that is missing, of another type or out of range makes it incomplete.
class FieldReader {
public:
    explicit FieldReader(const boost::json::object& object) : object_(object) {}

    std::string text(const char* key) {
        const auto* const found = object_.if_contains(key);
        if (found && found->is_string()) return std::string(found->as_string());
        complete_ = false;
        return {};
    }
    std::int64_t number(const char* key) {
        const auto* const found = object_.if_contains(key);
        if (found && found->is_int64()) return found->as_int64();
        complete_ = false;
        return 0;
    }
    EpochTime time(const char* key) {
        const EpochTime value(number(key));
        complete_ = complete_ && value >= -kFar && value <= kFar;
        return value;
    }
    std::optional<int> optional_int(const char* key) {
        if (!object_.if_contains(key)) return std::nullopt;
        const std::int64_t value = number(key);
        complete_ = complete_ && value >= 0 && value <= 255;
        return static_cast<int>(value);
    }
    std::optional<std::string> optional_text(const char* key) {
        if (!object_.if_contains(key)) return std::nullopt;
        return text(key);
    }
    bool complete() const noexcept { return complete_; }

private:
    const boost::json::object& object_;
    bool complete_ = true;
};

}  // namespace

EpochTime epoch_now() noexcept {
    return std::chrono::floor<EpochTime>(std::chrono::system_clock::now().time_since_epoch());
}

std::string iso_time(EpochTime time) {
    const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(time).count();
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

EpochTime period_start(EpochTime now, std::chrono::milliseconds per) noexcept {
    const auto into = now % per;
    return now - (into.count() < 0 ? into + per : into);
}

std::string run_record_path(const std::string& lock) { return lock + ".once"; }

boost::json::object to_json(const RunRecord& record) {
    boost::json::object object = {{"v", 1},
                                  {"state", kStates[static_cast<std::size_t>(record.state)]},
                                  {"id", record.id},
                                  {"claimed", iso_time(record.claimed)},
                                  {"claimed_ms", record.claimed.count()},
                                  {"per_ms", record.per.count()},
                                  {"host", record.host},
                                  {"pid", record.pid},
                                  {"name", record.name},
                                  {"token", record.token},
                                  {"node", record.node}};
    if (record.ended) {
        object["ended"] = iso_time(*record.ended);
        object["ended_ms"] = record.ended->count();
    }
    if (record.exit_code) object["code"] = *record.exit_code;
    if (record.signal) object["signal"] = *record.signal;
    if (record.because) object["reason"] = *record.because;
    return object;
}

std::string to_text(const RunRecord& record) { return dump(to_json(record)); }

std::optional<RunRecord> parse_run_record(std::string_view text) {
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(text, error);
    if (error || !value.is_object()) return std::nullopt;
    FieldReader fields(value.as_object());
    const auto state = state_named(fields.text("state"));
    if (!state || fields.number("v") != 1) return std::nullopt;
    RunRecord record;
    record.state = *state;
    record.id = fields.text("id");
    record.claimed = fields.time("claimed_ms");
    record.per = fields.time("per_ms");
    record.ended = value.as_object().contains("ended_ms") ? std::optional(fields.time("ended_ms")) : std::nullopt;
    record.host = fields.text("host");
    record.pid = fields.number("pid");
    record.name = fields.text("name");
    record.token = fields.number("token");
    record.node = fields.text("node");
    record.exit_code = fields.optional_int("code");
    record.signal = fields.optional_int("signal");
    record.because = fields.optional_text("reason");
    if (!fields.complete() || record.per <= record.per.zero()) return std::nullopt;
    return record;
}

std::string claimer(const RunRecord& record) {
    return printable(record.host + " pid " + std::to_string(record.pid) + " \"" + record.name + "\"");
}

std::string outcome_in_words(const RunRecord& record) {
    std::string text;
    if (record.exit_code) {
        text = "exit code " + std::to_string(*record.exit_code);
    } else if (record.signal) {
        const char* const name = ::sigabbrev_np(*record.signal);
        text = "ended by SIG" + (name ? std::string(name) : std::to_string(*record.signal));
    }
    if (record.because) return "the lock was lost while the command ran: " + printable(*record.because);
    return text.empty() ? "no outcome was recorded" : text;
}

Decision decide(const std::optional<RunRecord>& record, EpochTime start, bool retry_unknown,
                const std::string& own_id) {
    if (!record) return Decision::run;
    if (record->id == own_id) return Decision::ours;
    if (record->claimed < start) return Decision::run;
    if (record->state == RunRecord::State::done) return Decision::done;
    return retry_unknown ? Decision::run : Decision::unknown;
}

}  // namespace zkrecipes::zklock
