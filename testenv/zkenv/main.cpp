// zkenv: a local ZooKeeper for people and scripts.

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/error.hpp>

#include "testenv/zkenv/state.hpp"
#include "testenv/zkenv/supervisor.hpp"

extern char** environ;  // NOLINT

namespace zkrecipes::testenv::zkenv {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int exit_not_running = 3;

const char* const footer =
    "The servers survive the shell that started them and keep their data in memory; \"stop\" leaves nothing behind.\n"
    "Exit codes: 0 done (also: started or stopped already), 1 failed, 2 wrong usage, 3 the environment does not run.\n"
    "Environment: ZK_JAVA, ZK_CLASSPATH and ZOOKEEPER_HOME choose another Java or ZooKeeper.";

// The supervisor is this program again, in a session of its own, so that neither Ctrl-C nor the end of the shell reach
// it. It must not keep our output open: the shell in CONNECT=$(zkenv start) waits for the end of it.
std::string run_supervisor(const EnvironmentOptions& options) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw Error(std::string("pipe: ") + std::strerror(errno));
    }
    internal::UniqueFd in(ends[0]);
    internal::UniqueFd out(ends[1]);
    internal::UniqueFd raised(::fcntl(out.get(), F_DUPFD_CLOEXEC, 10));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawn_file_actions_adddup2(&actions, raised.get(), 3);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    std::vector<std::string> words{"zkenv",     "supervise",
                                   "--name",    options.name,
                                   "--servers", std::to_string(options.servers),
                                   "--tick-ms", std::to_string(options.tick_ms),
                                   "--pid",     std::to_string(options.pid)};
    std::vector<char*> arguments;
    for (auto& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        throw Error(std::string("cannot start the supervisor: ") + std::strerror(failed));
    }
    out.reset();
    raised.reset();
    std::string report;
    char buffer[4096];
    for (;;) {
        const ssize_t got = ::read(in.get(), buffer, sizeof buffer);
        if (got > 0) {
            report.append(buffer, static_cast<std::size_t>(got));
        } else if (got == 0 || errno != EINTR) {
            return report;
        }
    }
}

int start(const EnvironmentOptions& options, bool number_given) {
    const std::string directory = state_directory(options.name, true);
    if (const std::string reason = why_unavailable(); !reason.empty()) {
        throw Error(reason);
    }
    const auto lock = lock_state(directory);
    auto running = ask_supervisor(directory, "connect");
    const bool already = running.has_value();
    if (!already) {
        const std::string report = run_supervisor(options);
        if (report != "ok") {
            throw Error(report.empty() ? "the supervisor ended before it had started the servers" : report);
        }
        running = ask_supervisor(directory, "connect");
    }
    std::istringstream words(running.value_or(""));
    std::string ok;
    int servers = 0;
    std::string connect_string;
    if (!(words >> ok >> servers >> connect_string) || ok != "ok") {
        throw Error("the supervisor of \"" + options.name + "\" does not answer: " + running.value_or(""));
    }
    if (already && number_given && servers != options.servers) {
        throw Error("\"" + options.name + "\" runs already, with " + std::to_string(servers) +
                    (servers == 1 ? " server" : " servers") + ": stop it first, or give the new one another --name");
    }
    if (already) {
        std::cerr << "zkenv: \"" << options.name << "\" runs already\n";
    }
    std::cout << connect_string << '\n';
    return 0;
}

int stop(const std::string& name) {
    const std::string directory = state_directory(name, true);
    const auto lock = lock_state(directory);
    if (!ask_supervisor(directory, "stop")) {
        std::cerr << "zkenv: \"" << name << "\" does not run\n";
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);  // of a supervisor that was killed
    ::unlink((directory + ".lock").c_str());
    ::rmdir(directory.substr(0, directory.rfind('/')).c_str());  // when it was the last one
    return 0;
}

