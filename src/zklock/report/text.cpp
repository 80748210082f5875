#include "zklock/report/text.hpp"

#include <cstdio>
#include <string_view>
#include <utility>

namespace zkrecipes::zklock {
namespace {

struct Character {
    std::size_t size = 1;
    char32_t code = kNone;

    static constexpr char32_t kNone = 0xFFFFFFFF;  // not UTF-8
};

Character first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return {1, first};
    const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
    if (size == 0 || size > text.size()) return {};
    char32_t code = first & (0x7F >> size);
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3F);
    }
    const bool longer_than_needed = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
    if (longer_than_needed || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {};
    return {size, code};
}

bool steers(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) ||  // C0, DEL, C1
           code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);  // direction, line and paragraph
}

std::size_t columns_of(char32_t code) {
    const bool narrow = code < 0x1100 || (code >= 0x1160 && code < 0x2E80);
    return narrow ? 1 : 2;
}

template <class Replace>
std::string replaced(const std::string& text, Replace replace) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = std::string_view(text).substr(at);
        const Character character = first_character(rest);
        result += replace(character.code, rest.substr(0, character.size));
        at += character.size;
    }
    return result;
}

}  // namespace

std::string printable(const std::string& text) {
    return replaced(text, [](char32_t code, std::string_view bytes) {
        return code == Character::kNone || steers(code) ? std::string_view("?") : bytes;
    });
}

std::string printable_json(const std::string& json) {
    return replaced(json, [](char32_t code, std::string_view bytes) {
        if (code == Character::kNone) return std::string("\\ufffd");
        if (code < 0x7F || !steers(code)) return std::string(bytes);
        char escape[16];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
        return std::string(escape);
    });
}

std::string fit(const std::string& text, std::size_t columns) {
    std::size_t at = 0;
    for (std::size_t used = 0; at < text.size();) {
        const Character character = first_character(std::string_view(text).substr(at));
        used += columns_of(character.code);
        if (used > columns) break;
        at += character.size;
    }
    return text.substr(0, at);
}

std::string with_names_of_options(std::string text, const std::string& origin_of_tick) {
    const std::string stated = origin_of_tick + " states";
    const std::pair<std::string_view, std::string_view> names[] = {{"SessionOptions::server_tick states", stated},
                                                                   {"SessionOptions::server_tick", "--server-tick"},
                                                                   {"SessionOptions::acl", "--acl"},
                                                                   {"SessionOptions::timeout", "--session-timeout"},
                                                                   {"SessionOptions::path_prefix", "--prefix"}};
    for (const auto& [library, zklock] : names) {
        for (std::size_t at = 0; (at = text.find(library, at)) != std::string::npos; at += zklock.size())
            text.replace(at, library.size(), zklock);
    }
    return text;
}

}  // namespace zkrecipes::zklock
