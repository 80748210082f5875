#include "zklock/around/on_lost.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "zklock/around/command_environment.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/process/after_loss.hpp"

namespace zkrecipes::zklock {
namespace {

std::vector<std::string> environment_after(const Options& options, const Loss& loss) {
    std::vector<std::string> result = bare_environment(options);
    std::string paths, nodes;
    for (const LockSpec& spec : options.locks) paths += (paths.empty() ? "" : "\n") + spec.path;
    for (const std::string& node : loss.nodes) nodes += (nodes.empty() ? "" : "\n") + node;
    result.push_back("ZKLOCK_LOST_PATH=" + paths);
    result.push_back("ZKLOCK_LOST_NODE=" + nodes);
    result.push_back("ZKLOCK_LOST_TOKEN=" + std::to_string(loss.token));
    result.push_back("ZKLOCK_LOST_REASON=" + loss.reason);
    // Without the lock that was lost.
    result.push_back(std::string(kSettingsVariable) + "=" + to_text(options.handed));
    return result;
}

/// Empty: it has succeeded.
std::string problem_of(const Options& options, const LossCommandEnd& end) {
    if (end.error != 0) return std::string("could not be started: ") + std::strerror(end.error);
    if (end.left_running) return "runs as another user, so zklock cannot kill it: it may go on";
    if (end.timed_out) {
        return "ran longer than " + format_duration(options.on_lost_timeout) + " (--on-lost-timeout) and was killed";
    }
    if (WIFSIGNALED(end.status)) return "was ended by signal " + std::to_string(WTERMSIG(end.status));
    const int code = WEXITSTATUS(end.status);
    return code == 0 ? "" : "exited with " + std::to_string(code);
}

/// In the new process: nobody who waits for the end of zklock's input, output or events waits for this process.
void let_go_of_descriptors(EventLog& events) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    if (events.wanted() && events.fd() > STDERR_FILENO) ::close(events.fd());
}

}  // namespace

int after_loss(const Options& options, Console& console, const Inheritance& inheritance, Signals& signals,
               const Loss& loss) {
    if (options.on_lost.empty()) return 0;
    console.info("running the command of --on-lost");
    const LossCommand command{options.on_lost, environment_after(options, loss), options.on_lost_timeout,
                              kill_delay(options.kill_after, options.session_timeout)};
    const LossCommandEnd end = run_after_loss(command, inheritance, signals);
    if (const std::string problem = problem_of(options, end); !problem.empty()) {
        console.warning("the command of --on-lost " + problem);
    }
    return end.signal;
}

void after_loss_in_background(const Options& options, Console& console, const Inheritance& inheritance,
                              EventLog& events, Signals& signals, const Loss& loss) {
    if (options.on_lost.empty()) return;
    const pid_t pid = ::fork();
    if (pid < 0) console.warning(std::string("the command of --on-lost could not be started: ") + std::strerror(errno));
    if (pid != 0) return;
    ::setpgid(0, 0);
    let_go_of_descriptors(events);
    after_loss(options, console, inheritance, signals, loss);
    ::_exit(0);
}

}  // namespace zkrecipes::zklock
