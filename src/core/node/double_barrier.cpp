#include "core/node/double_barrier.hpp"

#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "core/node/double_barrier_fsm.hpp"
#include "core/operation/reservation.hpp"

namespace zkrecipes::internal {
namespace {

/// Gives back the room of our node in the budget when the node is gone.
std::function<void(bool)> room_given_back(SessionCore& core, BarrierMember& member) {
    return [weak = core.weak_from_this(), incarnation = member.incarnation,
            bytes = std::exchange(member.reserved, 0)](bool gone) {
        if (gone && bytes != 0) give_back_reservation(weak, incarnation, bytes);
    };
}

bool of_this_session(const SessionCore& core, const BarrierMember& member) {
    return !member.name.empty() && member.incarnation == core.incarnation().number;
}

}  // namespace

// ---- barriers and double barriers ---------------------------------------------------------------------------------

std::shared_ptr<const BarrierPlace> make_barrier_place(const SessionCore& core, const char* operation,
                                                       const std::string& path, BarrierOptions options) {
    auto place = std::make_shared<BarrierPlace>();
    place->user_path = path;
    place->path = core.server_path(path, operation);
    if (path == "/") throw Error(Errc::bad_path, operation, path, "the root is always there; name a node below it");
    if (options.acl && options.acl->empty()) {
        throw Error(Errc::bad_option, operation, path, "an empty access list would shut everybody out, us included");
    }
    place->acl = options.acl ? std::move(*options.acl) : core.options().acl;
    place->create_parents = options.create_parents;
    return place;
}

void check_barrier_callback(SessionCore& core, const char* operation, const BarrierPlace& place,
                            const std::function<void(BarrierResult)>& done) {
    if (!done) throw Error(Errc::bad_option, operation, place.user_path, "the callback is empty; pass a callable");
    core.throw_if_closed(operation, place.user_path);
}

void run_barrier_later(const std::shared_ptr<ReadOp>& op, Deadline deadline, std::stop_token stop,
                       std::function<void(BarrierResult)> done) {
    op->run_later(deadline, std::move(stop), [done = std::move(done)](ReadOp::Outcome outcome, const Error* error) {
        BarrierResult result;
        result.value = error == nullptr && outcome == ReadOp::Outcome::done;
        if (error != nullptr) result.error = std::make_exception_ptr(*error);
        done(std::move(result));
    });
}

void abandon_barrier(SessionCore& core, const BarrierPlace& place, const std::shared_ptr<BarrierMember>& member) {
    member->where = BarrierMember::Where::outside;
    const std::string name = std::exchange(member->name, {});
    const bool perhaps_made = std::exchange(member->creates, 0) != 0;
    if (name.empty()) return;
    if (!perhaps_made) return room_given_back(core, *member)(true);  // it was never there
    member->former.push_back(name);
    if (member->incarnation != core.incarnation().number) {
        member->reserved = 0;  // the room of a former session has ended with it
        return;
    }
    // If the create is not answered yet: the servers take this request after it.
    core.delete_node(join_path(place.path, name),
                     [given_back = room_given_back(core, *member), name, weak = std::weak_ptr(member)](bool gone) {
                         given_back(gone);
                         const auto ours = weak.lock();
                         if (gone && ours) std::erase(ours->former, name);
                     });
}

namespace {

// ---- the requests -------------------------------------------------------------------------------------------------

/// Gives a state machine of a double barrier its session. These are the requests that entering and leaving share.
template <class Fsm, class Port>
class DoubleBarrierOp : public ReadOp, protected Port {
protected:
    template <class... Rule>
    DoubleBarrierOp(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                    std::shared_ptr<BarrierMember> member, Rule&&... rule)
        : ReadOp(std::move(core), operation, place->user_path),
          place_(std::move(place)),
          member_(std::move(member)),
          barrier_(*this, std::forward<Rule>(rule)...) {}

    std::string path_of(const std::string& name) const { return join_path(place_->path, name); }
    std::string ready_path() const { return path_of(kBarrierReady); }
    std::string own_path() const { return path_of(member_->name); }

