#include "zklock/look/top_picture.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value_from.hpp>
#include <cstdio>
#include <string_view>
#include <utility>

#include "zklock/command_line/duration.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

using WallTime = std::chrono::system_clock::time_point;

std::string counted(std::size_t number, const char* one, const char* several) {
    return std::to_string(number) + " " + (number == 1 ? one : several);
}

/// The end of a path tells locks apart: it is kept if the path is too long. 0: nothing is too long.
std::string shortened(const std::string& path, std::size_t most) {
    constexpr std::string_view kDots = "...";
    if (most <= kDots.size() || path.size() <= most) return path;
    return std::string(kDots) + path.substr(path.size() - (most - kDots.size()));
}

const Participant* holder_of(const TopPicture& picture, const LockRow& row) {
    const auto found = picture.holders.find(row.holder);
    return found != picture.holders.end() && found->second ? &*found->second : nullptr;
}

std::string holder_in_words(const TopPicture& picture, const LockRow& row, WallTime now) {
    if (row.holders == 0) return "-";
    const Participant* const holder = holder_of(picture, row);
    std::string text = holder ? describe(*holder, now) : printable(row.holder);
    if (row.holders > 1) text += " and " + std::to_string(row.holders - 1) + " more";
    return text;
}

}  // namespace

TopPicture picture_of_rows(std::vector<LockRow> rows, std::size_t most) {
    TopPicture picture;
    picture.locks = rows.size();
    for (const LockRow& row : rows) {
        picture.held += row.holders > 0 ? 1 : 0;
        picture.waiters += row.waiters;
    }
    rows.resize(std::min(rows.size(), most));
    picture.rows = std::move(rows);
    return picture;
}

Participant unreadable_owner(const std::string& node) {
    Participant owner;
    owner.path = node;
    owner.node = node.substr(node.rfind('/') + 1);
    owner.holder = true;
    owner.readable = false;
    return owner;
}

Participant owner_of(const NodeContent& node) {
    Participant owner = unreadable_owner(node.path);
    owner.readable = true;
    owner.token = node.created;
    owner.session_id = node.session_id;
    owner.since = node.created_at;
    owner.children = node.children;
    owner.raw = node.data;
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(node.data, error);
    const boost::json::object* const object = error ? nullptr : value.if_object();
    if (!object) return owner;
    const auto text = [&](const char* member) {
        const boost::json::value* const found = object->if_contains(member);
        return found && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    owner.host = text("host");
    owner.user = text("user");
    owner.name = text("name");
    if (const auto* pid = object->if_contains("pid"); pid && pid->is_int64()) owner.pid = pid->get_int64();
    return owner;
}

std::string in_words(const TopPicture& picture, std::size_t columns) {
    const auto now = std::chrono::system_clock::now();
    std::vector<std::string> lines;
    constexpr std::size_t kDate = sizeof "2026-01-02T" - 1, kTime = sizeof "03:04:05" - 1;
    const std::string time = timestamp_now().substr(kDate, kTime) + "Z  ";
    const std::string totals = ": " + counted(picture.locks, "lock", "locks") + ", " + std::to_string(picture.held) +
                               " held, " + counted(picture.waiters, "waiter", "waiters") + ", oldest look " +
                               format_duration(picture.oldest_look) + " ago";
    // A long path must not push the age off the screen.
    const std::size_t used = std::min(columns, time.size() + totals.size());
    lines.push_back(time + printable(shortened(picture.prefix, columns - used)) + totals);
    std::string note = picture.trouble;
    if (note.empty()) note = picture.incomplete;
    lines.push_back(printable(note));
    const std::size_t most = columns > 0 ? std::max<std::size_t>(columns / 2, 20) : 0;
    std::size_t width = 4;
    for (const LockRow& row : picture.rows) {
        width = std::max(width, std::min<std::size_t>(shortened(row.path, most).size(), 50));
    }
    const auto line = [&](const std::string& waiting, const std::string& held, std::string lock,
                          const std::string& holder) {
        lock.resize(std::max(lock.size(), width), ' ');
        char numbers[64];
        std::snprintf(numbers, sizeof numbers, "%7s %7s  ", waiting.c_str(), held.c_str());
        lines.push_back(numbers + lock + "  " + holder);
    };
    line("WAITING", "HOLDERS", "LOCK", "HELD BY");
    for (const LockRow& row : picture.rows) {
        line(std::to_string(row.waiters), std::to_string(row.holders), printable(shortened(row.path, most)),
             holder_in_words(picture, row, now));
    }
    const std::size_t more = picture.locks - picture.rows.size();
    if (more > 0) lines.push_back("and " + counted(more, "further lock", "further locks"));
    std::string text;
    for (const std::string& one : lines) text += (columns > 0 ? fit(one, columns) : one) + "\n";
    return text;
}

std::string in_json(const TopPicture& picture) {
    const auto now = std::chrono::system_clock::now();
    boost::json::array locks;
    for (const LockRow& row : picture.rows) {
        boost::json::object lock = {{"path", row.path},
                                    {"mode", row.mode},
                                    {"holders", row.holders},
                                    {"waiters", row.waiters},
                                    {"holder", nullptr}};
        if (const Participant* const holder = holder_of(picture, row)) {
            lock["holder"] = to_json(*holder, now);
            lock["holder"].as_object().erase("mode");
        }
        locks.push_back(std::move(lock));
    }
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(picture.oldest_look).count();
    return dump({{"v", 1},
                 {"ts", timestamp_now()},
                 {"prefix", picture.prefix},
                 {"total", picture.locks},
                 {"held", picture.held},
                 {"waiters", picture.waiters},
                 {"oldest_look_ms", age},
                 {"message", picture.trouble.empty() ? boost::json::value() : boost::json::value(picture.trouble)},
                 {"locks", std::move(locks)},
                 {"unreadable", boost::json::value_from(picture.unreadable)}}) +
           "\n";
}

}  // namespace zkrecipes::zklock
