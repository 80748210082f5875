// The keeper process; keeper.hpp describes its purpose.
//
// It is started as /proc/self/exe with an environment variable, and a constructor function takes over before main. So a
// test program needs no helper program, and the keeper shares no memory, locks or threads with the process that it has
// to outlive. A plain fork of a multi-threaded program could not even allocate safely.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <csignal>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "keeper.hpp"

namespace zkrecipes::testenv::internal {

const char* const keeper_variable = "ZKRECIPES_TESTENV_KEEPER";

bool keep_files() {
    const char* keep = std::getenv("ZKRECIPES_TESTENV_KEEP");
    return keep != nullptr && *keep != '\0';
}

namespace {

namespace fs = std::filesystem;

constexpr const char* directory_prefix = "zkrecipes-testenv-";
constexpr const char* lock_name = ".lock";
constexpr const char* process_name = "zk-keeper";

bool usable_directory(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && ::access(path.c_str(), W_OK | X_OK) == 0;
}

std::string directory_root() {
    const char* chosen = std::getenv("ZKRECIPES_TESTENV_DIR");
    const char* temporary = std::getenv("TMPDIR");
    for (const char* candidate : {chosen, "/dev/shm", temporary}) {
        if (candidate != nullptr && *candidate == '/' && usable_directory(candidate)) {
            return candidate;
        }
    }
    return "/tmp";
}

// A running keeper holds a lock on the lock file of its directory. If the lock is free, the keeper was killed together
// with its test. A directory without a lock file may be new: it stays for a minute.
void sweep_leftovers(const std::string& root) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        const std::string path = entry.path();
        struct stat info {};
        if (entry.path().filename().string().rfind(directory_prefix, 0) != 0 || ::lstat(path.c_str(), &info) != 0 ||
            !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
            continue;
        }
        UniqueFd lock(::open((path + "/" + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        const bool abandoned =
            lock ? ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 : info.st_mtime + 60 < ::time(nullptr);
        if (abandoned) {
            std::error_code ignored;
            fs::remove_all(entry.path(), ignored);
        }
    }
}

// Returns the directory and its lock. The lock is taken right after the file is created. If a sweeper was faster, it
// has removed the directory, and the next name is tried.
std::pair<std::string, UniqueFd> make_directory(const std::string& root) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        std::string path = root + "/" + directory_prefix + std::to_string(::getpid()) + "-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            break;
        }
        UniqueFd lock(::open((path + "/" + lock_name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        struct stat info {};
        if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(lock.get(), &info) == 0 &&
            info.st_nlink == 1) {
            return {path, std::move(lock)};
        }
    }
    return {};
}

class KeeperProcess {
public:
    KeeperProcess(int socket, int served) : socket_(socket), served_(served) {}

    void run() {
        const std::string root = directory_root();
        sweep_leftovers(root);
        std::tie(directory_, lock_) = make_directory(root);
        if (directory_.empty()) {
            (void)send_message(socket_.get(),
                               {"error", "cannot make a directory in " + root + ": " + std::strerror(errno)});
            return;
        }
        if (send_message(socket_.get(), {"ok", directory_, std::to_string(::getpid())})) {
            serve();
        }
        clean_up();
    }

private:
    void serve() {
        for (;;) {
            pollfd watched[] = {{socket_.get(), POLLIN, 0}, {served_.get(), POLLIN, 0}};
            if (::poll(watched, 2, -1) < 0 && errno != EINTR) {
                return;
            }
            if (watched[1].revents != 0) {
                return;  // the served process has ended, even if other processes still have a copy of its socket
            }
            collect_orphans();
            if (watched[0].revents != 0) {
                const auto request = receive_message(socket_.get());
                if (!request || request->empty() || !send_message(socket_.get(), answer(*request))) {
                    return;
                }
            }
        }
    }

    // Reaps processes that a launcher left. The keeper's own children stay zombies until reap(), so that their numbers
    // are not reused.
    void collect_orphans() {
        siginfo_t ended{};
        while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
               children_.count(ended.si_pid) == 0) {
            ::waitpid(ended.si_pid, nullptr, 0);
            ended = {};
        }
    }

    std::vector<std::string> answer(const std::vector<std::string>& request) {
        const std::string& verb = request[0];
        if (verb == "spawn" && request.size() > 4) {
            return spawn(request);
        }
        if (verb == "reap" && request.size() == 2) {
            return reap(std::atoi(request[1].c_str()));
        }
        if (verb == "claim" && request.size() == 2) {
            return claim(request[1]);
        }
        if (verb == "release" && request.size() == 2) {
            claims_.erase(request[1]);
            return {"ok"};
        }
        return {"error", "the keeper does not know the request " + verb};
    }

    // Abstract socket names belong to the network namespace, as loopback addresses do, and vanish with their owner.
    std::vector<std::string> claim(const std::string& address) {
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        const std::string text = "zkrecipes-testenv/" + address;
        if (text.size() + 1 > sizeof name.sun_path) {
            return {"error", "not an address: " + address};
        }
        std::memcpy(name.sun_path + 1, text.data(), text.size());
        UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
        if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
            return {"refused", std::strerror(errno)};
        }
        claims_[address] = std::move(socket);
        return {"ok"};
    }

