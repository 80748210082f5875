// A test of somebody who uses the installed testenv: a server of its own, a lock, and a fault.
// Exit code 0: all went well. 77: there is no ZooKeeper on this machine.
#include <chrono>
#include <cstdio>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

int main() {
    using namespace std::chrono_literals;
    try {
        zkrecipes::testenv::ZkServer server;
        zkrecipes::testenv::Gate gate(server.endpoint());
        zkrecipes::Session session(gate.connect_string());
        zkrecipes::ExclusiveMutex mutex(session, "/consumer/tested");
        zkrecipes::Grant grant = mutex.try_acquire_for(20s);
        gate.reset_all();
        const bool released = grant && grant.release_and_wait(20s);
        std::puts(released ? "locked and released, with a reset in between" : "not released");
        return released ? 0 : 1;
    } catch (const zkrecipes::testenv::MissingDependency& missing) {
        std::puts(missing.what());
        return 77;
    }
}
