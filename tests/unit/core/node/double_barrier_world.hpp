#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/node/double_barrier_fsm.hpp"
#include "support/fault_table.hpp"

namespace zkrecipes::internal {

class BarrierWorld;

/// One member of a double barrier, with a session of its own: what it has sent, what it has not been told yet, and what
/// ReadOp does for the state machine: begin() again after a break, and a clean-up at the end.
class BarrierPeer {
public:
    enum class Where { outside, entering, inside, leaving, out };
    using Answer = std::function<void()>;

    explicit BarrierPeer(BarrierWorld& w) : world(w) {}
    void enter();
    void leave();
    void end_call(Where next);  // whoever ends it
    void done();
    void fail(Errc why, std::string text);
    void send(std::string what, std::function<Answer()> execute);
    void execute_next();
    void deliver_next();
    void restart();
    void lose_connection();
    void lose_session();
    void saw(int present) { most = std::max(most, present); }
    bool calling() const { return where == Where::entering || where == Where::leaving; }
    bool busy() const { return restarts || !outbox.empty() || !inbox.empty(); }

    struct Request {
        int round;
        std::function<Answer()> execute;
        bool clean_up = false;
    };
    struct Call {
        virtual ~Call() = default;
        virtual void begin_again() = 0;
        virtual void stop_watching() = 0;
    };

    BarrierWorld& world;
    std::vector<std::unique_ptr<Call>> calls;  // also the former ones: their requests may still be executed
    Where where = Where::outside;
    std::int64_t session = 0;       // 0: none yet
    std::int64_t name_session = 0;  // in which the name is used
    std::string name;
    bool once = false;
    bool faulty = false;  // meets the planned faults
    int round = 0;        // of begin()
    bool restarts = false;
    std::deque<Request> outbox;
    std::deque<std::pair<int, Answer>> inbox;
    std::vector<std::string> sent;
    std::optional<Errc> error;
    bool timed_out = false;
    int most = 0;                              // members that were there at the same time, since the call began
    std::map<std::string, std::int64_t> seen;  // czxids of the members that were there when it began to leave
};

/// A server with one directory.
class BarrierWorld {
public:
    struct Node {
        std::int64_t owner = 0;
        std::int64_t czxid = 0;
        std::int32_t version = 0;
    };
    struct Watch {
        BarrierPeer* peer;
        std::string name;
        std::function<void(WatchEventType)> fired;
    };

    BarrierWorld(int count, std::size_t needed, std::uint32_t seed) : members(needed), rng(seed) {
        for (int i = 0; i < count; ++i) peers.push_back(std::make_unique<BarrierPeer>(*this));
    }
    BarrierPeer& peer(std::size_t i) { return *peers[i]; }

