#include "core/queue/payload.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
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

/// Not from the environment, which says what its owner likes. Looked up once.
std::string user_name(uid_t uid) {
    static const uid_t known = uid;
    static const auto& name = *new std::string(local_user_name(known));  // never destroyed
    return uid == known ? name : "uid " + std::to_string(uid);
}

std::string utc(std::chrono::system_clock::time_point at) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::string compose(const LockOptions& options, const std::string& name, const std::string& since) {
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
    out += ",\"since\":\"" + since + "\",\"meta\":{";
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

/// As many of the name's first characters as have room, written as JSON, and "…"; empty if none have. However long the
/// name is: this runs while the session waits.
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

std::string write_payload(const LockOptions& options, std::chrono::system_clock::time_point since,
                          std::string_view operation, std::string_view path) {
    const std::string at = utc(since);
    std::string text = compose(options, options.name, at);
    if (text.size() <= kMaxPayload) return text;
    const std::size_t without_name = compose(options, "", at).size();
    if (without_name <= kMaxPayload) return compose(options, cut_name(options.name, kMaxPayload - without_name), at);
    throw Error(Errc::bad_option, operation, path,
                "id and labels take more than the " + std::to_string(kMaxPayload) +
                    " bytes that a lock node may hold; use fewer or shorter labels");
}

void read_id(std::string data, Participant& participant) {
    participant.raw = std::move(data);
    participant.revocation_requested = participant.raw == kRevocationRequest;
    if (!participant.revocation_requested) participant.id = participant.raw;
}

void read_payload(std::string data, Participant& participant) {
    participant.raw = std::move(data);
    participant.revocation_requested = participant.raw == kRevocationRequest;
    JsonReader json(participant.raw);
    Participant read;
    const bool whole = json.object([&](const std::string& key) {
        if (key == "id") return json.string_or_skip(read.id);
        if (key == "host") return json.string_or_skip(read.host);
        if (key == "user") return json.string_or_skip(read.user);
        if (key == "name") return json.string_or_skip(read.name);
        if (key == "pid") return json.integer_or_skip(read.pid);
        if (key == "meta" && json.at('{')) {
            return json.object([&](const std::string& label) { return json.string_or_skip(read.labels[label]); });
        }
        return json.skip();
    });
    if (!whole || !json.at_end()) return;
    participant.id = std::move(read.id);
    participant.host = std::move(read.host);
    participant.user = std::move(read.user);
    participant.name = std::move(read.name);
    participant.pid = read.pid;
    participant.labels = std::move(read.labels);
}

}  // namespace zkrecipes::internal
