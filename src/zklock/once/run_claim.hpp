#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/once/run_record.hpp"

namespace zkrecipes::zklock {

/// The claim of a run with --once-per. Each write happens only while the lock node exists, and only if the record is
/// the one that was read, so of all claimers in the fleet at most one succeeds. A lost answer is settled by reading the
/// record again on the same session: after that read the write cannot happen any more.
///
/// The calls block; the first stop request ends them. Not for concurrent use.
class RunClaim {
public:
    /// The lock is held exclusively.
    RunClaim(const Options& options, Session& session, const Grant& grant);

    struct Claimed {
        Decision decision = Decision::run;  ///< run: this run has claimed the period; done, unknown: another one has
        /// done, unknown: the record of that run. run: the record of the run before, if there is one.
        std::optional<RunRecord> other;
    };
    /// Returns empty after a stop; the period may have been claimed then. Throws Error (lock_lost, no_permission …) and
    /// Failure.
    std::optional<Claimed> claim(std::stop_token stop);

    /// Records that the command has ended. False: not recorded.
    bool record_done(int number, bool signalled, std::stop_token stop);
    /// Records that the lock was lost while the command ran. Waits only a moment.
    bool record_lost(const std::string& reason, std::stop_token stop);
    /// Takes the claim back, because no command was started. False: the record may still say "running".
    bool withdraw(std::stop_token stop);
    /// Whether the record of this run was written, or may have been, also if claim() has thrown.
    bool may_be_written() const noexcept { return may_be_written_; }

    /// The path of the record on the servers.
    const std::string& path_on_servers() const noexcept { return path_on_servers_; }
    const RunRecord& record() const noexcept { return record_; }
    /// Whether the servers have confirmed the record of the outcome.
    bool recorded() const noexcept { return recorded_; }
    /// Whether the record of this run was not there any more when its outcome was to be recorded.
    bool deleted() const noexcept { return deleted_; }
    EpochTime period() const noexcept { return period_; }
    std::string period_text() const { return iso_time(period_); }

private:
    struct Stored {
        std::string data;
        std::int32_t version = 0;
    };
    /// What a write depends on.
    enum class Guard {
        held,        ///< the lock is held, also by our own clock
        node_exists  ///< the lock node exists; after a loss by our own clock it may
    };
    std::optional<Stored> read(Guard guard, Deadline deadline, const std::stop_token& stop);
    void write_claim(const std::optional<Stored>& stored, const std::optional<RunRecord>& other, EpochTime now,
                     const std::stop_token& stop);
    bool replace(const std::optional<std::string>& data, Guard guard, Deadline limit, const std::stop_token& stop);
    bool commit_replacement(const std::optional<std::string>& data, Guard guard, Deadline deadline,
                            const std::stop_token& stop);

    Session& session_;
    const Grant& grant_;
    const std::string path_, path_on_servers_;
    const bool retry_unknown_;
    RunRecord record_;
    EpochTime period_{0};
    std::optional<Stored> before_;  // what the claim replaces
    std::optional<RunRecord> other_;
    bool recorded_ = false;
    bool deleted_ = false;
    bool may_be_written_ = false;
    std::optional<std::int32_t> version_;  // of the record that this run has written
};

}  // namespace zkrecipes::zklock
