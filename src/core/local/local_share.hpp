#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/acquire/acquire.hpp"
#include "core/local/local_queue.hpp"

namespace zkrecipes::internal {

/// The node of a share that is held, for all of the session who hold by it. Each has a hold of its own; the last one to
/// leave deletes the node. *Lock held.*
class SharedNode final : public HoldHeir, public std::enable_shared_from_this<SharedNode> {
public:
    SharedNode(const std::shared_ptr<HoldRef>& first, Instant since) : since_(since) { enter(first); }

    /// One more share of the node. Null: the session is not sure of the node, the terms allow no more, or nobody is
    /// inside any more.
    std::shared_ptr<HoldRef> join(const LockOptions& terms);

private:
    bool stays(HoldRef& share) override;
    bool take_over(HoldRef&) override { return false; }
    void given_back(HoldRef&) override {}
    std::shared_ptr<HoldHeir> who_counts() override { return shared_from_this(); }
    bool was_last(const Hold& hold) override;

    void enter(const std::shared_ptr<HoldRef>& share);
    bool exit(const Hold& hold);  // false: it was not inside

    struct Inside {
        std::weak_ptr<HoldRef> share;  // has this object as its heir; expired: stays until its hold is over
        std::shared_ptr<const Hold> hold;
    };

    const Instant since_;  // the first of them holds
    std::uint32_t joined_ = 0;
    bool closed_ = false;       // nobody may join any more
    std::list<Inside> inside_;  // in the order in which their holds began
    std::unordered_map<const Hold*, std::list<Inside>::iterator> places_;
};

/// The last share of a session for one lock, which others of the session may join: at most local_handovers of them, and
/// for local_turn, so that whoever waits elsewhere for the lock waits for a bounded time. A share that was made by a
/// downgrade is not among them: nobody else may hold before the node of its writer is gone.
class LocalShare {
public:
    static std::shared_ptr<LocalShare> of(const std::shared_ptr<SessionCore>& core, const Queue& queue);

    // *Lock held.*
    std::shared_ptr<HoldRef> join(const LockOptions& terms) { return node_ ? node_->join(terms) : nullptr; }
    void held_by(const std::shared_ptr<HoldRef>& share, Instant now);

private:
    std::shared_ptr<SharedNode> node_;
};

/// An acquire of a share, which joins one that the session holds if it may. Whoever of the session waits for the lock
/// alone, in `writers`, is not overtaken. Refers to its arguments.
MakeAcquisition shared_acquisition(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                                   const std::shared_ptr<LocalShare>& shares,
                                   const std::shared_ptr<LocalQueue>& writers, const char* operation);

}  // namespace zkrecipes::internal
