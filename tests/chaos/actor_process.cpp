#include "chaos/actor_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace zkrecipes::chaos {

namespace {

using Clock = std::chrono::steady_clock;

std::string actor_program() {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        throw std::system_error(errno, std::generic_category(), "/proc/self/exe");
    }
    const std::string path = self;
    return path.substr(0, path.rfind('/') + 1) + "chaos_actor";  // built into the same folder
}

void make_pipe(int (&ends)[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
}

bool begins_with(const std::string& line, const std::string& beginning) { return line.rfind(beginning, 0) == 0; }

}  // namespace

ActorProcess::ActorProcess(const Board& board, const std::vector<std::string>& arguments) {
    const std::string program = actor_program();
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const auto& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
        name_ += (name_.empty() ? "" : " ") + argument;
    }
    argv.push_back(nullptr);
    int commands[2];
    int replies[2];
    make_pipe(commands);
    make_pipe(replies);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
        // Only async-signal-safe calls from here on. The controller may have died before the prctl: hence the second
        // look.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        // Out of the way first: the descriptors may themselves be among 0, 3 and 4.
        const int in = fcntl(commands[0], F_DUPFD, 10);
        const int out = fcntl(replies[1], F_DUPFD, 10);
        const int memory = fcntl(board.descriptor(), F_DUPFD, 10);
        if (dup2(in, 0) < 0 || dup2(out, 3) < 0 || dup2(memory, 4) < 0) _exit(127);
        close_range(5, ~0U, 0);  // the observer's connections too: the C client does not mark them close-on-exec
        dup2(2, 1);              // the library's log belongs to the errors, not into our table
        execv(program.c_str(), argv.data());
        _exit(127);
    }
    close(commands[0]);
    close(replies[1]);
    commands_ = commands[1];
    replies_ = replies[0];
}

ActorProcess::ActorProcess(ActorProcess&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      commands_(std::exchange(other.commands_, -1)),
      replies_(std::exchange(other.replies_, -1)),
      ended_(other.ended_),
      partial_(std::move(other.partial_)),
      lines_(std::move(other.lines_)),
      expected_(other.expected_) {}

ActorProcess::~ActorProcess() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    if (commands_ >= 0) close(commands_);
    if (replies_ >= 0) close(replies_);
}

void ActorProcess::send(const std::string& command) {
    const std::string line = command + "\n";
    if (write(commands_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) complain("takes no commands");
}

std::string ActorProcess::expect(const std::string& beginning, std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    for (;;) {
        while (expected_ < lines_.size()) {
            const std::string line = lines_[expected_++];
            if (begins_with(line, beginning)) return line;
            if (begins_with(line, "error")) complain("failed");
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        if (left.count() <= 0) complain("did not say '" + beginning + "' in time");
        if (!read_more(left) && ended_) complain("ended without saying '" + beginning + "'");
    }
}

std::string ActorProcess::last(const std::string& beginning) {
    while (read_more(std::chrono::milliseconds(0))) {
    }
    const auto found = std::find_if(lines_.rbegin(), lines_.rend(),
                                    [&](const std::string& line) { return begins_with(line, beginning); });
    return found == lines_.rend() ? std::string() : *found;
}

bool ActorProcess::wait_state(const std::string& state, std::chrono::milliseconds limit) {
    return await([&] { return last("state ") == "state " + state; }, limit);
}

void ActorProcess::resume() { kill(pid_, SIGCONT); }

bool ActorProcess::is_stopped() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto end = text.rfind(')');  // the name before it may contain anything
    return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'T';
}

int ActorProcess::quit(std::chrono::milliseconds limit) {
    const std::string line = "quit\n";
    [[maybe_unused]] const auto written = write(commands_, line.data(), line.size());  // it may have ended already
    return wait(limit);
}

int ActorProcess::wait(std::chrono::milliseconds limit) {
    if (pid_ < 0) return -1;
    int status = 0;
    const bool ended = await(
        [&] {
            read_more(std::chrono::milliseconds(0));  // or it could block on a full pipe
            return waitpid(pid_, &status, WNOHANG) == pid_;
        },
        limit);
    if (!ended) return -1;
    while (read_more(std::chrono::milliseconds(0))) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool ActorProcess::read_more(std::chrono::milliseconds limit) {
    if (ended_) return false;
    pollfd ready{replies_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(limit.count())) <= 0) return false;
    char bytes[4096];
    const ssize_t got = read(replies_, bytes, sizeof(bytes));
    if (got <= 0) {
        ended_ = true;
        return false;
    }
    partial_.append(bytes, static_cast<std::size_t>(got));
    for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
        lines_.push_back(partial_.substr(0, end));
        partial_.erase(0, end + 1);
    }
    return true;
}

void ActorProcess::complain(const std::string& what) const {
    std::string text = "actor (" + name_ + ") " + what + "; it said:";
    for (const auto& line : lines_) text += "\n  " + line;
    throw std::runtime_error(text);
}

bool await(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    while (!condition()) {
        if (Clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

}  // namespace zkrecipes::chaos
