#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session_options.hpp>

#include "zklock/command_line/exit_codes.hpp"
#include "zklock/command_line/lock_spec.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/process/supervisor.hpp"

namespace zkrecipes::zklock {

/// Ends zklock with a message, an exit code, and an outcome for --result. The code does not imply the outcome: -E and
/// --lost-exit-code may set any code.
struct Failure : std::runtime_error {
    Failure(int exit_code, const std::string& text, const char* result_outcome = "error")
        : std::runtime_error(text), code(exit_code), outcome(result_outcome) {}
    int code;
    const char* outcome;
};

enum class Command { run, hold, elect, status, ls, wait, break_lock, leader, ping, config, leases, top, help, version };
inline bool takes_a_lock(Command command) {
    return command == Command::run || command == Command::hold || command == Command::elect;
}
enum class Progress { automatic, never, always };

struct Options {
    Command command = Command::run;
    std::string help_text;  ///< of Command::help

    // The servers and the credentials.
    std::string connect;
    std::string prefix;
    std::chrono::milliseconds session_timeout{15'000};
    std::chrono::milliseconds server_tick{0};                               ///< 0: not known
    std::optional<Nanoseconds> connect_timeout = std::chrono::seconds(10);  ///< empty: no limit
    std::vector<Auth> auth;
    std::optional<TlsOptions> tls;
    std::optional<SaslOptions> sasl;
    std::vector<Acl> acl = Acl::open();
    /// The places of settings from the environment or a file, by key, for later error messages.
    std::map<std::string, std::string> origins;
    HandedSettings handed;  ///< for the zklocks that the command starts; `held` without the own locks
    std::map<std::string, std::string> given_settings;  ///< Command::config: those of the command line, by key

    // The lock.
    std::string lock;             ///< ls: the path to search; of a set: all locks, for messages
    std::vector<LockSpec> locks;  ///< run, hold: the lock, or the locks of the set
    bool together = false;        ///< as a set, by one transaction
    std::int32_t leases = 0;      ///< Mode::semaphore: the number of leases
    Dialect dialect = Dialect::curator;
    ElectionLayout layout = ElectionLayout::latch;  ///< elect
    std::string id;                                 ///< elect: the identity; empty: host:pid
    bool nonblock = false;
    std::optional<Nanoseconds> wait_limit;
    int conflict_exit_code = kBusy;
    int lost_exit_code = kLost;
    bool create_parents = true;
    std::string name;
    std::map<std::string, std::string> meta;

    // The command that runs under it.
    std::vector<std::string> argv;
    OnSuspend on_suspend = OnSuspend::ride;
    int stop_signal = 15;
    std::optional<Nanoseconds> kill_after;  ///< as given; see kill_delay
    std::optional<Nanoseconds> max_run;
    Nanoseconds min_hold{0};
    std::optional<Nanoseconds> once_per;  ///< run: at most one run in each period of this length
    bool retry_unknown = false;
    std::string on_lost;  ///< for the shell; empty: none
    Nanoseconds on_lost_timeout = std::chrono::seconds(30);
    bool notify = false;      ///< tells the service manager (sd_notify)
    bool whole_tree = false;  ///< all descendants of the command keep the lock
    std::string events;       ///< a descriptor or a file; empty: none
    std::string result;

    unsigned pictures = 0;                ///< top: how many; 0: until a signal arrives
    Nanoseconds interval{2'000'000'000};  ///< top: between two pictures
    std::int32_t new_leases = 0;          ///< leases: the number to store; 0: only shows it

    // break
    bool break_holder = false;
    bool break_all = false;
    std::string break_node;
    bool yes = false;

    // Output.
    int verbose = 0;
    bool quiet = false;
    bool json = false;
    bool color = true;
    bool names_only = false;  ///< ls --complete
    bool watch = false;       ///< leader, status: until a signal arrives
    Progress progress = Progress::automatic;
};

/// Throws Failure for a wrong command line.
[[noreturn]] void usage(const std::string& text);

/// Reads the command line, the environment and the configuration files, in this order of precedence. If it throws
/// Failure, `options` has what was read before, including --result. It deletes the result of an earlier run before it
/// reads any other file, also if it throws.
void parse_options(int argc, const char* const* argv, Options& options);

}  // namespace zkrecipes::zklock
