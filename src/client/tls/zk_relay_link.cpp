#include "client/tls/zk_relay_link.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kMostOnTheWay = 64 * 1024;  // in one direction
constexpr auto kFarewell = std::chrono::seconds(1);
constexpr std::size_t kAlertBytes = 7;  // a TLS record with an alert
constexpr int kHandshakeRecord = 22, kAlertRecord = 21;

short bits(bool in, bool out) { return static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0)); }

/// The alerts that concern a configuration. https://www.rfc-editor.org/rfc/rfc8446#section-6
const char* alert_name(int code) {
    switch (code) {
        case 40: return "handshake_failure: no common version or cipher, or it wants another certificate";
        case 42: return "bad_certificate";
        case 43: return "unsupported_certificate";
        case 44: return "certificate_revoked";
        case 45: return "certificate_expired";
        case 46: return "certificate_unknown";
        case 48: return "unknown_ca";
        case 70: return "protocol_version";
        case 112: return "unrecognized_name";
        case 116: return "certificate_required";
        default: return "";
    }
}

std::string in_ms(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

}  // namespace

RelayLink::RelayLink(std::uint64_t number, Socket client, std::vector<std::string> servers, ZkRelay::Limits limits)
    : number_(number), client_(std::move(client)), servers_(std::move(servers)), limits_(limits) {
    next_server(Clock::now());
}

// ---- finding a server ---------------------------------------------------------------------------------------------

void RelayLink::next_server(Clock::time_point now) {
    while (!servers_.empty()) {
        server_ = std::move(servers_.back());
        servers_.pop_back();
        upstream_ = start_connect(server_);
        if (upstream_) {
            connecting_ = true;
            deadline_ = now + limits_.connect;
            return;
        }
        refusals_ += (refusals_.empty() ? "" : "; ") + server_ + ": " + std::generic_category().message(errno);
    }
    server_.clear();
    finish(refusals_);
    cut();
}

void RelayLink::connected_or_next(Clock::time_point now) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(upstream_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0) {
        connecting_ = false;
        deadline_ = now + limits_.establish;
        return;
    }
    refusals_ += (refusals_.empty() ? "" : "; ") + server_ + ": " + std::generic_category().message(error);
    next_server(now);
}

// ---- forwarding ---------------------------------------------------------------------------------------------------

/// What is not wanted is not polled for: a socket whose other end is gone would be ready for ever.
void RelayLink::wanted(std::vector<pollfd>& fds) const {
    // The end of the client is wanted even while its bytes are not.
    const short end = up_.ended ? 0 : POLLRDHUP;
    const short client = static_cast<short>(end | bits(!up_.ended && up_.size() < kMostOnTheWay, down_.size() > 0));
    const short server =
        connecting_ ? bits(false, true) : bits(!down_.ended && down_.size() < kMostOnTheWay, up_.size() > 0);
    fds.push_back({client == 0 ? -1 : client_.get(), client, 0});
    fds.push_back({server == 0 ? -1 : upstream_.get(), server, 0});
}

void RelayLink::go_on(const pollfd& client, const pollfd& server, Clock::time_point now) {
    if (over_) return;
    if ((client.revents & ~POLLOUT) != 0 && !up_.ended) receive(client_.get(), up_);
    if (server.revents != 0 && connecting_) {
        connected_or_next(now);
    } else if ((server.revents & ~POLLOUT) != 0 && !down_.ended) {
        const std::size_t before = down_.bytes.size();
        receive(upstream_.get(), down_);
        if (first_answer_.size() < kAlertBytes) {
            first_answer_.append(down_.bytes.begin() + static_cast<std::ptrdiff_t>(before), down_.bytes.end());
            first_answer_.resize(std::min(first_answer_.size(), kAlertBytes));
        }
    }
    if (!over_) settle(now);
}

bool RelayLink::receive(int fd, Pipe& pipe) {
    std::array<char, 16 * 1024> buffer;
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) {
        pipe.ended = true;
        return false;
    }
    pipe.bytes.insert(pipe.bytes.end(), buffer.begin(), buffer.begin() + got);
    pipe.total += static_cast<std::uint64_t>(got);
    return true;
}

/// False: the other side is gone, and the rest is of no use.
bool RelayLink::send(int fd, Pipe& pipe) {
    while (pipe.size() > 0) {
        const ssize_t put = ::send(fd, pipe.bytes.data() + pipe.begin, pipe.size(), MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) return true;
        if (put < 0) {
            pipe.bytes.clear();
            pipe.begin = 0;
            return false;
        }
        pipe.begin += static_cast<std::size_t>(put);
    }
    pipe.bytes.clear();
    pipe.begin = 0;
    return true;
}

void RelayLink::settle(Clock::time_point now) {
    if (connecting_) {
        if (up_.ended) finish({});  // it has given up
        return;
    }
    const bool server_takes = send(upstream_.get(), up_);
    const bool client_takes = send(client_.get(), down_);
    if (down_.ended && down_.size() == 0) return finish_for_server();
    if (!client_takes) up_.ended = true;
    if (!server_takes) down_.ended = true;
    if (up_.ended && established_ && !leaving_) {
        leaving_ = true;
        deadline_ = now + kFarewell;
    }
    if (!up_.ended || up_.size() > 0 || up_.passed_on) return;
    if (!established_) {
        // It has not accepted what the server sent, or has waited too long.
        return finish(down_.total == 0 ? "" : "the TLS handshake succeeds, but the server gives no session", true);
    }
    // The last request, by which the session ends, must reach the server before the end of the connection.
    up_.passed_on = true;
    ::shutdown(upstream_.get(), SHUT_WR);
}

void RelayLink::on_time(Clock::time_point now) {
    if (over_ || now < deadline_) return;
    if (leaving_) return finish({});
    if (connecting_) {
        refusals_ +=
            (refusals_.empty() ? "" : "; ") + server_ + ": no answer to a connection within " + in_ms(limits_.connect);
        return next_server(now);
    }
    if (established_) {
        deadline_ = Clock::time_point::max();
        return;
    }
    finish(down_.total == 0
               ? "accepts connections, but does not answer the TLS handshake (within " + in_ms(limits_.establish) +
                     "): check that the server runs, and that this is its TLS port (secureClientPort)"
               : "answers the TLS handshake, but gives no session within " + in_ms(limits_.establish));
    cut();
}

// ---- the end ------------------------------------------------------------------------------------------------------

void RelayLink::finish(std::string problem, bool in_handshake) {
    over_ = true;
    if (!established_) problem_ = {server_, std::move(problem), in_handshake};
}

/// By a reset: the C client sees it even if it does not read.
void RelayLink::cut() {
    const linger at_once{1, 0};
    ::setsockopt(client_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    over_ = true;
}

void RelayLink::finish_for_server() {
    const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(first_answer_[i]); };
    if (first_answer_.empty()) {
        return finish(
            "closes the connection when the TLS handshake begins: check that this is the TLS port (secureClientPort) "
            "of the server, not the plain one");
    }
    if (byte(0) != kHandshakeRecord && byte(0) != kAlertRecord) {
        return finish("answers without TLS: use the TLS port (secureClientPort) of the server");
    }
    if (byte(0) == kAlertRecord && first_answer_.size() == kAlertBytes) {
        const int alert = byte(kAlertBytes - 1);
        const std::string name = alert_name(alert);
        return finish("refuses the TLS handshake with the alert " + std::to_string(alert) +
                      (name.empty() ? "" : " (" + name + ")"));
    }
    finish(
        "ends the connection before there is a session: either it does not accept the certificate of this client, or "
        "it has no quorum",
        true);
}

}  // namespace zkrecipes::internal
