#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "client/tls/zk_relay.hpp"

namespace zkrecipes::internal {

/// One connection of the C client, and the one to a server that belongs to it. Used by the relay's thread only.
class RelayLink {
public:
    using Clock = std::chrono::steady_clock;
    RelayLink(std::uint64_t number, Socket client, std::vector<std::string> servers, ZkRelay::Limits limits);

    std::uint64_t number() const { return number_; }
    const std::string& server() const { return server_; }
    void established() { established_ = true; }
    bool is_established() const { return established_; }
    bool over() const { return over_; }
    const ZkRelay::Problem& problem() const { return problem_; }  // once over and not established

    void wanted(std::vector<pollfd>& fds) const;  // appends two
    void go_on(const pollfd& client, const pollfd& server, Clock::time_point now);
    Clock::time_point wake_at() const { return deadline_; }
    void on_time(Clock::time_point now);
    /// Ends it at once, so that the C client sees an error.
    void cut();

private:
    /// Bytes on their way in one direction.
    struct Pipe {
        std::vector<char> bytes;
        std::size_t begin = 0;
        std::uint64_t total = 0;  // that have come
        bool ended = false;       // nothing more comes
        bool passed_on = false;   // and the other side was told
        std::size_t size() const { return bytes.size() - begin; }
    };

    void next_server(Clock::time_point now);
    void connected_or_next(Clock::time_point now);
    static bool receive(int fd, Pipe& pipe);
    static bool send(int fd, Pipe& pipe);
    void settle(Clock::time_point now);
    void finish(std::string problem, bool in_handshake = false);
    void finish_for_server();

    const std::uint64_t number_;
    Socket client_, upstream_;
    std::vector<std::string> servers_;  // still to be tried, the next one last
    const ZkRelay::Limits limits_;
    std::string server_;
    std::string refusals_;  // of those that were tried
    bool connecting_ = false;
    bool established_ = false;
    bool leaving_ = false;  // the client has ended its session, or is gone: only its last bytes still matter
    bool over_ = false;
    Clock::time_point deadline_ = Clock::time_point::max();
    Pipe up_, down_;
    std::string first_answer_;  // the first bytes of the server
    ZkRelay::Problem problem_;
};

}  // namespace zkrecipes::internal
