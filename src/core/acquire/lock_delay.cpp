#include "core/acquire/lock_delay.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/acquire/lock_delay_fsm.hpp"

namespace zkrecipes::internal {
namespace {

/// An acquire in two parts: the queue, and then a LockDelayFsm, which gets its connection and timers here.
class DelayedAcquireOp final : public Acquisition,
                               public LockDelayPort,
                               public SessionObserver,
                               public std::enable_shared_from_this<DelayedAcquireOp> {
public:
    DelayedAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, const char* operation,
                     Patience patience, Done done)
        : core_(std::move(core)),
          queue_(std::move(queue)),
          operation_(operation),
          patience_(patience),
          done_(std::move(done)) {}

    void start(Deadline deadline) override {
        self_ = shared_from_this();
        deadline_ = deadline;
        queue_up();
    }
    void stop() override {
        stopped_ = true;
        if (in_queue_) return in_queue_->stop();
        if (fsm_) fsm_->stop();
    }

private:
    std::chrono::milliseconds delay() const { return queue_->options.delay_after_loss; }

    // ---- the queue
    void queue_up() {
        in_queue_ = std::make_shared<AcquireOp>(
            core_, queue_, operation_, patience_,
            [self = self_](AcquireAnswer answer) { self->on_queue_answer(std::move(answer)); });
        const auto queue = in_queue_;  // it may answer at once
        if (stopped_) queue->stop();
        queue->start(deadline_);
    }
    void on_queue_answer(AcquireAnswer answer) {
        in_queue_.reset();
        if (!answer.share) return finish(std::move(answer));
        share_ = std::move(answer.share);
        core_->add_observer(*this);
        observing_ = true;
        if (!deadline_.is_never()) {
            deadline_timer_ = core_->at(core_->runtime().instant(deadline_), [this] {
                deadline_timer_ = 0;
                fsm_->deadline();
            });
        }
        fsm_ = std::make_shared<LockDelayFsm>(*this, share_->hold().czxid(), delay(), patience_);
        const auto fsm = fsm_;
        stopped_ ? fsm->stop() : fsm->start();
    }
    void let_go_of_second_part() {
        if (std::exchange(observing_, false)) core_->remove_observer(*this);
        if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
        core_->defer([fsm = std::move(fsm_)] {});  // it is its function that has brought us here
    }

    // ---- SessionObserver
    void on_connected(bool) override {
        if (const auto fsm = fsm_) fsm->on_connected();
    }
    void on_suspended() override {}
    void on_session_lost() override {
        if (const auto fsm = fsm_) fsm->on_session_lost();
    }
    void on_closed(const Error& why) override {
        observing_ = false;
        if (const auto fsm = fsm_) fsm->on_closed(why.errc(), why.errc() == Errc::closed ? "" : why.what());
    }

    // ---- LockDelayPort
    bool connected() const override { return core_->connected(); }
    Instant now() const override { return core_->runtime().now(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) override {
        return core_->options().retry.next(state);
    }
    bool held() const override { return share_->hold().held(); }
    void read(Ticket ticket) override {
        core_->get(queue_->spec.directory,
                   [self = shared_from_this(), fsm = fsm_, ticket](Rc rc, const std::string& data, const NodeStat& stat,
                                                                   Instant) { fsm->on_read(ticket, rc, data, stat); });
    }
    void mark(Ticket ticket, const std::string& data, std::int32_t version) override {
        std::vector<MultiOp> ops(2);
        ops[0].path = share_->hold().node();
        ops[1].kind = MultiOp::Kind::set;
        ops[1].path = queue_->spec.directory;
        ops[1].data = data;
        ops[1].version = version;
        core_->multi(std::move(ops), [self = shared_from_this(), fsm = fsm_, ticket](
                                         Rc rc, const std::vector<MultiResult>& results, Instant) {
            const auto refused = std::ranges::find(results, rc, &MultiResult::rc) - results.begin();
            fsm->on_marked(ticket, rc, static_cast<std::size_t>(refused));
        });
    }
    void start_timer(std::chrono::milliseconds wait) override {
        timer_ = core_->at(core_->runtime().now() + wait, [this] {
            timer_ = 0;
            const auto fsm = fsm_;
            fsm->on_timer();
        });
    }
    void stop_timer() override {
        if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
    }
    void note_delay() override {
        core_->log().warn("{} {}: the last holder has vanished without giving back; waiting {} ms (session {:#x})",
                          operation_, queue_->user_path, delay().count(), printable(core_->incarnation().session_id));
    }
    void start_again() override {
        let_go_of_second_part();
        give_back(false);
        queue_up();
    }
    void answer(Ended how, Errc error, std::string detail, bool marked) override {
        let_go_of_second_part();
        AcquireAnswer answer;
        if (how == Ended::granted) {
            share_->before_delete(farewell());
            answer.share = std::move(share_);
            return finish(std::move(answer));
        }
        if (how == Ended::failed) answer.error.emplace(error, operation_, queue_->user_path, detail);
        give_back(marked);
        finish(std::move(answer));
    }

    void give_back(bool marked) {
        if (marked) share_->before_delete(farewell());
        share_->discard_inside();
        // It refers to the core, which must not be destroyed under its own lock.
        core_->defer([share = std::move(share_)] {});
    }

    /// Step 4. The delete of the node that follows in any case finds it gone, or does it alone.
    std::function<void(SessionCore&)> farewell() const {
        std::vector<MultiOp> ops(2);
        ops[0].kind = MultiOp::Kind::set;
        ops[0].path = queue_->spec.directory;
        ops[0].data = write_holder_mark({share_->hold().czxid(), false});
        ops[1].kind = MultiOp::Kind::remove;
        ops[1].path = share_->hold().node();
        return [ops, incarnation = share_->hold().incarnation()](SessionCore& core) {
            if (core.connected() && core.incarnation().number == incarnation) core.multi(ops, {});
        };
    }

    void finish(AcquireAnswer answer) {
        std::exchange(done_, nullptr)(std::move(answer));
        SessionCore& session = *core_;
        session.defer([self = std::move(self_), core = std::move(core_)] {});
    }

    std::shared_ptr<SessionCore> core_;  // null when finished
    const std::shared_ptr<const Queue> queue_;
    const char* const operation_;
    const Patience patience_;
    Done done_;
    Deadline deadline_;
    std::shared_ptr<DelayedAcquireOp> self_;
    std::shared_ptr<AcquireOp> in_queue_;  // the first part
    std::shared_ptr<HoldRef> share_;       // the second part: what is to be used
    std::shared_ptr<LockDelayFsm> fsm_;
    TimerId deadline_timer_ = 0;
    TimerId timer_ = 0;
    bool stopped_ = false;
    bool observing_ = false;
};

}  // namespace

MakeAcquisition make_delayed(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue,
                             const char* operation) {
    return [=](Patience patience, Acquisition::Done done) {
        return std::make_shared<DelayedAcquireOp>(core, queue, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