    // ReadOp
    void begin() override { barrier_.begin(); }
    void clean_up() override { this->unwatch(); }

    // DoubleBarrierPort
    bool once() const override { return ReadOp::once(); }
    void list(Ticket ticket) override {
        core().children(place_->path,
                        executed("list", user_path_,
                                 [this, ticket](Rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                                     barrier_.on_children(ticket, names);
                                 }));
    }
    void stat(Ticket ticket, const std::string& name) override {
        core().exists(path_of(name),
                      executed("exists", user_path_, [this, ticket](Rc rc, const NodeStat& stat, Instant) {
                          barrier_.on_stat(ticket, rc, stat);
                      }));
    }
    bool watch(Ticket ticket, const std::string& name) override {
        SessionCore::WatchListener watcher;
        watcher.ready = executed("get", user_path_, [this, ticket](Rc rc, const std::string&, const NodeStat&) {
            barrier_.on_node(ticket, rc);
        });
        watcher.fired = guard([this, ticket](WatchEventType type) { barrier_.on_fired(ticket, type); });
        watch_ = core().watch_node(path_of(name), std::move(watcher));
        return watch_ != 0;
    }
    void unwatch() override {
        if (watch_ != 0) core().unwatch(std::exchange(watch_, 0));
    }
    void set_ready(Ticket ticket, std::int32_t version) override {
        core().set(ready_path(), "", version,
                   executed("set", kBarrierReady, [this, ticket](Rc rc, const NodeStat& now, Instant) {
                       barrier_.on_ready_set(ticket, rc, now);
                   }));
    }
    void remove_ready(Ticket ticket, std::int32_t version) override {
        core().remove(ready_path(), version, executed("delete", kBarrierReady, [this, ticket](Rc, Instant) {
                          barrier_.on_ready_removed(ticket);
                      }));
    }
    void done() override { ReadOp::done(); }
    void timed_out() override { ReadOp::timed_out(); }
    void fail(Errc error, std::string detail) override { ReadOp::fail(error, std::move(detail)); }

    const std::shared_ptr<const BarrierPlace> place_;
    const std::shared_ptr<BarrierMember> member_;
    Fsm barrier_;
    SessionCore::WatchId watch_ = 0;
};

class BarrierEntry final : public DoubleBarrierOp<BarrierEntryFsm, BarrierEntryPort> {
public:
    BarrierEntry(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                 std::shared_ptr<BarrierMember> member, std::size_t members)
        : DoubleBarrierOp(std::move(core), operation, place, std::move(member), members, place->create_parents) {}

private:
    std::string own_name() override {
        if (of_this_session(core(), *member_)) return member_->name;
        if (std::exchange(member_->creates, 0) != 0) member_->former.push_back(member_->name);
        member_->name = random_uuid(core().runtime());
        member_->incarnation = core().incarnation().number;
        member_->reserved = own_path().size();
        if (!core().reserve_ephemeral(member_->reserved)) {
            member_->reserved = 0;
            member_->name.clear();
        }
        return member_->name;
    }
    bool watch_ready(Ticket ticket) override {
        SessionCore::WatchListener watcher;
        watcher.ready = executed("get", kBarrierReady, [this, ticket](Rc rc, const std::string&, const NodeStat& stat) {
            barrier_.on_ready(ticket, rc, stat);
        });
        watcher.fired = guard([this, ticket](WatchEventType type) { barrier_.on_ready_fired(ticket, type); });
        ready_watch_ = core().watch_existence(ready_path(), std::move(watcher));
        return ready_watch_ != 0;
    }
    void unwatch() override {
        if (ready_watch_ != 0) core().unwatch(std::exchange(ready_watch_, 0));
        DoubleBarrierOp::unwatch();
    }
    void create(Ticket ticket) override {
        creating_ = ticket;
        remove_former(ticket);
    }
    /// What we have left behind would count as a further member, so it must be gone before our new node is there.
    void remove_former(Ticket ticket) {
        if (member_->former.empty()) return create_own(ticket);
        const std::string name = member_->former.back();
        core().remove(path_of(name), -1, executed("delete", user_path_, [this, ticket, name](Rc, Instant) {
                          std::erase(member_->former, name);
                          if (ticket == creating_) remove_former(ticket);
                      }));
    }
    void create_own(Ticket ticket) {
        ++member_->creates;
        core().create(own_path(), "", place_->acl, CreateMode::ephemeral,
                      guard([this, ticket](Rc rc, const std::string&, const NodeStat&, Instant) {
                          if (said_by_server(rc) && rc != Rc::ok && rc != Rc::node_exists) --member_->creates;
                          if (usable(rc, "create", user_path_)) barrier_.on_created(ticket, rc);
                      }));
    }
    void make_directory(Ticket ticket) override {
        core().make_directory(place_->path, place_->acl,
                              executed("making the directory", user_path_,
                                       [this, ticket](Rc, Instant) { barrier_.on_directory(ticket); }));
    }
    void make_ready(Ticket ticket, const std::vector<std::string>& counted) override {
        std::vector<MultiOp> ops;
        for (const auto& name : counted) ops.emplace_back().path = path_of(name);
        MultiOp& ready = ops.emplace_back();
        ready.kind = MultiOp::Kind::create;
        ready.path = ready_path();
        ready.acl = place_->acl;
        ready.mode = CreateMode::persistent;
        core().multi(std::move(ops),
                     executed("create", kBarrierReady, [this, ticket](Rc rc, const std::vector<MultiResult>&, Instant) {
                         barrier_.on_ready_made(ticket, rc);
                     }));
    }

