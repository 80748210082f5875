#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/acquire/semaphore_fsm.hpp"
#include "unit/core/acquire/acquire_world.hpp"

namespace zkrecipes::internal {

/// AcquireWorld with a second directory, that of the leases.
class SemaphoreWorld : public AcquireWorld, private LeasePort {
public:
    SemaphoreWorld(Patience patience, std::int32_t limit, std::int32_t wanted_leases)
        : AcquireWorld(Contender::mutex,
                       [&](AcquirePort& port) {
                           return std::make_unique<SemaphoreFsm>(port, static_cast<LeasePort&>(*this), spec, patience,
                                                                 terms, wanted_leases);
                       }),
          semaphore(static_cast<SemaphoreFsm&>(fsm)),
          wanted(wanted_leases) {
        terms.limit = limit;
        data = write_limit(limit);
    }

    // ---- what the others do ----
    std::string other_holds() {
        const auto name =
            "_c_00000000-0000-4000-8000-" + std::to_string(100'000'000'000 + ++others) + "-lease-0000000000";
        add_lease(name, kOther);
        return name;
    }
    void other_takes(const std::string& place) {
        other_holds();
        remove(place);
    }
    void remove_lease(const std::string& name) {
        if (leases.erase(name) != 0) children_changed();
    }
    void change(std::int32_t limit) {
        data = write_limit(limit);
        ++version;
        guard = 0;
        children_changed();
    }
    /// The servers remove the directory while it is empty, and somebody makes it anew. Its data have the same version.
    void make_anew(std::int32_t limit) {
        others_came = true;  // what is left of the own leases may be in the way
        leases.clear();
        data = write_limit(limit);
        directory = ++zxid;
        guard = 0;
        children_changed();
    }
    std::vector<std::string> my_leases() const {
        std::vector<std::string> result;
        for (const auto& [name, node] : leases) {
            if (node.owner != kOther) result.push_back(name);
        }
        return result;
    }

    // ---- AcquireWorld ----
    void fire_missed_watches() override {
        AcquireWorld::fire_missed_watches();
        if (const auto ticket = std::exchange(missed_leases, std::nullopt)) semaphore.on_leases_changed(*ticket);
    }
    void delete_nodes_of(std::int64_t owner) override {
        AcquireWorld::delete_nodes_of(owner);
        for (const auto& name : my_leases()) {
            if (leases[name].owner == owner) remove_lease(name);
        }
    }
    void flush_reaper() override {
        AcquireWorld::flush_reaper();
        for (const auto& name : my_leases()) {
            for (const auto& reaped : reaped_leases) {
                if (name == reaped) remove_lease(name);
            }
            for (const auto& identity : reaped_lease_identities) {
                if (name.starts_with(identity)) remove_lease(name);
            }
        }
    }

    // ---- state, open to the tests ----
    SemaphoreTerms terms;
    SemaphoreFsm& semaphore;
    const std::int32_t wanted;
    bool leases_exist = true;
    std::map<std::string, Node> leases;
    std::string data;
    std::int32_t version = 1;
    std::int64_t directory = 50;  // czxid
    bool too_many = false;        // of those that somebody held; or held in another directory than was read
    bool watching = false;
    bool guard_room = true;
    std::int64_t guard = 0;
    std::optional<Rc> data_answer;           // to setting the data of a lease
    std::optional<std::int64_t> owner_told;  // once, instead of the true one
    int looks = 0;
    int left = 0;  // how often the place in the queue was exchanged for leases
    std::function<void()> before_take, before_lease_read;
    std::vector<std::string> reaped_leases, reaped_lease_identities;
    std::vector<std::string> held;

private:
    void add_lease(const std::string& name, std::int64_t owner) {
        leases_exist = true;
        others_came = others_came || owner == kOther;
        leases[name] = {owner, ++zxid};
        std::int32_t limit = terms.limit;
        if (const auto written = read_limit(data)) limit = *written;
        // Lowering the number takes nothing away from anybody: only who comes later must find room.
        if (owner != kOther && std::ssize(leases) > limit) not_to_hold.insert(zxid);
        children_changed();
    }
    void children_changed() {
        if (!watching) return;
        watching = false;
        is_connected ? semaphore.on_leases_changed(watch) : void(missed_leases = watch);
    }
    NodeStat directory_stat() const {
        NodeStat stat;
        stat.czxid = directory;
        stat.version = version;
        stat.num_children = static_cast<std::int32_t>(leases.size());
        return stat;
    }

    // ---- LeasePort ----
    void look(Ticket t) override {
        ++looks;
        trace.push_back("look");
        send([this, t](bool, Rc rc) {
            if (rc == Rc::ok && !leases_exist) rc = Rc::no_node;
            semaphore.on_look(t, rc, rc == Rc::ok ? data : "", directory_stat());
        });
    }
    void make_leases(Ticket t) override {
        trace.push_back("mkleases");
        send([this, t](bool run, Rc rc) {
            if (run && !leases_exist) {
                leases_exist = true;
                data.clear();
                version = 0;
                directory = ++zxid;
                guard = 0;
            }
            semaphore.on_leases_made(t, rc);
        });
    }
    void watch_leases(Ticket t) override {
        trace.push_back("watchleases");
        send([this, t](bool, Rc rc) {
            if (rc == Rc::ok && !leases_exist) rc = Rc::no_node;
            if (rc == Rc::ok) {
                watching = true;
                watch = t;
            }
            semaphore.on_leases_watched(t, rc, directory_stat());
        });
    }
    void unwatch_leases() override {
        watching = false;
        missed_leases.reset();
    }
    void guard_leases(std::int64_t) override {
        if (guard_room && leases_exist && is_connected) guard = directory;
    }
    std::int64_t guarded_leases() const override { return guard; }
    void take(Ticket t, const LeaseRequest& taking) override {
        trace.push_back("take");
        ++writes;
        send([this, t, taking](bool run, Rc rc) {
            TakingStep refused = TakingStep::terms;
            if (run) {
                const auto read = directory;
                if (before_take) std::exchange(before_take, nullptr)();
                if (directory != read) not_to_hold.insert(zxid + 1);
                Rc why = Rc::ok;
                if (!leases_exist) {
                    why = Rc::no_node;
                } else if (taking.version != -1 && version != taking.version) {
                    why = Rc::bad_version;
                } else if (!children.contains(taking.place)) {
                    why = Rc::no_node;
                    refused = TakingStep::place;
                } else if (taking.told && data_answer) {
                    why = *data_answer;
                    refused = TakingStep::data;
                }
                if (why == Rc::ok) {
                    if (!taking.terms.empty()) {
                        data = taking.terms;
                        ++version;
                        guard = 0;
                    }
                    const auto czxid = zxid + 1;
                    for (const auto& name : taking.leases) {
                        zxid = czxid - 1;
                        add_lease(name, session);
                    }
                    remove(taking.place);
                } else if (rc == Rc::ok) {
                    rc = why;
                }
            }
            NodeStat first;
            if (taking.told && rc == Rc::ok) {
                first = stat_of(taking.leases.front());
                first.ephemeral_owner = std::exchange(owner_told, std::nullopt).value_or(first.ephemeral_owner);
            }
            semaphore.on_taken(t, rc, refused, first, now());
        });
        if (!taking.told) find_lease(t, taking.leases.front());
    }
    NodeStat stat_of(const std::string& lease) const {
        NodeStat stat;
        stat.ephemeral_owner = leases.at(lease).owner;
        stat.czxid = leases.at(lease).czxid;
        return stat;
    }
    void sync_leases(Ticket t) override {
        trace.push_back("syncleases");
        send([this, t](bool, Rc rc) { semaphore.on_leases_synced(t, rc); });
    }
    void find_lease(Ticket t, const std::string& name) override {
        trace.push_back("exists");
        send([this, t, name](bool, Rc rc) {
            if (rc == Rc::ok && !leases.empty() && before_lease_read && leases.contains(name)) {
                std::exchange(before_lease_read, nullptr)();
            }
            if (rc == Rc::ok && !leases.contains(name)) rc = Rc::no_node;
            semaphore.on_lease(t, rc, rc == Rc::ok ? stat_of(name) : NodeStat{});
        });
    }
    void renew_leases(Ticket t, const std::vector<std::string>& names) override {
        trace.push_back("renew");
        send([this, t, names](bool run, Rc rc) {
            for (const auto& name : names) {
                if (rc == Rc::ok && !leases.contains(name)) rc = Rc::no_node;
            }
            if (run && rc == Rc::ok) lease_fresh = true;
            semaphore.on_leases_renewed(t, rc);
        });
    }
    bool reserve_leases(const std::vector<std::string>&) override { return room; }
    bool may_watch_leases() override { return watch_room; }
    void left_queue() override { ++left; }
    bool begin_lease_hold(const std::vector<std::string>& names, std::int64_t czxid) override {
        if (!lease_fresh) return false;
        holds.push_back({names.front(), czxid});
        held = names;
        // The judge: the true state, not what the client was told.
        for (const auto& name : names) {
            const auto it = leases.find(name);
            if (it == leases.end() || it->second.czxid != czxid) double_grant = true;
            if (not_to_hold.contains(czxid)) too_many = true;
        }
        return true;
    }
    void delete_leases(const std::vector<std::string>& names) override {
        reaped_leases.insert(reaped_leases.end(), names.begin(), names.end());
    }
    void delete_leases_by_identity(const std::string& identity) override {
        reaped_lease_identities.push_back(identity);
    }

    Ticket watch = 0;
    std::optional<Ticket> missed_leases;
    int others = 0;
    std::set<std::int64_t> not_to_hold;  // czxids of leases that must not become a hold
};

}  // namespace zkrecipes::internal
