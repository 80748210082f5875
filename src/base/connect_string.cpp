#include "base/connect_string.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include <zkrecipes/error.hpp>

#include "base/paths.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::string_view kExample =
    "write it like zk1:2181,zk2:2181 or [2001:db8::1]:2181, optionally with a /path at the end";
constexpr std::size_t kMaxHostBytes = 255;

/// What was written, fit for one line of text.
std::string printable(std::string_view entry, std::size_t most) {
    std::string shown;
    for (const char c : entry.substr(0, most)) shown.push_back(c >= 0x20 && c < 0x7F ? c : '?');
    return shown;
}

[[noreturn]] void fail(std::string_view entry, const std::string& problem) {
    const std::string shown = printable(entry, 200);
    throw Error(Errc::bad_connect_string, "connect", {},
                (shown.empty() ? problem : "\"" + shown + "\": " + problem) + "; " + std::string(kExample));
}

bool is_ipv6(const std::string& address) {
    in6_addr parsed{};
    return inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &parsed) == 1;
}

bool is_ipv4(const std::string& address) {
    in_addr parsed{};
    return inet_pton(AF_INET, address.c_str(), &parsed) == 1;
}

bool is_host_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
}

std::uint16_t parse_port(std::string_view entry, std::string_view digits) {
    unsigned port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (digits.empty() || end != digits.data() + digits.size() || error == std::errc::invalid_argument) {
        fail(entry, "the port is not a number");
    }
    if (error != std::errc() || port < 1 || port > 65535) fail(entry, "the port must be between 1 and 65535");
    return static_cast<std::uint16_t>(port);
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// What follows the first slash may be the rest of a list: then a part of the servers and the path would be something
/// that nobody else uses, and the locks would exclude nobody. ZooKeeper allows these characters in a path. Where one of
/// them is meant, the prefix of the paths is the place for it.
void check_chroot(std::string_view chroot) {
    const auto separates = [](char c) { return is_blank(c) || c == ',' || c == ';' || c == '|' || c == ':'; };
    // What a text that was copied may have instead: a no-break space, and the full-width and ideographic signs.
    const auto has = [chroot](std::string_view sign) { return chroot.find(sign) != chroot.npos; };
    const bool copied =
        has("\u00a0") || has("\uff0c") || has("\uff1b") || has("\uff1a") || has("\u3000") || has("\u3001");
    if (!copied && std::none_of(chroot.begin(), chroot.end(), separates)) return check_path(chroot, "connect");
    fail(chroot,
         "the path contains a comma, semicolon, colon, | or blank: write the path once, behind the last server. If the "
         "name of a node has such a character, put the path into SessionOptions::path_prefix instead");
}

HostPort parse_bracketed(std::string_view entry) {
    const std::size_t close = entry.find(']');
    if (close == std::string_view::npos) fail(entry, "the closing ] is missing");
    HostPort result{.host = std::string(entry.substr(1, close - 1)), .is_address = true};
    if (!is_ipv6(result.host)) fail(entry, "what stands in brackets is not an IPv6 address");
    const std::string_view rest = entry.substr(close + 1);
    if (rest.empty()) return result;
    if (rest.front() != ':') fail(entry, "only :port may follow the ]");
    result.port = parse_port(entry, rest.substr(1));
    return result;
}

}  // namespace

std::string HostPort::text() const {
    const bool brackets = host.find(':') != std::string::npos;
    return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::vector<std::string> ConnectString::hosts() const {
    std::vector<std::string> texts;
    for (const HostPort& server : servers) texts.push_back(server.text());
    return texts;
}

HostPort parse_host_port(std::string_view entry) {
    if (entry.empty()) fail(entry, "there is an empty entry in the list of servers");
    if (std::any_of(entry.begin(), entry.end(), is_blank)) fail(entry, "blanks are not allowed");
    if (entry.front() == '[') return parse_bracketed(entry);
    if (std::count(entry.begin(), entry.end(), ':') > 1) {
        if (is_ipv6(std::string(entry))) fail(entry, "an IPv6 address must stand in brackets");
        fail(entry, "there is more than one colon");
    }
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    HostPort result{.host = std::string(entry.substr(0, colon))};
    if (result.host.empty()) fail(entry, "the host is missing");
    if (result.host.size() > kMaxHostBytes) fail(entry, "the host name has more than 255 characters");
    if (!std::all_of(result.host.begin(), result.host.end(), is_host_character)) {
        fail(entry, "the host has a character that cannot be in a host name");
    }
    if (colon < entry.size()) result.port = parse_port(entry, entry.substr(colon + 1));
    result.is_address = is_ipv4(result.host);
    return result;
}

ConnectString parse_connect_string(std::string_view text) {
    if (text.empty()) fail(text, "the list of servers is empty");
    if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
        fail(text, "leave out \"" + printable(text.substr(0, scheme), 20) + "://\"");
    }
    ConnectString result;
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (const std::string_view chroot = text.substr(slash); chroot.size() > 1) {
        check_chroot(chroot);
        result.chroot = chroot;
    }
    const std::string_view list = text.substr(0, slash);
    std::size_t begin = 0;
    while (begin <= list.size()) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        HostPort server = parse_host_port(list.substr(begin, end - begin));
        if (std::find(result.servers.begin(), result.servers.end(), server) != result.servers.end()) {
            fail(list.substr(begin, end - begin), "this server is listed twice");
        }
        result.servers.push_back(std::move(server));
        begin = end + 1;
    }
    return result;
}

}  // namespace zkrecipes::internal
