#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/acquire/multi_acquire_fsm.hpp"
#include "core/queue/node_name.hpp"
#include "unit/core/acquire/queue_world.hpp"

namespace zkrecipes::internal {

/// Several lock directories, and one client that runs MultiAcquireFsm.
class MultiAcquireWorld : public MultiAcquirePort, public QueueWorld {
public:
    struct Directory {
        bool exists = true;
        std::map<std::string, Node> children;
        std::int32_t next_sequence = 0;
        std::int64_t pzxid = 100;
        std::string watched;
        Ticket watch_ticket = 0;
        std::optional<Ticket> missed;
    };

    /// One member for each base.
    explicit MultiAcquireWorld(std::vector<std::string> bases = {"lock-", "lock-", "lock-"},
                               Patience patience = Patience::wait)
        : spec(spec_of(bases)), dirs(bases.size()), fsm(*this, spec, patience) {}

    // ---- what the others do ----
    std::string other_enters(std::size_t member, char who = 'a', const std::string& base = "lock-") {
        others_came = true;
        return enter(member, std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-" + base, kOther, ++zxid);
    }
    /// Another set: all of it at once.
    void others_enter(const std::vector<std::size_t>& members, char who = 'a', const std::string& base = "lock-") {
        ++zxid;
        others_came = true;
        for (const auto member : members) {
            enter(member, std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-" + base, kOther, zxid);
        }
    }
    /// All nodes of `who`, by one transaction.
    void others_leave(char who) {
        ++zxid;
        const std::string prefix = std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-";
        for (std::size_t i = 0; i < dirs.size(); ++i) {
            const auto names = names_in(i);
            for (const auto& name : names) {
                if (name.starts_with(prefix)) erase(i, name);
            }
        }
    }
    void remove(std::size_t member, const std::string& name) {
        ++zxid;
        erase(member, name);
    }
    std::vector<std::string> names_in(std::size_t member) const {
        std::vector<std::string> names;
        for (const auto& [name, node] : dirs[member].children) names.push_back(name);
        return names;
    }
    /// Our nodes: member and name.
    std::vector<std::pair<std::size_t, std::string>> mine() const {
        std::vector<std::pair<std::size_t, std::string>> result;
        for (std::size_t i = 0; i < dirs.size(); ++i) {
            for (const auto& [name, node] : dirs[i].children) {
                if (node.owner != kOther) result.emplace_back(i, name);
            }
        }
        return result;
    }
    bool any_watch() const {
        return std::any_of(dirs.begin(), dirs.end(), [](const auto& d) { return !d.watched.empty(); });
    }

    void delete_nodes_of(std::int64_t owner) override {
        for (const auto& [member, name] : mine()) {
            if (dirs[member].children[name].owner == owner) remove(member, name);
        }
    }
    void flush_reaper() override { clean_between(); }
    /// The reaper deletes what it was given, on whichever connection: a set that begins again may stand behind it.
    bool clean_between() override {
        bool deleted = false;
        for (const auto& [member, name] : mine()) {
            const bool by_name = std::find(reaped.begin(), reaped.end(), std::pair(member, name)) != reaped.end();
            const bool by_identity =
                std::any_of(reaped_identities.begin(), reaped_identities.end(),
                            [&candidate = name](const auto& identity) { return candidate.starts_with(identity); });
            if (!by_name && !by_identity) continue;
            remove(member, name);
            deleted = true;
        }
        return deleted;
    }

    // ---- MultiAcquirePort ----
    void create(Ticket t, const std::string& identity, bool marked) override {
        trace.push_back(marked ? "multi" : "unmarked");
        ++writes;
        send([this, t, identity, marked](bool run, Rc rc) {
            CreatedSet answer;
            answer.refused = dirs.size();
            for (std::size_t i = 0; i < dirs.size() && rc == Rc::ok; ++i) {
                if (!dirs[i].exists) {
                    rc = Rc::no_node;
                    answer.refused = i;
                }
            }
            if (rc == Rc::ok && create_answer) {
                run = false;
                rc = *create_answer;
                answer.refused = 1;
            }
            const bool forbidden = marked && marker_answer;
            if (rc == Rc::ok && forbidden) {
                rc = *marker_answer;
                answer.marker_refused = true;
            }
            const bool possible = std::all_of(dirs.begin(), dirs.end(), [](const auto& d) { return d.exists; });
            answer.paths.resize(dirs.size());
            if (run && possible && !forbidden) {
                ++zxid;
                ++created;
                for (std::size_t i = 0; i < dirs.size(); ++i) {
                    const auto name = enter(i, identity + spec.members[i].base, session, zxid);
                    if (rc == Rc::ok) answer.paths[i] = "/l" + std::to_string(i) + "/" + name;
                }
                if (marked) ++dirs.front().next_sequence;
                if (marked && rc == Rc::ok) {
                    answer.marker.czxid = answer.marker.mzxid = zxid;
                    answer.marker.ephemeral_owner = std::exchange(owner_shown, std::nullopt).value_or(session);
                }
            }
            fsm.on_created(t, rc, answer, now());
        });
        for (std::size_t i = 0; i < dirs.size(); ++i) {
            trace.push_back("exists");
            send([this, t, i](bool, Rc rc) {
                if (rc == Rc::ok && i == 0 && before_parents) std::exchange(before_parents, nullptr)();
                NodeStat stat;
                stat.num_children = static_cast<std::int32_t>(dirs[i].children.size());
                stat.pzxid = dirs[i].pzxid;
                if (rc == Rc::ok && !dirs[i].exists) rc = Rc::no_node;
                fsm.on_parent(t, i, rc, stat);
            });
        }
    }
    void make_directory(Ticket t, std::size_t m) override {
        trace.push_back("mkdir");
        send([this, t, m](bool run, Rc rc) {
            if (run) dirs[m].exists = true;
            if (reap_directory > 0 && run) {
                --reap_directory;
                dirs[m].exists = false;
            }
            fsm.on_directory(t, m, rc);
        });
    }
    void list(Ticket t, std::size_t m) override {
        trace.push_back("list");
        send([this, t, m](bool, Rc rc) {
            if (rc == Rc::ok && list_answer) rc = *list_answer;
            if (rc == Rc::ok && !dirs[m].exists) rc = Rc::no_node;
            fsm.on_children(t, m, rc, rc == Rc::ok ? names_in(m) : std::vector<std::string>());
        });
    }
    void sync(Ticket t) override {
        trace.push_back("sync");
        send([this, t](bool, Rc rc) { fsm.on_synced(t, rc); });
    }
    void look_at_first(Ticket t, const std::string& name) override {
        trace.push_back("look");
        send([this, t, name](bool, Rc rc) {
            NodeStat stat;
            const auto it = dirs[0].children.find(name);
            if (rc == Rc::ok && it == dirs[0].children.end()) rc = Rc::no_node;
            if (rc == Rc::ok) {
                stat.ephemeral_owner = std::exchange(owner_shown, std::nullopt).value_or(it->second.owner);
                stat.czxid = it->second.czxid;
            }
            fsm.on_own(t, rc, stat);
        });
    }
    void watch(Ticket t, std::size_t m, const std::string& name) override {
        trace.push_back("watch");
        watches_asked.push_back(name);
        send([this, t, m, name](bool, Rc rc) {
            if (rc == Rc::ok && before_watch) std::exchange(before_watch, nullptr)();
            if (rc == Rc::ok && !dirs[m].children.contains(name)) rc = Rc::no_node;
            if (rc == Rc::ok) {
                dirs[m].watched = name;
                dirs[m].watch_ticket = t;
            }
            fsm.on_watching(t, m, rc);
        });
    }
    void unwatch() override { forget_watches(); }
    void renew_lease(Ticket t, const std::vector<std::string>& names) override {
        trace.push_back("check");
        send([this, t, names](bool run, Rc rc) {
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (rc == Rc::ok && !dirs[i].children.contains(names[i])) rc = Rc::no_node;
            }
            if (run && rc == Rc::ok) lease_fresh = true;
            fsm.on_lease_renewed(t, rc);
        });
    }
    bool reserve_nodes(const std::string&) override { return room; }
    bool may_watch(const std::vector<std::string>&) override { return watch_room; }
    void lease_committed(Instant) override { lease_fresh = !slow_lease; }
    bool begin_hold(const std::vector<std::string>& names, std::int64_t czxid) override {
        if (!lease_fresh) return false;
        holds.emplace_back(names, czxid);
        // The judge: the true state of the directories, not what the client was told.
        const std::string pattern[] = {"lock-", "__WRIT__", "__READ__"};
        for (std::size_t i = 0; i < names.size(); ++i) {
            const auto own = dirs[i].children.find(names[i]);
            bad_grant = bad_grant || own == dirs[i].children.end() || own->second.czxid != czxid;
            const auto me = parse_queue_name(names[i], pattern);
            for (const auto& [other, node] : dirs[i].children) {
                const auto parsed = parse_queue_name(other, pattern);
                const bool both_share = parsed && parsed->pattern == 2 && me->pattern == 2;
                if (parsed && other != names[i] && !both_share && parsed->before(*me)) bad_grant = true;
            }
        }
        return true;
    }
    void delete_nodes(const std::vector<std::string>& names) override {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (!names[i].empty()) reaped.emplace_back(i, names[i]);
        }
    }
    void delete_stray(std::size_t m, const std::string& name) override { reaped.emplace_back(m, name); }
    void delete_by_identity(const std::string& identity) override { reaped_identities.push_back(identity); }
    bool may_mark() override { return marks; }
    void never_mark_again() override { marks = false; }
    void note(const char*) override { ++notes; }
    void running_out(std::size_t) override { ++warnings; }
    void answer(Ended how, Errc error, std::string detail, std::optional<std::size_t> member) override {
        ++answers;
        ended = how;
        errc = error;
        text = std::move(detail);
        about = member;
    }

