// A program that has a server and gets killed: see testenv_cleanup_test.cpp. It tells about itself, and waits for the
// end.

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <string>
#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "testenv/src/keeper.hpp"

namespace {

using zkrecipes::testenv::ZkServer;

void tell_all(const ZkServer& server, pid_t other = 0) {
    const auto& keeper = zkrecipes::testenv::internal::Keeper::instance();
    std::cout << "VICTIM " << keeper.pid() << ' ' << server.pid() << ' ' << other << ' ' << server.endpoint().address
              << ' ' << keeper.directory() << " READY" << std::endl;
}

// Until the test kills us, or is killed itself: then nobody else would end the child of a victim.
[[noreturn]] void wait_for_the_end(int test) {
    pollfd ended{test, POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const int test = static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0U));
    const std::string way = argc > 1 ? argv[1] : "";
    ZkServer server;
    pid_t child = 0;
    if (way == "frozen-server") {
        server.freeze();
    } else if (way == "forked-child") {
        // It has copies of all descriptors, so that their ends do not tell that the parent is gone.
        child = ::fork();
        if (child == 0) {
            wait_for_the_end(test);
        }
    }
    // In the keeper's directory, as all that it removes.
    const zkrecipes::testenv::Scratch scratch;
    std::ofstream(scratch / "file") << "text";
    tell_all(server, child);
    if (way == "exit") {
        ::_exit(0);  // no destructors
    }
    wait_for_the_end(test);
}
