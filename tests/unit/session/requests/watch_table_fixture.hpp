#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "session/requests/watch_table.hpp"

namespace zkrecipes::internal {

/// Plays the connection: keeps what was sent, in order.
class WatchTableTest : public ::testing::Test, protected WatchTable::Port {
protected:
    void send_get_watch(const std::string& path, std::uint64_t ticket) override {
        sent.push_back("get " + path);
        tickets.push_back(ticket);
    }
    void send_children_watch(const std::string& path, std::uint64_t ticket) override {
        sent.push_back("children " + path);
        tickets.push_back(ticket);
    }
    void send_exists_watch(const std::string& path, std::uint64_t ticket) override {
        sent.push_back("exists " + path);
        tickets.push_back(ticket);
    }
    void send_remove_watches(const std::string& path, std::uint64_t ticket) override {
        sent.push_back("remove " + path);
        tickets.push_back(ticket);
    }
    bool can_send() const override { return connected; }

    WatchId watch(const std::string& name, const std::string& path = "/n", WatchKind kind = WatchKind::node) {
        WatchListener listener;
        listener.ready = [this, name](Rc rc, const std::string&, const NodeStat&) {
            told.push_back(name + " ready " + to_string(rc));
            if (on_told) on_told(name);
        };
        listener.fired = [this, name](WatchEventType) {
            told.push_back(name + " fired");
            if (on_told) on_told(name);
        };
        return table.add(path, std::move(listener), kind);
    }
    void read(Rc rc = Rc::ok) {
        NodeStat stat;
        stat.czxid = czxid;
        table.on_read(next(), rc, "data", stat);
    }
    void removed(Rc rc = Rc::ok) { table.on_removed(next(), rc); }
    std::uint64_t next() {
        if (tickets.empty()) {
            ADD_FAILURE() << "nothing was sent";
            return 0;
        }
        const auto ticket = tickets.front();
        tickets.erase(tickets.begin());
        return ticket;
    }
    void event(const std::string& path = "/n", WatchEventType type = WatchEventType::deleted) {
        table.on_event(type, path);
    }

    WatchTable table{*this, 1000};
    std::vector<std::string> sent;
    std::vector<std::uint64_t> tickets;
    std::vector<std::string> told;
    std::function<void(const std::string&)> on_told;
    bool connected = true;
    std::int64_t czxid = 7;  // of what is read
};

}  // namespace zkrecipes::internal
