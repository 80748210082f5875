#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/node/persistent_node_fsm.hpp"
#include "support/fault_table.hpp"

namespace zkrecipes::internal {

/// A server with one path, and a connection that breaks when it is told to.
class PersistentNodeWorld : public PersistentNodePort {
public:
    struct Node {
        std::int64_t owner = 0;
        std::string data;
        std::int32_t version = 0;
    };
    struct Request {
        std::string what;
        std::function<std::function<void()>()> execute;  // answers how it went
        std::function<void(Rc)> fail;
    };

    // ---- the port ----
    bool connected() const override { return up; }
    std::int64_t session_id() const override { return session; }
    std::uint64_t random() override { return 0; }
    bool reserve() override { return room; }
    void create(Ticket t, const std::string& data) override {
        send(
            "create " + data,
            [this, t, data]() -> std::function<void()> {
                if (rc_of_create != Rc::ok) return [this, t] { fsm.on_created(t, rc_of_create, {}); };
                if (!parent) return [this, t] { fsm.on_created(t, Rc::no_node, {}); };
                if (node) return [this, t] { fsm.on_created(t, Rc::node_exists, {}); };
                node = Node{session, data, 0};
                return [this, t, stat = stat()] { fsm.on_created(t, Rc::ok, stat); };
            },
            [this, t](Rc rc) { fsm.on_created(t, rc, {}); });
    }
    void make_parent(Ticket t) override {
        send(
            "parent",
            [this, t]() -> std::function<void()> {
                if (rc_of_parent != Rc::ok) return [this, t, rc = rc_of_parent] { fsm.on_parent(t, rc); };
                const Rc rc = std::exchange(parent, !parent_vanishes) ? Rc::node_exists : Rc::ok;
                return [this, t, rc] { fsm.on_parent(t, rc); };
            },
            [this, t](Rc rc) { fsm.on_parent(t, rc); });
    }
    bool watch(Ticket t) override {
        if (!watch_room) return false;
        EXPECT_FALSE(std::exchange(watching, true)) << "the watch before it is nobody's any more";
        const int id = ++watch_id;
        send(
            "read",
            [this, t, id]() -> std::function<void()> {
                if (id != watch_id) return [] {};
                if (!node)
                    return [this, t, id] {
                        if (id != watch_id) return;
                        watching = false;
                        fsm.on_node(t, Rc::no_node, {}, {});
                    };
                watched = t;
                return [this, t, id, stat = stat(), data = node->data] {
                    if (id == watch_id) fsm.on_node(t, Rc::ok, data, stat);
                };
            },
            [this, t, id](Rc rc) {
                if (id != watch_id) return;
                watching = false;
                fsm.on_node(t, rc, {}, {});
            });
        return true;
    }
    void unwatch() override {
        watching = false;
        watched.reset();
        ++watch_id;
    }
    void set(Ticket t, const std::string& data, std::int32_t version) override {
        send(
            "set " + data,
            [this, t, data, version]() -> std::function<void()> {
                if (rc_of_set != Rc::ok) return [this, t] { fsm.on_set(t, rc_of_set, {}); };
                if (!node) return [this, t] { fsm.on_set(t, Rc::no_node, {}); };
                if (node->version != version) return [this, t] { fsm.on_set(t, Rc::bad_version, {}); };
                write(data);
                return [this, t, stat = stat()] { fsm.on_set(t, Rc::ok, stat); };
            },
            [this, t](Rc rc) { fsm.on_set(t, rc, {}); });
    }
    void remove(Ticket t, std::int32_t) override {
        send(
            "delete",
            [this, t]() -> std::function<void()> {
                if (rc_of_remove == Rc::ok) vanish();
                return [this, t, rc = rc_of_remove] { fsm.on_removed(t, rc); };
            },
            [this, t](Rc rc) { fsm.on_removed(t, rc); });
    }
    void give_back() override {
        sent.push_back("give back");
        giving_back = session;
    }
    void start_timer(std::chrono::milliseconds delay) override {
        EXPECT_FALSE(std::exchange(timer, true)) << "the timer before it can no longer be stopped";
        delays.push_back(static_cast<int>(delay.count()));
    }
    void stop_timer() override { timer = false; }
    void note(const char* what) override { notes.emplace_back(what); }
    void refused(const std::string& why, int) override { complaints.push_back(why); }
    void changed() override {
        if (states.empty() || states.back() != to_string(fsm.state())) states.emplace_back(to_string(fsm.state()));
    }
    void finished() override {
        ++finishes;
        EXPECT_FALSE(watching) << "its listener refers to what is finished";
        EXPECT_FALSE(timer);
    }

