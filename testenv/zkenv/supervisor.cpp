#include "testenv/zkenv/supervisor.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "testenv/src/keeper.hpp"
#include "testenv/src/unique_fd.hpp"
#include "testenv/zkenv/state.hpp"

namespace zkrecipes::testenv::zkenv {

namespace {

using internal::UniqueFd;

ServerOptions server_options(const EnvironmentOptions& options) {
    ServerOptions server;
    server.name = "zkenv";
    server.tick_time = std::chrono::milliseconds(options.tick_ms);
    server.min_session_timeout = 2 * server.tick_time;
    server.max_session_timeout = std::chrono::milliseconds(60'000);
    server.init_limit = 10;
    server.sync_limit = 5;
    return server;
}

/// One server or several, under the same names.
class Servers {
public:
    explicit Servers(const EnvironmentOptions& options) {
        if (options.servers == 1) {
            single_ = std::make_unique<ZkServer>(server_options(options));
        } else {
            EnsembleOptions ensemble;
            ensemble.servers = options.servers;
            ensemble.server = server_options(options);
            ensemble_ = std::make_unique<ZkEnsemble>(std::move(ensemble));
        }
        frozen_.resize(static_cast<std::size_t>(options.servers));
    }
    [[nodiscard]] int size() const { return static_cast<int>(frozen_.size()); }
    ZkServer& at(int i) { return single_ ? *single_ : ensemble_->member(i); }
    std::string connect_string() { return single_ ? single_->connect_string() : ensemble_->connect_string(); }

    void kill(int i) {
        at(i).kill();
        frozen_[static_cast<std::size_t>(i)] = false;
    }
    void freeze(int i) {
        at(i).freeze();
        frozen_[static_cast<std::size_t>(i)] = true;
    }
    void thaw(int i) {
        at(i).thaw();
        frozen_[static_cast<std::size_t>(i)] = false;
    }
    /// "leader", "follower", "standalone", "frozen", "down", "not serving".
    std::string state(int i) {
        if (!at(i).running()) {
            return "down";
        }
        const std::string mode = frozen_[static_cast<std::size_t>(i)] ? "frozen" : at(i).mode();
        return mode.empty() ? "not serving" : mode;
    }

private:
    std::unique_ptr<ZkServer> single_;
    std::unique_ptr<ZkEnsemble> ensemble_;
    std::vector<bool> frozen_;
};

class Supervisor {
public:
    Supervisor(const EnvironmentOptions& options, std::string directory)
        : options_(options), directory_(std::move(directory)), servers_(options), listener_(listen_for_commands()) {}

    /// `patron`: a pidfd of the process with which the servers end, or -1.
    void run(int signals, int patron) {
        while (!stopping_) {
            pollfd watched[] = {{listener_.get(), POLLIN, 0}, {signals, POLLIN, 0}, {patron, POLLIN, 0}};
            if (::poll(watched, 3, -1) < 0 && errno != EINTR) {
                break;
            }
            if (watched[1].revents != 0 || watched[2].revents != 0) {
                break;
            }
            if (watched[0].revents != 0) {
                last_connection_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                serve_connection();
            }
        }
    }

    /// Removes everything. The client that asked for it sees the end of its connection when this process has ended.
    static void clean_up(const std::string& directory) {
        try {
            internal::Keeper::instance().finish();
        } catch (const Error&) {  // there is none: it could not start, and that is why we are here
        }
        std::error_code ignored;
        std::filesystem::remove_all(directory, ignored);
    }
    UniqueFd take_last_connection() { return std::move(last_connection_); }

private:
    UniqueFd listen_for_commands() const {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = socket_path(directory_);
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        ::unlink(path.c_str());
        if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(socket.get(), 16) != 0) {
            throw Error("cannot listen on " + path + ": " + std::strerror(errno));
        }
        return socket;
    }

    void serve_connection() {
        const timeval limit{5, 0};  // a client that says nothing must not stop the others
        ::setsockopt(last_connection_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        std::string line;
        char byte = 0;
        while (line.size() < 200 && ::recv(last_connection_.get(), &byte, 1, 0) == 1 && byte != '\n') {
            line.push_back(byte);
        }
        std::string answer;
        try {
            answer = obey(line);
        } catch (const std::exception& error) {
            answer = std::string("error ") + error.what();
        }
        answer.push_back('\n');
        (void)!::send(last_connection_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        if (!stopping_) {
            last_connection_.reset();
        }
    }

    std::string obey(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        int number = 0;
        words >> verb >> number;
        if (verb == "status" || verb == "json") {
            return "ok " + (verb == "json" ? json() : text());
        }
        if (verb == "connect") {
            return "ok " + std::to_string(servers_.size()) + " " + servers_.connect_string();
        }
        if (verb == "stop") {
            stopping_ = true;
            return "ok";
        }
        if (number < 1 || number > servers_.size()) {
            return "error there is no server " + std::to_string(number) + "; they are numbered from 1 to " +
                   std::to_string(servers_.size());
        }
        if (verb == "kill") {
            servers_.kill(number - 1);
        } else if (verb == "freeze") {
            if (!servers_.at(number - 1).running()) {
                return "error server " + std::to_string(number) + " does not run";
            }
            servers_.freeze(number - 1);
        } else if (verb == "thaw") {
            servers_.thaw(number - 1);
        } else if (verb == "revive") {
            servers_.at(number - 1).launch();
        } else {
            return "error unknown command " + verb;
        }
        return "ok";
    }

    std::string text() {
        std::ostringstream out;
        out << options_.name << ": running, " << servers_.size() << (servers_.size() == 1 ? " server" : " servers")
            << "\nconnect string: " << servers_.connect_string();
        for (int i = 0; i < servers_.size(); ++i) {
            out << "\n  " << i + 1 << "  " << servers_.at(i).connect_string() << "  " << servers_.state(i);
            if (servers_.at(i).running()) {
                out << "  pid " << servers_.at(i).pid();
            }
        }
        return out.str();
    }

    std::string json() {
        boost::json::array servers;
        for (int i = 0; i < servers_.size(); ++i) {
            servers.push_back({{"number", i + 1},
                               {"endpoint", servers_.at(i).connect_string()},
                               {"state", servers_.state(i)},
                               {"pid", servers_.at(i).pid()}});
        }
        return boost::json::serialize(boost::json::object{{"name", options_.name},
                                                          {"running", true},
                                                          {"supervisor", ::getpid()},
                                                          {"connect_string", servers_.connect_string()},
                                                          {"servers", std::move(servers)}});
    }

    EnvironmentOptions options_;
    std::string directory_;
    Servers servers_;
    UniqueFd listener_;
    UniqueFd last_connection_;
    bool stopping_ = false;
};

/// A pidfd of the process with which the servers end.
UniqueFd open_patron(int pid) {
    UniqueFd patron(pid == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (pid != 0 && !patron) {
        throw Error("cannot watch process " + std::to_string(pid) + ": " + std::strerror(errno));
    }
    return patron;
}

/// Removes what "zkenv stop" would remove.
void remove_state(const std::string& directory) {
    try {
        const UniqueFd lock = lock_state(directory);
        ::unlink((directory + ".lock").c_str());
    } catch (const Error&) {  // removed together with all that was around it
    }
    ::rmdir(directory.substr(0, directory.rfind('/')).c_str());
}

void report_and_close(UniqueFd& report, const std::string& text) {
    (void)!::write(report.get(), text.data(), text.size());
    report.reset();
}

}  // namespace

int supervise(const EnvironmentOptions& options, int report_descriptor) {
    UniqueFd report(report_descriptor);
    const std::string directory = state_directory(options.name, true);
    sigset_t wanted;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGTERM);
    ::sigaddset(&wanted, SIGINT);
    ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
    ::signal(SIGHUP, SIG_IGN);
    const UniqueFd signals(::signalfd(-1, &wanted, SFD_CLOEXEC));
    UniqueFd asker;
    try {
        std::error_code error;
        std::filesystem::create_directories(directory, error);
        const UniqueFd patron = open_patron(options.pid);
        Supervisor supervisor(options, directory);
        report_and_close(report, "ok");
        supervisor.run(signals.get(), patron.get());
        asker = supervisor.take_last_connection();
    } catch (const std::exception& error) {
        Supervisor::clean_up(directory);
        report_and_close(report, error.what());
        return 1;
    }
    Supervisor::clean_up(directory);
    if (!asker && options.pid != 0) {
        remove_state(directory);
    }
    return 0;
}

}  // namespace zkrecipes::testenv::zkenv
