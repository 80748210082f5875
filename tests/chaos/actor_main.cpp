// One client process of the fault tests: see actor_roles.hpp. Started by the controller, on descriptors that it hands
// over: 0 commands, 3 replies, 4 the board.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "chaos/actor_roles.hpp"

int main(int argc, char** argv) {
    using namespace zkrecipes::chaos;
    std::signal(SIGPIPE, SIG_IGN);  // a controller that is gone ends us through the end of its commands
    int code = 2;
    try {
        const ActorOptions options(argc, argv);
        if (options.role() == "command") std::_Exit(run_command(options));
        Reply reply(3);
        Board board = Board::attach(4);
        try {
            if (options.role() == "client") {
                code = run_client(options, board, reply);
            } else if (options.role() == "worker") {
                code = run_worker(options, board, reply);
            } else if (options.role() == "writer") {
                code = run_writer(options, board, reply);
            } else if (options.role() == "naive") {
                code = run_naive(options, board, reply);
            } else if (options.role() == "crowd") {
                code = run_crowd(options, board, reply);
            } else if (options.role() == "zklock") {
                code = run_zklock(options, board, reply);
            } else {
                reply.say("error unknown role " + options.role());
            }
        } catch (const std::exception& exception) {
            reply.say(std::string("error ") + exception.what());
        }
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "chaos_actor: %s (it is started by the fault tests, not by hand)\n", exception.what());
    }
    std::fflush(nullptr);
    std::_Exit(code);  // a thread may still be reading commands
}
