// The least that a program needs: one lock, one piece of work under it.
// [readme]
#include <chrono>
#include <cstdio>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

int main(int argc, char** argv) {
    try {
        zkrecipes::Session session(argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181");
        zkrecipes::ExclusiveMutex mutex(session, "/locks/report");

        zkrecipes::Grant grant = mutex.try_acquire_for(std::chrono::seconds(30));
        if (!grant) {  // busy: somebody else has the lock; unreachable: no server answered
            std::fprintf(stderr, "no lock within 30 s: %s\n", to_string(grant.missed()));
            return 75;
        }
        for (int page = 1; page <= 10 && grant.held(); ++page) {
            std::printf("page %d, fencing token %lld\n", page, static_cast<long long>(grant.token()));
        }
        return grant.held() ? 0 : 79;  // 79: the lock was lost meanwhile
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
// [/readme]
