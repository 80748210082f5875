#include "zklock/command_line/look_options.hpp"

#include <CLI/App.hpp>
#include <charconv>
#include <chrono>

#include "zklock/command_line/connection.hpp"

namespace zkrecipes::zklock {

std::size_t most_operands(Command command) noexcept {
    switch (command) {
        case Command::ping:
        case Command::config:
        case Command::help:
        case Command::version: return 0;
        case Command::leases: return 2;
        default: return 1;
    }
}

void LookOptions::add(CLI::App& app, Options& options) {
    switch (options.command) {
        case Command::status:
            app.add_flag("--watch", options.watch, "Keeps running and prints the lock again whenever it changes");
            break;
        case Command::ls: app.add_flag("--complete", options.names_only)->group(""); break;
        case Command::break_lock:
            app.add_flag("--holder", options.break_holder, "Removes the nodes of all holders");
            app.add_flag("--all", options.break_all, "Removes the nodes of all holders and waiters");
            app.add_option("--node", options.break_node, "Removes exactly this node")->type_name("NODE");
            app.add_flag("--yes", options.yes, "Does not ask for confirmation");
            break;
        case Command::leader: app.add_flag("--watch", options.watch, "Keeps running and prints each change"); break;
        case Command::top:
            app.add_flag("--once", once_, "Prints one picture and ends; the same as --count 1");
            app.add_option("--count", pictures_, "Prints N pictures and ends")->type_name("N");
            app.add_option("--interval", interval_, "Time between two pictures (2s)")->type_name("DURATION");
            break;
        default: break;
    }
}

void LookOptions::add_operands(CLI::App& app, Options& options) {
    if (options.command == Command::leases) leases_given_ = app.add_option("N", leases_, "Number of leases to store");
}

void LookOptions::take_pictures(Options& options) const {
    if (once_ && !pictures_.empty()) usage("--once cannot be combined with --count");
    if (once_) options.pictures = 1;
    if (!pictures_.empty()) {
        const char* const end = pictures_.data() + pictures_.size();
        const auto [rest, error] = std::from_chars(pictures_.data(), end, options.pictures);
        if (error != std::errc() || rest != end || options.pictures == 0) {
            usage("--count: \"" + pictures_ + "\" is not a number of at least 1");
        }
    }
    if (interval_.empty()) return;
    options.interval = duration_of("--interval", interval_);
    if (options.interval < std::chrono::milliseconds(100)) usage("--interval must be at least 100ms");
}

std::string LookOptions::take(Options& options) const {
    if (leases_given_ && leases_given_->count() > 0) {
        options.new_leases = parse_lease_count("N", leases_);
    }
    if (options.command == Command::break_lock &&
        int{options.break_holder} + int{options.break_all} + int{!options.break_node.empty()} != 1) {
        return "break needs exactly one of --holder, --node and --all";
    }
    if (options.command == Command::top) take_pictures(options);
    if (options.command == Command::top && options.quiet)
        return "-q prints nothing, so zklock top cannot be combined with it";
    if (options.command == Command::status && options.watch && options.quiet) {
        return "--watch cannot be combined with -q, which prints nothing";
    }
    return {};
}

}  // namespace zkrecipes::zklock
