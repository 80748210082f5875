#include "interop/peer.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "support/await.hpp"

namespace zkrecipes::test {
namespace {

// From the build: the class path of CuratorPeer, the interpreter and its script. Empty: not there.
const std::string kJava = ZKRECIPES_INTEROP_JAVA;
const std::string kClassPath = ZKRECIPES_INTEROP_CLASS_PATH;
const std::string kPython = ZKRECIPES_INTEROP_PYTHON;
const std::string kKazooPeer = ZKRECIPES_INTEROP_KAZOO_PEER;

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
        if (c == '\t') {
            fields.emplace_back();
        } else {
            fields.back() += c;
        }
    }
    return fields;
}

/// A client within a peer process.
class PeerClient final : public Client {
public:
    PeerClient(PeerProcess& peer, std::string name) : peer_(peer), name_(std::move(name)) {}
    ~PeerClient() override { peer_.ask(name_, {"close"}); }
    Answer ask(const Fields& words) override { return peer_.ask(name_, words); }

private:
    PeerProcess& peer_;
    const std::string name_;
};

}  // namespace

// ---- answers ------------------------------------------------------------------------------------------------------

bool Answer::done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->done;
}

Answer::Fields Answer::fields() const {
    std::unique_lock lock(state_->mutex);
    // One answer may be that of a crowd that has done all its rounds.
    if (!state_->changed.wait_for(lock, 10 * kMaxWait, [&] { return state_->done; })) {
        throw std::runtime_error("no answer to a command in time");
    }
    if (!state_->error.empty()) throw std::runtime_error(state_->error);
    return state_->fields;
}

bool Answer::yes() const { return fields() == Fields{"yes"}; }

void Answer::set(Fields fields) const {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->done, true)) return;
    state_->fields = std::move(fields);
    state_->changed.notify_all();
}

void Answer::fail(std::string error) const {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->done, true)) return;
    state_->error = std::move(error);
    state_->changed.notify_all();
}

// ---- peers --------------------------------------------------------------------------------------------------------

std::string why_no_peer(PeerLanguage language) {
    if (language == PeerLanguage::curator) {
        if (!kClassPath.empty()) return "";
        return "when this was configured there was no Java compiler or no Curator: apt-get install "
               "default-jdk-headless libcurator-recipes-java";
    }
    if (!kPython.empty()) return "";
    return "when this was configured there was no kazoo: apt-get install python3-kazoo";
}

PeerProcess::PeerProcess(PeerLanguage language)
    : PeerProcess(language == PeerLanguage::curator
                      ? std::vector<std::string>{kJava, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                                                 "-XX:-UsePerfData", "-Xmx192m", "-Djava.net.preferIPv4Stack=true",
                                                 "-cp", kClassPath, "CuratorPeer"}
                      : std::vector<std::string>{kPython, "-B", kKazooPeer}) {}

PeerProcess::PeerProcess(const std::vector<std::string>& argv) {
    start(argv);
    reader_ = std::thread([this] { read_answers(); });
}

PeerProcess::~PeerProcess() {
    kill();
    reader_.join();
    close(commands_);
    close(answers_);
}

void PeerProcess::start(const std::vector<std::string>& argv) {
    std::vector<char*> arguments;
    for (const auto& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    int commands[2];
    int answers[2];
    int started[2];
    if (pipe2(commands, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0 || pipe2(started, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    std::signal(SIGPIPE, SIG_IGN);  // a command to a peer that was killed is no reason to die
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
        // Only async-signal-safe calls from here on. The test may have died before the prctl: hence the second look.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        if (dup2(commands[0], 0) < 0 || dup2(answers[1], 1) < 0) _exit(127);
        close_range(3, ~0U, 0);  // the C client does not mark its connections close-on-exec
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(commands[0]);
    close(answers[1]);
    close(started[1]);
    // Until the child has closed its end. Before that it may not have asked to die with us, and whoever stops it then
    // leaves it behind for ever.
    char nothing = 0;
    while (read(started[0], &nothing, 1) < 0 && errno == EINTR) {
    }
    close(started[0]);
    commands_ = commands[1];
    answers_ = answers[0];
}

void PeerProcess::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

std::unique_ptr<Client> PeerProcess::client(const std::string& hosts, std::chrono::milliseconds timeout, Names names) {
    const std::string name = std::to_string(++clients_);
    auto client = std::make_unique<PeerClient>(*this, name);
    client->ask({"open", hosts, std::to_string(timeout.count()), names == Names::kazoo ? "kazoo" : "curator"}).fields();
    return client;
}

Answer PeerProcess::ask(const std::string& client, const Answer::Fields& words) {
    const std::lock_guard lock(mutex_);
    Answer answer;
    const std::string number = std::to_string(++asked_);
    std::string line = number + "\t" + client;
    for (const auto& word : words) line += "\t" + word;
    line += "\n";
    if (ended_ || write(commands_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        answer.fail("the peer takes no commands");
    } else {
        open_.emplace(number, answer);
    }
    return answer;
}

void PeerProcess::read_answers() {
    std::string partial;
    char bytes[4096];
    for (;;) {
        const ssize_t got = read(answers_, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        partial.append(bytes, static_cast<std::size_t>(got));
        for (auto end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
            take_answer(partial.substr(0, end));
            partial.erase(0, end + 1);
        }
    }
    fail_all("the peer ended");
}

void PeerProcess::take_answer(const std::string& line) {
    auto fields = split(line);
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(fields[0]);
    if (found == open_.end() || fields.size() < 2) {
        std::fprintf(stderr, "a peer says: %s\n", line.c_str());
        return;
    }
    const bool ok = fields[1] == "ok";
    fields.erase(fields.begin(), fields.begin() + 2);
    if (ok) {
        found->second.set(std::move(fields));
    } else {
        found->second.fail("the peer failed: " + (fields.empty() ? "?" : fields[0]));
    }
    open_.erase(found);
}

void PeerProcess::fail_all(const std::string& why) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const auto& [number, answer] : open_) answer.fail(why);
    open_.clear();
}

}  // namespace zkrecipes::test
