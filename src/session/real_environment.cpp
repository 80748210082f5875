#include <string>
#include <system_error>

#include <zkrecipes/error.hpp>

#include "client/client.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

std::shared_ptr<Runtime> SessionCore::make_runtime() {
    try {
        return make_thread_runtime();
    } catch (const std::system_error& error) {
        throw Error(Errc::out_of_resources, "session", {},
                    std::string("the system refuses the threads or descriptors of a session (") + error.what() +
                        "); look at the limits of open files (ulimit -n) and of threads (ulimit -u, pids.max of the "
                        "control group)");
    }
}

SessionCore::Environment SessionCore::real_environment() {
    Environment out;
    out.runtime = make_runtime();
    out.clients = make_zk_client_factory(out.runtime);
    out.probe = make_server_probe(out.runtime);
    out.settings = make_settings_probe(out.runtime);
    return out;
}

}  // namespace zkrecipes::internal
