#include "zklock/around/service_notifier.hpp"

#include <boost/json/object.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

std::string text_in(const boost::json::object& fields, const char* key) {
    const auto* const found = fields.if_contains(key);
    return found && found->is_string() ? printable(std::string(found->as_string())) : "";
}

std::string number_in(const boost::json::object& fields, const char* key) {
    const auto* const found = fields.if_contains(key);
    return found && found->is_number() ? std::to_string(found->to_number<std::int64_t>()) : "?";
}

}  // namespace

std::string ServiceStatus::at_the_end(const std::string& status) const {
    const bool goes_on = command_ == Command::elect && lost_;
    return (goes_on ? "STATUS=" : "STOPPING=1\nSTATUS=") + status;
}

std::string ServiceStatus::message_for(std::string_view event, const boost::json::object& fields) {
    const std::string holding = (command_ == Command::elect ? "leading at " : "holding ") + lock_;
    if (event == "connected") return "STATUS=connected to ZooKeeper, waiting for " + lock_;
    if (event == "waiting") {
        return "STATUS=waiting for " + lock_ + ", position " + number_in(fields, "position") + " of " +
               number_in(fields, "total");
    }
    if (event == "acquired") {
        lost_ = false;
        return (command_ == Command::hold ? "READY=1\nSTATUS=" : "STATUS=") + holding;
    }
    if (event == "child_started") return "READY=1\nSTATUS=" + holding + ", the command runs";
    if (event == "suspended") return "STATUS=" + holding + ", the connection to ZooKeeper broke";
    if (event == "resumed") return "STATUS=" + holding;
    if (event == "lost") {
        lost_ = true;
        return at_the_end("lost " + lock_ + ": " + text_in(fields, "reason"));
    }
    if (event == "stopping") return at_the_end("stopping the command");
    // --min-hold may keep the lock for longer than a service manager waits after STOPPING=1.
    if (event == "child_exited") return "STATUS=the command has ended";
    if (event == "released") return at_the_end("released " + lock_);
    return "";
}

ServiceNotifier::ServiceNotifier(const Options& options, Console& console)
    : console_(console), status_(options.command, printable(options.lock)) {
    const char* const name = std::getenv("NOTIFY_SOCKET");
    if (!name || !*name) {
        console.info("--notify: NOTIFY_SOCKET is not set, so no service manager is told anything");
        return;
    }
    try {
        socket_.emplace(name);
    } catch (const std::exception& error) {
        throw Failure(kConfig, std::string("NOTIFY_SOCKET (--notify): \"") + printable(name) +
                                   "\" cannot be used: " + error.what());
    }
}

void ServiceNotifier::on_event(std::string_view event, const boost::json::object& fields) {
    if (!socket_) return;
    const std::string message = status_.message_for(event, fields);
    if (message.empty() || socket_->send(message) || std::exchange(warned_, true)) return;
    console_.warning(std::string("--notify: the service manager cannot be told anything: ") + std::strerror(errno));
}

}  // namespace zkrecipes::zklock
