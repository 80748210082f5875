#include "core/node/double_barrier.hpp"

#include <algorithm>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {
namespace {

constexpr int kDirectoriesInARow = 8;
constexpr std::size_t kCheckedAtMost = 1000;  // fits into a request with paths of any sensible length
constexpr const char* kNoWatch = "this session watches as many nodes as ZooKeeper survives; use another Session";

/// What has to be done with the room that our node takes, when the node is gone.
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

// ---- what both have in common -------------------------------------------------------------------------------------

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

void abandon_barrier(SessionCore& core, const BarrierPlace& place, BarrierMember& member, bool surely_made) {
    member.where = BarrierMember::Where::outside;
    if (of_this_session(core, member)) {
        auto given_back = room_given_back(core, member);
        surely_made ? core.delete_node(join_path(place.path, member.name), std::move(given_back))
                    : core.delete_by_identity(place.path, member.name, std::move(given_back));
    }
    member.name.clear();
    member.reserved = 0;  // that of a former session has ended with it
}

BarrierWait next_to_wait_for(const std::vector<std::string>& names, const std::string& own) {
    std::string first, last;
    bool inside = false;
    for (const auto& name : names) {
        if (name == kBarrierReady) continue;
        if (name == own) inside = true;
        if (first.empty() || name < first) first = name;
        if (name > last) last = name;
    }
    using What = BarrierWait::What;
    if (first.empty() || (first == own && last == own)) return {What::all_gone, {}};
    if (!inside) return {What::wait_for, first};
    return first == own ? BarrierWait{What::stay_for, last} : BarrierWait{What::leave_then, first};
}

namespace {

class BarrierOp : public ReadOp {
protected:
    BarrierOp(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
              std::shared_ptr<BarrierMember> member)
        : ReadOp(std::move(core), operation, place->user_path), place_(std::move(place)), member_(std::move(member)) {}

    std::string ready_path() const { return join_path(place_->path, kBarrierReady); }

    /// Deletes the `ready` that was seen, if it is still there, and not the next one, which may have been made in its
    /// place meanwhile by members who have counted us: they would be in and wait for our going, and we for a `ready`.
    /// A delete can be bound to a version, but each `ready` begins with version 0; so the version is raised first,
    /// which is answered with the czxid of what it was raised of.
    template <class Wrap>
    void remove_ready(const NodeStat& seen, const Wrap& wrap, std::function<void()> then) {
        core().set(ready_path(), "", seen.version,
                   wrap([this, wrap, czxid = seen.czxid, then = std::move(then)](Rc rc, const NodeStat& now, Instant) {
                       if (!usable(rc, "set", "ready")) return;
                       if (rc != Rc::ok || now.czxid != czxid) return then();
                       core().remove(ready_path(), now.version, wrap([this, then](Rc removed, Instant) {
                                         if (usable(removed, "delete", "ready")) then();
                                     }));
                   }));
    }

    const std::shared_ptr<const BarrierPlace> place_;
    const std::shared_ptr<BarrierMember> member_;
};

// ---- enter --------------------------------------------------------------------------------------------------------

class BarrierEntry final : public BarrierOp {
public:
    BarrierEntry(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                 std::shared_ptr<BarrierMember> member, std::size_t members)
        : BarrierOp(std::move(core), operation, std::move(place), std::move(member)), members_(members) {}

private:
    void begin() override {
        ++pass_;
        clean_up();
        if (!own_name()) return;
        ready_known_ = made_ = false;
        ready_.reset();
        // The watch on `ready` first: who is the last to come, and makes it, is not to be missed.
        watch_ready();
        if (over_budget_) return;
        create_own();
    }

    std::string own_path() const { return join_path(place_->path, member_->name); }

