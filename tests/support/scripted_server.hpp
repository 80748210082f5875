#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/await.hpp"
#include "testenv/src/unique_fd.hpp"
#include "testenv/src/wire.hpp"

namespace zkrecipes::test {

/// A server on loopback that has no data: it answers each request as the test says. One session for everybody.
class ScriptedServer {
public:
    using Opcode = testenv::Opcode;
    static constexpr std::int64_t kSession = 0x100000000001234;  // as ZooKeeper makes them

    /// The C client takes servers with the same address for the same, whatever their ports are.
    explicit ScriptedServer(std::string ip = "127.0.0.1")
        : ip_(std::move(ip)),
          listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = ::inet_addr(ip_.c_str());
        socklen_t size = sizeof address;
        ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
        ::listen(listener_.get(), 16);
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ::ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~ScriptedServer() {
        stopping_ = true;
        changed();
        thread_.join();
    }
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    std::string port() const { return std::to_string(port_); }
    std::string host() const { return ip_ + ":" + port(); }

    // ---- how it answers from now on ----
    /// 0: with success.
    void answer_with(Opcode opcode, std::int32_t error) {
        set([&] { errors_[opcode] = error; });
    }
    void list_children(std::vector<std::string> names) {
        set([&] { children_ = std::move(names); });
    }
    void hold(bool on = true) {  // of everything but handshakes and pings
        set([&] { held_ = on; });
    }
    void refuse(bool on = true) {  // whoever connects is cut off
        set([&] { refusing_ = on; });
    }
    void end_session() {  // whoever connects is told that the session is over
        set([&] { session_over_ = true; });
    }
    void make_another_session() {  // for whoever connects
        set([&] { ++session_; });
    }
    void cut() {
        set([&] { cut_ = true; });
    }
    void fire(std::int32_t type, const std::string& path) {
        testenv::wire::Writer event;
        event.int32(testenv::wire::xid_event).int64(-1).int32(0).int32(type).int32(3).text(path);
        set([&] { events_ += event.frame(); });
    }

    // ---- what it was asked ----
    /// Requests so far, in their order: "exists /a". Without pings.
    std::vector<std::string> seen() const {
        const std::lock_guard lock(mutex_);
        return seen_;
    }
    std::size_t count(const std::string& what) const {
        const auto all = seen();
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [&](const std::string& one) { return one.starts_with(what); }));
    }
    /// How many have connected so far.
    std::size_t connects() const { return connects_; }
    /// How many are connected.
    std::size_t connections() const { return connections_; }
    bool sees(const std::string& what, std::size_t times = 1) const {
        return await([&] { return count(what) >= times; });
    }