    // ---- what the server does ----
    int present() const { return static_cast<int>(nodes.size() - nodes.count(kBarrierReady)); }
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& [name, node] : nodes) out.push_back(name);
        return out;
    }
    NodeStat stat(const std::string& name) const {
        NodeStat out;
        out.czxid = nodes.at(name).czxid;
        out.version = nodes.at(name).version;
        return out;
    }
    void make(const std::string& name, std::int64_t owner) {
        nodes[name] = {owner, ++zxid, 0};
        changed(name, WatchEventType::created);
    }
    void remove(const std::string& name) {
        if (nodes.erase(name) != 0) changed(name, WatchEventType::deleted);
    }
    void changed(const std::string& name, WatchEventType type) {
        most_since_empty = present() == 0 ? 0 : std::max(most_since_empty, present());
        for (const auto& peer : peers) peer->saw(present());
        std::vector<int> fired;
        for (const auto& [id, watch] : watches) {
            if (watch.name == name) fired.push_back(id);
        }
        for (const int id : fired) {
            auto& peer = *watches.at(id).peer;
            peer.inbox.emplace_back(peer.round, [this, id, type] {
                const auto watch = watches.extract(id);
                if (!watch.empty()) watch.mapped().fired(type);
            });
            watches.at(id).name.clear();  // used up; it may still be taken off before it is told
        }
    }
    void end_session(std::int64_t session) {
        std::erase_if(watches, [&](const auto& watch) { return watch.second.peer->session == session; });
        if (lingering) return void(ended.insert(session));
        std::set<std::string> gone;
        for (const auto& [name, node] : nodes) {
            if (node.owner == session) gone.insert(name);
        }
        for (const auto& name : gone) remove(name);
    }

    // ---- what happens ----
    /// Lets the members go on in an order by chance until nothing is left to do.
    void run() {
        for (int steps = 0; steps < 3000; ++steps) {
            std::vector<std::function<void()>> next;
            for (const auto& each : peers) {
                auto& peer = *each;
                if (!peer.outbox.empty()) next.emplace_back([&peer] { peer.execute_next(); });
                if (!peer.inbox.empty()) next.emplace_back([&peer] { peer.deliver_next(); });
                if (peer.restarts) next.emplace_back([&peer] { peer.restart(); });
                if (goes_on && peer.where == BarrierPeer::Where::outside) next.emplace_back([&peer] { peer.enter(); });
                if (goes_on && peer.where == BarrierPeer::Where::inside) next.emplace_back([&peer] { peer.leave(); });
            }
            if (!next.empty()) {
                next[rng() % next.size()]();
                continue;
            }
            if (ended.empty()) return;
            lingering = false;
            for (const auto session : std::exchange(ended, {})) end_session(session);
        }
        ADD_FAILURE() << "it never comes to rest";
    }
    /// Members may still wait for one that does not come: those who enter, and those who leave for one who enters and
    /// was there when they listed.
    void check_at_rest() {
        for (const auto& each : peers) {
            if (each->where == BarrierPeer::Where::leaving) {
                EXPECT_TRUE(std::ranges::any_of(peers,
                                                [&](const auto& other) {
                                                    return other->where == BarrierPeer::Where::entering &&
                                                           nodes.contains(other->name);
                                                }))
                    << each->name << " waits for ever to leave";
            }
            if (each->where != BarrierPeer::Where::entering) continue;
            EXPECT_LT(static_cast<std::size_t>(present()), members) << "all are there, and one still waits";
            EXPECT_FALSE(nodes.contains(kBarrierReady)) << "one waits at a barrier that is full";
        }
    }
    void stop_all() {
        goes_on = false;
        for (const auto& each : peers) {
            if (each->calling()) each->end_call(BarrierPeer::Where::out);
            if (each->where == BarrierPeer::Where::inside) remove(each->name);
        }
        run();
        EXPECT_EQ(present(), 0) << "a node is left behind";
        EXPECT_TRUE(watches.empty());
    }

    const std::size_t members;
    std::mt19937 rng;
    PlannedFaults plans;
    int executed = 0;
    bool goes_on = true;  // who is outside enters, who is inside leaves
    bool directory = true, create_parents = true, directory_vanishes = false, lingering = false;
    bool room = true, watch_room = true;
    Rc rc_of_create = Rc::ok;
    std::map<std::string, Node> nodes;
    std::map<int, Watch> watches;
    std::set<std::int64_t> ended;  // sessions of which the nodes are still there
    int most_since_empty = 0;
    std::int64_t zxid = 0;
    std::int64_t sessions = 0;
    int watch_ids = 0;
    std::vector<std::unique_ptr<BarrierPeer>> peers;
};

// ---- the ports ----------------------------------------------------------------------------------------------------

template <class Port, class Fsm>
class BarrierCall : public Port, public BarrierPeer::Call {
public:
    template <class... Rule>
    explicit BarrierCall(BarrierPeer& p, Rule... rule) : peer(p), world(p.world), fsm(*this, rule...) {}
    void begin_again() override { fsm.begin(); }
    void stop_watching() override { this->unwatch(); }