    /// A name is used for creates of one session. False: this was the end.
    bool own_name() {
        if (of_this_session(core(), *member_)) return true;
        member_->name = random_uuid(core().runtime());
        member_->incarnation = core().incarnation().number;
        member_->reserved = 0;
        surely_made_ = false;
        const std::size_t bytes = own_path().size();
        if (core().reserve_ephemeral(bytes)) {
            member_->reserved = bytes;
            return true;
        }
        member_->name.clear();
        fail(Errc::budget_exceeded,
             "this session owns as many ephemeral nodes as ZooKeeper survives; use another Session for more");
        return false;
    }

    /// As guard(), and not called any more once we have begun again ourselves.
    template <class Answer>
    auto step(Answer answer) {
        return guard([this, pass = pass_, answer = std::move(answer)](auto&&... values) {
            if (pass == pass_) answer(std::forward<decltype(values)>(values)...);
        });
    }

    void watch_ready() {
        SessionCore::WatchListener watcher;
        watcher.ready = step([this](Rc rc, const std::string&, const NodeStat& stat) {
            if (!usable(rc, "get", "ready")) return;
            ready_known_ = true;
            if (rc == Rc::ok) ready_ = stat;
            decide();
        });
        watcher.fired = step([this](WatchEventType type) {
            ready_watch_ = 0;
            // Deleted: one that is stale, by us or another. Made before our node was there: it may be over again, or
            // news of the past, from a read that we share with somebody who asked earlier.
            if (type == WatchEventType::created && made_) return enter();
            begin();
        });
        ready_watch_ = core().watch_existence(ready_path(), std::move(watcher));
        over_budget_ = ready_watch_ == 0;
        if (over_budget_) fail(Errc::budget_exceeded, kNoWatch);
    }

    void create_own() {
        core().create(own_path(), "", place_->acl, CreateMode::ephemeral,
                      step([this](Rc rc, const std::string&, const NodeStat&, Instant) {
                          if (rc == Rc::no_node) return make_directory();
                          if (!usable(rc, "create", user_path_)) return;
                          // "Exists": an earlier create whose answer was lost; nobody else has this name.
                          if (rc != Rc::ok && rc != Rc::node_exists) return fail(error_of(rc), to_string(rc));
                          surely_made_ = true;
                          directories_made_ = 0;
                          list();
                      }));
    }

    void make_directory() {
        if (!place_->create_parents) {
            return fail(Errc::no_parent, "the barrier's directory does not exist, and the options forbid to make it");
        }
        if (++directories_made_ > kDirectoriesInARow) {
            return fail(Errc::no_parent, "the barrier's directory vanishes each time it has been made");
        }
        core().make_directory(place_->path, place_->acl, step([this](Rc rc, Instant) {
                                  if (usable(rc, "making the directory", user_path_)) create_own();
                              }));
    }

    void list() {
        core().children(place_->path,
                        step([this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            if (!usable(rc, "list", user_path_)) return;
                            names_ = names;
                            std::erase(names_, kBarrierReady);
                            if (std::ranges::find(names_, member_->name) == names_.end()) return begin();
                            made_ = true;
                            decide();
                        }));
    }

    /// When it is known whether `ready` is there, and who is.
    void decide() {
        if (!made_ || !ready_known_) return;
        if (ready_) return check_ready(0);
        const bool all = names_.size() >= members_;
        if (all) return make_ready();
        if (once()) return timed_out();
        watch_own();
    }

    /// Somebody who was there when `ready` was made, perhaps we, must still be, or it is of a round that is over:
    /// everybody's session ended before the last one could delete it.
    void check_ready(std::size_t from) {
        if (from == names_.size()) return remove_stale_ready();
        core().exists(join_path(place_->path, names_[from]), step([this, from](Rc rc, const NodeStat& stat, Instant) {
                          if (!usable(rc, "exists", user_path_)) return;
                          if (rc == Rc::ok && stat.czxid < ready_->czxid) return enter();
                          check_ready(from + 1);
                      }));
    }

    void remove_stale_ready() {
        clean_up();  // no news of what we do ourselves
        remove_ready(
            *ready_, [this](auto answer) { return step(std::move(answer)); }, [this] { begin(); });
    }

