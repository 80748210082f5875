#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/acquire/acquire_fsm.hpp"
#include "core/queue/node_name.hpp"
#include "unit/core/acquire/queue_world.hpp"

namespace zkrecipes::internal {

/// One lock directory, and one client that runs AcquireFsm.
class AcquireWorld : public AcquirePort, public QueueWorld {
public:
    /// What the contender is: of a mutex, or of one side of a lock with shares.
    enum class Contender { mutex, writer, reader, kazoo_mutex, kazoo_reader };

    explicit AcquireWorld(Patience patience = Patience::wait, Contender contender = Contender::mutex)
        : AcquireWorld(contender, [this, patience](AcquirePort& port) {
              return std::make_unique<AcquireFsm>(port, spec, patience);
          }) {}

protected:
    /// Another protocol that stands in the queue.
    template <class MakeFsm>
    AcquireWorld(Contender contender, const MakeFsm& make) : rule(rule_of(contender)), owned(make(*this)), fsm(*owned) {
        spec.directory = "/l";
        spec.base = base_of(contender);
        const bool kazoo = contender == Contender::kazoo_mutex || contender == Contender::kazoo_reader;
        spec.dialect = kazoo ? Dialect::kazoo : Dialect::curator;
        spec.rule = &rule;
    }

public:
    static const char* base_of(Contender contender) {
        switch (contender) {
            case Contender::mutex: return "lock-";
            case Contender::writer: return "__WRIT__";
            case Contender::reader: return "__READ__";
            case Contender::kazoo_mutex: return "__lock__";
            case Contender::kazoo_reader: return "__rlock__";
        }
        return "";
    }
    static PredecessorRule rule_of(Contender contender) {
        if (contender == Contender::mutex) return PredecessorRule({{"lock-", true}});
        if (contender == Contender::kazoo_mutex) return PredecessorRule({{"__lock__", true}});
        if (contender == Contender::kazoo_reader) return PredecessorRule({{"__lock__", true}, {"__rlock__", false}});
        const bool writer = contender == Contender::writer;
        return PredecessorRule({{"__WRIT__", true}, {"__READ__", writer}},
                               writer ? PredecessorRule::Shrinking::no : PredecessorRule::Shrinking::yes);
    }

    // ---- what the others do ----
    std::string other_enters(std::string prefix = "_c_00000000-0000-4000-8000-000000000001-lock-") {
        exists = others_came = true;
        const auto name = prefix + format_sequence(take_sequence());
        children[name] = {owner_of_others, pzxid = ++zxid};
        directory_changes();
        return name;
    }
    /// A peer that holds the lock alone takes a share under its own number, and gives up the rest.
    std::string other_downgrades(const std::string& writer) {
        auto share = writer;
        share.replace(share.find("__WRIT__"), 8, "__READ__");
        children[share] = {kOther, pzxid = ++zxid};
        remove(writer);
        return share;
    }
    void remove(const std::string& name) {
        if (children.erase(name) == 0) return;
        ++zxid;
        if (!keeper) pzxid = zxid;
        if (watched == name) {
            const Ticket ticket = watch_ticket;
            watched.clear();
            if (is_connected)
                fsm.on_watch_fired(ticket, WatchEventType::deleted);
            else
                missed = ticket;
        }
        if (const auto t = fires(second, name)) fsm.on_second_fired(*t, WatchEventType::deleted);
        if (const auto t = fires(own, name)) fsm.on_own_fired(*t, WatchEventType::deleted);
        directory_changes();
    }
    void directory_changes() {
        if (const auto t = fires(directory, "")) fsm.on_directory_fired(*t);
    }
    void watch_fires(WatchEventType type) {
        watched.clear();
        fsm.on_watch_fired(watch_ticket, type);
    }
    std::vector<std::string> mine() const {
        std::vector<std::string> result;
        for (const auto& [name, node] : children) {
            if (node.owner != kOther) result.push_back(name);
        }
        return result;
    }

    void delete_nodes_of(std::int64_t owner) override {
        for (const auto& name : mine()) {
            if (children[name].owner == owner) remove(name);
        }
    }
    void flush_reaper() override {
        for (const auto& name : reaped_nodes) {
            const auto it = children.find(name);
            if (it != children.end() && it->second.owner != kOther) remove(name);
        }
        for (const auto& identity : reaped_identities) {
            for (const auto& name : mine()) {
                if (name.starts_with(identity)) remove(name);
            }
        }
    }

