// A fleet that may run only so many heavy jobs at the same time, on all machines together.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <zkrecipes/error.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/session.hpp>

namespace {

bool convert(int part, int of) {
    std::printf("part %d of %d\n", part, of);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const hosts = argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181";
    const int weight = argc > 2 ? std::atoi(argv[2]) : 1;
    try {
        // [semaphore]
        zkrecipes::Session session(hosts);
        zkrecipes::Semaphore converters(session, "/limits/converters", 4);  // every program names the same number

        // A heavy job takes several leases at once. Until all of them are free, it takes none.
        zkrecipes::Grant grant = converters.try_acquire_for(weight, std::chrono::seconds(30));
        if (!grant) return 75;  // too few became free in time
        for (int part = 1; part <= 10 && grant.held(); ++part) {
            if (!convert(part, 10)) return 1;
        }
        return grant.held() ? 0 : 79;  // 79: the lease was lost
        // [/semaphore]
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
