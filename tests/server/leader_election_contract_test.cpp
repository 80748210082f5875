// A leadership is a lock, too.
#include <zkrecipes/leader_election.hpp>

#include "server/lock_contract.hpp"

namespace zkrecipes::test {
namespace {

/// An election as the contract asks for it: what lock() has won is given up by unlock().
class ElectionAsLock {
public:
    ElectionAsLock(Session& session, const std::string& path, ElectionLayout layout)
        : election_(session, path, {.id = "a candidate", .layout = layout}), held_(std::make_shared<Held>()) {}

    Grant try_acquire() { return election_.try_campaign(); }
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {}) {
        return election_.try_campaign_for(timeout, std::move(stop));
    }
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {}) {
        return election_.try_campaign_until(deadline, std::move(stop));
    }
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
        election_.campaign_async(deadline, std::move(stop), std::move(done));
    }
    void lock() { keep(election_.campaign()); }
    bool try_lock() { return keep(election_.try_campaign()); }
    bool try_lock_for(Timeout timeout) { return keep(election_.try_campaign_for(timeout)); }
    bool try_lock_until(Deadline at) { return keep(election_.try_campaign_until(at)); }
    std::vector<Participant> participants(Deadline deadline) { return election_.candidates(deadline); }
    void unlock() {
        Grant leaving;
        const std::lock_guard guard(held_->mutex);
        leaving = std::move(held_->grants.front());
        held_->grants.pop_front();
    }

private:
    struct Held {
        std::mutex mutex;
        std::deque<Grant> grants;
    };
    bool keep(Grant grant) {
        if (!grant) return false;
        const std::lock_guard guard(held_->mutex);
        held_->grants.push_back(std::move(grant));
        return true;
    }

    LeaderElection election_;
    std::shared_ptr<Held> held_;
};

template <ElectionLayout layout>
struct ElectionCase {
    using Lock = ElectionAsLock;
    static constexpr bool reentrant = false;
    static constexpr bool one_place = false;
    static Lock make(Session& session, const std::string& path) { return {session, path, layout}; }
    static std::size_t nodes(const std::vector<std::string>& children) { return children.size(); }
};

using Elections = ::testing::Types<ContractOf<ElectionCase<ElectionLayout::latch>, OnFibers>,
                                   ContractOf<ElectionCase<ElectionLayout::selector>, OnThreads>>;
INSTANTIATE_TYPED_TEST_SUITE_P(LeaderElection, LockContract, Elections);

}  // namespace
}  // namespace zkrecipes::test
