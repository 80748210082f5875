#include "core/acquire/downgrade.hpp"

#include <utility>
#include <vector>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "core/acquire/downgrade_fsm.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

/// Gives a DowngradeFsm its connection, timers and budget, as AcquireOp does for an AcquireFsm.
class DowngradeOp final : public Acquisition,
                          public DowngradePort,
                          public SessionObserver,
                          public std::enable_shared_from_this<DowngradeOp> {
public:
    DowngradeOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue, std::shared_ptr<HoldRef> alone,
                const char* operation, Patience patience, Done done)
        : core_(std::move(core)),
          queue_(std::move(queue)),
          alone_(std::move(alone)),
          writer_node_(alone_->hold().node()),
          token_(alone_->token() + 1),
          operation_(operation),
          done_(std::move(done)),
          fsm_(*this, {queue_->spec.base, queue_->spec.dialect, sequence_at_end(writer_node_)}, patience) {}

    void start(Deadline deadline) override {
        self_ = shared_from_this();
        if (const Error* why = core_->closed_because()) return fsm_.on_closed(why->errc(), words_of(*why));
        if (stopped_early_) return fsm_.stop();
        started_ = true;
        core_->add_observer(*this);
        observing_ = true;
        if (!deadline.is_never()) {
            deadline_timer_ = core_->at(core_->runtime().instant(deadline), [this] {
                deadline_timer_ = 0;
                fsm_.deadline();
            });
        }
        fsm_.start();
    }
    void stop() override { started_ ? fsm_.stop() : void(stopped_early_ = true); }

private:
    static std::string words_of(const Error& why) { return why.errc() == Errc::closed ? "" : why.what(); }
    static std::int32_t sequence_at_end(const std::string& node) {
        const std::string any[] = {""};
        const auto name = parse_queue_name(base_name(node), any);
        return name ? name->sequence : 0;  // a node that is held has a number
    }

    // SessionObserver
    void on_connected(bool) override {}
    void on_suspended() override {}
    void on_session_lost() override { fsm_.on_session_lost(); }
    void on_closed(const Error& why) override {
        observing_ = false;
        fsm_.on_closed(why.errc(), words_of(why));
    }

    // DowngradePort
    bool connected() const override { return core_->connected(); }
    std::uint64_t incarnation() const override { return core_->incarnation().number; }
    std::int64_t session_id() const override { return core_->incarnation().session_id; }
    Instant now() const override { return core_->runtime().now(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    std::string new_uuid() override { return random_uuid(core_->runtime()); }
    std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) override {
        return core_->options().retry.next(state);
    }
    bool exclusive_held() const override { return alone_->hold().held(); }

    void create(Ticket ticket, const std::string& name) override {
        std::vector<MultiOp> ops(2);
        ops[0].path = writer_node_;
        ops[1].kind = MultiOp::Kind::create;
        ops[1].path = path_of(name);
        ops[1].data = node_data(*core_, *queue_, operation_);
        ops[1].acl = queue_->acl;
        ops[1].mode = CreateMode::ephemeral;
        const auto self = shared_from_this();
        core_->multi(std::move(ops), [self, ticket](Rc rc, const std::vector<MultiResult>&, Instant sent_at) {
            self->fsm_.on_created(ticket, rc, sent_at);
        });
        core_->exists(path_of(name),
                      [self, ticket](Rc rc, const NodeStat& stat, Instant) { self->fsm_.on_own(ticket, rc, stat); });
    }
    void renew_lease(Ticket ticket, const std::string& name) override {
        core_->renew_lease({path_of(name)}, [self = shared_from_this(), ticket](Rc rc, Instant) {
            self->fsm_.on_lease_renewed(ticket, rc);
        });
    }

    bool reserve_node(const std::string& name) override {
        if (reserved_bytes_ != 0) return true;  // one session, one node
        const std::size_t bytes = path_of(name).size();
        if (!core_->reserve_ephemeral(bytes)) return false;
        reserved_bytes_ = bytes;
        reserved_in_ = core_->incarnation().number;
        return true;
    }
    void lease_committed(Instant sent_at) override { core_->lease_committed(sent_at); }
    bool begin_hold(const std::string& name, std::int64_t czxid) override {
        hold_ = core_->begin_hold(path_of(name), czxid);
        return hold_ != nullptr;
    }
    void delete_node(const std::string& name) override { core_->delete_node(path_of(name), reservation_release()); }
    void delete_by_identity(const std::string& identity) override {
        core_->delete_by_identity(queue_->spec.directory, identity, reservation_release());
    }
    std::function<void(bool)> reservation_release() {
        return [weak = core_->weak_from_this(), incarnation = reserved_in_,
                bytes = std::exchange(reserved_bytes_, 0)](bool gone) {
            if (gone && bytes != 0) give_back_reservation(weak, incarnation, bytes);
        };
    }

    void start_timer(std::chrono::milliseconds delay) override {
        retry_timer_ = core_->at(core_->runtime().now() + delay, [this] {
            retry_timer_ = 0;
            fsm_.on_timer();
        });
    }
    void stop_timer() override {
        if (retry_timer_ != 0) core_->cancel(std::exchange(retry_timer_, 0));
    }

    void answer(Ended how, Errc error, std::string detail) override {
        AcquireAnswer answer;
        if (how == Ended::failed) answer.error.emplace(error, operation_, queue_->user_path, detail);
        if (how == Ended::granted) {
            answer.share =
                std::make_shared<HoldRef>(core_, std::move(hold_), std::exchange(reserved_bytes_, 0), token_);
        }
        std::exchange(done_, nullptr)(std::move(answer));
    }
    void finished() override {
        if (observing_) core_->remove_observer(*this);
        if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
        if (reserved_bytes_ != 0) give_back_reservation(core_->weak_from_this(), reserved_in_, reserved_bytes_);
        // As AcquireOp::finished: the core, to which the share refers too, must not be destroyed under its own lock.
        SessionCore& session = *core_;
        session.defer([self = std::move(self_), core = std::move(core_), alone = std::move(alone_)] {});
    }

    std::string path_of(const std::string& name) const { return join_path(queue_->spec.directory, name); }

    std::shared_ptr<SessionCore> core_;  // null when finished
    const std::shared_ptr<const Queue> queue_;
    std::shared_ptr<HoldRef> alone_;
    const std::string writer_node_;
    // Larger than the writer's own, and not larger than that of any later writer, so that a resource which has seen a
    // later writer refuses this share. The czxid of its node would not do: a writer that waits already has a smaller
    // one.
    const FencingToken token_;
    const char* const operation_;
    Done done_;
    DowngradeFsm fsm_;
    std::shared_ptr<Hold> hold_;
    std::shared_ptr<DowngradeOp> self_;
    TimerId deadline_timer_ = 0;
    TimerId retry_timer_ = 0;
    std::size_t reserved_bytes_ = 0;
    std::uint64_t reserved_in_ = 0;  // incarnation
    bool started_ = false;
    bool stopped_early_ = false;
    bool observing_ = false;
};

}  // namespace

MakeAcquisition make_downgrade(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> shared,
                               std::shared_ptr<HoldRef> alone, const char* operation) {
    return [=](Patience patience, Acquisition::Done done) {
        return std::make_shared<DowngradeOp>(core, shared, alone, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
