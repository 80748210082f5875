#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zkrecipes::internal {

/// Stands between the C client and the servers while the session uses TLS. It forwards bytes that it cannot read: the
/// TLS connection is that of the C client with the server.
///
/// The C client waits in the middle of a TLS handshake for as long as the server is silent, even if its handle is being
/// closed, and it does not survive a change of its list of servers at that time. So it gets one address on the loopback
/// interface, which never changes. The relay chooses the server, and ends a connection that does not become a session
/// in time. It has one thread, and accepts connections of this user's processes only.
class ZkRelay {
public:
    struct Limits {
        std::chrono::milliseconds connect;    // for one server to accept a connection
        std::chrono::milliseconds establish;  // from then until the session is established
    };
    /// Why a connection did not become a session.
    struct Problem {
        std::string server;  // "host:port"
        std::string text;
        bool in_handshake = false;  // a handshake of one's own may show more than the text says
    };
    /// `on_problem` is called on the relay's thread. Throws std::system_error.
    ZkRelay(std::vector<std::string> servers, Limits limits, std::function<void(const Problem&)> on_problem);
    /// Lets the last bytes of the C client reach the server, for a moment, and joins the thread. To be called after the
    /// C client's handle was closed.
    ~ZkRelay();
    ZkRelay(const ZkRelay&) = delete;
    ZkRelay& operator=(const ZkRelay&) = delete;

    /// What the C client takes for its server.
    const std::string& address() const;
    /// For the connections that begin from now on. They are tried in turn, from a random one on.
    void set_servers(std::vector<std::string> servers);

    /// The number of the newest connection. To be read before the C client is asked whether it is connected.
    std::uint64_t newest() const;
    /// The C client has a session on this connection: it may last. Answers its server; empty: it has ended.
    std::string established(std::uint64_t connection);
    /// The handle is about to be closed. Takes no connection any more, and cuts those without a session.
    void close_soon();

private:
    class Worker;
    const std::shared_ptr<Worker> worker_;
};

}  // namespace zkrecipes::internal
