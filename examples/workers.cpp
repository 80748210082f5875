// The workers of a job. Each is a member of a group, and publishes what it does. They wait at a barrier, begin when all
// are there, and end when all are done.
//   workers HOSTS ID WORKERS      one worker
//   workers HOSTS --go WORKERS    waits until so many are there and opens the barrier
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <zkrecipes/barrier.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/session.hpp>

using namespace std::chrono_literals;

namespace {

void work() { std::this_thread::yield(); }

int run_worker(const char* hosts, const char* id, int workers) {
    // [group_member]
    zkrecipes::Session session(hosts);
    zkrecipes::GroupMember member(session, "/jobs/report/workers", id, "waiting");
    if (!member.wait_joined(10s)) return 1;
    // [/group_member]

    // [barrier]
    zkrecipes::Barrier gate(session, "/jobs/report/gate");
    if (!gate.wait(1min)) return 1;  // the barrier was not opened in time
    // [/barrier]

    // [double_barrier]
    zkrecipes::DoubleBarrier together(session, "/jobs/report/together", workers);
    if (!together.enter(1min)) return 1;  // not all came in time; this worker has left again
    member.set_payload("at work");
    work();
    member.set_payload("done");
    const bool all_done = together.leave(1min);
    // [/double_barrier]

    std::printf("%s: %s\n", id, all_done ? "all are done" : "somebody is still at work");
    return 0;
}

int let_go(const char* hosts, std::size_t workers) {
    zkrecipes::Session session(hosts);
    zkrecipes::Barrier gate(session, "/jobs/report/gate");
    gate.set(10s);

    // [persistent_node]
    zkrecipes::PersistentNode alive(session, "/jobs/report/supervisor", {.data = "preparing"});
    if (!alive.wait_present(10s)) return 1;
    // [/persistent_node]

    std::printf("waiting for %zu\n", workers);
    std::fflush(stdout);

    // [group]
    std::promise<void> all_there;
    zkrecipes::Group group(session, "/jobs/report/workers");
    auto subscription = group.observe([&, told = false](const zkrecipes::GroupMembers& members) mutable {
        for (const auto& [id, payload] : members) std::fprintf(stderr, "%s is %s\n", id.c_str(), payload.c_str());
        if (members.size() >= workers && !std::exchange(told, true)) all_there.set_value();
    });
    // [/group]
    all_there.get_future().wait();
    subscription.reset();

    alive.set_data("running");
    gate.remove(10s);
    std::printf("let %zu go\n", workers);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const hosts = argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181";
    const std::string id = argc > 2 ? argv[2] : "one";
    const int workers = argc > 3 ? std::atoi(argv[3]) : 1;
    try {
        if (id == "--go") return let_go(hosts, static_cast<std::size_t>(workers));
        return run_worker(hosts, id.c_str(), workers);
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
