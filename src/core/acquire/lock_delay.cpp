#include "core/acquire/lock_delay.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/acquire/lock_delay_fsm.hpp"

namespace zkrecipes::internal {
namespace {

/// An acquire in the queue, and then the delay.
class DelayedAcquireOp final : public Acquisition, public LockDelayPort {
public:
    DelayedAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Patience patience, Done done)
        : Acquisition(std::move(core), operation, std::move(done)),
          queue_(std::move(queue)),
          patience_(patience),
          fsm_(*this, queue_->options.delay_after_loss, patience) {}

private:
    OperationFsm& machine() noexcept override { return fsm_; }
    const std::shared_ptr<const LockLabel>& label() const override { return queue_->label; }

    // ---- LockDelayPort
    void enter_queue() override {
        const auto queue =
            std::make_shared<AcquireOp>(core_, queue_, operation_, patience_,
                                        answered([this](AcquireAnswer answer) { on_queue_answer(std::move(answer)); }));
        queue->on_in_front(answered([this](std::size_t contenders) { show_in_front(contenders); }));
        in_queue_ = queue;
        queue->start(deadline_);  // it may answer at once
    }
    void on_queue_answer(AcquireAnswer answer) {
        const bool met_others = in_queue_ && in_queue_->is_busy();
        in_queue_.reset();
        share_ = std::move(answer.share);
        if (share_) return fsm_.on_acquired(share_->hold().czxid(), met_others);
        const Ended how = ended_as(answer);
        queue_error_ = std::move(answer.error);
        fsm_.on_not_acquired(how);
    }
    bool in_queue() const override { return in_queue_ != nullptr; }
    bool queue_is_busy() const override { return in_queue_ && in_queue_->is_busy(); }
    void leave_queue() override {
        const auto queue = in_queue_;
        queue->stop();
    }
    bool held() const override { return share_->hold().held(); }
    void read(Ticket ticket) override {
        core_->get(queue_->spec.directory, answered([this, ticket](Rc rc, const std::string& data, const NodeStat& stat,
                                                                   Instant) { fsm_.on_read(ticket, rc, data, stat); }));
    }
    void mark(Ticket ticket, const std::string& data, std::int32_t version) override {
        std::vector<MultiOp> ops(2);
        ops[0].path = share_->hold().node();
        ops[1].kind = MultiOp::Kind::set;
        ops[1].path = queue_->spec.directory;
        ops[1].data = data;
        ops[1].version = version;
        core_->multi(std::move(ops), answered([this, ticket](Rc rc, const std::vector<MultiResult>& results, Instant) {
                         const auto refused = std::ranges::find(results, rc, &MultiResult::rc) - results.begin();
                         fsm_.on_marked(ticket, rc, static_cast<std::size_t>(refused));
                     }));
    }
    void note_delay() override {
        core_->log().warn("{} {}: the last holder has vanished without a release; waiting {} ms (session {:#x})",
                          operation_, queue_->user_path, queue_->options.delay_after_loss.count(),
                          printable(core_->incarnation().session_id));
    }
    void give_back(bool marked) override {
        const auto share = std::exchange(share_, nullptr);
        if (!share) return;  // it was given back, and a later part of the same step has thrown
        if (marked) share->before_delete(farewell(*share));
        share->discard_inside();
    }
    void answer(Ended how, Errc error, std::string detail) override {
        if (how == Ended::granted) {
            share_->before_delete(farewell(*share_));
            share_->limit_to(queue_->options.max_hold);
            return deliver({{std::move(share_)}, {}});
        }
        if (queue_error_) return deliver({{}, std::move(queue_error_)});
        deliver(how, error, queue_->user_path, std::move(detail));
    }

    /// Step 4. The delete of the node that follows in any case finds it gone, or does it alone.
    std::function<void(SessionCore&)> farewell(const HoldRef& share) const {
        std::vector<MultiOp> ops(2);
        ops[0].kind = MultiOp::Kind::set;
        ops[0].path = queue_->spec.directory;
        ops[0].data = write_holder_mark({share.hold().czxid(), false});
        ops[1].kind = MultiOp::Kind::remove;
        ops[1].path = share.hold().node();
        return [ops, incarnation = share.hold().incarnation()](SessionCore& core) {
            if (core.connected() && core.incarnation().number == incarnation) core.multi(ops, {});
        };
    }

    const std::shared_ptr<const Queue> queue_;
    const Patience patience_;
    LockDelayFsm fsm_;
    std::shared_ptr<Operation> in_queue_;
    std::optional<Error> queue_error_;  // with which it ended there
    std::shared_ptr<HoldRef> share_;    // acquired, and not used yet
};

}  // namespace

MakeAcquisition make_delayed(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue,
                             const char* operation) {
    return [=](Patience patience, Acquisition::Done done) {
        return std::make_shared<DelayedAcquireOp>(core, queue, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
