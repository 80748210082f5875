#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>

namespace key_value {

/// No process has answered in time. It is not known whether a write has happened, until the next write is answered.
struct NoAnswer : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// The service refuses the request, and has changed nothing. Asking again does not help.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A client of the key-value service: finds the leader, and sends a request again until there is an answer. A write
/// that is answered has happened exactly once, even if it was sent several times and to several processes. Not safe for
/// concurrent use: a client sends one write at a time.
class Client {
public:
    using Deadline = zkrecipes::Deadline;

    /// `servers`: the addresses of some or all processes, host:port. If a process has not answered within `patience`,
    /// the client asks another one.
    explicit Client(std::vector<std::string> servers,
                    std::chrono::milliseconds patience = std::chrono::milliseconds(2000));

    // All throw NoAnswer and Refused.
    long long add(const std::string& key, long long amount, Deadline deadline);  ///< the value after it
    void put(const std::string& key, const std::string& value, Deadline deadline);
    std::optional<std::string> get(const std::string& key,
                                   Deadline deadline);                           ///< contains every acknowledged write
    std::optional<std::string> peek(const std::string& key, Deadline deadline);  ///< may be old
    void leave(Deadline deadline);  ///< The service may forget this client. The object can go on, with a new name.

    const std::string& name() const { return name_; }

private:
    std::string write(const std::string& verb, const std::string& key, const std::string& text, Deadline deadline);
    std::optional<std::string> read(const std::string& verb, const std::string& key, Deadline deadline);
    std::string ask(const std::string& line, Deadline deadline);
    std::optional<std::string> ask_once(const std::string& line);
    void turn_to(std::string server);

    std::vector<std::string> servers_;
    std::chrono::milliseconds patience_;
    std::size_t next_ = 0;  // of servers_
    std::string server_;    // the one that is asked
    boost::asio::ip::tcp::iostream stream_;
    std::string name_;
    std::uint64_t number_ = 0;  // of the last write; 0: the service does not know this client yet
    bool known_ = false;
};

}  // namespace key_value