    // request: spawn, directory, log, number of arguments, arguments…, environment…
    std::vector<std::string> spawn(const std::vector<std::string>& request) {
        const auto count = static_cast<std::size_t>(std::atoi(request[3].c_str()));
        if (count == 0 || 4 + count > request.size()) {
            return {"error", "spawn without arguments"};
        }
        std::vector<char*> arguments;
        for (std::size_t i = 4; i < 4 + count; ++i) {
            arguments.push_back(const_cast<char*>(request[i].c_str()));
        }
        arguments.push_back(nullptr);
        int failure[2];
        if (::pipe2(failure, O_CLOEXEC) != 0) {
            return {"error", std::strerror(errno)};
        }
        UniqueFd failure_in(failure[0]);
        UniqueFd failure_out(failure[1]);
        const pid_t keeper = ::getpid();
        const pid_t child = ::fork();
        if (child < 0) {
            return {"error", std::string("fork: ") + std::strerror(errno)};
        }
        if (child == 0) {
            for (std::size_t i = 4 + count; i < request.size(); ++i) {
                ::putenv(const_cast<char*>(request[i].c_str()));
            }
            become(keeper, request[1], request[2], arguments, failure_out.get());
        }
        failure_out.reset();
        int code = 0;
        if (::read(failure_in.get(), &code, sizeof code) == static_cast<ssize_t>(sizeof code)) {
            ::waitpid(child, nullptr, 0);
            return {"error", "cannot run " + request[4] + ": " + std::strerror(code)};
        }
        children_.insert(child);
        return {"ok", std::to_string(child)};
    }

    [[noreturn]] static void become(pid_t keeper, const std::string& directory, const std::string& log,
                                    std::vector<char*>& arguments, int failure) {
        ::setpgid(0, 0);  // if a launcher forks, java is in its group
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != keeper) {
            ::_exit(127);  // the keeper died before the line above took effect
        }
        // Ignored signals stay ignored across exec, and a JVM that finds SIGTERM ignored cannot be stopped by it.
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) {
            ::signal(signal, SIG_DFL);
        }
        const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (output >= 0 && ::dup2(output, 1) >= 0 && ::dup2(output, 2) >= 0 && ::chdir(directory.c_str()) == 0) {
            ::execvp(arguments[0], arguments.data());
        }
        const int code = errno;
        (void)!::write(failure, &code, sizeof code);
        ::_exit(127);
    }

    std::vector<std::string> reap(pid_t pid) {
        if (children_.count(pid) == 0) {
            return {"error", "not a process of this keeper: " + std::to_string(pid)};
        }
        int status = 0;
        siginfo_t ended{};
        while (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
        }
        ::kill(-pid, SIGKILL);  // processes that a launcher left; the number still belongs to the leader, a zombie
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        children_.erase(pid);
        return {"ok", std::to_string(status)};
    }

    // Descendants in other groups become children of the keeper when their parents end. Other keepers end by themselves
    // and must clean up first.
    static void kill_adopted() {
        std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
        for (pid_t child = 0; children >> child;) {
            std::string name;
            std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm") >> std::ws, name);
            if (name != process_name) {
                ::kill(child, SIGKILL);
            }
        }
    }

    // In this order: addresses and the directory must stay while a server still uses them.
    void clean_up() {
        for (const pid_t child : children_) {
            ::kill(-child, SIGKILL);
            ::kill(child, SIGKILL);  // in case it has not created its group yet
        }
        do {
            kill_adopted();
        } while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
        if (!keep_files()) {
            remove_files();
        }
        claims_.clear();
    }

    // The keeper must not kill all writers: children of the served process die with it, but maybe after the keeper.
    void remove_files() const {
        std::error_code error;
        for (int attempt = 0; attempt < 500; ++attempt) {
            fs::remove_all(directory_, error);
            if (!error && !fs::exists(directory_, error)) {
                return;
            }
            const timespec pause{0, 10'000'000};
            ::nanosleep(&pause, nullptr);
        }
    }

    UniqueFd socket_;
    UniqueFd served_;
    UniqueFd lock_;
    std::string directory_;
    std::set<pid_t> children_;
    std::map<std::string, UniqueFd> claims_;
};

[[noreturn]] void become_keeper() {
    ::unsetenv(keeper_variable);
    // A reader of the served process's output must see its end when that process ends, not when the keeper ends.
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) {
        ::dup2(null, fd);
    }
    ::syscall(SYS_close_range, 5U, ~0U, 0U);
    for (const int fd : {3, 4}) {
        ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    // Not a child of the served process, which may wait for any child. Also, ctest kills process trees from the root.
    if (::fork() != 0) {
        ::_exit(0);
    }
    ::setsid();
    ::prctl(PR_SET_NAME, process_name);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the keeper can reap what a launcher leaves
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) {
        ::signal(signal, SIG_IGN);
    }
    ::signal(SIGCHLD, SIG_DFL);
    if (::chdir("/") == 0) {
        KeeperProcess(3, 4).run();
    }
    ::_exit(0);
}

// Runs before other constructors of the program, which may start threads or have side effects.
[[gnu::constructor(101)]] void take_over_before_main() {
    if (std::getenv("ZKRECIPES_TESTENV_KEEPER") != nullptr) {
        become_keeper();
    }
}

}  // namespace
}  // namespace zkrecipes::testenv::internal
