// A program that uses the threaded ZooKeeper C client itself, and zkrecipes beside it.
//     both_clients HOSTS
// Exit code 0: each worked. 5: zkrecipes refused, and it says why.
#define THREADED
#include <semaphore.h>
#include <zookeeper/zookeeper.h>

#include <cstdio>
#include <string>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

namespace {

sem_t connected;

void watch(zhandle_t*, int type, int state, const char*, void*) {
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) sem_post(&connected);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    sem_init(&connected, 0, 0);
    zhandle_t* const own = zookeeper_init(argv[1], watch, 15'000, nullptr, nullptr, 0);
    if (own == nullptr) return 3;
    sem_wait(&connected);
    const int created = zoo_create(own, "/both", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
    if (created != ZOK && created != ZNODEEXISTS) return 4;
    int children = 0;
    try {
        zkrecipes::Session session{std::string(argv[1])};
        zkrecipes::ExclusiveMutex mutex(session, "/both/lock");
        const zkrecipes::Grant grant = mutex.acquire();
        Stat stat{};
        if (zoo_exists(own, "/both/lock", 0, &stat) == ZOK) children = stat.numChildren;
    } catch (const zkrecipes::Error& error) {
        std::printf("%s\n", error.what());
        return 5;
    }
    zookeeper_close(own);
    std::printf("%d holder\n", children);
    return children == 1 ? 0 : 6;
}
