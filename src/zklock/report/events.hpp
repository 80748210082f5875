#pragma once

#include <functional>
#include <string>
#include <utility>

#include <boost/json/fwd.hpp>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// Writes events as JSON Lines (--events). Each line is written in one piece, or dropped if nobody reads. A line longer
/// than PIPE_BUF may take several writes; the next line follows its end.
class EventLog {
public:
    using Observer = std::function<void(const char* event, const boost::json::object& fields)>;

    EventLog() = default;
    /// `where`: a number is a descriptor, other text a file to append to, empty: nowhere. Throws Failure.
    explicit EventLog(const std::string& where);

    bool wanted() const noexcept { return fd_ >= 0; }
    /// Also tells `observer` of each event.
    void observe(Observer observer) { observer_ = std::move(observer); }
    bool observed() const noexcept { return wanted() || observer_; }
    int fd() const noexcept { return fd_; }
    void write(const char* event, const boost::json::object& fields);
    /// Why a line could not be written; empty: no error. A slow reader is no error.
    std::string failure();
    /// Throws Failure if there is such an error. Call before a step that the events must report.
    void require_written();

private:
    Observer observer_;
    std::string where_;
    int error_ = 0;
    int fd_ = -1;
    UniqueFd owned_;
    std::string rest_;  // of a line whose beginning is out
    unsigned dropped_ = 0;
};

}  // namespace zkrecipes::zklock
