#include "monitoring/http_get.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "support/await.hpp"
#include "testenv/src/net.hpp"

namespace zkrecipes::test {
namespace {

using testenv::internal::Clock;

/// Everything up to the end of the connection; false if it does not come in time.
bool read_to_end(int socket, std::string& out, Clock::time_point deadline) {
    std::array<char, 65536> part{};
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd readable{socket, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) return false;
        const auto size = ::read(socket, part.data(), part.size());
        if (size == 0) return true;
        if (size < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (size > 0) out.append(part.data(), static_cast<std::size_t>(size));
    }
}

std::string header(const std::string& head, std::string name) {
    std::string lower = head;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    name = "\r\n" + name + ": ";
    const auto at = lower.find(name);
    if (at == std::string::npos) return {};
    const auto begin = at + name.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
}

}  // namespace

HttpAnswer http_get(const testenv::Endpoint& server, const std::string& path) {
    HttpAnswer out;
    const auto deadline = Clock::now() + kMaxWait;
    const auto socket = testenv::internal::connect_before(server, deadline);
    if (!socket) return out;
    // By HTTP/1.0, so that the server closes the connection, and does not send the body in chunks.
    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + server.str() + "\r\n\r\n";
    std::string all;
    if (!testenv::internal::write_all(socket.get(), request.data(), request.size(), deadline) ||
        !read_to_end(socket.get(), all, deadline)) {
        return out;
    }
    const auto end_of_head = all.find("\r\n\r\n");
    const auto status = all.find(' ');
    if (end_of_head == std::string::npos || status > end_of_head) return out;
    const std::string head = all.substr(0, end_of_head + 2);
    out.status = std::atoi(head.c_str() + status);
    out.content_type = header(head, "content-type");
    out.body = all.substr(end_of_head + 4);
    return out;
}

std::string url_escaped(const std::string& text) {
    std::string out;
    for (const unsigned char c : text) {
        if (std::isalnum(c) != 0) {
            out += static_cast<char>(c);
        } else {
            std::array<char, 4> code{};
            std::snprintf(code.data(), code.size(), "%%%02X", c);
            out += code.data();
        }
    }
    return out;
}

}  // namespace zkrecipes::test
