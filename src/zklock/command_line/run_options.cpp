#include "zklock/command_line/run_options.hpp"

#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/option_table.hpp"

namespace zkrecipes::zklock {
namespace {

/// A claim is exclusive: who finds it under the lock must know that its owner no longer runs.
void check_once_per(const Options& options) {
    if (*options.once_per < std::chrono::seconds(1)) usage("--once-per must be at least 1s");
    if (options.together) {
        usage("--once-per cannot be combined with -L: run the zklock with --once-per as the command of the other one");
    }
    const Mode mode = options.locks.front().mode;
    if (mode != Mode::exclusive && mode != Mode::writer) {
        usage("--once-per cannot be combined with -s or -j: it needs a lock that has one holder");
    }
}

}  // namespace

void RunOptions::add_to(OptionTable& app, Command command) {
    const bool runs = command == Command::run || command == Command::elect;
    if (!runs && command != Command::hold) return;
    app.add_option("--on-lost", on_lost_, "After a loss, runs STRING in ${SHELL:-/bin/sh}")->type_name("STRING");
    app.add_option("--on-lost-timeout", on_lost_timeout_, "Kills that command after DURATION (30s)")
        ->type_name("DURATION");
    app.add_flag("--notify", notify_, "Tells systemd when the service is ready, and its status (Type=notify)");
    if (!runs) return;
    app.add_flag("--whole-tree", whole_tree_,
                 "Holds the lock until no descendant of the command is left, also daemons");
    if (command != Command::run) return;
    app.add_option("--once-per", once_per_,
                   "At most one run in each period of this length, of all that use the lock; if there was one, exits "
                   "with 0, or with 80 if nobody knows how it ended")
        ->type_name("DURATION");
    app.add_flag("--retry-unknown", retry_unknown_, "With --once-per: repeats a run whose outcome is unknown");
}

void RunOptions::take(const OptionTable& app, Options& options) const {
    if (app.given("--once-per")) {
        options.once_per = duration_of("--once-per", once_per_);
        check_once_per(options);
    }
    if (retry_unknown_ && !options.once_per) usage("--retry-unknown needs --once-per");
    options.retry_unknown = retry_unknown_;
    options.whole_tree = whole_tree_;
    options.notify = notify_;
    if (app.given("--on-lost") && on_lost_.empty()) usage("--on-lost needs a command");
    options.on_lost = on_lost_;
    if (!app.given("--on-lost-timeout")) return;
    options.on_lost_timeout = duration_of("--on-lost-timeout", on_lost_timeout_);
    if (on_lost_.empty()) usage("--on-lost-timeout needs --on-lost");
    if (options.on_lost_timeout == Nanoseconds(0)) usage("--on-lost-timeout must be more than 0");
}

}  // namespace zkrecipes::zklock