private:
    struct Connection {
        testenv::internal::UniqueFd socket;
        testenv::wire::FrameSplitter frames{};
        std::vector<testenv::wire::RequestHead> waiting{};
        bool open = false;  // the first frame is the handshake
    };
    using Writer = testenv::wire::Writer;

    template <class Change>
    void set(Change&& change) {
        {
            const std::lock_guard lock(mutex_);
            change();
        }
        changed();
    }
    void changed() const {
        const std::uint64_t one = 1;
        (void)!::write(wake_.get(), &one, sizeof one);
    }

    void serve() {
        std::list<Connection> connections;
        while (!stopping_) {
            std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
            for (const Connection& connection : connections) watched.push_back({connection.socket.get(), POLLIN, 0});
            ::poll(watched.data(), watched.size(), -1);
            std::uint64_t ignored = 0;
            (void)!::read(wake_.get(), &ignored, sizeof ignored);
            const std::lock_guard lock(mutex_);
            auto revents = watched.begin() + 2;
            for (auto next = connections.begin(); next != connections.end();) {
                const auto each = next++;
                const bool alive = ((revents++)->revents == 0 || read_from(*each)) && reply_to(*each);
                if (!alive || cut_) connections.erase(each);
            }
            cut_ = false;
            events_.clear();
            connections_ = connections.size();
            if (watched[1].revents == 0) continue;
            testenv::internal::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            ++connects_;
            if (!refusing_) connections.push_back({.socket = std::move(socket)});
            connections_ = connections.size();
        }
    }

    bool read_from(Connection& connection) {
        char bytes[65536];
        const ssize_t size = ::read(connection.socket.get(), bytes, sizeof bytes);
        if (size <= 0) return false;
        connection.frames.feed({bytes, static_cast<std::size_t>(size)});
        while (const auto frame = connection.frames.next()) {
            if (!std::exchange(connection.open, true)) {
                Writer reply;
                reply.int32(0).int32(session_over_ ? 0 : 20'000).int64(session_over_ ? 0 : session_);
                reply.text(std::string(16, 'p')).byte(0);
                if (!send(connection, reply.frame())) return false;
            } else if (const auto request = testenv::wire::parse_request(testenv::wire::body(*frame))) {
                if (request->opcode == Opcode::ping) {
                    if (!send(connection, Writer().int32(request->xid).int64(1).int32(0).frame())) return false;
                    continue;
                }
                seen_.push_back(to_string(request->opcode) + (request->path.empty() ? "" : " " + request->path));
                connection.waiting.push_back(*request);
            }
        }
        return true;
    }

    bool reply_to(Connection& connection) {
        std::string replies = events_;
        bool closed = false;
        if (!held_) {
            for (const auto& request : std::exchange(connection.waiting, {})) {
                replies += reply(request);
                closed = closed || request.opcode == Opcode::close_session;
            }
        }
        return (replies.empty() || send(connection, replies)) && !closed;
    }

    static bool send(const Connection& connection, const std::string& bytes) {
        return ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    }

    std::string reply(const testenv::wire::RequestHead& request) const {
        Writer out;
        const auto error = errors_.find(request.opcode);
        const std::int32_t code = error == errors_.end() ? 0 : error->second;
        out.int32(request.xid).int64(1).int32(code);
        if (code != 0) return out.frame();
        switch (request.opcode) {
            case Opcode::create2:
            case Opcode::create_container: stat(out.text(request.path + "7")); break;
            case Opcode::exists:
            case Opcode::set_data: stat(out); break;
            case Opcode::get_data: stat(out.text("data of " + request.path)); break;
            case Opcode::get_children2:
                out.int32(static_cast<std::int32_t>(children_.size()));
                for (const std::string& name : children_) out.text(name);
                stat(out);
                break;
            case Opcode::sync: out.text(request.path); break;
            case Opcode::multi:
                for (const auto& part : request.parts) {
                    out.int32(static_cast<std::int32_t>(part.opcode)).byte(0).int32(0);
                    if (part.opcode == Opcode::create) out.text(part.path + "7");
                    if (part.opcode == Opcode::set_data) stat(out);
                }
                out.int32(-1).byte(1).int32(-1);
                break;
            default: break;
        }
        return out.frame();
    }
    /// Each field has a value of its own.
    static void stat(Writer& out) {
        for (const std::int64_t value : {101, 102, 103, 104}) out.int64(value);  // czxid, mzxid, ctime, mtime
        for (const std::int32_t value : {5, 6, 7}) out.int32(value);             // version, cversion, aversion
        out.int64(108).int32(9).int32(10).int64(111);  // ephemeral owner, data length, children, pzxid
    }

    const std::string ip_;
    testenv::internal::UniqueFd listener_, wake_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::size_t> connects_ = 0, connections_ = 0;
    std::thread thread_;

    mutable std::mutex mutex_;  // guards all below
    std::map<Opcode, std::int32_t> errors_;
    std::vector<std::string> children_, seen_;
    std::string events_;
    std::int64_t session_ = kSession;
    bool held_ = false, refusing_ = false, session_over_ = false, cut_ = false;
};

}  // namespace zkrecipes::test
