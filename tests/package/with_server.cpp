// Runs a command beside a ZooKeeper server of its own, with {} in its arguments replaced by the server's address. Ends
// with the command's exit code. 77: no ZooKeeper here.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <zkrecipes/testenv/zk_server.hpp>

int main(int argc, char** argv) try {
    if (argc < 2) return 2;
    zkrecipes::testenv::ZkServer server;
    std::vector<std::string> arguments(argv + 1, argv + argc);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) {
        if (const auto at = argument.find("{}"); at != std::string::npos) {
            argument.replace(at, 2, server.connect_string());
        }
        pointers.push_back(argument.data());
    }
    pointers.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        execvp(pointers[0], pointers.data());
        std::perror(pointers[0]);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 71;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
} catch (const zkrecipes::testenv::MissingDependency& missing) {
    std::puts(missing.what());
    return 77;
} catch (const std::exception& error) {
    std::puts(error.what());
    return 70;
}
