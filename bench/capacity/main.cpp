// Measures how much one ensemble carries: one curve of docs/capacity.md. scripts/capacity runs it for each of them.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "bench/capacity/capacity.hpp"
#include "bench/crowd_process.hpp"

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    const std::map<std::string, void (*)(bool)> curves{{"locks", measure_locks},
                                                       {"sessions", measure_sessions},
                                                       {"waiters", measure_waiters},
                                                       {"rate", measure_rate},
                                                       {"writes", measure_writes}};
    spdlog::stderr_logger_mt("zkrecipes")->set_level(spdlog::level::err);
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "--crowd-process") return run_crowd_process();
    if (what == "--clients") return run_clients();
    const auto curve = curves.find(what);
    const bool brief = argc == 3 && argv[2] == std::string("--brief");
    if (curve == curves.end() || (argc > 2 && !brief)) {
        std::fprintf(stderr, "usage: lock_capacity locks|sessions|waiters|rate|writes [--brief]\n");
        return 2;
    }
    try {
        curve->second(brief);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lock_capacity: %s\n", error.what());
        return 1;
    }
}
