#include "core/node/persistent_node_fsm.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {
namespace {

constexpr int kParentsInARow = 8;  // another client deletes them as fast as they are made
constexpr std::size_t kFormerSessions = 16;

}  // namespace

// ---- begin, end, connection ---------------------------------------------------------------------------------------

void PersistentNodeFsm::start() { go(); }

void PersistentNodeFsm::go() {
    port_.stop_timer();
    port_.unwatch();
    if (!port_.connected()) {
        step_ = Step::away;
        return;
    }
    known_ == Known::there ? look() : create();
}

void PersistentNodeFsm::set_data(std::string data) {
    if (over()) return;
    wanted_ = std::move(data);
    ++wish_;
    dirty_ = true;
    port_.changed();
    write();
}

void PersistentNodeFsm::close() {
    if (over()) return;
    const bool open = step_ == Step::creating;
    port_.stop_timer();
    port_.unwatch();
    ++set_ticket_;
    step_ = Step::leaving;
    tell(State::closed);
    if (open) return;  // only the answer tells whether there is a node to delete
    if (known_ != Known::none) port_.give_back();
    finish();
}

void PersistentNodeFsm::finish() {
    known_ = Known::none;
    step_ = Step::finished;
    port_.finished();
}

void PersistentNodeFsm::on_connected(bool same_session) {
    if (over()) return;
    if (same_session && step_ == Step::watching) {
        // The client has set the watch again, but its event comes later. Look before anything is written: while we were
        // disconnected another session may have made its node in place of ours, with the same version.
        if (known_ == Known::there && dirty_) look();
        return;
    }
    if (step_ == Step::creating) known_ = Known::perhaps;
    if (!same_session) known_ = Known::none;
    setting_ = false;
    ++set_ticket_;
    go();
}

void PersistentNodeFsm::on_session_lost() {
    if (step_ == Step::leaving) return finish();  // it ends with the session
    if (step_ == Step::finished) return;
    port_.stop_timer();
    port_.unwatch();
    known_ = Known::none;
    step_ = Step::away;
    if (session_ != 0) former_.push_back(std::exchange(session_, 0));
    if (former_.size() > kFormerSessions) former_.erase(former_.begin());
    tell(State::missing);
}

void PersistentNodeFsm::on_session_closed() {
    if (step_ == Step::finished) return;
    port_.stop_timer();
    port_.unwatch();
    tell(State::closed);
    finish();
}

void PersistentNodeFsm::on_timer() {
    if (step_ == Step::pausing) go();
}

// ---- create ----------------------------------------------------------------------------------------------------

void PersistentNodeFsm::create() {
    if (!port_.reserve()) {
        return refuse(Errc::budget_exceeded,
                      "this session owns as many ephemeral nodes as ZooKeeper survives; use another Session for more");
    }
    session_ = port_.session_id();
    step_ = Step::creating;
    dirty_ = true;
    sent_ = wish_;
    read_first_ = false;
    const Ticket ticket = next_ticket();
    port_.create(ticket, wanted_);
    if (!port_.watch(ticket)) read_first_ = true;  // the look that follows reports the reason
}

void PersistentNodeFsm::on_created(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (ticket != ticket_) return;  // of a former session or connection
    const Meaning what = meaning(rc);
    if (step_ == Step::leaving) {
        if (what == Meaning::done) known_ = Known::there;
        if (what == Meaning::unknown) known_ = Known::perhaps;
        if (known_ != Known::none && what != Meaning::session_over) port_.give_back();
        return finish();
    }
    if (step_ != Step::creating) return;
    if (what == Meaning::done && stat.ephemeral_owner == session_) {
        known_ = Known::there;
        parents_made_ = 0;
        dirty_ = sent_ != wish_;
    } else if (rc == Rc::no_node) {
        known_ = Known::none;
        if (!create_parents_) {
            return refuse(Errc::no_parent, "the parent does not exist, and the options forbid to make it");
        }
        if (++parents_made_ > kParentsInARow) {
            parents_made_ = 0;
            return refuse(Errc::no_parent, "the parent vanishes each time it has been made");
        }
        port_.unwatch();
        step_ = Step::making_parent;
        return port_.make_parent(next_ticket());
    } else if (rc == Rc::node_exists) {
        parents_made_ = 0;  // and so does the parent
    } else if (what != Meaning::done) {
        if (what == Meaning::unknown) known_ = Known::perhaps;
        return trouble(rc, "create");
    }
    if (read_first_) return look();
    step_ = Step::looking;  // its answer is on the way
}

void PersistentNodeFsm::on_parent(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::making_parent)) return;
    // no_node: an ancestor was reaped in between; the create will answer that again, and is counted.
    if (rc == Rc::ok || rc == Rc::node_exists || rc == Rc::no_node) return create();
    trouble(rc, "making the parent");
}

