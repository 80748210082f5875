#include "client/client.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

SessionCore::Environment SessionCore::real_environment() {
    Environment out;
    out.runtime = make_thread_runtime();
    out.clients = make_zk_client_factory(out.runtime);
    out.probe = make_server_probe(out.runtime);
    return out;
}

}  // namespace zkrecipes::internal
