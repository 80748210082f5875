#include "core/node/group_watch_fsm.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/operation/watch_budget.hpp"

namespace zkrecipes::internal {
namespace {

bool same(const SeenGroup& a, const SeenGroup& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
        return x.first == y.first && x.second.czxid == y.second.czxid && x.second.mzxid == y.second.mzxid;
    });
}

}  // namespace

void GroupWatchFsm::begin() {
    ++ticket_;
    port_.stop_timer();
    port_.unwatch_all();
    pausing_ = false;
    listed_ = Known::no;
    members_.clear();
    to_read_.clear();
    reading_ = 0;
    go_on();
}

void GroupWatchFsm::on_connected(bool same_session) {
    if (!same_session) {
        if (told_) synced_ = Known::no;
        return begin();
    }
    // The client has set the watches again, and a missed event comes by itself.
    port_.stop_timer();
    pausing_ = false;
    go_on();
}

void GroupWatchFsm::on_timer() {
    pausing_ = false;
    go_on();
}

/// Asks for everything that is unknown and was not asked for yet.
void GroupWatchFsm::go_on() {
    if (!port_.connected() || pausing_) return;
    if (synced_ != Known::yes) {
        if (synced_ == Known::asking) return;
        synced_ = Known::asking;
        return port_.sync(ticket_);
    }
    if (listed_ == Known::no) {
        listed_ = Known::asking;
        if (!port_.watch_directory(ticket_)) {
            listed_ = Known::no;
            return pause(kNoWatchBudget);
        }
    }
    read_members();
}

void GroupWatchFsm::read_members() {
    while (!to_read_.empty() && reading_ < kReadsAtOnce && !pausing_) {
        const std::string name = std::move(to_read_.front());
        to_read_.pop_front();
        const auto member = members_.find(name);
        if (member == members_.end() || member->second.known != Known::no) continue;  // gone, or asked for meanwhile
        member->second.known = Known::asking;
        ++reading_;
        if (!port_.watch_member(ticket_, name)) {
            --reading_;
            want(member);
            return pause(kNoWatchBudget);
        }
    }
    tell_if_complete();
}

void GroupWatchFsm::want(Members::iterator member) {
    member->second.known = Known::no;
    to_read_.push_back(member->first);
}

void GroupWatchFsm::on_synced(Ticket ticket, Rc rc) {
    if (ticket != ticket_) return;
    const bool ok = rc == Rc::ok || rc == Rc::no_node;
    synced_ = ok ? Known::yes : Known::no;
    ok ? go_on() : trouble(rc);
}

void GroupWatchFsm::on_directory(Ticket ticket, Rc rc, const std::vector<std::string>& names) {
    if (ticket != ticket_ || listed_ != Known::asking) return;
    if (rc != Rc::ok && rc != Rc::no_node) {
        listed_ = Known::no;
        return trouble(rc);
    }
    listed_ = Known::yes;
    const std::set<std::string> present(names.begin(), names.end());
    for (auto next = members_.begin(); next != members_.end();) {
        const auto member = next++;
        if (present.contains(member->first)) continue;
        port_.unwatch_member(member->first);
        if (member->second.known == Known::asking) --reading_;  // its answer does not come any more
        members_.erase(member);
    }
    for (const auto& name : present) {
        const auto [member, is_new] = members_.try_emplace(name);
        if (is_new) want(member);
    }
    read_members();
}

void GroupWatchFsm::on_directory_fired(Ticket ticket) {
    if (ticket != ticket_ || listed_ != Known::yes) return;
    listed_ = Known::no;
    go_on();
}

void GroupWatchFsm::on_member(Ticket ticket, const std::string& name, Rc rc, const std::string& data,
                              const NodeStat& stat) {
    const auto member = members_.find(name);
    if (ticket != ticket_ || member == members_.end() || member->second.known != Known::asking) return;
    --reading_;
    switch (rc) {
        case Rc::ok: member->second = {Known::yes, {data, stat.czxid, stat.mzxid}}; break;
        case Rc::no_auth: member->second = {Known::yes, {}}; break;  // it is a member nevertheless
        case Rc::no_node: members_.erase(member); break;             // the directory tells that, too
        default: want(member); return trouble(rc);
    }
    read_members();
}

void GroupWatchFsm::on_member_fired(Ticket ticket, const std::string& name, WatchEventType type) {
    const auto member = members_.find(name);
    if (ticket != ticket_ || member == members_.end() || member->second.known != Known::yes) return;
    if (type == WatchEventType::deleted) {
        members_.erase(member);  // if it is made again, the directory tells that
    } else {
        want(member);
    }
    go_on();
}

void GroupWatchFsm::tell_if_complete() {
    if (listed_ != Known::yes || reading_ != 0 || !to_read_.empty()) return;
    succeeded();
    SeenGroup now;
    for (const auto& [name, member] : members_) now.emplace(name, member.seen);
    if (told_ && same(*told_, now)) return;
    told_ = std::move(now);
    port_.tell(*told_);
}

void GroupWatchFsm::trouble(Rc rc) { pause(meaning(rc) == Meaning::failed ? to_string(rc) : nullptr); }

void GroupWatchFsm::pause(const char* why) {
    if (pausing_) return;
    const int times = failed();
    if (why != nullptr) port_.refused(why, times);
    // Also if the connection broke: on_connected() does not wait for the timer.
    pausing_ = true;
    port_.start_timer(next_pause(port_));
}

}  // namespace zkrecipes::internal