    // ---- AcquirePort ----
    std::int32_t take_sequence() {  // wraps, as the servers' counter does
        return std::exchange(next_sequence, static_cast<std::int32_t>(static_cast<std::uint32_t>(next_sequence) + 1));
    }
    bool met_queue() const override { return met; }
    void remember_queue(bool m) override { met = m; }
    void create(Ticket t, const std::string& prefix, ReadBehind read) override {
        ++writes;
        trace.push_back("create");
        send([this, t, prefix](bool run, Rc rc) {
            NodeStat stat;
            std::string path;
            if (run) {
                if (!exists) {
                    if (rc == Rc::ok) rc = Rc::no_node;
                } else {
                    const auto name = prefix + format_sequence(take_sequence());
                    path = "/l/" + name;
                    stat.ephemeral_owner = session;
                    stat.czxid = pzxid = ++zxid;
                    children[name] = {session, zxid};
                    ++created;
                }
            }
            if (create_answer && rc == Rc::ok) rc = *create_answer;
            fsm.on_created(t, rc, rc == Rc::ok ? path : "", stat, now());
        });
        if (read == ReadBehind::names) return list(t);
        trace.push_back("exists");
        send_read([this, t](bool, Rc rc) {
            NodeStat stat;
            stat.num_children = static_cast<std::int32_t>(children.size());
            stat.pzxid = pzxid;
            if (rc == Rc::ok && !exists) rc = Rc::no_node;
            fsm.on_parent(t, rc, stat);
        });
    }
    void make_directory(Ticket t) override {
        trace.push_back("mkdir");
        send([this, t](bool run, Rc rc) {
            if (run) exists = true;
            if (reap_directory > 0 && run) {
                --reap_directory;
                exists = false;
            }
            fsm.on_directory(t, rc);
        });
    }
    void list(Ticket t) override {
        trace.push_back("list");
        send_list([this, t](bool, Rc rc) {
            std::vector<std::string> names;
            for (const auto& [name, node] : children) names.push_back(name);
            if (rc == Rc::ok && list_answer) rc = *list_answer;
            if (rc == Rc::ok && !exists) rc = Rc::no_node;
            fsm.on_children(t, rc, names);
        });
    }
    void sync(Ticket t) override {
        trace.push_back("sync");
        send([this, t](bool, Rc rc) { fsm.on_synced(t, rc); });
    }
    void look_at(Ticket t, const std::string& name) override {
        trace.push_back("look");
        send([this, t, name](bool, Rc rc) {
            NodeStat stat;
            const auto it = children.find(name);
            if (rc == Rc::ok && it == children.end()) rc = Rc::no_node;
            if (rc == Rc::ok) {
                stat.ephemeral_owner = it->second.owner;
                stat.czxid = it->second.czxid;
            }
            fsm.on_own(t, rc, stat);
        });
    }
    void watch(Ticket t, const std::string& name) override {
        trace.push_back("watch");
        watches_asked.push_back(name);
        send([this, t, name](bool, Rc rc) {
            if (rc == Rc::ok && before_watch) std::exchange(before_watch, nullptr)();
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (rc == Rc::ok) {
                watched = name;
                watch_ticket = t;
            }
            fsm.on_watching(t, rc, rc == Rc::ok ? children.at(name).owner : 0);
        });
    }
    void unwatch() override { forget_watches(); }
    void watch_second(Ticket t, const std::string& name) override {
        trace.push_back("second");
        send([this, t, name](bool, Rc rc) {
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (rc == Rc::ok) second = {name, t};
            fsm.on_second(t, rc);
        });
    }
    bool look_ahead(Ticket t) override {
        if (!watch_room) return false;
        trace.push_back("ahead");
        send([this, t](bool, Rc rc) {
            std::vector<std::string> names;
            for (const auto& [name, node] : children) names.push_back(name);
            if (rc == Rc::ok && !exists) rc = Rc::no_node;
            if (rc == Rc::ok) directory = {"", t};
            fsm.on_looked_ahead(t, rc, names);
        });
        return true;
    }
    void watch_own(Ticket t, const std::string& name) override {
        trace.push_back("own");
        send([this, t, name](bool, Rc rc) {
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (rc == Rc::ok) own = {name, t};
            NodeStat stat;
            if (rc == Rc::ok) stat.czxid = children.at(name).czxid;
            fsm.on_own_watched(t, rc, stat);
        });
    }
    void is_next(const std::string& name) override { next = name; }
    void granted_on_event() override { ++granted_on_events; }
    void renew_lease(Ticket t, const std::string& name) override {
        trace.push_back("renew");
        send([this, t, name](bool run, Rc rc) {
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (run && rc == Rc::ok) lease_fresh = true;
            fsm.on_lease_renewed(t, rc);
        });
    }
    bool reserve_node(const std::string&) override { return room; }
    bool may_watch(const std::string&) override { return watch_room; }
    void lease_committed(Instant) override { lease_fresh = !slow_lease; }
    bool lease_is_fresh() const override { return lease_fresh; }
    bool begin_hold(const std::string& name, std::int64_t czxid) override {
        if (!lease_fresh) return false;
        holds.push_back({name, czxid});
        // The judge: the true state of the directory, not what the client was told.
        const std::string pattern[] = {"lock-", "__WRIT__", "__READ__", "__lock__", "__rlock__"};
        const auto me = parse_queue_name(name, pattern);
        double_grant = !children.contains(name);
        for (const auto& [other, node] : children) {
            const auto parsed = parse_queue_name(other, pattern);
            const auto shares = [](std::size_t p) { return p == 2 || p == 4; };
            const bool both_share = parsed && shares(parsed->pattern) && shares(me->pattern);
            if (parsed && other != name && !both_share && parsed->before(*me)) double_grant = true;
        }
        return true;
    }
    void delete_node(const std::string& name) override { reaped_nodes.push_back(name); }
    void delete_by_identity(const std::string& identity) override { reaped_identities.push_back(identity); }
    void note(const char*) override { ++notes; }
    void running_out() override { ++warnings; }
    void answer(Ended how, Errc error, std::string detail) override {
        ++answers;
        ended = how;
        errc = error;
        text = std::move(detail);
    }

