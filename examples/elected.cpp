// One leader at a time among the processes of a service: each leads for a while, resigns, and campaigns again.
//   elected HOSTS ID [TERMS]
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <thread>

#include <zkrecipes/error.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>

namespace {

void work() { std::this_thread::yield(); }

}  // namespace

int main(int argc, char** argv) {
    const char* const hosts = argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181";
    const char* const id = argc > 2 ? argv[2] : "nobody in particular";
    int terms = argc > 3 ? std::atoi(argv[3]) : 1;
    try {
        // [leader_election]
        zkrecipes::Session session(hosts);
        zkrecipes::LeaderElection election(session, "/services/report/leader", {.id = id});

        const auto subscription = election.observe([](const std::optional<zkrecipes::Participant>& leader) {
            std::fprintf(stderr, "leader: %s\n", leader ? leader->id.c_str() : "nobody");
        });

        std::stop_source enough;
        election.run(
            [&](const zkrecipes::Grant& leadership, std::stop_token stop) {
                std::printf("%s leads, fencing token %lld\n", id, static_cast<long long>(leadership.token()));
                for (int piece = 0; piece < 10 && leadership.held() && !stop.stop_requested(); ++piece) work();
                if (--terms <= 0) enough.request_stop();  // run() resigns on return, and campaigns again until stopped
            },
            enough.get_token());
        // [/leader_election]
        return 0;
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
