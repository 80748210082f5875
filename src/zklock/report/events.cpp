#include "zklock/report/events.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/text.hpp"
#include "zklock/system/descriptors.hpp"

namespace zkrecipes::zklock {

EventLog::EventLog(const std::string& where) : where_(where) {
    if (where.empty()) return;
    const bool number = std::all_of(where.begin(), where.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) {
        fd_ = where.size() < 7 ? std::atoi(where.c_str()) : -1;
        const int flags = ::fcntl(fd_, F_GETFL);
        if (flags < 0) throw Failure(kUsage, "--events " + where + ": no such descriptor");
        if ((flags & O_ACCMODE) == O_RDONLY) throw Failure(kUsage, "--events " + where + ": not open for writing");
        return;
    }
    owned_ = UniqueFd(::open(where.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    if (!owned_) throw Failure(kIoError, "--events " + where + ": " + std::strerror(errno));
    fd_ = owned_.get();
}

void EventLog::write(const char* event, const boost::json::object& fields) {
    if (observer_) observer_(event, fields);
    if (fd_ < 0) return;
    const Written before = write_ready(fd_, rest_);
    rest_.erase(0, before.size);
    if (before.error != 0 && error_ == 0) error_ = before.error;
    if (!rest_.empty()) {
        ++dropped_;
        return;
    }
    boost::json::object object = {{"v", 1}, {"ts", timestamp_now()}, {"event", event}};
    merge(object, fields);
    if (dropped_ > 0) object["dropped"] = dropped_;  // lines before this one that nobody read
    rest_ = dump(object) + "\n";
    const Written written = write_ready(fd_, rest_);
    if (written.error != 0 && error_ == 0) error_ = written.error;
    dropped_ = written.size > 0 ? 0 : dropped_ + 1;
    rest_.erase(0, written.size > 0 ? written.size : rest_.size());
}

std::string EventLog::failure() {
    if (fd_ >= 0 && error_ == 0) error_ = late_write_error(fd_);
    return error_ == 0 ? std::string() : "--events " + where_ + ": " + std::strerror(error_);
}

void EventLog::require_written() {
    if (const std::string why = failure(); !why.empty()) throw Failure(kIoError, why);
}

}  // namespace zkrecipes::zklock
