#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <zkrecipes/testenv/endpoint.hpp>

namespace zkrecipes::testenv {

/// Ends a session immediately, without its client: takes it over on the given server with its id and password (16
/// bytes) and closes it. On return the server has answered the close, so the ephemeral nodes are deleted. The client
/// learns of it when it next reaches a server. Returns false if the session had already ended. Throws Error if the
/// server does not answer in time.
bool expire_session(const Endpoint& server, std::int64_t session_id, const std::string& password,
                    std::chrono::milliseconds within = std::chrono::milliseconds(10'000));

}  // namespace zkrecipes::testenv
