// A lock that one thread acquires and another thread releases.
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

int main(int argc, char** argv) {
    const char* const hosts = argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181";
    try {
        // [semaphore_mutex]
        zkrecipes::Session session(hosts);
        zkrecipes::SemaphoreMutex mutex(session, "/locks/import");

        zkrecipes::Grant grant = mutex.try_acquire_for(std::chrono::seconds(30));
        if (!grant) return 75;  // another client had the lock all the time
        std::jthread worker([grant = std::move(grant)]() mutable {
            if (grant.held()) std::printf("imported, fencing token %lld\n", static_cast<long long>(grant.token()));
            grant.release();  // by a thread that has not acquired it
        });
        worker.join();
        if (!mutex.try_lock_for(std::chrono::seconds(30))) return 75;
        std::jthread([&] { mutex.unlock(); }).join();  // the same without a grant
        // [/semaphore_mutex]
        return 0;
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
