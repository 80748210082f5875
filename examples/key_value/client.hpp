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

/// Nobody has answered in time. Whether a write has happened is not known, until the next one is answered.
struct NoAnswer : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// The service will not do it, however often it is asked; nothing has happened.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A client of the key-value service: finds the leader, and asks again until there is an answer. A write that is
/// answered has happened exactly once, however often it had to be asked, and whoever had to be asked. Not safe for
/// concurrent use: one write of one client is under way at a time.
class Client {
public:
    using Deadline = zkrecipes::Deadline;

    /// `servers`: some or all, host:port. Who has not answered within `patience` is left for another one.
    explicit Client(std::vector<std::string> servers,
                    std::chrono::milliseconds patience = std::chrono::milliseconds(2000));

    // All throw NoAnswer and Refused.
    long long add(const std::string& key, long long amount, Deadline deadline);  ///< the value after it
    void put(const std::string& key, const std::string& value, Deadline deadline);
    std::optional<std::string> get(const std::string& key,
                                   Deadline deadline);  ///< what was acknowledged before is in it
    std::optional<std::string> peek(const std::string& key, Deadline deadline);  ///< may be old
    void leave(Deadline deadline);  ///< The service may forget us. The client can go on: under another name.

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
    std::string server_;    // whom we ask
    boost::asio::ip::tcp::iostream stream_;
    std::string name_;
    std::uint64_t number_ = 0;  // of the last write; 0: the service does not know us yet
    bool known_ = false;
};

}  // namespace key_value
