#include <malloc.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>
#include <zkrecipes/error.hpp>
#include <zkrecipes/version.hpp>

#include "zklock/around/service_notifier.hpp"
#include "zklock/command_line/options.hpp"
#include "zklock/commands/hold_command.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/run_command.hpp"
#include "zklock/commands/self_wait.hpp"
#include "zklock/look/config_command.hpp"
#include "zklock/look/leases_command.hpp"
#include "zklock/look/ls_command.hpp"
#include "zklock/look/top_command.hpp"
#include "zklock/look/watch_command.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/explain.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"
#include "zklock/report/result.hpp"
#include "zklock/system/descriptors.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {
namespace {

int show_version(const Options& options) {
    if (options.json) {
        print(dump({{"v", 1},
                    {"zklock", version()},
                    {"client", "zookeeper-c"},
                    {"client_version", client_version()},
                    {"features", boost::json::value_from(features())}}) +
              "\n");
    } else {
        print(std::string("zklock ") + version() + " (ZooKeeper C client " + client_version() + ")\n");
    }
    return kOk;
}

int dispatch(const Options& options, Console& console, Inheritance& inheritance) {
    switch (options.command) {
        case Command::help: print(options.help_text); return kOk;
        case Command::version: return show_version(options);
        case Command::status: return options.watch ? watch_command(options, console) : status_command(options, console);
        case Command::ls: return ls_command(options, console);
        case Command::wait: warn_of_self_wait(options, console); return wait_command(options, console);
        case Command::break_lock: return break_command(options, console);
        case Command::leader: return leader_command(options, console);
        case Command::ping: return ping_command(options, console);
        case Command::top: return top_command(options, console);
        case Command::leases: return leases_command(options, console);
        case Command::config: return config_command(options);
        case Command::run:
        case Command::elect:
        case Command::hold: break;
    }
    warn_of_self_wait(options, console);
    // First: a descriptor that zklock opens could get the number that --events names.
    EventLog events(options.events);
    if (events.wanted()) inheritance.withhold(events.fd());
    std::optional<ServiceNotifier> service;
    if (options.notify) {
        service.emplace(options, console);
        events.observe([&](const char* event, const auto& fields) { service->on_event(event, fields); });
    }
    // Blocks the signals before the session starts its threads, which inherit the mask: only the main thread gets them.
    Signals signals;
    if (options.command == Command::hold) return hold_command(options, console, inheritance, events, signals);
    return run_command(options, console, inheritance, events, signals);
}

/// With the set-user-id bit, the set-group-id bit or capabilities, zklock would read and write files and send signals
/// with rights that its caller does not have. AT_SECURE alone may mean a security module.
bool has_rights_of_its_own() {
    if (::getauxval(AT_SECURE) == 0) return false;
    return ::getuid() != ::geteuid() || ::getgid() != ::getegid() ||
           ::getxattr("/proc/self/exe", "security.capability", nullptr, 0) > 0;
}

/// Makes a write without a reader fail with an error that zklock reports, instead of ending zklock.
void block_sigpipe() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

struct Run {
    std::optional<Console> console;
    bool result_written = true;
};

int dispatch_in_words(const Options& options, Console& console, Inheritance& inheritance) {
    try {
        return dispatch(options, console, inheritance);
    } catch (const Error& error) {
        throw failure_of(error, options);
    } catch (const std::system_error& error) {
        throw Failure(kOsError, "the operating system refused a resource: " + error.code().message() +
                                    "; check the limits on processes and open files (ulimit -u, ulimit -n)");
    }
}

int parse_and_dispatch(int argc, char** argv, Run& run, Inheritance& inheritance) {
    Options options;
    try {
        parse_options(argc, argv, options);
        inheritance.withhold_closed();
        run.console.emplace(options);
        require_result(options);
        return dispatch_in_words(options, *run.console, inheritance);
    } catch (...) {
        run.result_written = report_failure(options);
        throw;
    }
}

int run_main(int argc, char** argv) {
    if (has_rights_of_its_own()) {
        std::cerr
            << "zklock: refuses to run with more rights than its caller: remove the set-user-id bit, the set-group-id "
               "bit or the capabilities of the program file\n";
        return kNoPermission;
    }
    if (!fill_standard_descriptors()) {
        std::cerr << "zklock: stdin, stdout or stderr is closed, and /dev/null cannot be opened\n";
        return kOsError;
    }
    ::mallopt(M_ARENA_MAX, 1);  // an arena for each thread costs time at the start and at the end
    // Before anything is opened or blocked.
    Inheritance inheritance = Inheritance::capture();
    block_sigpipe();
    Run run;
    std::optional<Console>& console = run.console;
    try {
        return parse_and_dispatch(argc, argv, run, inheritance);
    } catch (const Failure& failure) {
        const bool about_the_call =
            !console || failure.code == kUsage || failure.code == kConfig || failure.code == kIoError;
        if (about_the_call) {
            std::cerr << "zklock: " << failure.what() << "\n";
        } else if (failure.code == kOk && failure.outcome == std::string_view("busy")) {
            console->info(failure.what());  // with -E 0, a lock that is held is not worth a line
        } else {
            console->error(failure.what());
        }
        return failure.code == kOk && !run.result_written ? kIoError : failure.code;  // -E 0
    } catch (const Interrupted& interrupted) {
        Signals::die_of(interrupted.signal);
    } catch (const std::system_error& error) {
        std::cerr << "zklock: " << error.what() << "\n";
        return kOsError;
    } catch (const std::exception& error) {
        std::cerr << "zklock: internal error: " << error.what() << "\n";
        return kInternal;
    }
}

}  // namespace
}  // namespace zkrecipes::zklock

int main(int argc, char** argv) { return zkrecipes::zklock::run_main(argc, argv); }
