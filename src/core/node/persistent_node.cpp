#include "core/node/persistent_node.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/paths.hpp"
#include "client/wire_size.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/operation/waiting.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {
namespace {

const std::vector<Acl>& checked(const std::optional<std::vector<Acl>>& acl, const SessionCore& core,
                                const char* operation, const std::string& user_path) {
    if (!acl) return core.options().acl;
    if (!acl->empty()) return *acl;
    throw Error(Errc::bad_option, operation, user_path, "an empty access list would shut everybody out, us included");
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------------------------

PersistentNodeOp::PersistentNodeOp(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path,
                                   std::string path, PersistentNodeOptions options)
    : ContinuousOperation(std::move(core)),
      weak_core_(core_),
      operation_(operation),
      user_path_(std::move(user_path)),
      path_(std::move(path)),
      acl_(checked(options.acl, *core_, operation, user_path_)),
      fsm_(*this, std::move(options.data), options.create_parents) {
    check_size(operation, fsm_.data());
}

void PersistentNodeOp::start() {
    std::optional<Error> closed;
    SessionCore& core = *core_;
    core.run_locked([&] {
        if ((closed = core.closed_error(operation_, user_path_))) return;
        ContinuousOperation::start();
    });
    if (closed) throw *closed;
}

void PersistentNodeOp::on_closed(const Error& why) {
    if (why.errc() != Errc::closed) why_closed_ = why;
    if (why.errc() == kStepFailed) answer_all_closed();  // perhaps a step of this node: its state may be wrong
    fsm_.on_session_closed();
}

void PersistentNodeOp::answer_all_closed() {
    try {
        while (!waiters_.empty()) {
            const auto waiter = waiters_.front();
            if (!waiter->for_the_end) waiter->error = closed_error(waiter->operation);
            answer(waiter);
        }
    } catch (...) {
        if (core_) core_->add_waiter(*this);  // to be told again
        throw;
    }
}

void PersistentNodeOp::finished() {
    core_->remove_observer(*this);
    if (!giving_back_) when_given_back()(true);
    end();
}

// ---- requests -----------------------------------------------------------------------------------------------------

bool PersistentNodeOp::reserve() {
    const auto present = core_->incarnation().number;
    if (reserved_in_ == present) return true;
    reserved_in_ = 0;  // the room of a former incarnation has ended with it
    if (!core_->reserve_ephemeral(path_.size())) return false;
    reserved_in_ = present;
    return true;
}

void PersistentNodeOp::create(Ticket ticket, const std::string& data) {
    core_->create(path_, data, acl_, CreateMode::ephemeral,
                  answered([this, ticket](Rc rc, const std::string&, const NodeStat& stat, Instant) {
                      fsm_.on_created(ticket, rc, stat);
                  }));
}

void PersistentNodeOp::make_parent(Ticket ticket) {
    core_->make_directory(std::string(parent_path(path_)), acl_,
                          answered([this, ticket](Rc rc, Instant) { fsm_.on_parent(ticket, rc); }));
}

bool PersistentNodeOp::watch(Ticket ticket) {
    // By raw pointer: nothing is called after unwatch(), which comes before the end of this object.
    SessionCore::WatchListener watcher;
    watcher.ready = [this, ticket](Rc rc, const std::string& data, const NodeStat& stat) {
        fsm_.on_node(ticket, rc, data, stat);
    };
    watcher.fired = [this, ticket](WatchEventType type) { fsm_.on_fired(ticket, type); };
    watch_ = core_->watch_node(path_, std::move(watcher));
    return watch_ != 0;
}

void PersistentNodeOp::set(Ticket ticket, const std::string& data, std::int32_t version) {
    core_->set(path_, data, version,
               answered([this, ticket](Rc rc, const NodeStat& stat, Instant) { fsm_.on_set(ticket, rc, stat); }));
}

void PersistentNodeOp::remove(Ticket ticket, std::int32_t version) {
    core_->remove(path_, version, answered([this, ticket](Rc rc, Instant) { fsm_.on_removed(ticket, rc); }));
}

void PersistentNodeOp::give_back() {
    giving_back_ = true;
    core_->delete_if_owned(path_, when_given_back());
}

std::function<void(bool)> PersistentNodeOp::when_given_back() {
    return [self = self(), weak = weak_core_, incarnation = reserved_in_](bool gone) {
        if (gone && incarnation != 0) give_back_reservation(weak, incarnation, self->path_.size());
        self->ended_ = true;  // or its session is over, and it with that
        self->answer_those_who_may();
    };
}

void PersistentNodeOp::note(const char* what) { core_->log().warn("{} {}: {}", operation_, user_path_, what); }

void PersistentNodeOp::refused(const std::string& words, int times) {
    why_refused_ = core_->explained(fsm_.refusal(), words);
    if (!should_log(static_cast<std::uint64_t>(times))) return;
    core_->log().error("{} {}: the node cannot be made: {} ({} times); trying again", operation_, user_path_,
                       why_refused_, times);
}

// ---- listeners and waiters ----------------------------------------------------------------------------------------

void PersistentNodeOp::changed() {
    const auto now = fsm_.state();
    if (state_.exchange(now, std::memory_order_acq_rel) != now) {
        std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
        for (const auto& weak : listeners_) {
            if (const auto listener = weak.lock()) listener->push(now);
        }
    }
    answer_those_who_may();
}

void PersistentNodeOp::answer_those_who_may() {
    for (auto next = waiters_.begin(); next != waiters_.end();) {
        const auto waiter = *next++;
        if (may_answer(*waiter)) answer(waiter);
    }
}

/// Whether the waiter can be answered; stores the answer.
bool PersistentNodeOp::may_answer(Waiter& waiter) const {
    if (waiter.for_the_end) return waiter.answer = ended_;
    if (fsm_.state() == PersistentNodeState::closed) {
        waiter.error = closed_error(waiter.operation);
    } else if (fsm_.state() == PersistentNodeState::refused) {
        waiter.error.emplace(fsm_.refusal(), waiter.operation, user_path_, why_refused_);
    } else {
        return waiter.answer = fsm_.settled();
    }
    return true;
}

void PersistentNodeOp::answer(const std::shared_ptr<Waiter>& waiter) {
    if (waiter->answered) return;
    waiter->core.wake({waiter, &waiter->event});  // first: if this throws it is still waiting
    waiter->answered = true;
    waiters_.remove(waiter);
    if (waiter->timer != 0) waiter->core.cancel(std::exchange(waiter->timer, 0));
    if (waiter->tell) waiter->tell(*waiter);
}

class PersistentNodeOp::LaterWaiter final : public Waiting {
public:
    LaterWaiter(std::shared_ptr<PersistentNodeOp> node, const std::shared_ptr<SessionCore>& core, const char* operation,
                Until until, Patience patience, Done done)
        : Waiting(core, operation, patience, std::move(done)),
          node_(std::move(node)),
          waiter_(std::make_shared<Waiter>(*core, operation, until == Until::gone)) {}

private:
    void begin() override {
        if (waiter_->tell) return;
        waiter_->tell = [this](const Waiter& told) { tell(told.answer, told.error); };
        node_->waiters_.push_back(waiter_);
        if (node_->may_answer(*waiter_)) node_->answer(waiter_);
    }
    void at_end() override {
        waiter_->answered = true;
        node_->waiters_.remove(waiter_);
    }
    void closed(Errc, std::string) override { begin(); }  // the node tells what that means

    const std::shared_ptr<PersistentNodeOp> node_;
    const std::shared_ptr<Waiter> waiter_;
};

void PersistentNodeOp::wait_later(const std::shared_ptr<SessionCore>& core, const char* operation, Until until,
                                  Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done) {
    check_callable(done, operation, user_path_);
    if (until == Until::gone) {
        close(*core);
    } else {
        core->throw_if_closed(operation, user_path_);
    }
    const auto make = [&](Patience patience, Waiting::Done answer) {
        return std::make_shared<LaterWaiter>(self(), core, operation, until, patience, std::move(answer));
    };
    internal::wait_later(core, make, deadline, std::move(stop), std::move(done));
}

Error PersistentNodeOp::closed_error(const char* operation) const {
    if (why_closed_) return Error(why_closed_->errc(), operation, user_path_, why_closed_->what());
    return Error(Errc::closed, operation, user_path_, "make a new object on an open Session");
}

bool PersistentNodeOp::wait(const std::shared_ptr<Waiter>& waiter, Deadline deadline, std::stop_token stop) {
    SessionCore& core = waiter->core;
    // With a reference of its own: it may run later, when this call is over.
    const auto give_up = [&] { core.run_locked_or_post([self = self(), waiter] { self->answer(waiter); }); };
    bool entered = false;
    try {
        const std::stop_callback on_stop(std::move(stop), give_up);
        core.run_locked([&] {
            entered = true;
            if (waiter->answered) return;  // stopped already
            waiters_.push_back(waiter);
            if (may_answer(*waiter) || deadline.is_passed(core.runtime().steady_now())) return answer(waiter);
            if (deadline.is_never()) return;
            waiter->timer = core.at(core.runtime().instant(deadline), [this, waiter] {
                waiter->timer = 0;
                answer(waiter);
            });
        });
        waiter->event.wait();
    } catch (...) {
        if (entered) give_up();
        throw;
    }
    if (waiter->error) throw *waiter->error;
    return waiter->answer;
}

bool PersistentNodeOp::wait_present(SessionCore& core, const char* operation, Deadline deadline, std::stop_token stop) {
    return wait(std::make_shared<Waiter>(core, operation, false), deadline, std::move(stop));
}

Subscription PersistentNodeOp::watch_state(const std::shared_ptr<SessionCore>& core,
                                           PersistentNode::Listener listener) {
    const auto told = std::make_shared<StateListener>(core->shared_runtime(), core->shared_log(),
                                                      "a listener of a persistent node", std::move(listener));
    core->run_locked([&] {
        std::erase_if(listeners_, [](const auto& gone) { return gone.expired(); });
        listeners_.push_back(told);
        told->push(fsm_.state());
    });
    return Subscription([told, process = ProcessMark()] {
        if (!process.inherited()) told->cancel();
    });
}

// ---- calls of the owner --------------------------------------------------------------------------------------

void PersistentNodeOp::check_size(const char* operation, const std::string& data) const {
    const std::size_t bytes = request_wire_bytes(path_, data, acl_);
    if (bytes <= kMaxRequestBytes) return;
    throw Error(Errc::too_large, operation, user_path_,
                "the request would have " + std::to_string(bytes) + " bytes and the servers take " +
                    std::to_string(kMaxRequestBytes) + "; keep large data elsewhere and their place here");
}

void PersistentNodeOp::set_data(SessionCore& core, const char* operation, std::string data) {
    check_size(operation, data);
    std::optional<Error> closed;
    core.run_locked([&] {
        if (fsm_.state() == PersistentNodeState::closed) {
            closed = closed_error(operation);
        } else {
            fsm_.set_data(std::move(data));
        }
    });
    if (closed) throw *closed;
}

std::string PersistentNodeOp::data(SessionCore& core) const {
    std::string out;
    core.run_locked([&] { out = fsm_.data(); });
    return out;
}

void PersistentNodeOp::close(SessionCore& core) noexcept {
    core.run_locked_or_post([self = self()] { self->fsm_.close(); });
}

bool PersistentNodeOp::close_and_wait(SessionCore& core, Deadline deadline) {
    close(core);
    return wait(std::make_shared<Waiter>(core, "close_and_wait", true), deadline, {});
}

}  // namespace zkrecipes::internal
