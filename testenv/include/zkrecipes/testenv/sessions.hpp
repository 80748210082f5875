#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <zkrecipes/testenv/endpoint.hpp>

namespace zkrecipes::testenv {

/// Ends a session at once, without the help of its client: takes it over on the given server with its id and password
/// (16 bytes) and closes it. On return the server has answered the close, so its ephemeral nodes are gone; the client
/// learns that the session is over when it next reaches a server. True when this call closed it, false when it was over
/// already. Throws Error when the server does not answer in time.
bool expire_session(const Endpoint& server, std::int64_t session_id, const std::string& password,
                    std::chrono::milliseconds within = std::chrono::milliseconds(10'000));

}  // namespace zkrecipes::testenv
