// Barrier: closed while its node exists.
//
// Layout (that of Curator's DistributedBarrier):
//   <parent>   container; made if it is missing, as are its parents
//   <path>     persistent, without data: the barrier is closed
//
// Steps:
//   Close: create <path>. If there is no parent, make it and try again. "Exists" is success.
//   Open: delete <path>. "No node" is success.
//   Wait: read <path> with a watch. No node: open. Otherwise wait for the watch; "deleted" means open, even if
//   another client has closed the barrier again since. After a reconnect read again: a node with another czxid means
//   that the barrier was open in between.
#include <zkrecipes/barrier.hpp>

#include <utility>

#include "base/paths.hpp"
#include "core/acquire/acquire_fsm.hpp"
#include "core/node/double_barrier.hpp"
#include "core/operation/steps.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

/// Closes or opens. Both may be done twice.
class BarrierWriter final : public ReadOp {
public:
    BarrierWriter(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place,
                  bool closes)
        : ReadOp(std::move(core), operation, place->user_path), place_(std::move(place)), closes_(closes) {}

    void must_be_written(Outcome outcome) const {
        if (outcome == Outcome::done) return;
        if (!sent_) throw Error(Errc::unreachable, operation_, user_path_, "no server answered in the time allowed");
        throw Error(Errc::outcome_unknown, operation_, user_path_,
                    "it ended before the answer came; do it again, or look whether the node is there");
    }

private:
    void begin() override {
        sent_ = true;
        closes_ ? create() : remove();
    }
    void create() {
        core().create(place_->path, "", place_->acl, CreateMode::persistent,
                      guard([this](Rc rc, const std::string&, const NodeStat&, Instant) {
                          if (rc == Rc::ok || rc == Rc::node_exists) return done();
                          if (rc == Rc::no_node) return make_parent();
                          if (usable(rc, "create", user_path_)) fail(error_of(rc), answer_in_words("create", rc));
                      }));
    }
    void make_parent() {
        if (!place_->create_parents) {
            return fail(Errc::no_parent, "the parent does not exist, and the options forbid to make it");
        }
        if (++parents_made_ > kParentsInARow) return fail(Errc::no_parent, "the parent vanishes each time it is made");
        core().make_directory(std::string(parent_path(place_->path)), place_->acl, guard([this](Rc rc, Instant) {
                                  if (usable(rc, "making the parent", user_path_)) create();
                              }));
    }
    void remove() {
        core().remove(place_->path, -1, guard([this](Rc rc, Instant) {
                          if (rc == Rc::ok || rc == Rc::no_node) return done();
                          if (rc == Rc::not_empty) return fail(Errc::not_empty, "the node has children; remove them");
                          if (usable(rc, "delete", user_path_)) fail(error_of(rc), answer_in_words("delete", rc));
                      }));
    }

    static constexpr int kParentsInARow = 8;
    const std::shared_ptr<const BarrierPlace> place_;
    const bool closes_;
    bool sent_ = false;
    int parents_made_ = 0;
};

Steps<bool> run(std::shared_ptr<BarrierWriter> writer) {
    const auto outcome = co_await EndOf(writer);
    writer->must_be_written(outcome);
    co_return true;
}

class BarrierWaiter final : public ReadOp {
public:
    BarrierWaiter(std::shared_ptr<SessionCore> core, const char* operation, std::shared_ptr<const BarrierPlace> place)
        : ReadOp(std::move(core), operation, place->user_path), place_(std::move(place)) {}

private:
    void begin() override {
        SessionCore::WatchListener watcher;
        watcher.ready = guard([this](Rc rc, const std::string&, const NodeStat& stat) {
            if (!usable(rc, "get", user_path_)) return;
            if (rc == Rc::no_node) return done();
            if (std::exchange(closed_by_, stat.czxid) != stat.czxid && seen_) return done();
            seen_ = true;
            if (once()) timed_out();
        });
        watcher.fired = guard([this](WatchEventType type) {
            watch_ = 0;
            type == WatchEventType::deleted ? done() : begin();
        });
        watch_ = core().watch_node(place_->path, std::move(watcher));
        if (watch_ == 0) fail(Errc::budget_exceeded, "this session watches as many nodes as ZooKeeper survives");
    }
    void clean_up() override {
        if (watch_ != 0) core().unwatch(std::exchange(watch_, 0));
    }

    const std::shared_ptr<const BarrierPlace> place_;
    SessionCore::WatchId watch_ = 0;
    bool seen_ = false;
    std::int64_t closed_by_ = 0;  // czxid of the node that was seen
};

}  // namespace

class BarrierImpl {
public:
    BarrierImpl(std::shared_ptr<SessionCore> session, const std::string& path, BarrierOptions options)
        : core(std::move(session)), place(make_barrier_place(*core, "Barrier", path, std::move(options))) {}

    Steps<bool> write(const char* operation, bool closes) const {
        return run(std::make_shared<BarrierWriter>(core, operation, place, closes));
    }

    static constexpr const char* kName = "Barrier";
    const std::string& path() const noexcept { return place->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const BarrierPlace> place;
};

}  // namespace internal

using internal::BarrierWaiter;
using internal::SessionAccess;

Barrier::Barrier(Session& session, std::string path, BarrierOptions options)
    : impl_(std::make_shared<internal::BarrierImpl>(SessionAccess::core(session), path, std::move(options))) {}
Barrier::Barrier(Barrier&&) noexcept = default;
Barrier& Barrier::operator=(Barrier&&) noexcept = default;
Barrier::~Barrier() = default;

void Barrier::set(Deadline deadline) {
    const auto impl = internal::usable(impl_, "set");
    impl->write("set", true).get(deadline);
}

void Barrier::set_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done) {
    constexpr const char* operation = "set_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), impl->write(operation, true), deadline, std::move(stop),
              std::move(done));
}

void Barrier::remove(Deadline deadline) {
    const auto impl = internal::usable(impl_, "remove");
    impl->write("remove", false).get(deadline);
}

void Barrier::remove_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done) {
    constexpr const char* operation = "remove_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), impl->write(operation, false), deadline, std::move(stop),
              std::move(done));
}

bool Barrier::wait(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "wait");
    const auto waiter = std::make_shared<BarrierWaiter>(impl->core, "wait", impl->place);
    return waiter->run(deadline, std::move(stop)) == internal::ReadOp::Outcome::done;
}

void Barrier::wait_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done) {
    const auto impl = internal::usable(impl_, "wait_async");
    constexpr const char* operation = "wait_async";
    check_barrier_callback(*impl->core, operation, *impl->place, done);
    run_barrier_later(std::make_shared<BarrierWaiter>(impl->core, operation, impl->place), deadline, std::move(stop),
                      std::move(done));
}

const std::string& Barrier::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
