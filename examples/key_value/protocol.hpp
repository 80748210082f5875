#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

namespace key_value {

/// What clients ask, one line each; CLIENT is a name that a client has made up for itself and nobody else uses:
///
///     hello CLIENT                      from now on the service remembers what it has done for CLIENT
///     add CLIENT NUMBER KEY AMOUNT      NUMBER: 1, 2, 3 … for each write of CLIENT; the same when it is asked again
///     put CLIENT NUMBER KEY TEXT
///     bye CLIENT                        … and forgets it
///     get KEY                           what the leader knows: all that was acknowledged to anybody
///     peek KEY                          what any of the processes knows: may be old
///
/// Answers, one line each:
///
///     ok [VALUE]       it has happened, once
///     none             there is no such key
///     leader ADDRESS   not here: ask there
///     retry WHY        ask again, with the same NUMBER, here or elsewhere: it may or may not have happened
///     refused WHY      asking again does not help; nothing has happened
struct Request {
    std::string verb, client, key, text;
    std::uint64_t number = 0;

    bool is_write() const { return verb == "add" || verb == "put"; }

    /// Empty: it makes no sense.
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
