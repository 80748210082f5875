// The floor without a client library: a socket, on which the program speaks ZooKeeper's protocol itself.
//     floor_wire HOSTS uncontended       uses the first of the hosts
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zookeeper/proto.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bench/floors/cycle_meter.hpp"
#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"

namespace zkrecipes::bench {
namespace {

constexpr std::int32_t kNodeExists = -110;

/// What is sent: numbers in network byte order, texts with their lengths.
class Packet {
public:
    Packet() { number(0); }  // room for the length
    Packet& number(std::int32_t value) { return append(htonl(static_cast<std::uint32_t>(value))); }
    Packet& long_number(std::int64_t value) { return append(htobe64(static_cast<std::uint64_t>(value))); }
    Packet& flag(bool value) { return append(static_cast<char>(value)); }
    Packet& text(std::string_view value) {
        number(static_cast<std::int32_t>(value.size()));
        bytes_.append(value);
        return *this;
    }
    std::string finished() {
        const std::uint32_t length = htonl(static_cast<std::uint32_t>(bytes_.size() - 4));
        std::memcpy(bytes_.data(), &length, sizeof length);
        return std::move(bytes_);
    }

private:
    template <class Value>
    Packet& append(Value value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    std::string bytes_;
};

/// One packet of the server.
class Answer {
public:
    explicit Answer(std::string_view bytes) : bytes_(bytes) {}
    std::int32_t number() { return static_cast<std::int32_t>(ntohl(take<std::uint32_t>())); }
    void skip(std::size_t bytes) { bytes_.remove_prefix(bytes); }
    std::string_view text() {
        const auto length = static_cast<std::size_t>(number());
        const std::string_view value = bytes_.substr(0, length);
        skip(length);
        return value;
    }

private:
    template <class Value>
    Value take() {
        if (bytes_.size() < sizeof(Value)) fail("an answer of the server is too short");
        Value value;
        std::memcpy(&value, bytes_.data(), sizeof value);
        skip(sizeof value);
        return value;
    }
    std::string_view bytes_;
};

/// A session, for one thread. It needs no pings, because it always works.
class Wire {
public:
    explicit Wire(const std::string& hosts) {
        connect_to(hosts.substr(0, hosts.find(',')));
        send(Packet()
                 .number(0)  // version of the protocol
                 .long_number(0)
                 .number(kSessionMilliseconds)
                 .long_number(0)
                 .text(std::string(16, '\0'))
                 .flag(false)
                 .finished());
        receive();
    }
    ~Wire() {
        send(request(ZOO_CLOSE_OP).finished());
        answer();
        ::close(socket_);
    }
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    Packet request(std::int32_t opcode) { return std::move(Packet().number(++requests_).number(opcode)); }
    Packet create(const std::string& path, std::string_view data, std::int32_t flags) {
        constexpr std::int32_t kAll = 31;
        return std::move(request(ZOO_CREATE_OP)
                             .text(path)
                             .text(data)
                             .number(1)  // access list: one entry
                             .number(kAll)
                             .text("world")
                             .text("anyone")
                             .number(flags));
    }
    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) fail(std::string("send: ") + std::strerror(errno));
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    /// The answer to the oldest request that has none, valid until the next call. An error ends the program, but for
    /// the one that is `harmless`.
    Answer answer(std::int32_t harmless = 0) {
        Answer answer(receive());
        answer.skip(4 + 8);  // number of the request, zxid
        const std::int32_t error = answer.number();
        if (error != 0 && error != harmless) fail("the server answers with error " + std::to_string(error));
        return answer;
    }

private:
    void connect_to(const std::string& host) {
        const auto colon = host.rfind(':');
        addrinfo wanted{};
        wanted.ai_socktype = SOCK_STREAM;
        addrinfo* found = nullptr;
        if (colon == std::string::npos ||
            ::getaddrinfo(host.substr(0, colon).c_str(), host.substr(colon + 1).c_str(), &wanted, &found) != 0) {
            fail(host + " is no host");
        }
        socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int yes = 1;
        if (socket_ == -1 || ::connect(socket_, found->ai_addr, found->ai_addrlen) != 0 ||
            ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) {
            fail("connect to " + host + ": " + std::strerror(errno));
        }
        ::freeaddrinfo(found);
    }
    std::string_view receive() {
        begin_ += std::exchange(taken_, 0);
        while (end_ - begin_ < 4 || end_ - begin_ < 4 + length()) read_more();
        taken_ = 4 + length();
        return {buffer_.data() + begin_ + 4, taken_ - 4};
    }
    std::size_t length() const {
        std::uint32_t length = 0;
        std::memcpy(&length, buffer_.data() + begin_, sizeof length);
        return ntohl(length);
    }
    void read_more() {
        if (begin_ == end_) begin_ = end_ = 0;
        if (end_ == buffer_.size()) fail("the server sends too much");
        const ssize_t got = ::recv(socket_, buffer_.data() + end_, buffer_.size() - end_, 0);
        if (got <= 0) fail("the server closed the connection");
        end_ += static_cast<std::size_t>(got);
    }

    int socket_ = -1;
    std::int32_t requests_ = 0;
    std::array<char, 65536> buffer_;
    std::size_t begin_ = 0;  // what was received and not yet taken is between begin_ and end_
    std::size_t end_ = 0;
    std::size_t taken_ = 0;  // the last packet
};

void uncontended(const std::string& hosts, int) {
    Wire wire(hosts);
    const std::string directory = directory_of(0);
    wire.send(wire.create(directory, "", 0).finished());
    wire.answer(kNodeExists);
    const std::string name = directory + std::string(kNodeName);
    std::string node;
    const auto acquire = [&] {
        constexpr std::int32_t kEphemeralSequential = 3;
        wire.send(wire.create(name, kNodeData, kEphemeralSequential).finished() +
                  wire.request(ZOO_GETCHILDREN_OP).text(directory).flag(false).finished());
        node = wire.answer().text();
        if (wire.answer().number() != 1) fail("the lock is not free");
    };
    const auto release = [&] {
        wire.send(wire.request(ZOO_DELETE_OP).text(node).number(-1).finished());
        wire.answer();
    };
    measure_uncontended(acquire, release);
}

}  // namespace
}  // namespace zkrecipes::bench

int main(int argc, char** argv) {
    return zkrecipes::bench::run(argc, argv, {{"uncontended", zkrecipes::bench::uncontended}});
}