// ---- watch ----------------------------------------------------------------------------------------------------

void PersistentNodeFsm::look() {
    port_.unwatch();
    step_ = Step::looking;
    if (!port_.watch(next_ticket())) {
        refuse(Errc::budget_exceeded,
               "this session watches as many nodes as ZooKeeper survives; use another Session for more");
    }
}

void PersistentNodeFsm::on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (current(ticket, Step::creating)) {
        read_first_ = true;  // a read that another caller sent before: older than the create
        return;
    }
    if (!current(ticket, Step::looking)) return;
    if (rc == Rc::no_node) {
        known_ = Known::none;
        tell(State::missing);
        return create();
    }
    if (rc != Rc::ok) return trouble(rc, "get");
    const bool ours = stat.ephemeral_owner == port_.session_id();
    ours ? found_ours(data, stat) : found_others(stat);
}

void PersistentNodeFsm::found_ours(const std::string& data, const NodeStat& stat) {
    known_ = Known::there;
    step_ = Step::watching;
    version_ = stat.version;
    if (data == wanted_) dirty_ = false;
    if (!dirty_) settled_again();
    if (state_ != State::refused) tell(State::present);
    write();
}

void PersistentNodeFsm::settled_again() {
    succeeded();
    tell(State::present);
}

void PersistentNodeFsm::found_others(const NodeStat& stat) {
    known_ = Known::none;
    if (std::ranges::find(former_, stat.ephemeral_owner) != former_.end()) {
        port_.note("the node of a former session of ours is still there: deleting it");
        step_ = Step::removing_former;
        return port_.remove(next_ticket(), stat.version);
    }
    if (state_ != State::taken) {
        port_.note(stat.ephemeral_owner == 0 ? "a persistent node has this name: waiting until somebody deletes it"
                                             : "a node of another session has this name: waiting until it is gone");
    }
    step_ = Step::watching;
    tell(State::taken);
}

void PersistentNodeFsm::on_removed(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::removing_former)) return;
    if (meaning(rc) == Meaning::done || meaning(rc) == Meaning::refused) return go();
    trouble(rc, "delete");
}

void PersistentNodeFsm::on_fired(Ticket ticket, WatchEventType type) {
    if (!current(ticket, Step::watching)) return;
    if (type != WatchEventType::deleted) return look();
    known_ = Known::none;
    tell(State::missing);
    go();
}

// ---- data -------------------------------------------------------------------------------------------------

void PersistentNodeFsm::write() {
    if (step_ != Step::watching || known_ != Known::there || !dirty_ || setting_ || !port_.connected()) return;
    setting_ = true;
    sent_ = wish_;
    sent_version_ = version_;
    // With the version: another session may own the path by the time the request is executed.
    port_.set(++set_ticket_, wanted_, version_);
}

void PersistentNodeFsm::on_set(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (ticket != set_ticket_ || over()) return;
    setting_ = false;
    if (rc == Rc::ok && stat.ephemeral_owner != port_.session_id()) {
        // It has written the node that another session made in place of ours. Our watch may not have fired yet.
        if (step_ == Step::watching) look();
        return;
    }
    if (rc == Rc::ok) {
        version_ = stat.version;
        dirty_ = sent_ != wish_;
        if (known_ == Known::there) settled_again();
        return write();
    }
    if (step_ != Step::watching) return;  // the read on its way goes on
    if (!port_.connected()) return;       // on_connected() does
    if (rc == Rc::bad_version && version_ != sent_version_) return write();
    if (rc == Rc::bad_version || rc == Rc::no_node) return look();
    trouble(rc, "set");
}

// ---- errors ------------------------------------------------------------------------------------------------------

void PersistentNodeFsm::trouble(Rc rc, const char* what) {
    switch (meaning_or_failed(rc)) {
        case Meaning::not_done:
        case Meaning::unknown:
        case Meaning::session_over: return pause();
        case Meaning::done:
        case Meaning::refused:
        case Meaning::failed: break;
    }
    refuse(error_of(rc), answer_in_words(what, rc));
}

void PersistentNodeFsm::refuse(Errc error, const std::string& why) {
    refusal_ = error;
    port_.refused(why, failed());
    pause();
    tell(State::refused);
}

void PersistentNodeFsm::pause() {
    // Also if the connection broke: on_connected() does not wait for the timer.
    step_ = Step::pausing;
    port_.start_timer(next_pause(port_));
}

void PersistentNodeFsm::tell(State state) {
    if (state_ == State::closed) return;
    state_ = state;
    port_.changed();
}

}  // namespace zkrecipes::internal
