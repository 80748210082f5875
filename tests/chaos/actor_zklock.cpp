#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "chaos/actor_roles.hpp"
#include "chaos/plan.hpp"
#include "chaos/register_server.hpp"

namespace zkrecipes::chaos {

namespace {

using std::chrono::milliseconds;

std::string own_program() {
    char path[4096] = {};
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
        throw std::system_error(errno, std::generic_category(), "/proc/self/exe");
    return path;
}

/// Runs zklock again and again, with this program as its command.
class ZklockRole {
public:
    ZklockRole(const ActorOptions& options, Reply& reply)
        : options_(options), reply_(reply), random_(static_cast<std::uint64_t>(options.number("seed"))) {}

    int run() {
        std::thread([this] { listen(); }).detach();  // the process ends without it
        reply_.say("connected");                     // as far as a process can be that begins with each zklock
        while (!finish_.stop_requested()) {
            const int code = run_one(static_cast<int>(random_() % kLocksEach), "20s");
            if (!is_expected(code) && code != 75) return complain(code);
            std::this_thread::sleep_for(milliseconds(random_() % 40));
        }
        for (int index = 0; index < kLocksEach; ++index) {
            int code = run_one(index, "90s");
            for (int again = 0; again < 5 && code != 0 && is_expected(code); ++again) code = run_one(index, "90s");
            if (code == 75) reply_.say("starved " + std::to_string(lock_of(Recipe::zklock, index)));
            if (code != 0) return complain(code);
        }
        reply_.say("done");
        return 0;
    }

private:
    // It ran; the lock was lost; no server answered. 128 + 9 is a command that the dead man's switch has ended while
    // zklock stood still.
    static bool is_expected(int code) { return code == 0 || code == 79 || code == 69 || code == 128 + SIGKILL; }

    int complain(int code) {
        reply_.say("error zklock: exit code " + std::to_string(code));
        return 1;
    }

    // zklock is stopped and continued from here, where it is known that its number is not somebody else's by now.
    void listen() {
        std::string command;
        while (std::getline(std::cin, command) && command != "finish" && command != "quit") {
            const std::lock_guard lock(mutex_);
            if (command == "freeze" || command == "thaw") {
                frozen_ = command == "freeze";
                if (zklock_ > 0) kill(zklock_, frozen_ ? SIGSTOP : SIGCONT);
                reply_.say(command == "freeze" ? "frozen" : "resumed");
            }
        }
        finish_.request_stop();
    }

    std::vector<std::string> words(int index, const std::string& limit) {
        const int lock = lock_of(Recipe::zklock, index);
        auto out = std::vector<std::string>{options_.text("zklock"),
                                            "run",
                                            "--connect",
                                            options_.hosts(),
                                            "--session-timeout",
                                            std::to_string(options_.number("timeout-ms")) + "ms",
                                            "--connect-timeout",
                                            "30s",
                                            "-q",
                                            "-w",
                                            limit};
        if (index == 1) out.emplace_back(random_() % 2 == 0 ? "-s" : "--rw");
        if (index == 2) out.insert(out.end(), {"-j", std::to_string(kLeases)});
        const int ms =
            random_() % 24 == 0 ? 300 + static_cast<int>(random_() % 9000) : static_cast<int>(random_() % 30);
        out.insert(out.end(), {options_.lock_path(lock), "--", own_program(), "role=command",
                               "board=" + options_.text("board"), "register=" + options_.text("register"),
                               "actor=" + std::to_string(options_.actor()), "first-lock=" + std::to_string(lock),
                               "hold-ms=" + std::to_string(ms), "tag=" + options_.text("tag")});
        return out;
    }

    int run_one(int index, const std::string& limit) {
        const auto command = words(index, limit);
        std::vector<char*> argv;
        for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        const pid_t parent = getpid();
        const pid_t pid = fork();
        if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(127);
            close(0);
            open("/dev/null", O_RDONLY);
            close_range(3, ~0U, 0);
            execv(argv[0], argv.data());
            _exit(127);
        }
        {
            const std::lock_guard lock(mutex_);
            zklock_ = pid;
            if (frozen_) kill(pid, SIGSTOP);
        }
        siginfo_t ended{};
        while (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
        }
        const std::lock_guard lock(mutex_);
        zklock_ = 0;
        int status = 0;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    const ActorOptions& options_;
    Reply& reply_;
    std::mt19937_64 random_;
    std::stop_source finish_;
    std::mutex mutex_;  // guards what follows
    pid_t zklock_ = 0;
    bool frozen_ = false;
};

const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

int run_zklock(const ActorOptions& options, Board&, Reply& reply) { return ZklockRole(options, reply).run(); }

int run_command(const ActorOptions& options) {
    const Stamp started = stamp_now();
    const int descriptor = open(options.text("board").c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), options.text("board"));
    Board board = Board::attach(descriptor);
    const int lock = options.first_lock();
    const std::string said = environment("ZKLOCK_MODE");
    const auto mode = said == "shared" ? HoldMode::shared : said == "semaphore" ? HoldMode::lease : HoldMode::exclusive;
    const std::string node = environment("ZKLOCK_NODE");
    const std::int64_t token = std::strtoll(environment("ZKLOCK_FENCING_TOKEN"), nullptr, 10);
    HoldSlot& hold = board.add_hold(options.actor(), lock, started, token, node.substr(node.rfind('/') + 1), mode);
    RegisterClient fenced(options.text("register"));
    const auto plain = board.read_counter(lock);
    const auto guarded = mode == HoldMode::exclusive ? fenced.read(lock, token)
                         : mode == HoldMode::shared  ? fenced.read_shared(lock, token)
                                                     : -1;
    if (token % 2 == 0) std::signal(SIGTERM, SIG_IGN);  // then only SIGKILL ends it in time
    // To run is to believe: the promise is that we are dead before somebody else holds.
    const Stamp until = stamp_now() + from_ms(options.number("hold-ms"));
    const Stamp enough = until + from_ms(60'000);
    while (hold.last_true_at < until || (board.is_to_be_kept(lock) && hold.last_true_at < enough)) {
        std::this_thread::sleep_for(milliseconds(1));
        hold.last_true_at = stamp_now();
    }
    if (mode == HoldMode::exclusive) {
        ++(guarded >= 0 && fenced.write(lock, token, guarded + 1) ? hold.fenced : hold.refused);
        hold.last_write_at = stamp_now();
        board.write_counter(lock, plain + 1);
        ++hold.writes;
    }
    hold.released_at = stamp_now();
    return 0;
}

}  // namespace zkrecipes::chaos
