#include "core/node/node_watch_fsm.hpp"

#include <utility>

namespace zkrecipes::internal {

void NodeWatchFsm::read() {
    if (!port_.watch(next_ticket())) no_room();
}

void NodeWatchFsm::on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    settled();
    SeenNode seen;
    if (rc == Rc::ok) seen = {true, data, stat};
    if (told_ && told_->same_as(seen)) return;
    told_ = std::move(seen);
    port_.tell(*told_);
}

void NodeWatchFsm::on_fired(Ticket ticket) {
    if (current(ticket, Step::watching)) look();
}

}  // namespace zkrecipes::internal