    // ---- the world ----
    void send(std::string what, std::function<std::function<void()>()> execute, std::function<void(Rc)> fail) {
        ASSERT_EQ(finishes, 0);
        sent.push_back(what);
        queue.push_back({std::move(what), std::move(execute), std::move(fail)});
    }
    NodeStat stat() const {
        NodeStat out;
        out.version = node->version;
        out.ephemeral_owner = node->owner;
        return out;
    }
    void fire(WatchEventType type) {
        if (!watched) return;
        const Ticket t = *std::exchange(watched, std::nullopt);
        events.push_back([this, t, type, id = watch_id] {
            if (id != watch_id) return;
            watching = false;  // used up
            fsm.on_fired(t, type);
        });
        deliver();
    }
    void deliver() {
        while (up && !events.empty()) {
            const auto event = std::move(events.front());
            events.pop_front();
            event();
        }
    }
    void write(const std::string& data) {
        node->data = data;
        ++node->version;
        fire(WatchEventType::changed);
    }
    void vanish() {
        if (!node) return;
        node.reset();
        fire(WatchEventType::deleted);
    }
    /// Other people's work, and what the servers do.
    void end_session_of(std::int64_t owner) {
        if (node && node->owner == owner) vanish();
    }
    void fail_all(Rc rc) {
        for (auto& request : std::exchange(queue, {})) request.fail(rc);
    }
    void lose_connection(std::function<void()> answer_lost) {
        up = false;
        if (!state_first) answer_lost(), fail_all(Rc::connection_loss);
        meanwhile();
        if (state_first) answer_lost(), fail_all(Rc::connection_loss);
        up = true;
        fsm.on_connected(true);
        deliver();
    }
    void lose_session(std::function<void()> answer_lost) {
        up = false;
        answer_lost();
        fail_all(Rc::session_expired);
        if (!lingering) end_session_of(session);
        watched.reset();
        ++watch_id;
        events.clear();
        fsm.on_session_lost();
        EXPECT_FALSE(watching);
        EXPECT_FALSE(timer) << "nothing is tried without a session";
        ++session;
        up = true;
        fsm.on_connected(false);
    }
    /// The servers execute the oldest request and answer it, without a fault; no event is delivered.
    void answer_one() {
        const Request request = std::move(queue.front());
        queue.pop_front();
        request.execute()();
    }
    /// Runs until nothing is left to do.
    void run() {
        for (int steps = 0; steps < 500; ++steps) {
            deliver();
            if (queue.empty()) {
                if (!std::exchange(timer, false)) return;
                fsm.on_timer();
                continue;
            }
            Request request = std::move(queue.front());
            queue.pop_front();
            const auto lost = [&request](Rc rc) { return [&request, rc] { request.fail(rc); }; };
            switch (fault_at(plans, executed++)) {
                case Fault::lost_before: lose_connection(lost(Rc::connection_loss)); break;
                case Fault::lost_after:
                    request.execute();
                    lose_connection(lost(Rc::connection_loss));
                    break;
                case Fault::expired_before: lose_session(lost(Rc::session_expired)); break;
                case Fault::expired_after:
                    request.execute();
                    lose_session(lost(Rc::session_expired));
                    break;
                case Fault::stopped:
                    fsm.close();
                    request.execute()();
                    break;
                case Fault::timed_out:  // closed, and the answer does not come
                    fsm.close();
                    request.execute();
                    request.fail(Rc::connection_loss);
                    break;
                case Fault::closed:
                    request.execute();
                    fsm.on_session_closed();
                    end_session_of(session);
                    fail_all(Rc::closed);
                    return;
                case Fault::none: request.execute()(); break;
            }
        }
        ADD_FAILURE() << "it never comes to rest";
    }
    void start() {
        fsm.start();
        run();
    }

    bool up = true, parent = true, parent_vanishes = false, room = true, watch_room = true, timer = false;
    bool watching = false;  // a watch was asked for, and has neither fired, failed nor been taken off
    bool state_first = false, lingering = false;
    Rc rc_of_create = Rc::ok, rc_of_parent = Rc::ok, rc_of_set = Rc::ok, rc_of_remove = Rc::ok;
    std::int64_t session = 1;
    std::optional<Node> node;
    std::optional<Ticket> watched;
    int watch_id = 0;
    std::deque<std::function<void()>> events;
    std::deque<Request> queue;
    PlannedFaults plans;
    int executed = 0;
    std::optional<std::int64_t> giving_back;
    std::function<void()> meanwhile = [] {};
    int finishes = 0;
    std::vector<std::string> sent, states, notes, complaints;
    std::vector<int> delays;
    PersistentNodeFsm fsm{*this, "one", true};
};

}  // namespace zkrecipes::internal
