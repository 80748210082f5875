#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace zkrecipes::zklock {

/// Since 1970-01-01 00:00 UTC, by the clock of the machine that wrote it.
using EpochTime = std::chrono::milliseconds;
EpochTime epoch_now() noexcept;
std::string iso_time(EpochTime time);
/// The beginning of the period of this length that contains `now`: the last multiple of `per` since 1970.
EpochTime period_start(EpochTime now, std::chrono::milliseconds per) noexcept;

/// What ZooKeeper stores of the latest run with --once-per: the data of the node run_record_path().
struct RunRecord {
    enum class State {
        running,  ///< claimed; the outcome is unknown once the claimer no longer holds the lock
        done,     ///< the command has ended, with whatever exit code
        unknown   ///< zklock stopped the command after a loss
    };
    std::string id;  ///< of the run: no other run has the same
    State state = State::running;
    EpochTime claimed{0};  ///< by the clock of the claimer, but never earlier than in the record before
    std::chrono::milliseconds per{0};
    std::optional<EpochTime> ended;
    std::string host;
    std::int64_t pid = 0;
    std::string name;  ///< of the command
    std::int64_t token = 0;
    std::string node;                      ///< the lock node of the claimer
    std::optional<int> exit_code;          ///< of the command, if it exited
    std::optional<int> signal;             ///< that ended the command
    std::optional<std::string> because{};  ///< `unknown`: the reason of the loss
    bool operator==(const RunRecord&) const = default;
};

/// LOCK.once, beside the lock and not below it: Curator and kazoo take each child of a lock for a contender, and the
/// servers remove an empty lock directory with its data.
std::string run_record_path(const std::string& lock);

boost::json::object to_json(const RunRecord& record);
std::string to_text(const RunRecord& record);
/// Empty: not a record of this or an earlier version.
std::optional<RunRecord> parse_run_record(std::string_view text);

/// `web1 pid 4711 "report"`.
std::string claimer(const RunRecord& record);
/// What is known of the outcome: `exit code 0`, `ended by SIGTERM`, `lost: …`, `no outcome was recorded`.
std::string outcome_in_words(const RunRecord& record);

enum class Decision {
    run,      ///< nobody has claimed this period, or the claim may be repeated
    ours,     ///< this run has claimed it already: the answer to its write was lost
    done,     ///< another run has claimed it and has ended
    unknown,  ///< another run has claimed it, and nobody knows how it ended
};
/// Decides for a claimer that holds the lock exclusively and has read the record under it: a record that still says
/// "running" belongs to a claimer that no longer holds the lock. Pure. A claim counts for the period that begins at
/// `start` if it was made then or later, so a clock that goes backwards opens no period twice.
Decision decide(const std::optional<RunRecord>& record, EpochTime start, bool retry_unknown, const std::string& own_id);

}  // namespace zkrecipes::zklock
