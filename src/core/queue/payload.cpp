#include "core/queue/payload.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>

#include "core/operation/json.hpp"
#include "session/lease/hold.hpp"

namespace zkrecipes::internal {
namespace {

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    if (gethostname(name, sizeof name - 1) != 0) return "unknown";
    return name;
}

/// From the file alone: the whole user database may be a directory service on the other side of the network.
std::string local_user_name(uid_t uid) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/etc/passwd", "re"), std::fclose);
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> buffer(4096);
    while (file && fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
        if (found->pw_uid == uid) return found->pw_name;
    }
    return "uid " + std::to_string(uid);
}

/// Not from the environment, where anyone can write another name. Looked up once.
std::string user_name(uid_t uid) {
    static const uid_t known = uid;
    static const auto& name = *new std::string(local_user_name(known));  // never destroyed
    return uid == known ? name : "uid " + std::to_string(uid);
}

/// "2026-01-02T03:04:05Z". Not by strftime, which takes as long as all else that an acquire does before it sends.
void append_utc(std::string& out, std::chrono::system_clock::time_point at) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
    const auto day = std::chrono::floor<std::chrono::days>(seconds);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(seconds - day);
    const auto append = [&out](long number, int digits, char after) {
        char text[4];
        for (int i = digits; i-- > 0; number /= 10) text[i] = static_cast<char>('0' + number % 10);
        out.append(text, static_cast<std::size_t>(digits)).push_back(after);
    };
    append(static_cast<int>(date.year()), 4, '-');
    append(static_cast<unsigned>(date.month()), 2, '-');
    append(static_cast<unsigned>(date.day()), 2, 'T');
    append(time.hours().count(), 2, ':');
    append(time.minutes().count(), 2, ':');
    append(time.seconds().count(), 2, 'Z');
}

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

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD. Not written by Boost.JSON: it escapes fewer
/// characters, and contenders of all versions write the same bytes.
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

constexpr std::size_t kSinceChars = sizeof "2026-01-02T03:04:05Z" - 1;

/// What stands before the time, with its quotation mark.
std::string compose_owner(const LockOptions& options, const std::string& name) {
    const std::string host = host_name();
    const std::string pid = std::to_string(getpid());
    std::string out = "{\"v\":1,\"id\":";
    append_json(out, options.id.empty() ? host + ":" + pid : options.id);
    out += ",\"host\":";
    append_json(out, host);
    out += ",\"pid\":" + pid + ",\"user\":";
    append_json(out, user_name(getuid()));
    out += ",\"uid\":" + std::to_string(getuid()) + ",\"name\":";
    append_json(out, name);
    return out + ",\"since\":\"";
}

std::string compose_labels(const LockOptions& options) {
    std::string out = ",\"meta\":{";
    const char* separator = "";
    for (const auto& [key, value] : options.labels) {
        out += separator;
        append_json(out, key);
        out += ':';
        append_json(out, value);
        separator = ",";
    }
    return out + "}}";
}

void drop_last_character(std::string& text) {
    bool continues = true;
    while (continues && !text.empty()) {
        continues = (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80;
        text.pop_back();
    }
}

/// As many of the first characters as fit, written as JSON, and "…"; empty if none fit. Its cost does not depend on the
/// length of the name, because this runs while the session waits.
std::string cut_name(std::string_view name, std::size_t room) {
    std::string start(name.substr(0, room));  // no character becomes shorter in JSON
    while (!start.empty()) {
        drop_last_character(start);
        std::string quoted;
        append_json(quoted, start + "…");
        if (quoted.size() - 2 <= room) return start + "…";
    }
    return {};
}

}  // namespace

std::string default_id() { return host_name() + ":" + std::to_string(getpid()); }

Payload::Payload(const LockOptions& options, std::string_view operation, std::string_view path)
    : before_since_(compose_owner(options, options.name)), after_since_(compose_labels(options)) {
    const std::size_t others = kSinceChars + 1 + after_since_.size();
    if (before_since_.size() + others <= kMaxPayload) return;
    const std::size_t without_name = compose_owner(options, "").size() + others;
    if (without_name > kMaxPayload) {
        throw Error(Errc::bad_option, operation, path,
                    "id and labels take more than the " + std::to_string(kMaxPayload) +
                        " bytes that a lock node may hold; use fewer or shorter labels");
    }
    before_since_ = compose_owner(options, cut_name(options.name, kMaxPayload - without_name));
}

std::string Payload::at(std::chrono::system_clock::time_point since, std::size_t waiting) const {
    std::string out;
    constexpr std::size_t kWaitingChars = 32;
    out.reserve(before_since_.size() + kSinceChars + 1 + kWaitingChars + after_since_.size());
    out += before_since_;
    append_utc(out, since);
    out += '"';
    if (waiting != 0) {
        const std::string number = ",\"waiting\":" + std::to_string(waiting);
        if (out.size() + number.size() + after_since_.size() <= kMaxPayload) out += number;
    }
    out += after_since_;
    return out;
}

void read_id(std::string data, Participant& participant) {
    participant.raw = std::move(data);
    participant.revocation_requested = participant.raw == kRevocationRequest;
    if (!participant.revocation_requested) participant.id = participant.raw;
}

void read_payload(std::string data, Participant& participant) {
    participant.raw = std::move(data);
    participant.revocation_requested = participant.raw == kRevocationRequest;
    const auto object = parse_json_object(participant.raw);
    if (!object) return;
    participant.id = string_member(*object, "id");
    participant.host = string_member(*object, "host");
    participant.user = string_member(*object, "user");
    participant.name = string_member(*object, "name");
    participant.pid = integer_member(*object, "pid").value_or(0);
    participant.waiting =
        static_cast<std::uint64_t>(std::max<std::int64_t>(integer_member(*object, "waiting").value_or(0), 0));
    const boost::json::value* meta = object->if_contains("meta");
    if (!meta || !meta->is_object()) return;
    for (const auto& label : meta->get_object()) {
        participant.labels[std::string(label.key())] = string_member(meta->get_object(), label.key());
    }
}

}  // namespace zkrecipes::internal
