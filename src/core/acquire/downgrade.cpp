#include "core/acquire/downgrade.hpp"

#include <utility>
#include <vector>

#include "base/paths.hpp"
#include "core/acquire/downgrade_fsm.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/payload.hpp"

namespace zkrecipes::internal {
namespace {

class DowngradeOp final : public Acquisition, public DowngradePort {
public:
    DowngradeOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> queue,
                std::shared_ptr<HoldRef> exclusive, const char* operation, Patience patience, Done done)
        : Acquisition(std::move(core), operation, std::move(done)),
          queue_(std::move(queue)),
          exclusive_(std::move(exclusive)),
          writer_node_(exclusive_->hold().node()),
          token_(exclusive_->token() + 1),
          fsm_(*this, {queue_->spec.base, queue_->spec.dialect, sequence_at_end(writer_node_)}, patience) {
        exclusive_->hold().bind_to_owner();  // writers wait for the share below it, not for another holder of it
    }

private:
    static std::int32_t sequence_at_end(const std::string& node) {
        const std::string any[] = {""};
        const auto name = parse_queue_name(base_name(node), any);
        return name ? name->sequence : 0;  // a node that is held has a number
    }
    std::string path_of(const std::string& name) const { return join_path(queue_->spec.directory, name); }

    OperationFsm& machine() noexcept override { return fsm_; }
    const std::shared_ptr<const LockLabel>& label() const override { return queue_->label; }

    void on_share(const std::shared_ptr<HoldRef>& share) override {
        share->describe({queue_, &queue_->options});
        share->limit_to(queue_->options.max_hold);
    }

    bool exclusive_held() const override { return exclusive_->hold().held(); }

    void create(Ticket ticket, const std::string& name) override {
        std::vector<MultiOp> ops(2);
        ops[0].path = writer_node_;
        ops[1].kind = MultiOp::Kind::create;
        ops[1].path = path_of(name);
        ops[1].data = node_data(*core_, *queue_);
        ops[1].acl = queue_->acl;
        ops[1].mode = CreateMode::ephemeral;
        core_->multi(std::move(ops), answered([this, ticket](Rc rc, const std::vector<MultiResult>&, Instant sent_at) {
                         fsm_.on_created(ticket, rc, sent_at);
                     }));
        core_->exists(path_of(name), answered([this, ticket](Rc rc, const NodeStat& stat, Instant) {
                          fsm_.on_own(ticket, rc, stat);
                      }));
    }
    void renew_lease(Ticket ticket, const std::string& name) override {
        core_->renew_lease({path_of(name)},
                           answered([this, ticket](Rc rc, Instant) { fsm_.on_lease_renewed(ticket, rc); }));
    }

    bool reserve_node(const std::string& name) override { return reserved_.reserve(*core_, path_of(name).size()); }
    void lease_committed(Instant sent_at) override { core_->lease_committed(sent_at); }
    bool begin_hold(const std::string& name, std::int64_t czxid) override {
        hold_ = core_->begin_hold(path_of(name), czxid);
        return hold_ != nullptr;
    }
    void delete_node(const std::string& name) override {
        core_->delete_node(path_of(name), reserved_.release_when_gone(*core_));
    }
    void delete_by_identity(const std::string& identity) override {
        core_->delete_by_identity(queue_->spec.directory, identity, reserved_.release_when_gone(*core_));
    }

    void answer(Ended how, Errc error, std::string detail) override {
        deliver(how, error, queue_->user_path, std::move(detail), token_);
    }
    void finished() override {
        core_->let_go(std::move(exclusive_));  // it refers to the core, too
        Acquisition::finished();
    }

    const std::shared_ptr<const Queue> queue_;
    std::shared_ptr<HoldRef> exclusive_;
    const std::string writer_node_;
    // Larger than the writer's own token, and not larger than that of any later writer, so that a resource which has
    // seen a later writer refuses this hold. The czxid of the reader's node would be wrong: a writer that waits already
    // has a smaller one.
    const FencingToken token_;
    DowngradeFsm fsm_;
};

}  // namespace

MakeAcquisition make_downgrade(std::shared_ptr<SessionCore> core, std::shared_ptr<const Queue> shared,
                               std::shared_ptr<HoldRef> exclusive, const char* operation) {
    return [=](Patience patience, Acquisition::Done done) {
        return std::make_shared<DowngradeOp>(core, shared, exclusive, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
