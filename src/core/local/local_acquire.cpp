#include <utility>

#include "core/local/local_acquire_fsm.hpp"
#include "core/local/local_queue.hpp"

namespace zkrecipes::internal {
namespace {

/// One call in a local queue.
class LocalAcquireOp final : public Acquisition, public LocalAcquirePort, private LocalWaiter {
public:
    LocalAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<LocalQueue> local, const char* operation,
                   Patience patience, Done done)
        : Acquisition(std::move(core), operation, std::move(done)), local_(std::move(local)), fsm_(*this, patience) {}

private:
    OperationFsm& machine() noexcept override { return fsm_; }
    const std::shared_ptr<const LockLabel>& label() const override { return local_->label(); }

    // LocalAcquirePort
    void line_up() override {
        id_ = local_->next_id();
        local_->arrive(id_, *this);
    }
    void step_out() override { local_->leave(id_); }
    void try_once() override {
        if (auto share = local_->take_kept()) return granted(std::move(share));
        if (local_->busy()) return fsm_.on_taken();
        try_ = local_->make_try([this, self = shared_from_this()](AcquireAnswer answer) {
            local_->end_try(answer.share);
            if (answer.error) return refused(*answer.error);
            if (answer.share) return granted(std::move(answer.share));
            fsm_.on_missed(ended_as(answer));
        });
        const auto asked = try_;
        asked->start(Deadline::never());
    }
    void stop_try() override { try_->stop(); }
    bool is_taken() const override { return local_->is_taken(); }
    std::uint64_t grants() const override { return local_->grants(); }
    void answer(Ended how, Errc error, std::string detail) override {
        try_.reset();
        if (answer_.share || answer_.error) return deliver(std::move(answer_));
        deliver(how, error, local_->path(), std::move(detail));
    }

    // LocalWaiter
    void in_front(std::size_t contenders) override { show_in_front(contenders); }
    void granted(std::shared_ptr<HoldRef> share) override {
        answer_.share = std::move(share);
        fsm_.on_granted();
    }
    void refused(const Error& why) override {
        answer_.error = why;
        fsm_.on_refused(why.errc(), {});
    }

    const std::shared_ptr<LocalQueue> local_;
    LocalAcquireFsm fsm_;
    WaiterId id_ = 0;
    std::shared_ptr<Acquisition> try_;
    AcquireAnswer answer_;
};

}  // namespace

MakeAcquisition local_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<LocalQueue>& local,
                                  const char* operation) {
    return [&core, &local, operation](Patience patience, Acquisition::Done done) {
        return std::make_shared<LocalAcquireOp>(core, local, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
