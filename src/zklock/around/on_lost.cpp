#include "zklock/around/on_lost.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string_view>

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

/// The command, and what is said of it, without an allocation later.
struct Prepared {
    LossCommand command;
    std::string limit;
    PreparedWarning warning;
};

Prepared prepare(const Options& options, const Console& console, const Loss& loss) {
    return {{options.on_lost, environment_after(options, loss), options.on_lost_timeout,
             kill_delay(options.kill_after, options.session_timeout)},
            format_duration(options.on_lost_timeout),
            console.prepare_warning("the command of --on-lost ")};
}

class ShortText {
public:
    void add(std::string_view part) noexcept {
        const std::size_t length = std::min(part.size(), sizeof text_ - size_);
        std::memcpy(text_ + size_, part.data(), length);
        size_ += length;
    }
    void add(int number) noexcept {
        char digits[16];
        add({digits, static_cast<std::size_t>(std::to_chars(digits, std::end(digits), number).ptr - digits)});
    }
    std::string_view view() const noexcept { return {text_, size_}; }

private:
    char text_[200];
    std::size_t size_ = 0;
};

/// Empty: it has succeeded.
ShortText problem_of(const Prepared& prepared, const LossCommandEnd& end) noexcept {
    ShortText text;
    if (end.error != 0) {
        text.add("could not be started: ");
        const char* const why = ::strerrordesc_np(end.error);
        why ? text.add(why) : text.add(end.error);
    } else if (end.left_running) {
        text.add("runs as another user, so zklock cannot kill it: it may go on");
    } else if (end.timed_out) {
        text.add("ran longer than ");
        text.add(prepared.limit);
        text.add(" (--on-lost-timeout) and was killed");
    } else if (WIFSIGNALED(end.status)) {
        text.add("was ended by signal ");
        text.add(WTERMSIG(end.status));
    } else if (WEXITSTATUS(end.status) != 0) {
        text.add("exited with ");
        text.add(WEXITSTATUS(end.status));
    }
    return text;
}

/// Async-signal-safe. Returns the signal that arrived meanwhile; 0: none.
int run_prepared(const Prepared& prepared, const Inheritance& inheritance, Signals& signals) noexcept {
    const LossCommandEnd end = run_after_loss(prepared.command, inheritance, signals);
    const ShortText problem = problem_of(prepared, end);
    if (!problem.view().empty()) prepared.warning.write(problem.view());
    return end.signal;
}

/// In the new process: nobody who waits for the end of zklock's input, output or events waits for this process.
void let_go_of_descriptors(const EventLog& events) noexcept {
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
    return run_prepared(prepare(options, console, loss), inheritance, signals);
}

pid_t after_loss_in_background(const Options& options, Console& console, const Inheritance& inheritance,
                               EventLog& events, Signals& signals, const Loss& loss) {
    if (options.on_lost.empty()) return 0;
    console.info("running the command of --on-lost");
    // Other threads may hold any lock at the moment of the fork, and the new process would wait for it for ever. So it
    // makes only calls that are allowed there.
    const Prepared prepared = prepare(options, console, loss);
    const pid_t pid = ::fork();
    if (pid < 0) console.warning(std::string("the command of --on-lost could not be started: ") + std::strerror(errno));
    if (pid != 0) return pid;
    ::setpgid(0, 0);
    let_go_of_descriptors(events);
    run_prepared(prepared, inheritance, signals);
    ::_exit(0);
}

}  // namespace zkrecipes::zklock
