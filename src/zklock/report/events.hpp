#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// --events: what happens, as JSON Lines. Each line goes out in one write, or not at all when nobody reads; one that is
/// longer than PIPE_BUF may go out in several, and the next line follows its end.
class EventLog {
public:
    EventLog() = default;
    /// `where`: a number is a descriptor, everything else a file, to be appended to; empty: nowhere. Throws Failure.
    explicit EventLog(const std::string& where);

    bool wanted() const noexcept { return fd_ >= 0; }
    int fd() const noexcept { return fd_; }
    void write(const char* event, const boost::json::object& fields);
    /// Why a line could not be written, so far; empty: none, or nobody read it in time.
    std::string failure();
    /// Throws Failure if there is one: before something is done of which nobody would be told.
    void require_written();

private:
    std::string where_;
    int error_ = 0;
    int fd_ = -1;
    UniqueFd owned_;
    std::string rest_;  // of a line whose beginning is out
    unsigned dropped_ = 0;
};

}  // namespace zkrecipes::zklock
