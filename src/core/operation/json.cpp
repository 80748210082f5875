#include "core/operation/json.hpp"

#include <charconv>
#include <cstdio>

namespace zkrecipes::internal {
namespace {

/// Length of the UTF-8 character at the front; 0: none.
std::size_t utf8_length(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0 || s.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    // Overlong forms, surrogates and what lies beyond U+10FFFF.
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) || (first == 0xF0 && byte(1) < 0x90) ||
        (first == 0xF4 && byte(1) >= 0x90)) {
        return 0;
    }
    return length;
}

void append_utf8(std::string& out, std::uint32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | c >> 18);
        out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    }
}

}  // namespace

void append_json(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text.front();
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            out += escaped;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    out += '"';
}

void JsonReader::blanks() {
    while (pos_ < text_.size() &&
           (text_[pos_] == ' ' || text_[pos_] == '\t' || text_[pos_] == '\n' || text_[pos_] == '\r')) {
        ++pos_;
    }
}

bool JsonReader::at(char c) {
    blanks();
    return pos_ < text_.size() && text_[pos_] == c;
}

bool JsonReader::at_end() {
    blanks();
    return pos_ == text_.size();
}

bool JsonReader::take(char c) {
    if (!at(c)) return false;
    ++pos_;
    return true;
}

bool JsonReader::object(const std::function<bool(const std::string&)>& member) {
    if (depth_ == kMaxDepth || !take('{')) return false;
    ++depth_;
    if (!take('}')) {
        do {
            std::string key;
            if (!string(key) || !take(':') || !member(key)) return false;
        } while (take(','));
        if (!take('}')) return false;
    }
    --depth_;
    return true;
}

bool JsonReader::string_or_skip(std::string& into) { return at('"') ? string(into) : skip(); }

bool JsonReader::integer_or_skip(std::int64_t& into) {
    blanks();
    const std::size_t begin = pos_;
    if (!skip()) return false;
    std::int64_t value = 0;
    const char* end = text_.data() + pos_;
    const auto [stop, error] = std::from_chars(text_.data() + begin, end, value);
    if (error == std::errc() && stop == end) into = value;
    return true;
}

bool JsonReader::skip() {
    if (at('"')) {
        std::string ignored;
        return string(ignored);
    }
    if (at('{')) return object([this](const std::string&) { return skip(); });
    if (at('[')) {
        if (depth_ == kMaxDepth) return false;
        ++depth_;
        take('[');
        if (!take(']')) {
            do {
                if (!skip()) return false;
            } while (take(','));
            if (!take(']')) return false;
        }
        --depth_;
        return true;
    }
    for (const std::string_view word : {"true", "false", "null"}) {
        if (text_.substr(pos_).starts_with(word)) {
            pos_ += word.size();
            return true;
        }
    }
    return skip_number();
}

bool JsonReader::skip_number() {
    const std::size_t begin = pos_;
    bool digits = false;
    for (; pos_ < text_.size(); ++pos_) {
        const char c = text_[pos_];
        if (c >= '0' && c <= '9') {
            digits = true;
        } else if (!((c == '-' && pos_ == begin) ||
                     (digits && (c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')))) {
            break;
        }
    }
    return digits;
}

bool JsonReader::string(std::string& into) {
    into.clear();
    if (!take('"')) return false;
    while (pos_ < text_.size()) {
        const char c = text_[pos_];
        if (c == '"') {
            ++pos_;
            return true;
        }
        if (static_cast<unsigned char>(c) < 0x20) return false;
        if (c == '\\') {
            ++pos_;
            if (!escape(into)) return false;
            continue;
        }
        const std::size_t length = utf8_length(text_.substr(pos_));
        if (length == 0) return false;
        into.append(text_.substr(pos_, length));
        pos_ += length;
    }
    return false;
}

bool JsonReader::escape(std::string& into) {
    if (pos_ == text_.size()) return false;
    const char c = text_[pos_++];
    switch (c) {
        case '"':
        case '\\':
        case '/': into += c; return true;
        case 'b': into += '\b'; return true;
        case 'f': into += '\f'; return true;
        case 'n': into += '\n'; return true;
        case 'r': into += '\r'; return true;
        case 't': into += '\t'; return true;
        case 'u': break;
        default: return false;
    }
    std::uint32_t code = 0;
    if (!hex4(code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(pos_).starts_with("\\u")) {
        const std::size_t before = pos_;
        std::uint32_t low = 0;
        pos_ += 2;
        if (!hex4(low)) return false;
        if (low >= 0xDC00 && low < 0xE000) {
            append_utf8(into, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
            return true;
        }
        pos_ = before;
    }
    append_utf8(into, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
    return true;
}

bool JsonReader::hex4(std::uint32_t& value) {
    if (text_.size() - pos_ < 4) return false;
    const char* begin = text_.data() + pos_;
    const auto [stop, error] = std::from_chars(begin, begin + 4, value, 16);
    if (error != std::errc() || stop != begin + 4 || *begin == '-') return false;
    pos_ += 4;
    return true;
}

}  // namespace zkrecipes::internal
