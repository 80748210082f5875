#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <zkrecipes/testenv/endpoint.hpp>

#include "unique_fd.hpp"

namespace zkrecipes::testenv::internal {

using Clock = std::chrono::steady_clock;

[[nodiscard]] sockaddr_in socket_address(const Endpoint& endpoint);
/// "127.1.2.3:2181" or "localhost:2181" to an endpoint; throws Error.
[[nodiscard]] Endpoint parse_endpoint(const std::string& text);

/// A non-blocking listening socket. Empty when the address is in use; throws Error otherwise.
[[nodiscard]] UniqueFd try_listen(const Endpoint& endpoint);
/// A non-blocking connected socket, or empty when it does not succeed in time.
[[nodiscard]] UniqueFd connect_before(const Endpoint& endpoint, Clock::time_point deadline);
/// A non-blocking socket whose connect() is under way; empty when it failed at once.
[[nodiscard]] UniqueFd start_connect(const Endpoint& endpoint);

/// All or nothing; false on an error, at the end of the stream, or when the time is over.
[[nodiscard]] bool write_all(int fd, const void* data, std::size_t size, Clock::time_point deadline);
[[nodiscard]] bool read_all(int fd, void* data, std::size_t size, Clock::time_point deadline);

/// The answer of a server to a four-letter word; empty if it does not answer in time.
[[nodiscard]] std::optional<std::string> four_letter_word(const Endpoint& endpoint, const std::string& word,
                                                          Clock::time_point deadline);

}  // namespace zkrecipes::testenv::internal
