#include "core/node/group_watch.hpp"

#include <spdlog/spdlog.h>

#include <unordered_map>
#include <utility>

#include "base/paths.hpp"
#include "core/node/group_watch_fsm.hpp"
#include "core/operation/continuous_operation.hpp"
#include "core/operation/latest.hpp"
#include "core/operation/subscribe.hpp"
#include "session/common/backoff.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {
namespace {

using GroupMap = std::map<std::string, std::string>;
using GroupListener = Subscriber<Latest<GroupMap>>;

/// Gives a GroupWatchFsm its session.
class GroupWatch final : public GroupWatchPort, public ContinuousOperation {
public:
    GroupWatch(std::shared_ptr<SessionCore> core, std::string user_path, std::string directory,
               std::shared_ptr<GroupListener> listener)
        : ContinuousOperation(std::move(core)),
          user_path_(std::move(user_path)),
          directory_(std::move(directory)),
          listener_(std::move(listener)) {}

private:
    ContinuousFsm& machine() noexcept override { return fsm_; }
    void remove_watches() override { unwatch_all(); }

    // GroupWatchPort
    void sync(Ticket ticket) override {
        core_->sync(directory_, answered([this, ticket](Rc rc, Instant) { fsm_.on_synced(ticket, rc); }));
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
            if (rc != Rc::ok) member_watches_.erase(name);  // no watch was left
            fsm_.on_member(ticket, name, rc, data, stat);
        };
        watcher.fired = [this, ticket, name](WatchEventType type) {
            member_watches_.erase(name);
            fsm_.on_member_fired(ticket, name, type);
        };
        const auto watch = core_->watch_node(join_path(directory_, name), std::move(watcher));
        if (watch != 0) member_watches_[name] = watch;
        return watch != 0;
    }
    void unwatch_member(const std::string& name) override {
        const auto watch = member_watches_.extract(name);
        if (!watch.empty()) core_->unwatch(watch.mapped());
    }
    void unwatch_all() override {
        unwatch(directory_watch_);
        for (const auto& [name, watch] : std::exchange(member_watches_, {})) core_->unwatch(watch);
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

    const std::string user_path_;
    const std::string directory_;
    const std::shared_ptr<GroupListener> listener_;
    GroupWatchFsm fsm_{*this};
    SessionCore::WatchId directory_watch_ = 0;
    std::unordered_map<std::string, SessionCore::WatchId> member_watches_;
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
                        listed(directory_, [this](Rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
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

Steps<GroupMap> read_group(const std::shared_ptr<SessionCore>& core, const char* operation,
                           const std::string& user_path, const std::string& directory) {
    return found_by(std::make_shared<GroupReader>(core, operation, user_path, directory), &GroupReader::members);
}

}  // namespace zkrecipes::internal
