#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/testenv/endpoint.hpp>

namespace zkrecipes::test {

/// A TCP proxy before one server that keeps all that goes through it. Or, without a target, a server that accepts
/// connections and never answers.
class Recorder {
public:
    explicit Recorder(testenv::Endpoint target);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;
    static testenv::Endpoint black_hole() { return {}; }

    std::string connect_string() const { return "127.0.0.1:" + std::to_string(port_); }
    struct Streams {
        std::string to_server, to_client;
    };
    /// One for each connection so far.
    std::vector<Streams> streams() const;
    std::size_t open_connections() const;
    /// Ends all connections.
    void cut();

private:
    struct Connection {
        int client = -1, server = -1;
        Streams streams;
    };
    void run();
    void accept();
    static bool forward(int from, int to, std::string& kept);

    const testenv::Endpoint target_;
    std::uint16_t port_ = 0;
    int listener_ = -1, wake_ = -1;
    mutable std::mutex mutex_;  // guards what follows
    std::list<Connection> connections_;
    bool cut_ = false, stop_ = false;
    std::thread thread_;
};

/// Empty: the bytes are TLS records from the first to the last, of which the last may be cut off. Otherwise where they
/// are not.
std::string why_not_tls(const std::string& bytes);

}  // namespace zkrecipes::test
