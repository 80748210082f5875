#include <thread>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/sessions.hpp>

#include "net.hpp"
#include "wire.hpp"

namespace zkrecipes::testenv {

namespace {

using internal::Clock;

std::optional<std::string> read_frame(int fd, Clock::time_point deadline) {
    char length[4];
    if (!internal::read_all(fd, length, sizeof length, deadline)) {
        return std::nullopt;
    }
    const auto size = wire::Reader(std::string_view(length, 4)).int32().value_or(-1);
    if (size < 0 || size > wire::FrameSplitter::longest) {
        return std::nullopt;
    }
    std::string body(static_cast<std::size_t>(size), '\0');
    if (!internal::read_all(fd, body.data(), body.size(), deadline)) {
        return std::nullopt;
    }
    return body;
}

bool send_bytes(int fd, const std::string& bytes, Clock::time_point deadline) {
    return internal::write_all(fd, bytes.data(), bytes.size(), deadline);
}

}  // namespace

bool expire_session(const Endpoint& server, std::int64_t session_id, const std::string& password,
                    std::chrono::milliseconds within) {
    const auto deadline = Clock::now() + within;
    constexpr std::int32_t close_xid = 1;
    // A server that is still looking for its quorum drops the connection: try again until the deadline.
    bool close_sent = false;
    for (bool first = true; Clock::now() < deadline; first = false) {
        if (!first) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        const auto fd = internal::connect_before(server, deadline);
        if (!fd || !send_bytes(fd.get(), wire::connect_request({0, 10'000, session_id, password}), deadline)) {
            continue;
        }
        const auto hello = read_frame(fd.get(), deadline);
        const auto response = hello ? wire::parse_connect_response(*hello) : std::nullopt;
        if (!response) {
            continue;
        }
        if (response->timeout_ms <= 0 || response->session_id != session_id) {
            return close_sent;
        }
        close_sent = true;
        if (!send_bytes(fd.get(), wire::request(close_xid, Opcode::close_session), deadline)) {
            continue;
        }
        while (const auto answer = read_frame(fd.get(), deadline)) {
            if (const auto head = wire::parse_reply(*answer); head && head->xid == close_xid) {
                return true;
            }
        }
    }
    throw Error("the server " + server.str() + " did not answer when its session was to be ended");
}

}  // namespace zkrecipes::testenv
