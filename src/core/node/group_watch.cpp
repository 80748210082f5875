#include "core/node/group_watch.hpp"

#include <spdlog/spdlog.h>

#include <unordered_map>
#include <utility>

#include "base/paths.hpp"
#include "core/node/group_watch_fsm.hpp"
#include "core/operation/latest.hpp"
#include "core/operation/read_op.hpp"
#include "core/operation/subscribe.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {
namespace {

using GroupMap = std::map<std::string, std::string>;
using GroupListener = Subscriber<Latest<GroupMap>>;

/// Gives a GroupWatchFsm its connection. Owns itself until it is stopped or the session is closed.
class GroupWatch final : public GroupWatchPort,
                         public SessionObserver,
                         public std::enable_shared_from_this<GroupWatch> {
public:
    GroupWatch(std::shared_ptr<SessionCore> core, std::string user_path, std::string directory,
               std::shared_ptr<GroupListener> listener)
        : core_(std::move(core)),
          user_path_(std::move(user_path)),
          directory_(std::move(directory)),
          listener_(std::move(listener)) {}

    // *lock held*:
    void start() {
        self_ = shared_from_this();
        core_->add_observer(*this);
        fsm_.start();
    }
    void stop() {
        if (!core_) return;  // the session was closed before
        core_->remove_observer(*this);
        let_go();
    }

private:
    void let_go() {
        unwatch_all();
        stop_timer();
        // As LeaderWatch::let_go: a late answer may still come, but the core must not be destroyed under its own lock.
        SessionCore& session = *core_;
        session.defer([self = std::move(self_), core = std::move(core_)] {});
    }

    // SessionObserver
    void on_connected(bool same_session) override { fsm_.on_connected(same_session); }
    void on_suspended() override {}
    void on_session_lost() override { fsm_.on_session_lost(); }
    void on_closed(const Error&) override { let_go(); }

    // GroupWatchPort
    bool connected() const override { return core_->connected(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    void sync(Ticket ticket) override {
        core_->sync(directory_, [self = shared_from_this(), ticket](Rc rc, Instant) {
            if (self->core_) self->fsm_.on_synced(ticket, rc);
        });
    }
    // The listeners by raw pointer: nothing is called after unwatch, which comes before the end of this object.
    bool watch_directory(Ticket ticket) override {
        SessionCore::WatchListener watcher;
        watcher.listed = [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&) {
            fsm_.on_directory(ticket, rc, names);
        };
        watcher.fired = [this, ticket](WatchEventType) { fsm_.on_directory_fired(ticket); };
        directory_watch_ = core_->watch_directory(directory_, std::move(watcher));
        return directory_watch_ != 0;
    }
    bool watch_member(Ticket ticket, const std::string& name) override {
        SessionCore::WatchListener watcher;
        watcher.ready = [this, ticket, name](Rc rc, const std::string& data, const NodeStat& stat) {
            fsm_.on_member(ticket, name, rc, data, stat);
        };
        watcher.fired = [this, ticket, name](WatchEventType type) { fsm_.on_member_fired(ticket, name, type); };
        const auto watch = core_->watch_node(join_path(directory_, name), std::move(watcher));
        if (watch != 0) member_watches_[name] = watch;
        return watch != 0;
    }
    void unwatch_member(const std::string& name) override {
        const auto watch = member_watches_.extract(name);
        if (!watch.empty()) core_->unwatch(watch.mapped());
    }
    void unwatch_all() override {
        if (directory_watch_ != 0) core_->unwatch(std::exchange(directory_watch_, 0));
        for (const auto& [name, watch] : std::exchange(member_watches_, {})) core_->unwatch(watch);
    }
    void start_timer(std::chrono::milliseconds delay) override {
        timer_ = core_->at(core_->runtime().now() + delay, [this] {
            timer_ = 0;
            fsm_.on_timer();
        });
    }
    void stop_timer() override {
        if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
    }
    void refused(const char* why, int times) override {
        if (!should_log(static_cast<std::uint64_t>(times))) return;
        core_->log().error("observe {}: cannot see who is there: {} ({} times); trying again", user_path_, why, times);
    }
    void tell(const SeenGroup& group) override {
        GroupMap members;
        for (const auto& [name, member] : group) members.emplace(name, member.data);
        listener_->push(std::move(members));
    }

    std::shared_ptr<SessionCore> core_;  // null when over
    const std::string user_path_;
    const std::string directory_;
    const std::shared_ptr<GroupListener> listener_;
    GroupWatchFsm fsm_{*this};
    std::shared_ptr<GroupWatch> self_;
    SessionCore::WatchId directory_watch_ = 0;
    std::unordered_map<std::string, SessionCore::WatchId> member_watches_;
    TimerId timer_ = 0;
};

/// Lists the directory and reads each child.
class GroupReader final : public ReadOp {
public:
    GroupReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)) {}

    GroupMap members;

private:
    void begin() override {
        members.clear();
        names_.clear();
        next_ = open_ = 0;
        core().children(directory_,
                        guard([this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            if (!usable(rc, "list", directory_)) return;
                            names_ = names;
                            read_more();
                        }));
    }
    void read_more() {
        for (; next_ < names_.size() && open_ < kInFlight; ++next_) {
            ++open_;
            const std::string& name = names_[next_];
            const std::string path = join_path(directory_, name);
            core().get(path, guard([this, name, path](Rc rc, const std::string& data, const NodeStat&, Instant) {
                           const bool hidden = rc == Rc::no_auth;  // it is a member all the same
                           if (!hidden && !usable(rc, "get", path)) return;
                           if (rc != Rc::no_node) members.emplace(name, data);
                           --open_;
                           read_more();
                       }));
        }
        if (open_ == 0 && next_ == names_.size()) done();
    }

    const std::string directory_;
    std::vector<std::string> names_;
    std::size_t next_ = 0;
    std::size_t open_ = 0;
};

}  // namespace

Subscription watch_group(const std::shared_ptr<SessionCore>& core, const char* operation, std::string user_path,
                         std::string directory, std::function<void(const GroupMap&)> told) {
    auto listener = std::make_shared<GroupListener>(core->shared_runtime(), core->shared_log(),
                                                    "an observer of a group", std::move(told));
    const auto watch = std::make_shared<GroupWatch>(core, user_path, std::move(directory), listener);
    return subscribe(core, operation, user_path, watch, listener);
}

GroupMap read_group(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                    const std::string& directory, Deadline deadline) {
    const auto reader = std::make_shared<GroupReader>(core, operation, user_path, directory);
    reader->run_or_throw(deadline);
    return std::move(reader->members);
}

}  // namespace zkrecipes::internal