    void at_end() override {
        if (barrier_.entered()) {
            member_->where = BarrierMember::Where::inside;
        } else {
            abandon_barrier(core(), *place_, member_);
        }
    }

    SessionCore::WatchId ready_watch_ = 0;
    Ticket creating_ = 0;
};

class BarrierExit final : public DoubleBarrierOp<BarrierExitFsm, BarrierExitPort> {
public:
    BarrierExit(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                const std::shared_ptr<BarrierMember>& member)
        : DoubleBarrierOp(std::move(core), operation, std::move(place), member, member->name) {}

private:
    bool same_session() const override { return member_->incarnation == core().incarnation().number; }
    void remove_own(Ticket ticket) override {
        core().remove(own_path(), -1,
                      executed("delete", user_path_, [this, ticket](Rc, Instant) { barrier_.on_own_removed(ticket); }));
    }
    void remove_both(Ticket ticket) override {
        std::vector<MultiOp> ops(2);
        ops[0].path = own_path();
        ops[1].path = ready_path();
        ops[0].kind = ops[1].kind = MultiOp::Kind::remove;
        core().multi(std::move(ops),
                     executed("delete", user_path_, [this, ticket](Rc rc, const std::vector<MultiResult>&, Instant) {
                         barrier_.on_both_removed(ticket, rc);
                     }));
    }

    void at_end() override {
        if (barrier_.removed() && of_this_session(core(), *member_)) {
            room_given_back(core(), *member_)(true);
            member_->name.clear();
        }
        abandon_barrier(core(), *place_, member_);
    }
};

}  // namespace

std::shared_ptr<ReadOp> make_barrier_entry(const std::shared_ptr<SessionCore>& core, const char* operation,
                                           std::shared_ptr<const BarrierPlace> place,
                                           std::shared_ptr<BarrierMember> member, std::size_t members) {
    return std::make_shared<BarrierEntry>(core, operation, std::move(place), std::move(member), members);
}

std::shared_ptr<ReadOp> make_barrier_exit(const std::shared_ptr<SessionCore>& core, const char* operation,
                                          std::shared_ptr<const BarrierPlace> place,
                                          std::shared_ptr<BarrierMember> member) {
    return std::make_shared<BarrierExit>(core, operation, std::move(place), member);
}

}  // namespace zkrecipes::internal
