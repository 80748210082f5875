#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "testenv/src/unique_fd.hpp"
#include "testenv/src/wire.hpp"

namespace zkrecipes::zklock::test {

/// Lets everybody connect, and answers every request with an error that no server knows.
class NonsenseServer {
public:
    NonsenseServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
        ::listen(listener_.get(), 16);
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        connect_string_ = "127.0.0.1:" + std::to_string(::ntohs(address.sin_port));
        thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
    const std::string& connect_string() const { return connect_string_; }

private:
    struct Connection {
        testenv::internal::UniqueFd socket;
        testenv::wire::FrameSplitter frames;
        bool open = false;  // the first frame is the handshake
    };

    void serve(const std::stop_token& stop) {
        std::vector<Connection> connections;
        while (!stop.stop_requested()) {
            std::vector<pollfd> watched = {{listener_.get(), POLLIN, 0}};
            for (const Connection& connection : connections) watched.push_back({connection.socket.get(), POLLIN, 0});
            ::poll(watched.data(), watched.size(), 20);
            for (std::size_t i = connections.size(); i > 0; --i) {
                if (watched[i].revents != 0 && !answer(connections[i - 1])) {
                    connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i) - 1);
                }
            }
            if (watched[0].revents == 0) continue;
            connections.push_back({});
            connections.back().socket.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        }
    }

    static bool answer(Connection& connection) {
        char bytes[4096];
        const ssize_t size = ::read(connection.socket.get(), bytes, sizeof bytes);
        if (size <= 0) return false;
        connection.frames.feed({bytes, static_cast<std::size_t>(size)});
        while (const auto frame = connection.frames.next()) {
            testenv::wire::Writer reply;
            if (!std::exchange(connection.open, true)) {
                reply.int32(0).int32(10'000).int64(0x1234).text(std::string(16, 'p')).byte(0);
            } else if (const auto request = testenv::wire::parse_request(testenv::wire::body(*frame))) {
                const bool ping = request->xid == testenv::wire::xid_ping;
                reply.int32(request->xid).int64(1).int32(ping ? 0 : -999);
            }
            const std::string text = reply.frame();
            if (::send(connection.socket.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return false;
        }
        return true;
    }

    testenv::internal::UniqueFd listener_;
    std::string connect_string_;
    std::jthread thread_;
};

}  // namespace zkrecipes::zklock::test
