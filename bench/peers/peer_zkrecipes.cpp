// The side of zkrecipes in scripts/peers: one contender, in a session of its own.
//     peer_zkrecipes HOSTS PATH
#include <chrono>
#include <cstdio>
#include <exception>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "bench/peers/contender.hpp"

int main(int argc, char** argv) try {
    if (argc != 3) return 2;
    zkrecipes::SessionOptions options;
    options.hosts = argv[1];
    options.timeout = std::chrono::seconds(30);
    zkrecipes::Session session(options);
    if (!session.wait_connected(std::chrono::seconds(30))) {
        std::fprintf(stderr, "peers: zkrecipes failed: no connection to %s within 30 s\n", argv[1]);
        return 1;
    }
    zkrecipes::ExclusiveMutex mutex(session, argv[2]);
    zkrecipes::Grant grant;
    zkrecipes::bench::contend([&] { grant = mutex.acquire(); }, [&] { grant.release_and_wait(); });
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "peers: zkrecipes failed: %s\n", error.what());
    return 1;
}
