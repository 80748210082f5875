#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <zkrecipes/barrier.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/persistent_node.hpp>

#include "sim/history.hpp"
#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// Nodes of fixed names, groups, barriers and double barriers.
class NodesWorkload final : public Workload {
public:
    NodesWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    enum class Kind { name, group, barrier, double_barrier };
    struct Place {
        Kind kind = Kind::name;
        std::string path;
        int members = 2;  // of a double barrier
    };
    /// One node that is to be there: a PersistentNode or a GroupMember.
    struct Stand {
        ClientProcess* process = nullptr;
        std::string path;
        std::string text;  // what was set last
        std::unique_ptr<PersistentNode> node;
        std::unique_ptr<GroupMember> member;
        bool closed = false;  // we have said so
        SessionId gone = 0;   // the session in which that was confirmed
        PersistentNodeState told = PersistentNodeState::missing;
        Subscription listener;
    };
    /// What an observer of a group was told last.
    struct Told {
        ClientProcess* process = nullptr;
        std::string path;
        GroupMembers last;
        bool any = false;
        std::map<std::string, std::size_t> positions;  // in the history of each member
    };
    /// What one worker has for one place.
    struct Objects {
        Stand* stand = nullptr;
        std::unique_ptr<Group> group;
        std::unique_ptr<Barrier> barrier;
        std::unique_ptr<DoubleBarrier> together;
    };

    static std::vector<Place> places_of(const Plan& plan);
    static std::vector<std::string> directories_of(const Plan& plan);
    void begin_to_record();
    void one_round(Worker& worker) override;
    void stop_watching() override;
    void drop_locks() noexcept override;
    void committed(const Txn& txn);

    // ---- names and groups
    void use_stand(Worker& worker, const Place& place, Objects& own);
    void make_stand(Worker& worker, const Place& place, Objects& own);
    void wait_for(Worker& worker, Stand& stand);
    void say_something_else(Worker& worker, Stand& stand);
    void close(Worker& worker, Stand& stand);
    std::string new_text(Stand& stand, const std::string& who);
    void check_change(const std::string& path);
    void told_state(Stand& stand, PersistentNodeState state);
    void observe(ClientProcess& process, const Place& place, Group& group);
    void told_members(Told& by, const GroupMembers& members);
    void ask_for_members(Worker& worker, const Place& place, Group& group);
    GroupMembers members_now(const std::string& path) const;
    bool is_right(const std::string& path) const;
    std::string what_is_wrong() const;
    void expect_all_right(const std::string& when);

    // ---- barriers
    void use_barrier(Worker& worker, const Place& place, Barrier& barrier);
    void set_or_remove(Worker& worker, const Place& place, Barrier& barrier, bool closes);
    void wait_at(Worker& worker, const Place& place, Barrier& barrier);
    void check_passed(const Worker& worker, const Place& place, SimTime since, std::size_t known);
    void let_everybody_through(ClientProcess& process, const Place& place);
    void use_together(Worker& worker, const Place& place, Objects& own);
    bool enter(Worker& worker, const Place& place, DoubleBarrier& barrier, const Limits& limits);
    bool leave(Worker& worker, const Place& place, DoubleBarrier& barrier, const Limits& limits);
    static bool was_thrown_out(const Error& error);
    void check_entered(const Worker& worker, const Place& place, SimTime since);
    void check_left(const Worker& worker, const Place& place, SimTime since);
    void a_last_round(const Place& place);
    bool servers_lag() const;
    /// Position in the history of what was there at that time.
    std::size_t position_at(const std::string& path, SimTime at) const;

    const std::vector<Place> places_;
    History history_;
    std::vector<std::vector<Objects>> own_;  // by worker and place
    std::list<Stand> stands_;
    std::map<std::string, Stand*> texts_;  // who has ever said that
    std::set<std::string> written_over_;   // by a request that was on its way when the node became another's
    std::list<Told> told_;
    std::vector<Subscription> observers_;
    struct Room {  // how many were inside, from that time on
        SimTime at = 0;
        int inside = 0;
    };
    std::map<std::string, std::vector<Room>> rooms_;  // by double barrier
    struct Known {
        std::int64_t session = 0;
        std::size_t position = 0;
    };
    std::map<std::pair<int, std::string>, Known> known_;  // what a process knows of a barrier by its own set or remove
};

}  // namespace zkrecipes::sim