    static MultiQueueSpec spec_of(const std::vector<std::string>& bases) {
        MultiQueueSpec made;
        for (std::size_t i = 0; i < bases.size(); ++i) {
            made.members.push_back({"/l" + std::to_string(i), bases[i],
                                    (bases[i] == "__READ__" ? rule_shared() : rule_exclusive()).get()});
        }
        return made;
    }
    std::string enter(std::size_t member, const std::string& prefix, std::int64_t owner, std::int64_t at) {
        Directory& dir = dirs[member];
        dir.exists = true;
        const auto name = prefix + format_sequence(dir.next_sequence);
        dir.next_sequence = static_cast<std::int32_t>(static_cast<std::uint32_t>(dir.next_sequence) + 1);  // wraps
        dir.children[name] = {owner, at};
        dir.pzxid = at;
        return name;
    }
    void erase(std::size_t member, const std::string& name) {
        Directory& dir = dirs[member];
        if (dir.children.erase(name) == 0) return;
        if (!keeper) dir.pzxid = zxid;
        if (dir.watched != name) return;
        dir.watched.clear();
        if (is_connected) {
            fsm.on_watch_fired(dir.watch_ticket, member, WatchEventType::deleted);
        } else {
            dir.missed = dir.watch_ticket;
        }
    }