    bool once() const override { return peer.once; }
    void list(Ticket t) override {
        peer.send("list", [this, t] { return [this, t, names = world.names()] { fsm.on_children(t, names); }; });
    }
    void stat(Ticket t, const std::string& name) override {
        peer.send("stat " + name, [this, t, name]() -> BarrierPeer::Answer {
            if (!world.nodes.contains(name)) return [this, t] { fsm.on_stat(t, Rc::no_node, {}); };
            return [this, t, stat = world.stat(name)] { fsm.on_stat(t, Rc::ok, stat); };
        });
    }
    bool watch(Ticket t, const std::string& name) override {
        if (!world.watch_room) return false;
        EXPECT_FALSE(watching) << "the watch before it is nobody's any more";
        const int id = watching = ++world.watch_ids;
        peer.send("watch " + name, [this, t, id, name]() -> BarrierPeer::Answer {
            if (id != watching) return [] {};
            if (!world.nodes.contains(name)) {
                return [this, t, id] {
                    if (std::exchange(watching, 0) == id) fsm.on_node(t, Rc::no_node);
                };
            }
            world.watches[id] = {&peer, name, [this, t](WatchEventType type) {
                                     watching = 0;
                                     fsm.on_fired(t, type);
                                 }};
            return [this, t, id] {
                if (id == watching) fsm.on_node(t, Rc::ok);
            };
        });
        return true;
    }
    void unwatch() override { world.watches.erase(std::exchange(watching, 0)); }
    void set_ready(Ticket t, std::int32_t version) override {
        peer.send("set ready", [this, t, version]() -> BarrierPeer::Answer {
            const auto ready = world.nodes.find(kBarrierReady);
            if (ready == world.nodes.end()) return [this, t] { fsm.on_ready_set(t, Rc::no_node, {}); };
            if (ready->second.version != version) return [this, t] { fsm.on_ready_set(t, Rc::bad_version, {}); };
            ++ready->second.version;
            world.changed(kBarrierReady, WatchEventType::changed);
            return [this, t, stat = world.stat(kBarrierReady)] { fsm.on_ready_set(t, Rc::ok, stat); };
        });
    }
    void remove_ready(Ticket t, std::int32_t version) override {
        peer.send("delete ready", [this, t, version] {
            const auto ready = world.nodes.find(kBarrierReady);
            if (ready != world.nodes.end() && ready->second.version == version) world.remove(kBarrierReady);
            return [this, t] { fsm.on_ready_removed(t); };
        });
    }
    void done() override { peer.done(); }
    void timed_out() override {
        peer.timed_out = true;
        peer.end_call(BarrierPeer::Where::out);
    }
    void fail(Errc error, std::string text) override { peer.fail(error, std::move(text)); }

    BarrierPeer& peer;
    BarrierWorld& world;
    Fsm fsm;
    int watching = 0;
};

class BarrierEntryCall final : public BarrierCall<BarrierEntryPort, BarrierEntryFsm> {
public:
    explicit BarrierEntryCall(BarrierPeer& p) : BarrierCall(p, p.world.members, p.world.create_parents) {}

    std::string own_name() override {
        if (!world.room) return {};
        if (peer.name.empty() || peer.name_session != peer.session) {
            peer.name_session = peer.session;
            peer.name = std::string(1, static_cast<char>('a' + world.rng() % 20)) + std::to_string(peer.session);
        }
        return peer.name;
    }
    bool watch_ready(Ticket t) override {
        if (!world.watch_room) return false;
        EXPECT_EQ(watching_ready, 0) << "the watch before it is nobody's any more";
        const int id = watching_ready = ++world.watch_ids;
        peer.send("watch ready", [this, t, id]() -> BarrierPeer::Answer {
            if (id != watching_ready) return [] {};
            world.watches[id] = {&peer, kBarrierReady, [this, t](WatchEventType type) {
                                     watching_ready = 0;
                                     fsm.on_ready_fired(t, type);
                                 }};
            const bool there = world.nodes.contains(kBarrierReady);
            return [this, t, id, there, stat = there ? world.stat(kBarrierReady) : NodeStat()] {
                if (id == watching_ready) fsm.on_ready(t, there ? Rc::ok : Rc::no_node, stat);
            };
        });
        return true;
    }
    void unwatch() override {
        BarrierCall::unwatch();
        world.watches.erase(std::exchange(watching_ready, 0));
    }
    void create(Ticket t) override {
        peer.send("create", [this, t, name = peer.name, session = peer.session]() -> BarrierPeer::Answer {
            Rc rc = world.rc_of_create;
            if (rc == Rc::ok && !world.directory) rc = Rc::no_node;
            if (rc == Rc::ok && world.nodes.contains(name)) rc = Rc::node_exists;
            if (rc == Rc::ok) world.make(name, session);
            return [this, t, rc] { fsm.on_created(t, rc); };
        });
    }
    void make_directory(Ticket t) override {
        peer.send("make directory", [this, t] {
            world.directory = !world.directory_vanishes;
            return [this, t] { fsm.on_directory(t); };
        });
    }
    void make_ready(Ticket t, const std::vector<std::string>& counted) override {
        std::string what = "make ready";
        for (const auto& name : counted) what += " " + name;
        peer.send(what, [this, t, counted] {
            Rc rc = world.nodes.contains(kBarrierReady) ? Rc::node_exists : Rc::ok;
            for (const auto& name : counted) rc = world.nodes.contains(name) ? rc : Rc::no_node;
            if (rc == Rc::ok) world.make(kBarrierReady, 0);
            return [this, t, rc] { fsm.on_ready_made(t, rc); };
        });
    }

