#include "testenv/zkenv/state.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <zkrecipes/testenv/error.hpp>

namespace zkrecipes::testenv::zkenv {

namespace {

// A folder in /tmp may have been put there by somebody else, to be handed our commands.
void make_private(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        throw Error("cannot make " + path + ": " + std::strerror(errno));
    }
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
        (info.st_mode & 022) != 0) {
        throw Error(path +
                    " is not a folder of yours that nobody else can write to: remove it, or set XDG_RUNTIME_DIR");
    }
}

}  // namespace

std::string state_directory(const std::string& name, bool make) {
    const auto valid = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
    if (name.empty() || name.size() > 32 || !std::all_of(name.begin(), name.end(), valid)) {
        throw Error("not a name for an environment: \"" + name + "\" (letters, digits, - and _, at most 32)");
    }
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const bool has_runtime = runtime != nullptr && *runtime == '/' && ::access(runtime, W_OK | X_OK) == 0;
    const std::string top = has_runtime ? std::string(runtime) + "/zkenv" : "/tmp/zkenv-" + std::to_string(::geteuid());
    if (make || ::access(top.c_str(), F_OK) == 0) {
        make_private(top);
    }
    return top + "/" + name;
}

std::string socket_path(const std::string& state_directory) { return state_directory + "/control"; }

std::optional<std::string> ask_supervisor(const std::string& state_directory, const std::string& line) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = socket_path(state_directory);
    if (path.size() >= sizeof address.sun_path) {
        throw Error("the path is too long for a socket: " + path + " (set XDG_RUNTIME_DIR to a shorter one)");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const internal::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return std::nullopt;
    }
    const std::string text = line + "\n";
    (void)!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    char buffer[4096];
    for (;;) {
        const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
        if (got > 0) {
            answer.append(buffer, static_cast<std::size_t>(got));
        } else if (got == 0 || errno != EINTR) {
            return answer;
        }
    }
}

internal::UniqueFd lock_state(const std::string& state_directory) {
    const std::string path = state_directory + ".lock";
    for (;;) {
        internal::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
            throw Error("cannot lock " + path + ": " + std::strerror(errno));
        }
        // stop removes the file while it holds the lock: whoever waited for it has the lock of a file that is no more.
        struct stat held {};
        struct stat named {};
        if (::fstat(lock.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino) {
            return lock;
        }
    }
}

}  // namespace zkrecipes::testenv::zkenv