    // ---- state, open to the tests ----
    MultiQueueSpec spec;
    std::vector<Directory> dirs;
    MultiAcquireFsm fsm;

    std::optional<std::int64_t> owner_shown;  // once, instead of the true one
    bool marks = true;
    std::optional<Rc> marker_answer;
    std::function<void()> before_parents;
    std::vector<std::pair<std::size_t, std::string>> reaped;
    std::vector<std::pair<std::vector<std::string>, std::int64_t>> holds;
    std::optional<std::size_t> about;
    bool bad_grant = false;

protected:
    OperationFsm& machine() override { return fsm; }
    void fire_missed_watches() override {
        for (std::size_t i = 0; i < dirs.size(); ++i) {
            if (const auto ticket = std::exchange(dirs[i].missed, std::nullopt)) {
                fsm.on_watch_fired(*ticket, i, WatchEventType::deleted);
            }
        }
    }
    void forget_watches() override {
        for (auto& dir : dirs) {
            dir.watched.clear();
            dir.missed.reset();
        }
    }
};

/// The call has ended once. Either it holds all its nodes, or it has left none.
inline void expect_clean(const MultiAcquireWorld& w) {
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_TRUE(w.fsm.is_finished());
    EXPECT_FALSE(w.any_watch());
    EXPECT_FALSE(w.timer);
    EXPECT_FALSE(w.bad_grant);
    if (w.answers == 1 && w.ended == Ended::granted) {
        EXPECT_EQ(w.holds.size(), 1u);
        EXPECT_EQ(w.mine().size(), w.fsm.nodes().size());
    } else {
        EXPECT_THAT(w.mine(), ::testing::IsEmpty());
        EXPECT_THAT(w.holds, ::testing::IsEmpty());
    }
}

}  // namespace zkrecipes::internal
