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
#include "zklock/process/supervisor.hpp"

namespace zkrecipes::zklock {

/// Ends zklock: what to say on stderr, the exit code, and the outcome for --result. The code does not tell it: -E and
/// --lost-exit-code may name any.
struct Failure : std::runtime_error {
    Failure(int exit_code, const std::string& text, const char* result_outcome = "error")
        : std::runtime_error(text), code(exit_code), outcome(result_outcome) {}
    int code;
    const char* outcome;
};

enum class Command { run, hold, elect, status, ls, wait, break_lock, leader, ping, help, version };
enum class Progress { automatic, never, always };

struct Options {
    Command command = Command::run;
    std::string help_text;  ///< of Command::help

    // Where ZooKeeper is, and who we are there.
    std::string connect;
    std::string prefix;
    std::chrono::milliseconds session_timeout{15'000};
    std::optional<Nanoseconds> connect_timeout = std::chrono::seconds(10);  ///< empty: for ever
    std::vector<Auth> auth;
    std::vector<Acl> acl = Acl::open();
    /// Of settings that the environment or a file gave, by key: where they stand, for what is found wrong later.
    std::map<std::string, std::string> origins;

    // The lock.
    std::string lock;             ///< ls: where to look; of a set: all of them, for people
    std::vector<LockSpec> locks;  ///< run, hold: the one, or those that are taken together
    bool together = false;        ///< as a set, by one transaction
    std::int32_t leases = 0;      ///< Mode::semaphore: how many there are
    Dialect dialect = Dialect::curator;
    ElectionLayout layout = ElectionLayout::latch;  ///< elect
    std::string id;                                 ///< elect: who we are; empty: host:pid
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
    std::string events;  ///< a descriptor or a file; empty: none
    std::string result;

    // break
    bool break_holder = false;
    bool break_all = false;
    std::string break_node;
    bool yes = false;

    // What is shown.
    int verbose = 0;
    bool quiet = false;
    bool json = false;
    bool color = true;
    bool names_only = false;  ///< ls --complete
    bool watch = false;       ///< leader: until a signal comes
    Progress progress = Progress::automatic;
};

/// Throws Failure for a call that cannot be understood.
[[noreturn]] void usage(const std::string& text);

/// Reads the command line, the environment and the configuration files, in this order of precedence. Throws Failure;
/// then `options` is what was understood before, --result among it. What a former run left there is forgotten then, and
/// before any other file is read.
void parse_options(int argc, const char* const* argv, Options& options);

}  // namespace zkrecipes::zklock
