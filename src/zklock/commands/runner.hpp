#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/json/fwd.hpp>

#include "zklock/commands/lock_session.hpp"
#include "zklock/once/run_claim.hpp"
#include "zklock/process/supervised_child.hpp"
#include "zklock/process/supervisor.hpp"
#include "zklock/system/terminal.hpp"

namespace zkrecipes::zklock {

struct LostBeforeStart : Failure {
    explicit LostBeforeStart(int exit_code)
        : Failure(exit_code, "the lock was lost before the command was started", "lost") {}
};

/// The signal of which zklock dies; 0: it exits.
struct Death {
    int signal = 0;
    bool whole_group = false;  ///< see Signals::die_of
};

/// Runs the command under a lock that is held, and releases the lock when all its processes have ended. One poll loop
/// on the main thread reports events to the Supervisor and executes its actions.
class Runner {
public:
    Runner(const Options& options, Console& console, EventLog& events, Signals& signals, LockSession& lock,
           DeadMansSwitch& dead_man, const Inheritance& inheritance, bool whole_tree, RunClaim* claim = nullptr);
    ~Runner();

    /// Returns the exit code. Throws Failure (for example LostBeforeStart), or Interrupted if a signal arrives before
    /// the command starts.
    int run();

    bool started() const noexcept { return child_ != nullptr; }
    bool failed_to_start() const noexcept { return start_failure_.has_value(); }
    const char* outcome() const;
    bool lost() const noexcept { return too_late_ || (!start_failure_ && supervisor_.end() == Supervisor::End::lost); }
    std::string loss_reason() const { return too_late_ ? start_problem_ : supervisor_.lost_reason(); }
    bool asked_to_stop() const noexcept { return supervisor_.asked_to_stop(); }
    /// The signal of which zklock has to die after run(), instead of exiting.
    Death death() const;
    boost::json::object details() const;  ///< for --result

private:
    void wait_for_a_lease_worth_starting();
    void start();
    void loop();
    void wait(Instant until);
    void read_lease();
    void follow_the_session_timeout();
    void read_event_queue();
    void read_signals();
    bool not_yet() const;
    void read_start();
    void fail_to_start(int code, const std::string& why);
    void read_children();
    int record_run();
    void give_the_terminal();
    void let_our_group_have_the_terminal();
    void stop_with_the_job(int signal);
    void stop_with_zklock();
    void go_on_after_stop();
    void perform(const Actions& actions);
    void look_for_changed_users();
    void report_out_of_reach(int refused_signal);
    std::string stopped() const;
    int exit_code() const;
    void tell_the_end();

    const Options& options_;
    Console& console_;
    EventLog& events_;
    Signals& signals_;
    LockSession& lock_;
    DeadMansSwitch& dead_man_;
    const Inheritance& inheritance_;
    const bool whole_tree_;
    RunClaim* const claim_;  // with --once-per
    Nanoseconds session_timeout_;
    Nanoseconds kill_after_;
    Terminal terminal_;
    // The command gets the terminal without a read, if zklock has it.
    bool command_comes_first_ = terminal_.for_the_command();
    bool our_group_waits_ = false;  // a process in it has asked for the terminal
    bool had_terminal_ = false;     // the command, when its first process ended
    bool told_of_stop_ = false;
    Supervisor supervisor_;
    std::unique_ptr<SupervisedChild> child_;
    bool starting_ = true;      // the exec pipe has not reported yet
    bool start_spoke_ = false;  // something can be read from it
    UniqueFd timer_;
    std::optional<int> start_failure_;  // exit code
    std::string start_problem_;         // and why
    bool too_late_ = false;             // it was the lock
    std::optional<Nanoseconds> held_;
    std::set<pid_t> out_of_reach_;  // zklock has warned of these
    std::set<pid_t> not_stopped_;   // these refused a signal
    bool leader_out_of_reach_ = false;
    Instant look_for_users_at_{};
    Nanoseconds look_for_users_pause_{0};
    Nanoseconds drain_pause_ = std::chrono::milliseconds(5);
};

}  // namespace zkrecipes::zklock
