#include "zklock/events.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "zklock/console.hpp"
#include "zklock/options.hpp"

namespace zkrecipes::zklock {

EventLog::EventLog(const std::string& where) {
    if (where.empty()) return;
    const bool number = std::all_of(where.begin(), where.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) {
        fd_ = where.size() < 7 ? std::atoi(where.c_str()) : -1;
        if (fd_ < 0 || ::fcntl(fd_, F_GETFD) < 0) throw Failure(kUsage, "--events " + where + ": no such descriptor");
        return;
    }
    owned_ = UniqueFd(::open(where.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    if (!owned_) throw Failure(kUsage, "--events " + where + ": " + std::strerror(errno));
    fd_ = owned_.get();
}

void EventLog::write(const char* event, const nlohmann::json& fields) {
    if (fd_ < 0) return;
    nlohmann::json object = {{"v", 1}, {"ts", timestamp_now()}, {"event", event}};
    object.update(fields);
    if (dropped_ > 0) object["dropped"] = dropped_;  // lines before this one that nobody read
    dropped_ = write_if_ready(fd_, dump(object) + "\n") ? 0 : dropped_ + 1;
}

bool write_result(const std::string& file, const nlohmann::json& object) {
    const std::string draft = file + ".tmp" + std::to_string(::getpid());
    const std::string text = dump(object) + "\n";
    {
        const UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        if (!fd) return false;
        if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            const int error = errno ? errno : EIO;
            ::unlink(draft.c_str());
            errno = error;
            return false;
        }
    }
    if (std::rename(draft.c_str(), file.c_str()) == 0) return true;
    const int error = errno;
    ::unlink(draft.c_str());
    errno = error;
    return false;
}

std::string dump(const nlohmann::json& object, int indent) {
    return object.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace zkrecipes::zklock
