#pragma once

#include <string>

namespace zkrecipes::testenv::zkenv {

struct EnvironmentOptions {
    std::string name = "default";
    int servers = 1;
    int tick_ms = 1000;
    int pid = 0;  ///< it ends with this process; 0: with none
};

/// Starts the servers, writes "ok" or what went wrong to the descriptor and closes it, then serves the control socket
/// until it is told to stop (or gets SIGTERM). Returns the exit code of the process.
int supervise(const EnvironmentOptions& options, int report);

}  // namespace zkrecipes::testenv::zkenv
