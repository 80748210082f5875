// A program of somebody who uses the installed library: holds a lock on the servers named on the command line.
// Exit code 0: held it. 3: no server answered in the time allowed. 4: the connect string makes no sense.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/version.hpp>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::chrono::milliseconds patience(std::atoi(argv[2]));
    try {
        zkrecipes::Session session{std::string(argv[1])};
        if (!session.wait_connected(patience)) {
            std::puts("no server answered");
            return 3;
        }
        zkrecipes::ExclusiveMutex mutex(session, "/consumer/lock");
        const zkrecipes::Grant grant = mutex.try_acquire_until(patience);
        if (!grant || !grant.held() || grant.token() == 0) {
            std::puts("not acquired");
            return 1;
        }
        std::printf("zkrecipes %s held %s, token %lld\n", zkrecipes::version(), grant.node().c_str(),
                    static_cast<long long>(grant.token()));
        return 0;
    } catch (const zkrecipes::Error& error) {
        // The exception must be caught by its type across the border of the shared library.
        std::printf("error: %s\n", error.what());
        return error.errc() == zkrecipes::Errc::bad_connect_string ? 4 : 1;
    }
}
