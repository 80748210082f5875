#include "client.hpp"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

namespace key_value {

namespace {

constexpr std::chrono::milliseconds kPause{20};

/// A name that no other client has.
std::string new_name() {
    std::random_device random;
    std::string out;
    for (int i = 0; i < 32; ++i) out += "0123456789abcdef"[random() % 16];
    return out;
}

bool begins_with(const std::string& text, const std::string& beginning) { return text.rfind(beginning, 0) == 0; }

}  // namespace

Client::Client(std::vector<std::string> servers, std::chrono::milliseconds patience)
    : servers_(std::move(servers)), patience_(patience), name_(new_name()) {
    if (servers_.empty()) throw std::invalid_argument("no servers");
    server_ = servers_.front();
}

long long Client::add(const std::string& key, long long amount, Deadline deadline) {
    return std::stoll(write("add", key, std::to_string(amount), deadline));
}

void Client::put(const std::string& key, const std::string& value, Deadline deadline) {
    if (value.find('\n') != std::string::npos) throw Refused("a value is one line");
    write("put", key, value, deadline);
}

std::optional<std::string> Client::get(const std::string& key, Deadline deadline) { return read("get", key, deadline); }
std::optional<std::string> Client::peek(const std::string& key, Deadline deadline) {
    return read("peek", key, deadline);
}

void Client::leave(Deadline deadline) {
    if (known_) ask("bye " + name_, deadline);
    name_ = new_name();
    known_ = false;
    number_ = 0;
}

std::string Client::write(const std::string& verb, const std::string& key, const std::string& text, Deadline deadline) {
    if (!known_) ask("hello " + name_, deadline);
    known_ = true;
    // Even if this call fails, the next write needs another number. Otherwise the service would take it for this one.
    ++number_;
    const std::string said = ask(verb + " " + name_ + " " + std::to_string(number_) + " " + key + " " + text, deadline);
    return said.substr(3);
}

std::optional<std::string> Client::read(const std::string& verb, const std::string& key, Deadline deadline) {
    const std::string said = ask(verb + " " + key, deadline);
    return said == "none" ? std::nullopt : std::optional(said.substr(3));
}

/// Sends the same line again until a process has answered it.
std::string Client::ask(const std::string& line, Deadline deadline) {
    std::string last = "no connection";
    while (!deadline.is_passed()) {
        const auto said = ask_once(line);
        if (said && (*said == "none" || begins_with(*said, "ok"))) return *said;
        if (said && begins_with(*said, "refused ")) throw Refused(*said);
        if (said) last = *said;
        if (said && begins_with(*said, "leader ")) {
            turn_to(said->substr(7));
        } else {
            turn_to(servers_[++next_ % servers_.size()]);
        }
        std::this_thread::sleep_for(kPause);  // an election takes a while
    }
    throw NoAnswer("no answer to '" + line + "': " + last);
}

/// Returns empty if there is no connection, it breaks, or no answer comes in time. Then it closes the connection, so
/// that a late answer to this line is not taken for the answer to the next one.
std::optional<std::string> Client::ask_once(const std::string& line) {
    stream_.expires_after(patience_);
    if (!stream_.socket().is_open()) {
        const auto colon = server_.rfind(':');
        stream_.clear();
        stream_.connect(server_.substr(0, colon), server_.substr(colon + 1));
    }
    std::string said;
    if (stream_ << line << '\n' << std::flush && std::getline(stream_, said)) return said;
    stream_.close();
    return {};
}

void Client::turn_to(std::string server) {
    if (server == server_) return;
    server_ = std::move(server);
    stream_.close();
}

}  // namespace key_value
