#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

namespace key_value {

/// The requests of clients, one line each. CLIENT is a name that the client has chosen, and that no other client uses:
///
///     hello CLIENT                      from now on the service remembers what it has done for CLIENT
///     add CLIENT NUMBER KEY AMOUNT      NUMBER: 1, 2, 3 … for each write of CLIENT; the same if it is sent again
///     put CLIENT NUMBER KEY TEXT
///     bye CLIENT                        … and forgets it
///     get KEY                           from the leader: contains every acknowledged write
///     peek KEY                          from any process: may be old
///
/// Answers, one line each:
///
///     ok [VALUE]       the request was executed, once
///     none             there is no such key
///     leader ADDRESS   this process does not lead: ask the one at ADDRESS
///     retry WHY        send it again, with the same NUMBER, to any process: it may have been executed or not
///     refused WHY      nothing was changed, and sending it again does not help
struct Request {
    std::string verb, client, key, text;
    std::uint64_t number = 0;

    bool is_write() const { return verb == "add" || verb == "put"; }

    /// Empty if the line is not a request.
    static std::optional<Request> parse(const std::string& line) {
        Request out;
        std::istringstream in(line);
        in >> out.verb;
        if (out.verb != "get" && out.verb != "peek") {
            in >> out.client;
            if (!is_name(out.client)) return {};
        }
        if (out.is_write() && (!(in >> out.number) || out.number == 0)) return {};
        if (out.verb != "hello" && out.verb != "bye") {
            in >> out.key;
            if (!is_name(out.key)) return {};
        }
        std::getline(in >> std::ws, out.text);
        const bool known =
            out.is_write() || out.verb == "get" || out.verb == "peek" || out.verb == "hello" || out.verb == "bye";
        return known ? std::optional(out) : std::nullopt;
    }

    /// It becomes the name of a node.
    static bool is_name(const std::string& text) {
        if (text.empty() || text.size() > 100) return false;
        for (const unsigned char c : text) {
            if (!std::isalnum(c) && c != '-' && c != '_') return false;
        }
        return true;
    }
};

}  // namespace key_value