    /// Only while all who were counted are there: one of them may have gone since the list.
    void make_ready() {
        const std::size_t checked = std::min(names_.size(), kCheckedAtMost);
        std::vector<MultiOp> ops(checked + 1);
        for (std::size_t i = 0; i < checked; ++i) ops[i].path = join_path(place_->path, names_[i]);
        ops.back().kind = MultiOp::Kind::create;
        ops.back().path = ready_path();
        ops.back().acl = place_->acl;
        ops.back().mode = CreateMode::persistent;
        core().multi(std::move(ops), step([this](Rc rc, const std::vector<MultiResult>&, Instant) {
                         if (!usable(rc, "create", "ready")) return;
                         rc == Rc::ok ? enter() : begin();
                     }));
    }

    /// While we wait: without our node the others would wait for ever.
    void watch_own() {
        if (own_watch_ != 0) return;
        SessionCore::WatchListener watcher;
        watcher.ready = step([this](Rc rc, const std::string&, const NodeStat&) {
            if (usable(rc, "get", user_path_) && rc == Rc::no_node) begin();
        });
        watcher.fired = step([this](WatchEventType) {
            own_watch_ = 0;
            begin();
        });
        own_watch_ = core().watch_node(own_path(), std::move(watcher));
        if (own_watch_ == 0) fail(Errc::budget_exceeded, kNoWatch);
    }

    void enter() {
        entered_ = true;
        done();
    }

    void clean_up() override {
        if (ready_watch_ != 0) core().unwatch(std::exchange(ready_watch_, 0));
        if (own_watch_ != 0) core().unwatch(std::exchange(own_watch_, 0));
    }
    void at_end() override {
        if (entered_) {
            member_->where = BarrierMember::Where::inside;
        } else {
            abandon_barrier(core(), *place_, *member_, surely_made_);
        }
    }

    const std::size_t members_;
    std::uint64_t pass_ = 0;
    SessionCore::WatchId ready_watch_ = 0;
    SessionCore::WatchId own_watch_ = 0;
    bool over_budget_ = false;
    bool surely_made_ = false;
    bool ready_known_ = false;
    std::optional<NodeStat> ready_;  // empty: not there
    bool made_ = false;              // our node is there, and names_ are known
    bool entered_ = false;
    int directories_made_ = 0;
    std::vector<std::string> names_;
};

// ---- leave --------------------------------------------------------------------------------------------------------

class BarrierExit final : public BarrierOp {
public:
    BarrierExit(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                std::shared_ptr<BarrierMember> member)
        : BarrierOp(std::move(core), operation, std::move(place), std::move(member)), own_(member_->name) {}

private:
    void begin() override {
        clean_up();
        core().children(place_->path,
                        guard([this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            if (usable(rc, "list", user_path_)) on_list(names);
                        }));
    }

    void on_list(const std::vector<std::string>& names) {
        const bool there = std::ranges::find(names, own_) != names.end();
        if (!there && !deleted_) lost_ = true;
        keep_those_of_this_round(names);
        auto next = next_to_wait_for(still_inside_, there ? own_ : "");
        using What = BarrierWait::What;
        // Whose node is gone already was not waited for by the others; it does not wait for them either.
        if (lost_ && next.what != What::all_gone) return fail_lost();
        switch (next.what) {
            case What::all_gone:
                if (!nobody_else(names)) return there ? remove_own([this] { end_well(); }) : end_well();
                return there ? remove_all() : look_after_ready(names);
            case What::stay_for: return once() ? give_up() : await_end_of(next.name);
            case What::leave_then:
                return remove_own([this, name = next.name] { once() ? give_up() : await_end_of(name); });
            case What::wait_for: return once() ? give_up() : await_end_of(next.name);
        }
    }

    /// Who comes while we leave is of the next round, for which it may need us.
    void keep_those_of_this_round(const std::vector<std::string>& names) {
        if (!std::exchange(listed_, true)) {
            still_inside_ = names;
            return;
        }
        std::erase_if(still_inside_, [&](const auto& name) { return std::ranges::find(names, name) == names.end(); });
    }
    bool nobody_else(const std::vector<std::string>& names) const {
        return std::ranges::all_of(names, [this](const auto& name) { return name == kBarrierReady || name == own_; });
    }

