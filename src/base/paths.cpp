#include "base/paths.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {
namespace {

struct Decoded {
    std::uint32_t code_point = 0;
    std::size_t bytes = 0;  // 0: not valid UTF-8
};

/// One character of strict UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
Decoded decode(std::string_view text) {
    const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(text[i]); };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    std::size_t length = 0;
    std::uint32_t smallest = 0;
    std::uint32_t code_point = 0;
    if ((first & 0xE0U) == 0xC0) {
        length = 2, smallest = 0x80, code_point = first & 0x1FU;
    } else if ((first & 0xF0U) == 0xE0) {
        length = 3, smallest = 0x800, code_point = first & 0x0FU;
    } else if ((first & 0xF8U) == 0xF0) {
        length = 4, smallest = 0x10000, code_point = first & 0x07U;
    } else {
        return {};
    }
    if (text.size() < length) return {};
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) return {};
        code_point = (code_point << 6) | (byte(i) & 0x3FU);
    }
    if (code_point < smallest || code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) return {};
    return {code_point, length};
}

/// The characters that the servers refuse. They see UTF-16, so all that needs a surrogate pair is refused as well.
bool is_refused(std::uint32_t c) {
    return c <= 0x1F || (c >= 0x7F && c <= 0x9F) || (c >= 0xD800 && c <= 0xF8FF) || c >= 0xFFF0;
}

std::string character_problem(std::string_view path) {
    for (std::size_t i = 0; i < path.size();) {
        const Decoded decoded = decode(path.substr(i));
        if (decoded.bytes == 0) {
            return "byte " + std::to_string(i + 1) + " is not valid UTF-8; encode the path as UTF-8";
        }
        if (is_refused(decoded.code_point)) {
            char name[16];
            std::snprintf(name, sizeof(name), "U+%04X", static_cast<unsigned>(decoded.code_point));
            return "ZooKeeper does not allow the character " + std::string(name) + " at byte " + std::to_string(i + 1) +
                   "; remove it";
        }
        i += decoded.bytes;
    }
    return {};
}

/// For an error text: without what would break a terminal or a log, and not longer than a reader can use.
std::string printable(std::string_view path) {
    constexpr std::size_t kShown = 200;
    std::string shown;
    for (const char c : path.substr(0, kShown)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7F) {
            shown.push_back(c);
        } else {
            char escaped[8];
            std::snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
            shown.append(escaped);
        }
    }
    if (path.size() > kShown) shown.append("...");
    return shown;
}

/// string_view's own search looks at one byte after the other.
std::size_t last_slash(std::string_view path) {
    const auto* const found = static_cast<const char*>(memrchr(path.data(), '/', path.size()));
    return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(found - path.data());
}

}  // namespace

std::string path_problem(std::string_view path) {
    if (path.empty()) return "the path is empty; write it from the root, like /locks/billing";
    if (path.size() > kMaxPathBytes) {
        return "it has " + std::to_string(path.size()) + " bytes; use at most " + std::to_string(kMaxPathBytes);
    }
    if (path.front() != '/') return "it does not begin with /; write it from the root, like /locks/billing";
    if (std::string problem = character_problem(path); !problem.empty()) return problem;
    if (path.size() == 1) return {};
    if (path.back() == '/') return "it ends with /; leave the last / out";
    std::size_t begin = 1;
    while (begin <= path.size()) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view component = path.substr(begin, end - begin);
        if (component.empty()) return "it has an empty component (//); write a single /";
        if (component == "." || component == "..") {
            return "the component " + std::string(component) + " is not allowed; write the path without it";
        }
        begin = end + 1;
    }
    return {};
}

void check_path(std::string_view path, std::string_view operation) {
    const std::string problem = path_problem(path);
    if (!problem.empty()) throw Error(Errc::bad_path, operation, printable(path), problem);
}

void check_lock_path(std::string_view server_path, std::string_view operation) {
    check_path(server_path, operation);
    if (is_at_or_below(server_path, "/zookeeper")) {
        throw Error(Errc::bad_path, operation, server_path,
                    "/zookeeper belongs to ZooKeeper itself; choose a path of your own");
    }
}

std::string join_path(std::string_view directory, std::string_view rest) {
    while (!directory.empty() && directory.back() == '/') directory.remove_suffix(1);
    while (!rest.empty() && rest.front() == '/') rest.remove_prefix(1);
    if (rest.empty()) return directory.empty() ? "/" : std::string(directory);
    std::string joined;
    joined.reserve(directory.size() + 1 + rest.size());
    joined.append(directory).append("/").append(rest);
    return joined;
}

std::string_view parent_path(std::string_view path) {
    const std::size_t slash = last_slash(path);
    return slash == std::string_view::npos || slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

std::string_view base_name(std::string_view path) { return path.substr(last_slash(path) + 1); }

std::vector<std::string> ancestors(std::string_view path) {
    std::vector<std::string> result;
    for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
        result.emplace_back(path.substr(0, slash));
    }
    return result;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
    if (directory == "/") return !path.empty() && path.front() == '/';
    return path.substr(0, directory.size()) == directory &&
           (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace zkrecipes::internal
