// Runs a command that shall leave nothing behind, however it ends: TMPDIR is a directory that goes with it, and
// whatever it started goes too, in whichever process group it is. {} in the arguments is replaced by the address of a
// ZooKeeper server of its own. Ends with the command's exit code. 77: no ZooKeeper here.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "testenv/src/keeper.hpp"

int main(int argc, char** argv) try {
    using namespace zkrecipes::testenv;
    if (argc < 2) return 2;
    const Scratch scratch;
    std::unique_ptr<ZkServer> server;
    internal::Keeper::Spawn command;
    for (int i = 1; i < argc; ++i) {
        std::string argument = argv[i];
        if (const auto at = argument.find("{}"); at != std::string::npos) {
            if (!server) server = std::make_unique<ZkServer>();
            argument.replace(at, 2, server->connect_string());
        }
        command.argv.push_back(argument);
    }
    command.environment = {"TMPDIR=" + scratch.path()};
    command.directory = scratch.path();
    // The keeper of the servers starts it, because it outlives whoever kills us. What it prints comes out here.
    command.log = "/proc/" + std::to_string(::getpid()) + "/fd/1";
    auto& keeper = internal::Keeper::instance();
    const pid_t pid = keeper.spawn(command);
    // Not by reap(), in which the keeper would wait and not see that we are gone.
    const internal::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    pollfd ended{process.get(), POLLIN, 0};
    while (process && ::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    const int status = keeper.reap(pid);
    server.reset();
    keeper.finish();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
} catch (const zkrecipes::testenv::MissingDependency& missing) {
    std::puts(missing.what());
    return 77;
} catch (const std::exception& error) {
    std::puts(error.what());
    return 70;
}
