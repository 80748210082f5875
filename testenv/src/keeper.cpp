#include "keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <csignal>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <zkrecipes/testenv/error.hpp>

extern char** environ;  // NOLINT

namespace zkrecipes::testenv::internal {

namespace {

constexpr std::size_t message_limit = 192 * 1024;

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

// Starts this executable again with the socket as descriptor 3 and a pidfd of this process as descriptor 4.
void run_keeper(int socket, int self) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // The inherited descriptors may be 3 or 4 themselves, so both are first moved out of the way.
    posix_spawn_file_actions_adddup2(&actions, socket, 3);
    posix_spawn_file_actions_adddup2(&actions, self, 4);
    std::vector<std::string> variables{std::string(keeper_variable) + "=1"};
    std::vector<char*> environment;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        environment.push_back(*variable);
    }
    environment.push_back(variables[0].data());
    environment.push_back(nullptr);
    std::string name = "zkrecipes-testenv-keeper";
    char* arguments[] = {name.data(), nullptr};
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        throw Error(std::string("cannot start the keeper process: ") + std::strerror(failed));
    }
    // The intermediate parent ends immediately, so that the keeper is not a child of this process.
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

UniqueFd at_least_10(int fd) {
    UniqueFd moved(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
    ::close(fd);
    return moved;
}

}  // namespace

bool send_message(int socket, const std::vector<std::string>& parts) {
    std::string text;
    for (const auto& part : parts) {
        text.append(part).push_back('\0');
    }
    return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::optional<std::vector<std::string>> receive_message(int socket) {
    std::string text(message_limit, '\0');
    ssize_t length = 0;
    do {
        length = ::recv(socket, text.data(), text.size(), 0);
    } while (length < 0 && errno == EINTR);
    if (length <= 0) {
        return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(length));
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\0', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

Keeper& Keeper::instance() {
    static std::mutex mutex;
    static Keeper* keeper = nullptr;  // never destroyed: the keeper ends after everything that this process does
    const std::lock_guard lock(mutex);
    if (keeper == nullptr || keeper->served_ != ::getpid()) {
        keeper = new Keeper();
    }
    return *keeper;
}

Keeper::Keeper() : served_(::getpid()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        throw Error(system_error("cannot make a socket for the keeper process"));
    }
    socket_ = at_least_10(ends[0]);
    UniqueFd theirs = at_least_10(ends[1]);
    const int raw_self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0U));
    if (raw_self < 0) {
        throw Error(system_error("pidfd_open (Linux 5.3 or later is needed)"));
    }
    UniqueFd self = at_least_10(raw_self);
    const int size = 512 * 1024;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    run_keeper(theirs.get(), self.get());
    theirs.reset();
    pollfd watched{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&watched, 1, 60'000);
    const auto hello = ready > 0 ? receive_message(socket_.get()) : std::nullopt;
    if (!hello || hello->size() < 2) {
        throw Error("the keeper process did not start: this program, run again as /proc/self/exe, never reached it");
    }
    if ((*hello)[0] != "ok") {
        throw Error("the keeper process did not start: " + (*hello)[1]);
    }
    directory_ = (*hello)[1];
    pid_ = std::stoi(hello->at(2));
}

std::vector<std::string> Keeper::ask(const std::vector<std::string>& request, bool accept_refusal) {
    const std::lock_guard lock(mutex_);
    if (!send_message(socket_.get(), request)) {
        throw Error(system_error("the keeper process is gone, and its servers with it"));
    }
    auto answer = receive_message(socket_.get());
    if (!answer || answer->empty()) {
        throw Error("the keeper process is gone, and its servers with it");
    }
    if ((*answer)[0] == "ok" || (accept_refusal && (*answer)[0] == "refused")) {
        return *answer;
    }
    throw Error(answer->back());
}

pid_t Keeper::spawn(const Spawn& what) {
    std::vector<std::string> request{"spawn", what.directory, what.log, std::to_string(what.argv.size())};
    request.insert(request.end(), what.argv.begin(), what.argv.end());
    request.insert(request.end(), what.environment.begin(), what.environment.end());
    return std::stoi(ask(request).at(1));
}

int Keeper::reap(pid_t pid) { return std::stoi(ask({"reap", std::to_string(pid)}).at(1)); }

bool Keeper::claim(const std::string& address) { return ask({"claim", address}, true).at(0) == "ok"; }

void Keeper::release(const std::string& address) { (void)ask({"release", address}); }

void Keeper::finish() {
    const std::lock_guard lock(mutex_);
    const UniqueFd keeper(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U)));
    socket_.reset();
    pollfd watched{keeper.get(), POLLIN, 0};
    while (keeper && ::poll(&watched, 1, 60'000) < 0 && errno == EINTR) {
    }
}

AddressClaim::AddressClaim(const std::string& wanted) : keeper_(&Keeper::instance()) {
    if (!wanted.empty()) {
        if (!keeper_->claim(wanted)) {
            throw Error("the address " + wanted + " is in use by another test environment");
        }
        address_ = wanted;
        return;
    }
    static std::atomic<unsigned> next{std::random_device{}()};
    for (int attempt = 0; attempt < 10'000; ++attempt) {
        // 127.1.0.1 to 127.254.255.254; 127.0.x.y stays free for users.
        const unsigned number = next++;
        const std::string address = "127." + std::to_string(1 + (number >> 16) % 254) + "." +
                                    std::to_string((number >> 8) % 256) + "." + std::to_string(1 + number % 254);
        if (keeper_->claim(address)) {
            address_ = address;
            return;
        }
    }
    throw Error("no free loopback address");
}

AddressClaim::AddressClaim(AddressClaim&& other) noexcept
    : address_(std::exchange(other.address_, {})), keeper_(std::exchange(other.keeper_, nullptr)) {}

AddressClaim& AddressClaim::operator=(AddressClaim&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(keeper_, other.keeper_);
    return *this;
}

AddressClaim::~AddressClaim() {
    if (keeper_ != nullptr && keeper_->served() == ::getpid()) {
        try {
            keeper_->release(address_);
        } catch (const Error&) {
            // The keeper has ended, and the claim with it.
        }
    }
}

}  // namespace zkrecipes::testenv::internal
