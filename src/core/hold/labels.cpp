#include "core/hold/labels.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>

#include "client/wire_size.hpp"
#include "core/operation/read_op.hpp"
#include "core/operation/to_result.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

/// How many more of the session waited when the node was made.
std::size_t waiting_of(const std::string& data) {
    Participant participant;
    read_payload(data, participant);
    return static_cast<std::size_t>(participant.waiting);
}

constexpr const char* kOver = "the hold has ended, so its node may not be written any more; stop the guarded work";

/// Reads all nodes and writes them by one transaction, on the condition that nobody else has written them since. So an
/// answer that was lost is no harm: to begin again shows what has become of the write, and one that comes late is
/// refused.
class LabelsOp final : public ReadOp {
public:
    LabelsOp(const std::shared_ptr<SessionCore>& core, const char* operation, std::shared_ptr<const Hold> hold,
             Payload payload)
        : ReadOp(core, operation, core->user_path(hold->node())),
          hold_(std::move(hold)),
          payload_(std::move(payload)) {}

    /// False when it is done: it found a request to release. May be kept beyond this object.
    const std::shared_ptr<bool> written = std::make_shared<bool>(true);

private:
    void begin() override {
        ops_.assign(hold_->nodes().size(), {});
        next_ = answered_ = 0;
        while (next_ < ops_.size() && next_ < kInFlight) read_next();
    }

    void read_next() {
        const std::size_t index = next_++;
        const auto& node = hold_->nodes()[index];
        core().get(node,
                   executed("get", node, [this, index](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       on_read(index, rc, data, stat);
                   }));
    }

    void on_read(std::size_t index, Rc rc, const std::string& data, const NodeStat& stat) {
        if (rc != Rc::ok || stat.czxid != hold_->czxid()) return fail(Errc::lock_lost, kOver);
        if (data == kRevocationRequest) {  // it stays, and nothing is written
            *written = false;
            return done();
        }
        MultiOp& op = ops_[index];
        op.kind = MultiOp::Kind::set;
        op.path = hold_->nodes()[index];
        op.version = stat.version;
        const std::chrono::system_clock::time_point made{std::chrono::milliseconds(stat.ctime_ms)};
        op.data = payload_.at(made, waiting_of(data));
        if (op.data == data) op.kind = MultiOp::Kind::check;  // the answer to an earlier write was lost
        if (++answered_ == ops_.size()) return write();
        if (next_ < ops_.size()) read_next();
    }

    void write() {
        if (!hold_->held()) return fail(Errc::lock_lost, kOver);
        if (multi_wire_bytes(ops_) > kMaxRequestBytes) {
            return fail(Errc::too_large, "the labels of all nodes of the hold are more than the servers take at once");
        }
        core().multi(std::move(ops_),
                     executed("set", hold_->node(), [this](Rc rc, const std::vector<MultiResult>&, Instant) {
                         // Refused: somebody has written one of them, or deleted it. The next read shows which.
                         rc == Rc::ok ? done() : begin();
                     }));
    }

    const std::shared_ptr<const Hold> hold_;
    const Payload payload_;
    std::vector<MultiOp> ops_;
    std::size_t next_ = 0;
    std::size_t answered_ = 0;
};

Error not_done(const Hold& hold, const char* operation, const std::string& path) {
    if (!hold.held()) return {Errc::lock_lost, operation, path, kOver};
    return {Errc::unreachable, operation, path,
            "the deadline passed or it was stopped before a server answered; the labels may have been written"};
}

/// What the nodes of the recipe object say, with these labels. Throws Error.
Payload payload_of(const HoldRef* share, Labels labels, const char* operation) {
    if (share == nullptr) {
        throw Error(Errc::lock_lost, operation, "",
                    "the grant is empty: nothing was acquired, or it was given back; stop the guarded work");
    }
    const auto path = share->core()->user_path(share->hold().node());
    share->core()->throw_if_inherited(operation, path);
    if (!share->options()) {
        throw Error(Errc::unsupported, operation, path,
                    "the data of this node are the id of its owner and nothing else, as in Curator's election");
    }
    LockOptions options = *share->options();
    options.labels = std::move(labels);
    return {options, operation, path};
}

/// Stops the call when the hold is lost: while no server answers it would wait for one.
struct StopOnLoss {
    std::weak_ptr<SessionCore> core;
    std::weak_ptr<LabelsOp> op;
    void operator()() const {
        const auto session = core.lock();
        const auto call = op.lock();
        if (session && call) session->run_locked_or_post([call] { call->stop(); });
    }
};
using OnLoss = std::stop_callback<StopOnLoss>;

}  // namespace

bool set_labels(const std::shared_ptr<HoldRef>& share, Labels labels, Deadline deadline, std::stop_token stop) {
    constexpr const char* operation = "set_labels";
    auto payload = payload_of(share.get(), std::move(labels), operation);
    const auto hold = share->shared_hold();
    const auto core = share->core();
    const auto op = std::make_shared<LabelsOp>(core, operation, hold, std::move(payload));
    const OnLoss on_loss(hold->lost(), StopOnLoss{core, op});
    if (op->run(deadline, std::move(stop)) != ReadOp::Outcome::done) {
        throw not_done(*hold, operation, core->user_path(hold->node()));
    }
    return *op->written;
}

void set_labels_async(const std::shared_ptr<HoldRef>& share, Labels labels, Deadline deadline, std::stop_token stop,
                      std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "set_labels_async";
    auto payload = payload_of(share.get(), std::move(labels), operation);
    const auto hold = share->shared_hold();
    const auto core = share->core();
    const auto path = core->user_path(hold->node());
    check_callable(done, operation, path);
    core->throw_if_closed(operation, path);
    const auto op = std::make_shared<LabelsOp>(core, operation, hold, std::move(payload));
    const auto on_loss = std::make_shared<std::optional<OnLoss>>();
    on_loss->emplace(hold->lost(), StopOnLoss{core, op});
    op->run_later(deadline, std::move(stop),
                  [hold, path, on_loss, written = op->written, done = std::move(done)](ReadOp::Outcome outcome,
                                                                                       const Error* error) {
                      on_loss->reset();
                      std::optional<Error> why;
                      if (error) why = *error;
                      if (!why && outcome != ReadOp::Outcome::done) why = not_done(*hold, operation, path);
                      done(to_result(*written, why));
                  });
}

}  // namespace zkrecipes::internal
