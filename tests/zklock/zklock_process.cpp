#include "zklock/zklock_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include "zklock/parsed_json.hpp"

extern char** environ;

namespace zkrecipes::zklock::test {

ZklockProcess::ZklockProcess(std::vector<std::string> arguments, Setup setup) {
    std::vector<std::string> argv = setup.launcher;
    argv.emplace_back(ZKLOCK_BINARY);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment;
    for (char** variable = environ; *variable; ++variable) {
        const std::string text = *variable;
        if (!text.starts_with("ZKLOCK_") && !text.starts_with("ZK_HOSTS=") && !text.starts_with("XDG_CONFIG_HOME=")) {
            environment.push_back(text);
        }
    }
    environment.insert(environment.end(), setup.environment.begin(), setup.environment.end());
    std::vector<char*> arg_pointers, env_pointers;
    for (std::string& text : argv) arg_pointers.push_back(text.data());
    for (std::string& text : environment) env_pointers.push_back(text.data());
    arg_pointers.push_back(nullptr);
    env_pointers.push_back(nullptr);

    const int out = ::open((output_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int err = ::open((output_ / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int input[2];
    if (::pipe2(input, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        ::setpgid(0, 0);
        ::dup2(input[0], 0);
        ::dup2(out, 1);
        ::dup2(err, 2);
        for (const int signal : setup.ignored_signals) ::signal(signal, SIG_IGN);
        ::execvpe(arg_pointers[0], arg_pointers.data(), env_pointers.data());
        ::_exit(99);
    }
    ::close(out);
    ::close(err);
    ::close(input[0]);
    input_ = input[1];
    [[maybe_unused]] const ssize_t size = ::write(input_, setup.input.data(), setup.input.size());
    if (!setup.keep_input) end_input();
}

ZklockProcess::~ZklockProcess() {
    end_input();
    if (running()) {
        signal(SIGCONT);
        signal(SIGKILL);  // takes the command with it
        reap(0);
    }
    if (testing::Test::HasFailure()) {
        std::fprintf(stderr, "--- zklock %d said:\n%s%s---\n", static_cast<int>(pid_), out().c_str(), err().c_str());
    }
}

void ZklockProcess::end_input() {
    if (input_ >= 0) ::close(std::exchange(input_, -1));
}
void ZklockProcess::signal(int number) const { ::kill(pid_, number); }
bool ZklockProcess::reap(int flags) {
    if (!ended_ && ::waitpid(pid_, &status_, flags) == pid_) ended_ = true;
    return ended_;
}
bool ZklockProcess::running() { return !reap(WNOHANG); }

int ZklockProcess::wait() {
    if (!zkrecipes::test::await([&] { return !running(); })) {
        ADD_FAILURE() << "zklock did not end";
        return 1000;
    }
    return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string ZklockProcess::out() const { return read_file(output_ / "out"); }
std::string ZklockProcess::err() const { return read_file(output_ / "err"); }

Outcome zklock(std::vector<std::string> arguments, ZklockProcess::Setup setup) {
    ZklockProcess process(std::move(arguments), std::move(setup));
    const int code = process.wait();
    return {code, process.out(), process.err()};
}

bool exists(const std::string& file) { return std::filesystem::exists(file); }
std::string read_file(const std::string& file) {
    std::ostringstream text;  // no exception if it is a file of /proc whose process ends meanwhile
    text << std::ifstream(file).rdbuf();
    return text.str();
}
std::vector<Json> read_events(const std::string& file) {
    std::vector<Json> result;
    std::istringstream stream(read_file(file));
    for (std::string line; std::getline(stream, line);) {
        auto object = Json::parse_or_null(line);
        if (object.is_object()) result.push_back(std::move(object));
    }
    return result;
}
std::vector<Json> events_named(const std::string& file, const std::string& name) {
    std::vector<Json> result;
    for (Json& event : read_events(file)) {
        if (event["event"] == name) result.push_back(std::move(event));
    }
    return result;
}

}  // namespace zkrecipes::zklock::test