int status(const std::string& name, bool json) {
    const auto answer = ask_supervisor(state_directory(name, false), json ? "json" : "status");
    if (!answer || answer->rfind("ok ", 0) != 0) {
        if (json) {
            std::cout << boost::json::serialize(boost::json::object{{"name", name}, {"running", false}}) << '\n';
        } else {
            const std::string option = name == EnvironmentOptions().name ? "" : " --name " + name;
            std::cout << name << ": not running (start it with: zkenv start" << option << ")\n";
        }
        return exit_not_running;
    }
    std::cout << answer->substr(3);
    return 0;
}

int command(const std::string& name, const std::string& verb, int server) {
    const auto answer = ask_supervisor(state_directory(name, false), verb + " " + std::to_string(server));
    if (!answer) {
        std::cerr << "zkenv: \"" << name << "\" does not run\n";
        return exit_not_running;
    }
    if (answer->rfind("ok", 0) != 0) {
        std::cerr << "zkenv: " << (answer->rfind("error ", 0) == 0 ? answer->substr(6) : "no answer\n");
        return exit_failed;
    }
    return 0;
}

int run(int argc, char** argv) {
    CLI::App app{"Runs a local ZooKeeper: one server, or an ensemble.", "zkenv"};
    app.footer(footer);
    app.set_version_flag("--version", "zkenv " ZKENV_VERSION);
    app.require_subcommand(1);
    EnvironmentOptions options;
    bool json = false;
    int server = 0;
    const auto named = [&](CLI::App* sub) {
        sub->add_option("--name", options.name, "Name of the environment")->capture_default_str();
        return sub;
    };
    auto* start_command = named(app.add_subcommand("start", "Starts the servers and prints their connect string"));
    start_command->add_option("--servers", options.servers, "Number of servers: 1, 3 or 5")
        ->capture_default_str()
        ->check(CLI::IsMember({1, 3, 5}));
    start_command
        ->add_option("--tick-ms", options.tick_ms, "Length of a tick; the shortest session timeout is two ticks")
        ->capture_default_str()
        ->check(CLI::Range(10, 60'000));
    start_command->add_option("--pid", options.pid, "Stops the servers when this process has ended")
        ->check(CLI::PositiveNumber);
    auto* supervise_command = named(app.add_subcommand("supervise")->group(""));  // what start runs
    supervise_command->add_option("--servers", options.servers);
    supervise_command->add_option("--tick-ms", options.tick_ms);
    supervise_command->add_option("--pid", options.pid);
    auto* stop_command = named(app.add_subcommand("stop", "Stops the servers and removes their files"));
    auto* status_command = named(app.add_subcommand("status", "Shows whether the servers run, and their state"));
    status_command->add_flag("--json", json, "Prints JSON");
    std::vector<std::pair<CLI::App*, std::string>> faults;
    for (const auto& [verb, help] :
         {std::pair{"kill", "Kills a server (SIGKILL)"},
          std::pair{"revive", "Starts a killed server with the same data"},
          std::pair{"freeze", "Freezes a server: it keeps its connections but does not answer"},
          std::pair{"thaw", "Continues a frozen server"}}) {
        auto* fault = named(app.add_subcommand(verb, help));
        fault->add_option("SERVER", server, "Number of the server, from 1; \"status\" lists them")->required();
        faults.emplace_back(fault, verb);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_usage;
    }
    if (start_command->parsed()) {
        return start(options, start_command->count("--servers") > 0);
    }
    if (supervise_command->parsed()) {
        return supervise(options, 3);
    }
    if (stop_command->parsed()) {
        return stop(options.name);
    }
    if (status_command->parsed()) {
        return status(options.name, json);
    }
    for (const auto& [fault, verb] : faults) {
        if (fault->parsed()) {
            return command(options.name, verb, server);
        }
    }
    return exit_usage;
}

}  // namespace
}  // namespace zkrecipes::testenv::zkenv

int main(int argc, char** argv) {
    try {
        return zkrecipes::testenv::zkenv::run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "zkenv: " << error.what() << '\n';
        return 1;
    }
}