    void await_end_of(const std::string& name) {
        clean_up();
        SessionCore::WatchListener watcher;
        watcher.ready = guard([this](Rc rc, const std::string&, const NodeStat&) {
            if (usable(rc, "get", user_path_) && rc == Rc::no_node) begin();
        });
        watcher.fired = guard([this, name](WatchEventType type) {
            watch_ = 0;
            if (type == WatchEventType::deleted) std::erase(still_inside_, name);  // also if it has come again since
            begin();
        });
        watch_ = core().watch_node(join_path(place_->path, name), std::move(watcher));
        if (watch_ == 0) fail(Errc::budget_exceeded, kNoWatch);
    }

    void remove_own(std::function<void()> then) {
        deleted_ = true;  // perhaps; it is found out by the next list
        core().remove(join_path(place_->path, own_), -1, guard([this, then = std::move(then)](Rc rc, Instant) {
                          if (!usable(rc, "delete", user_path_)) return;
                          removed_ = true;
                          then();
                      }));
    }

    /// The last one takes `ready` along, in one step: while its node is there, nobody makes another.
    void remove_all() {
        deleted_ = true;
        std::vector<MultiOp> ops(2);
        ops[0].path = join_path(place_->path, own_);
        ops[1].path = ready_path();
        ops[0].kind = ops[1].kind = MultiOp::Kind::remove;
        core().multi(std::move(ops), guard([this](Rc rc, const std::vector<MultiResult>&, Instant) {
                         if (!usable(rc, "delete", user_path_)) return;
                         // One of them has gone. If that was ours, `ready` is still there: list again.
                         if (rc != Rc::ok) return remove_own([this] { begin(); });
                         removed_ = true;
                         end_well();
                     }));
    }

    /// The last one to go has not deleted it: its session has ended.
    void look_after_ready(const std::vector<std::string>& names) {
        if (std::ranges::find(names, kBarrierReady) == names.end()) return end_well();
        // First which one it is, then that nobody is there: in the other order it could be that of the next round.
        core().exists(ready_path(), guard([this](Rc rc, const NodeStat& ready, Instant) {
                          if (!usable(rc, "exists", "ready")) return;
                          rc == Rc::ok ? remove_if_empty(ready) : end_well();
                      }));
    }
    void remove_if_empty(const NodeStat& ready) {
        core().children(
            place_->path, guard([this, ready](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                if (!usable(rc, "list", user_path_)) return;
                if (!nobody_else(names)) return end_well();
                remove_ready(
                    ready, [this](auto answer) { return guard(std::move(answer)); }, [this] { end_well(); });
            }));
    }
    void end_well() { lost_ ? fail_lost() : done(); }
    void give_up() { timed_out(); }

    void fail_lost() {
        const bool session = member_->incarnation != core().incarnation().number;
        fail(session ? Errc::session_lost : Errc::lock_lost,
             session ? "our session ended while we were inside: the others took us for gone"
                     : "somebody deleted our node while we were inside: the others took us for gone");
    }

    void clean_up() override {
        if (watch_ != 0) core().unwatch(std::exchange(watch_, 0));
    }
    void at_end() override {
        if (removed_ && of_this_session(core(), *member_)) {
            room_given_back(core(), *member_)(true);
            member_->name.clear();
        }
        abandon_barrier(core(), *place_, *member_, true);
    }

    const std::string own_;  // name of our node
    SessionCore::WatchId watch_ = 0;
    bool deleted_ = false;  // we have sent that
    bool removed_ = false;  // and it was answered
    bool lost_ = false;     // it was gone before
    bool listed_ = false;
    std::vector<std::string> still_inside_;  // those of this round
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
    return std::make_shared<BarrierExit>(core, operation, std::move(place), std::move(member));
}

}  // namespace zkrecipes::internal
