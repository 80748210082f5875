#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"
#include "zklock/system/notify_socket.hpp"

namespace zkrecipes::zklock {

/// Says in the words of sd_notify(3) what the events say. Pure.
class ServiceStatus {
public:
    ServiceStatus(Command command, std::string lock) : command_(command), lock_(std::move(lock)) {}
    /// Empty: nothing to tell.
    std::string message_for(std::string_view event, const boost::json::object& fields);

private:
    /// A candidate that has lost the leadership stands again: the service goes on.
    std::string at_the_end(const std::string& status) const;

    const Command command_;
    const std::string lock_;
    bool lost_ = false;  // since the lock was acquired last
};

/// --notify: tells the service manager that started zklock, if any.
class ServiceNotifier {
public:
    /// Reads $NOTIFY_SOCKET. Throws Failure if it cannot be used.
    ServiceNotifier(const Options& options, Console& console);
    void on_event(std::string_view event, const boost::json::object& fields);

private:
    Console& console_;
    ServiceStatus status_;
    std::optional<NotifySocket> socket_;
    bool warned_ = false;
};

}  // namespace zkrecipes::zklock
