#include <csignal>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <zkrecipes/testenv/sessions.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "child_process.hpp"
#include "java.hpp"

namespace zkrecipes::testenv {

namespace {

namespace fs = std::filesystem;
using internal::Clock;
using std::chrono::milliseconds;

// The usual ports, or the next set if a process (a system-wide ZooKeeper) listens on all addresses there.
std::uint16_t free_client_port(const std::string& address) {
    for (int offset = 0; offset < 30'000; offset += 1'000) {
        const auto is_free = [&](int port) {
            return static_cast<bool>(internal::try_listen({address, static_cast<std::uint16_t>(port + offset)}));
        };
        if (is_free(2181) && is_free(2888) && is_free(3888)) {
            return static_cast<std::uint16_t>(2181 + offset);
        }
    }
    throw Error("no free port on " + address);
}

std::string new_directory(const internal::Keeper& keeper, const std::string& name) {
    static std::atomic<int> next{1};
    std::string path = keeper.directory() + "/" + name + "-" + std::to_string(next++);
    fs::create_directories(path + "/data");
    return path;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

struct ZkServer::State {
    explicit State(ServerOptions wanted)
        : options(std::move(wanted)),
          java(internal::find_java()),
          claim(options.address),
          endpoint{claim.address(), options.port},
          directory(new_directory(internal::Keeper::instance(), options.name)) {
        if (endpoint.port == 0) {
            endpoint.port = free_client_port(endpoint.address);
        }
    }
    ~State() {
        if (owner == ::getpid() && internal::Keeper::instance().served() == owner) {
            process.kill();
            if (!internal::keep_files()) {
                std::error_code ignored;
                fs::remove_all(directory, ignored);
            }
        }
    }

    void write_configuration() const;
    [[nodiscard]] std::vector<std::string> command() const;
    [[nodiscard]] std::string log_file() const { return directory + "/server.log"; }

    const pid_t owner = ::getpid();
    ServerOptions options;
    internal::Java java;
    internal::AddressClaim claim;
    Endpoint endpoint;
    std::string directory;
    internal::ChildProcess process;
    bool frozen = false;
};

void ZkServer::State::write_configuration() const {
    std::ofstream file(directory + "/zoo.cfg");
    file << "dataDir=" << directory << "/data\n"
         << "clientPort=" << endpoint.port << "\nclientPortAddress=" << endpoint.address << '\n'
         << "tickTime=" << options.tick_time.count() << '\n'
         << "minSessionTimeout=" << options.min_session_timeout.count() << '\n'
         << "maxSessionTimeout=" << options.max_session_timeout.count() << '\n'
         << "initLimit=" << options.init_limit << "\nsyncLimit=" << options.sync_limit << '\n'
         << "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n";
    if (options.tls_port != 0) {
        file << "secureClientPort=" << options.tls_port << "\nsecureClientPortAddress=" << endpoint.address << '\n'
             << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n";
    }
    for (const auto& lines : {options.quorum_lines, options.config_lines}) {
        for (const auto& line : lines) {
            file << line << '\n';
        }
    }
    if (options.id != 0) {
        std::ofstream(directory + "/data/myid") << options.id << '\n';
    }
}

std::vector<std::string> ZkServer::State::command() const {
    std::vector<std::string> words = options.launcher;
    words.push_back(java.program);
    for (auto& flag : internal::quick_start_flags()) {
        words.push_back(std::move(flag));
    }
    if (const std::string archive = internal::class_data_archive(java); !archive.empty()) {
        words.push_back("-XX:SharedArchiveFile=" + archive);
    }
    // Where a message between members is lost, an election goes on with the next one: after up to a minute, by default.
    words.emplace_back("-Dzookeeper.fastleader.maxNotificationInterval=1000");
    for (const auto& [name, value] : options.java_properties) {
        words.push_back("-D" + name + "=" + value);
    }
    words.insert(words.end(), options.java_flags.begin(), options.java_flags.end());
    // Debian's zookeeper.jar does not name all that Netty needs for TLS.
    const std::string codec = options.tls_port == 0 ? "" : ":/usr/share/java/netty-codec.jar";
    words.insert(words.end(), {"-cp", java.class_path + codec, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                               directory + "/zoo.cfg"});
    return words;
}

ZkServer::ZkServer(ServerOptions options) : state_(std::make_unique<State>(std::move(options))) {
    if (!state_->options.deferred) {
        start();
    }
}

ZkServer::ZkServer(ZkServer&&) noexcept = default;
ZkServer& ZkServer::operator=(ZkServer&&) noexcept = default;
ZkServer::~ZkServer() = default;

void ZkServer::start() {
    launch();
    wait_ready();
}

void ZkServer::launch() {
    if (running()) {
        return;
    }
    state_->process.kill();  // reaps a process that ended by itself
    state_->write_configuration();
    state_->frozen = false;
    state_->process =
        internal::ChildProcess({state_->command(), state_->options.environment, state_->directory, state_->log_file()});
}

void ZkServer::wait_ready() {
    const auto deadline = Clock::now() + state_->options.ready_within;
    while (!serving()) {
        // After two milliseconds, a probe is cheap compared to the start of a JVM.
        std::this_thread::sleep_for(milliseconds(2));
        const bool ended = !running();
        if (ended || Clock::now() >= deadline) {
            throw Error("the ZooKeeper server " + endpoint().str() +
                        (ended ? " ended while it was starting" : " did not serve clients in time") +
                        "; its log ends:\n" + log_tail());
        }
    }
}

void ZkServer::stop() {
    thaw();
    state_->process.signal(SIGTERM);
    (void)state_->process.wait_exit(Clock::now() + milliseconds(10'000));
    kill();
}

void ZkServer::kill() {
    state_->process.kill();
    state_->frozen = false;
}

void ZkServer::freeze() {
    state_->process.freeze();
    state_->frozen = true;
}

void ZkServer::thaw() {
    if (state_->frozen) {
        state_->process.thaw();
        state_->frozen = false;
    }
}

void ZkServer::restart() {
    kill();
    start();
}

void ZkServer::set_max_session_timeout(milliseconds timeout) { state_->options.max_session_timeout = timeout; }

void ZkServer::wipe_data() {
    if (running()) {
        throw Error("the data of a running server cannot be wiped: stop() or kill() it first");
    }
    fs::remove_all(state_->directory + "/data");
    fs::create_directories(state_->directory + "/data");
}

bool ZkServer::running() const { return state_->process.running(); }
bool ZkServer::serving() const { return !mode().empty(); }
int ZkServer::pid() const { return state_->process.pid(); }
const Endpoint& ZkServer::endpoint() const { return state_->endpoint; }
const ServerOptions& ZkServer::options() const { return state_->options; }
const std::string& ZkServer::directory() const { return state_->directory; }

std::string ZkServer::four_letter(const std::string& word, milliseconds within) const {
    auto answer = internal::four_letter_word(endpoint(), word, Clock::now() + within);
    if (!answer) {
        throw Error("the server " + endpoint().str() + " does not answer \"" + word + "\"");
    }
    return *std::move(answer);
}

std::string ZkServer::mode() const {
    const auto answer = internal::four_letter_word(endpoint(), "srvr", Clock::now() + milliseconds(1000));
    const std::string label = "Mode: ";
    const auto begin = answer ? answer->find(label) : std::string::npos;
    if (begin == std::string::npos) {
        return "";
    }
    const auto text = answer->substr(begin + label.size());
    return text.substr(0, text.find('\n'));
}

std::int64_t ZkServer::watch_count() const {
    const std::string answer = four_letter("wchs");
    const std::string label = "Total watches:";
    const auto begin = answer.find(label);
    std::int64_t count = 0;
    if (begin == std::string::npos ||
        std::from_chars(answer.data() + begin + label.size(), answer.data() + answer.size(), count).ec != std::errc{}) {
        throw Error("the server " + endpoint().str() + " does not tell its watches: " + answer);
    }
    return count;
}

int ZkServer::connection_count() const {
    // One line for each connection; only those with a session have "sid=".
    std::istringstream lines(four_letter("cons"));
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
        count += line.find("sid=0x") != std::string::npos ? 1 : 0;
    }
    return count;
}

void ZkServer::expire_session(std::int64_t session_id, const std::string& password) const {
    (void)testenv::expire_session(endpoint(), session_id, password);
}

std::string ZkServer::log() const { return read_file(state_->log_file()); }

std::string ZkServer::log_tail(int lines) const {
    const std::string text = log();
    std::size_t begin = text.size();
    for (int left = lines; left >= 0 && begin != std::string::npos && begin > 0; --left) {
        begin = text.rfind('\n', begin - 1);
    }
    return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

void ZkServer::set_quorum(int id, std::vector<std::string> lines) {
    state_->options.id = id;
    state_->options.quorum_lines = std::move(lines);
}

}  // namespace zkrecipes::testenv
