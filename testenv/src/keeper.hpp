#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "unique_fd.hpp"

namespace zkrecipes::testenv::internal {

/// The process that owns everything that must not outlive this process: servers, their data, claimed addresses.
///
/// It runs the same executable but never reaches main (see keeper_process.cpp). It is the parent of all servers, and
/// watches this process through a pidfd and a socket. When this process ends, for any reason, the keeper kills the
/// servers, removes their files and exits. The servers in turn die with the keeper (PR_SET_PDEATHSIG; the keeper has
/// one thread, so its parent thread is its parent process).
class Keeper {
public:
    /// The keeper of this process, started at the first use. After a fork without exec the child gets its own.
    static Keeper& instance();

    struct Spawn {
        std::vector<std::string> argv;
        std::vector<std::string> environment;  // additions to this process's, "NAME=value"
        std::string directory;                 // working directory
        std::string log;                       // file that takes standard output and error, appended
    };
    /// Starts a program. The pid stays that process's (as a zombie) until reap(), so it may be signalled at any time
    /// before.
    [[nodiscard]] pid_t spawn(const Spawn& what);
    /// Reaps a process; waits until it has ended. Returns its wait status.
    int reap(pid_t pid);

    /// Claims a loopback address in this network namespace; false if it is taken.
    [[nodiscard]] bool claim(const std::string& address);
    void release(const std::string& address);

    /// Ends the keeper with everything that it owns, and waits for its end.
    void finish();

    /// A directory that is removed with the keeper, on /dev/shm when possible.
    [[nodiscard]] const std::string& directory() const { return directory_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// The process that this keeper serves; objects that find themselves in a forked child leave everything alone.
    [[nodiscard]] pid_t served() const { return served_; }

private:
    Keeper();
    [[nodiscard]] std::vector<std::string> ask(const std::vector<std::string>& request, bool accept_refusal = false);

    std::mutex mutex_;  // one request at a time on the socket
    UniqueFd socket_;
    std::string directory_;
    pid_t pid_ = 0;
    pid_t served_ = 0;
};

/// A loopback address that this object claims until its destruction.
class AddressClaim {
public:
    AddressClaim() = default;
    /// Any free address, or the given one (then an Error when it is taken).
    explicit AddressClaim(const std::string& wanted);
    AddressClaim(AddressClaim&& other) noexcept;
    AddressClaim& operator=(AddressClaim&& other) noexcept;
    ~AddressClaim();
    [[nodiscard]] const std::string& address() const { return address_; }

private:
    std::string address_;
    Keeper* keeper_ = nullptr;
};

// The two ends speak in messages that are lists of strings.
[[nodiscard]] bool send_message(int socket, const std::vector<std::string>& parts);
/// Empty at the end of the stream or on an error.
[[nodiscard]] std::optional<std::vector<std::string>> receive_message(int socket);

/// Environment variable that turns a run of the executable into a keeper. Defined beside the code that reads it, so
/// that whoever links the client of the keeper links the keeper too.
extern const char* const keeper_variable;

/// Whether $ZKRECIPES_TESTENV_KEEP is set: the files stay for inspection.
[[nodiscard]] bool keep_files();

}  // namespace zkrecipes::testenv::internal
