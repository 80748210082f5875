#include "core/node/leader_watch_fsm.hpp"

#include <utility>

#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"

namespace zkrecipes::internal {

void LeaderWatchFsm::on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    const auto queue = sorted_queue(names, lock_patterns());
    if (rc == Rc::ok && !queue.empty()) {
        candidate_ = queue.front().name;
        if (!port_.watch_leader(next_ticket(), candidate_)) no_room();
        return;
    }
    listed_at_ = rc == Rc::ok ? stat.pzxid : 0;
    if (!port_.watch_directory(next_ticket())) no_room();
}

void LeaderWatchFsm::on_leader(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc == Rc::no_node) return look();                      // resigned before it was watched
    if (rc == Rc::no_auth) tell({candidate_, {}, {}, false});  // it leads all the same
    if (rc != Rc::ok) return trouble(rc);
    settled();
    tell({candidate_, data, stat});
}

void LeaderWatchFsm::on_directory(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    // Changed between the list and the watch: a candidate may have come.
    if (listed_at_ != (rc == Rc::ok ? stat.pzxid : 0)) return look();
    settled();
    tell({});
}

void LeaderWatchFsm::on_fired(Ticket ticket) {
    if (current(ticket, Step::watching)) look();
}

void LeaderWatchFsm::tell(SeenLeader leader) {
    const bool known = told_ && told_->node == leader.node && told_->stat.czxid == leader.stat.czxid;
    if (known) return;
    told_ = std::move(leader);
    port_.tell(*told_);
}

}  // namespace zkrecipes::internal