    int watching_ready = 0;
};

class BarrierExitCall final : public BarrierCall<BarrierExitPort, BarrierExitFsm> {
public:
    explicit BarrierExitCall(BarrierPeer& p) : BarrierCall(p, p.name) {}

    bool same_session() const override { return peer.name_session == peer.session; }
    void remove_own(Ticket t) override {
        peer.send("delete", [this, t, name = peer.name] {
            world.remove(name);
            return [this, t] { fsm.on_own_removed(t); };
        });
    }
    void remove_both(Ticket t) override {
        peer.send("delete both", [this, t, name = peer.name] {
            const bool both = world.nodes.contains(name) && world.nodes.contains(kBarrierReady);
            if (both) {
                world.remove(name);
                world.remove(kBarrierReady);
            }
            return [this, t, both] { fsm.on_both_removed(t, both ? Rc::ok : Rc::no_node); };
        });
    }
};

// ---- a member -----------------------------------------------------------------------------------------------------

inline void BarrierPeer::enter() {
    if (session == 0) session = ++world.sessions;
    where = Where::entering;
    most = world.most_since_empty;
    name.clear();
    calls.push_back(std::make_unique<BarrierEntryCall>(*this));
    restart();
}

inline void BarrierPeer::leave() {
    where = Where::leaving;
    seen.clear();
    for (const auto& [other, node] : world.nodes) {
        if (other != kBarrierReady && other != name) seen[other] = node.czxid;
    }
    calls.push_back(std::make_unique<BarrierExitCall>(*this));
    restart();
}

inline void BarrierPeer::restart() {
    restarts = false;
    calls.back()->begin_again();
}

inline void BarrierPeer::end_call(Where next) {
    if (!calling()) return;
    ++round;
    restarts = false;
    calls.back()->stop_watching();
    // As abandon_barrier: behind what was sent, whatever becomes of it.
    if (next != Where::inside && !name.empty() && name_session == session) {
        outbox.push_back({round,
                          [this, gone = name] {
                              world.remove(gone);
                              return Answer([] {});
                          },
                          true});
    }
    where = next;
}

inline void BarrierPeer::done() {
    if (where == Where::entering) {
        EXPECT_GE(static_cast<std::size_t>(most), world.members) << name << " enters before all are there";
        return end_call(Where::inside);
    }
    for (const auto& [other, czxid] : seen) {
        const auto node = world.nodes.find(other);
        const bool there = node != world.nodes.end() && node->second.czxid == czxid;
        EXPECT_FALSE(there) << name << " has left, but " << other << " has not";
    }
    end_call(Where::out);
}

inline void BarrierPeer::fail(Errc why, std::string) {
    error = why;
    end_call(Where::out);
}

inline void BarrierPeer::send(std::string what, std::function<Answer()> execute) {
    ASSERT_TRUE(calling()) << what << " is sent after the end";
    sent.push_back(std::move(what));
    outbox.push_back({round, std::move(execute)});
}

inline void BarrierPeer::execute_next() {
    const Request request = std::move(outbox.front());
    outbox.pop_front();
    const bool awaited = request.round == round && !request.clean_up;
    switch (faulty && awaited ? fault_at(world.plans, world.executed++) : Fault::none) {
        case Fault::none: {
            auto answer = request.execute();
            if (awaited) inbox.emplace_back(round, std::move(answer));
            return;
        }
        case Fault::lost_before: return lose_connection();
        case Fault::lost_after: request.execute(); return lose_connection();
        case Fault::expired_before: return lose_session();
        case Fault::expired_after: request.execute(); return lose_session();
        case Fault::stopped:
            end_call(where == Where::entering ? Where::outside : Where::out);
            return void(request.execute());
        case Fault::timed_out: request.execute(); return end_call(Where::out);
        case Fault::closed:
            request.execute();
            end_call(Where::out);
            outbox.clear();
            return world.end_session(session);
    }
}

inline void BarrierPeer::deliver_next() {
    const auto [of_round, answer] = std::move(inbox.front());
    inbox.pop_front();
    if (of_round == round) answer();
}

inline void BarrierPeer::lose_connection() {
    ++round;
    inbox.clear();
    std::erase_if(outbox, [](const Request& request) { return !request.clean_up; });
    if (!calling()) return;
    calls.back()->stop_watching();
    restarts = true;
}

inline void BarrierPeer::lose_session() {
    lose_connection();
    world.end_session(std::exchange(session, ++world.sessions));
}

}  // namespace zkrecipes::internal
