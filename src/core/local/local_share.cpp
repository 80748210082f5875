#include "core/local/local_share.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {

std::shared_ptr<HoldRef> SharedNode::join(const LockOptions& terms) {
    const auto one = inside_.empty() ? nullptr : inside_.back().share.lock();
    if (!one || closed_ || joined_ >= terms.local_handovers) return nullptr;
    const auto& core = one->core();
    if (core->runtime().now() - since_ >= terms.local_turn) return nullptr;
    // Nobody's limit has passed: that of the first of them is the earliest.
    if (!core->may_go_on(*inside_.front().hold)) return nullptr;
    auto hold = core->join(one->own_hold());
    if (!hold) return nullptr;
    auto share = std::make_shared<HoldRef>(core, std::move(hold), one->reserved_bytes(), one->token());
    share->describe(one->options());
    share->set_heir(shared_from_this());
    share->limit_to(terms.max_hold);
    enter(share);
    ++joined_;
    return share;
}

void SharedNode::enter(const std::shared_ptr<HoldRef>& share) {
    places_.emplace(&share->hold(), inside_.insert(inside_.end(), {share, share->own_hold()}));
}

bool SharedNode::exit(const Hold& hold) {
    const auto place = places_.find(&hold);
    if (place == places_.end()) return false;
    inside_.erase(place->second);
    places_.erase(place);
    return true;
}

bool SharedNode::stays(HoldRef& share) {
    exit(share.hold());
    while (!inside_.empty() && inside_.front().share.expired() && inside_.front().hold->is_over()) {
        exit(*inside_.front().hold);
    }
    if (inside_.empty()) return false;
    if (!share.core()->may_go_on(*share.own_hold())) closed_ = true;  // something of its owner may still come
    share.core()->leave_node(share.own_hold());
    return true;
}

/// The others have a limit, too, or a lock object: shares with other options do not join (queue_key).
bool SharedNode::was_last(const Hold& hold) {
    closed_ = true;  // its owner may be at work
    return exit(hold) && inside_.empty();
}

std::shared_ptr<LocalShare> LocalShare::of(const std::shared_ptr<SessionCore>& core, const Queue& queue) {
    const std::string key = "local share" + queue_key(queue);
    std::shared_ptr<LocalShare> out;
    core->run_locked([&] {
        out = std::static_pointer_cast<LocalShare>(core->shared(key));
        if (out) return;
        // The session forgets it with the last lock object that knows it.
        out = std::shared_ptr<LocalShare>(new LocalShare, [core, key](LocalShare* shares) {
            delete shares;
            core->run_locked_or_post([core, key] {
                if (!core->shared(key)) core->share(key, {});
            });
        });
        core->share(key, out);
    });
    return out;
}

void LocalShare::held_by(const std::shared_ptr<HoldRef>& share, Instant now) {
    node_ = std::make_shared<SharedNode>(share, now);
    share->set_heir(node_);
}

namespace {

class JoiningFsm final : public AcquireFsm {
public:
    JoiningFsm(AcquirePort& port, const QueueSpec& spec, Patience patience, std::function<bool()> join)
        : AcquireFsm(port, spec, patience), join_(std::move(join)) {}
    void start() override { join_() ? leave(Ended::granted) : AcquireFsm::start(); }

private:
    const std::function<bool()> join_;
};

class SharedAcquireOp final : public AcquireOp {
public:
    SharedAcquireOp(std::shared_ptr<SessionCore> core, const std::shared_ptr<const Queue>& queue,
                    std::shared_ptr<LocalShare> shares, std::shared_ptr<LocalQueue> writers, const char* operation,
                    Patience patience, Done done)
        : AcquireOp(std::move(core), queue, operation, std::move(done),
                    [&, this](AcquirePort& port) {
                        return std::make_unique<JoiningFsm>(port, queue->spec, patience, [this] { return join(); });
                    }),
          shares_(std::move(shares)),
          writers_(std::move(writers)) {}

private:
    bool join() {
        if (!writers_->busy()) joined_.share = shares_->join(queue_->options);
        return joined_.share != nullptr;
    }
    void answer(Ended how, Errc error, std::string detail) override {
        if (joined_.share) return deliver(std::move(joined_));
        AcquireOp::answer(how, error, std::move(detail));
    }
    void on_share(const std::shared_ptr<HoldRef>& share) override {
        shares_->held_by(share, now());
        AcquireOp::on_share(share);
    }

    const std::shared_ptr<LocalShare> shares_;
    const std::shared_ptr<LocalQueue> writers_;
    AcquireAnswer joined_;
};

}  // namespace

MakeAcquisition shared_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                                   const std::shared_ptr<LocalShare>& shares,
                                   const std::shared_ptr<LocalQueue>& writers, const char* operation) {
    return [&, operation](Patience patience, Acquisition::Done done) -> std::shared_ptr<Acquisition> {
        if (queue->options.local_handovers == 0) {
            return std::make_shared<AcquireOp>(core, queue, operation, patience, std::move(done));
        }
        return std::make_shared<SharedAcquireOp>(core, queue, shares, writers, operation, patience, std::move(done));
    };
}

}  // namespace zkrecipes::internal
