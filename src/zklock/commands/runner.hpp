#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/json/fwd.hpp>

#include "zklock/commands/lock_session.hpp"
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

/// Runs the command under a lock that is held, and gives the lock back when no process of it is left: one poll loop on
/// the main thread that tells the Supervisor what happens and does what it says.
class Runner {
public:
    Runner(const Options& options, Console& console, EventLog& events, Signals& signals, LockSession& lock,
           DeadMansSwitch& dead_man, const Inheritance& inheritance, bool whole_tree);
    ~Runner();

    /// Answers the exit code. Throws Failure, LostBeforeStart among them, or Interrupted when a signal came before the
    /// command was started.
    int run();

    const char* outcome() const;
    bool lost() const noexcept { return too_late_ || (!start_failure_ && supervisor_.end() == Supervisor::End::lost); }
    bool asked_to_stop() const noexcept { return supervisor_.asked_to_stop(); }
    /// What zklock has to die of after run(), instead of exiting.
    Death death() const;
    boost::json::object details() const;  ///< for --result

private:
    void wait_for_a_lease_worth_starting();
    std::vector<std::string> environment() const;
    void start();
    void loop();
    void wait(Instant until);
    void read_lease();
    void read_inbox();
    void read_signals();
    void read_start();
    void fail_to_start(int code, const std::string& why);
    void read_children();
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
    Nanoseconds session_timeout_;
    Nanoseconds kill_after_;
    Terminal terminal_;
    // Gets the terminal, when it is ours to give, without asking.
    bool command_comes_first_ = terminal_.for_the_command();
    bool our_group_waits_ = false;  // somebody in it has asked for the terminal
    bool had_terminal_ = false;     // the command, when its first process ended
    bool told_of_stop_ = false;
    Supervisor supervisor_;
    std::unique_ptr<SupervisedChild> child_;
    bool starting_ = true;      // the exec pipe has not spoken yet
    bool start_spoke_ = false;  // something can be read from it
    UniqueFd timer_;
    std::optional<int> start_failure_;  // exit code
    std::string start_problem_;         // and why
    bool too_late_ = false;             // it was the lock
    std::optional<Nanoseconds> held_;
    std::set<pid_t> out_of_reach_;  // of which we have warned
    std::set<pid_t> not_stopped_;   // which refused a signal
    bool leader_out_of_reach_ = false;
    Instant look_for_users_at_{};
    Nanoseconds look_for_users_pause_{0};
    Nanoseconds drain_pause_ = std::chrono::milliseconds(5);
};

}  // namespace zkrecipes::zklock