    // ---- state, open to the tests ----
    QueueSpec spec;
    PredecessorRule rule;
    const std::unique_ptr<AcquireFsm> owned;
    AcquireFsm& fsm;

    bool exists = true;
    std::map<std::string, Node> children;
    std::int32_t next_sequence = 0;
    std::int64_t pzxid = 100;
    std::vector<std::string> reaped_nodes;
    std::vector<std::pair<std::string, std::int64_t>> holds;
    std::string watched;
    bool double_grant = false;
    int granted_on_events = 0;
    std::string next;  // whose lease heartbeats keep fresh
    std::int64_t owner_of_others = kOther;
    bool met = false;  // a queue, last time

protected:
    OperationFsm& machine() override { return fsm; }
    void fire_missed_watches() override {
        if (const auto ticket = std::exchange(missed, std::nullopt)) {
            fsm.on_watch_fired(*ticket, WatchEventType::deleted);
        }
    }
    void forget_watches() override {
        next.clear();
        watched.clear();
        missed.reset();
        second = directory = own = {};
    }

private:
    struct Watch {
        std::string name;
        Ticket ticket = 0;  // 0: none
    };
    /// What is missed in an outage is not told any more: nobody relies on these after one.
    std::optional<Ticket> fires(Watch& watch, const std::string& name) {
        if (watch.ticket == 0 || watch.name != name) return std::nullopt;
        const Ticket ticket = std::exchange(watch, {}).ticket;
        return is_connected ? std::optional(ticket) : std::nullopt;
    }

    Watch second, directory, own;
    Ticket watch_ticket = 0;
    std::optional<Ticket> missed;
};

/// It has ended once; nothing is left but what is held.
inline void expect_clean(const AcquireWorld& w) {
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_TRUE(w.fsm.is_finished());
    EXPECT_EQ(w.watched, "");
    EXPECT_FALSE(w.timer);
    EXPECT_FALSE(w.double_grant);
    if (w.answers == 1 && w.ended == Ended::granted) {
        EXPECT_EQ(w.holds.size(), 1u);
        EXPECT_THAT(w.mine(), ::testing::ElementsAre(w.fsm.node()));
    } else {
        EXPECT_THAT(w.mine(), ::testing::IsEmpty());
        EXPECT_THAT(w.holds, ::testing::IsEmpty());
    }
}

}  // namespace zkrecipes::internal
