/// The least that a program can do to run a command under a lock, written directly on the C client: what zklock as a
/// whole process is compared with. It is no lock: it does not wait, does not retry, and does not see that it lost it.
/// It needs nothing of the C++ library, which would take a third of a millisecond to load.
///
///     zklock_floor HOSTS PATH COMMAND [ARGUMENT...]
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <cstdio>

namespace {

sem_t connected;

void watch(zhandle_t*, int type, int state, const char*, void*) {
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) sem_post(&connected);
}

int run(char** command) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::execvp(command[0], command);
        ::_exit(127);
    }
    int status = 0;
    return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 64;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    sem_init(&connected, 0, 0);
    zhandle_t* const session = zookeeper_init(argv[1], watch, 15'000, nullptr, nullptr, 0);
    if (!session) return 69;
    sem_wait(&connected);
    char name[512], own[512];
    std::snprintf(name, sizeof name, "%s/_c_floor-lock-", argv[2]);
    const int created =
        zoo_create(session, name, "floor", 5, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, own, sizeof own);
    String_vector places{};
    if (created != ZOK || zoo_get_children(session, argv[2], 0, &places) != ZOK || places.count != 1) {
        std::fprintf(stderr, "%s: no free lock here\n", argv[2]);
        return 75;
    }
    deallocate_String_vector(&places);
    const int code = run(argv + 3);
    zoo_delete(session, own, -1);
    zookeeper_close(session);
    return code;
}
