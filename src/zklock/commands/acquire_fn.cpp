#include "zklock/commands/acquire_fn.hpp"

#include <memory>
#include <utility>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>

namespace zkrecipes::zklock {
namespace {

template <class Lock>
AcquireFn asking(std::shared_ptr<Lock> lock) {
    return [lock = std::move(lock)](Deadline deadline, std::stop_token stop, auto done) {
        lock->acquire_async(deadline, std::move(stop), std::move(done));
    };
}

AcquireFn standing(Session& session, const Options& options) {
    ElectionOptions election;
    election.id = options.id;
    election.layout = options.layout;
    election.create_parents = options.create_parents;
    return [election = std::make_shared<LeaderElection>(session, options.lock, std::move(election))](
               Deadline deadline, std::stop_token stop, auto done) {
        election->campaign_async(deadline, std::move(stop), std::move(done));
    };
}

std::vector<MultiLock::Member> members(const Options& options) {
    std::vector<MultiLock::Member> result;
    for (const LockSpec& lock : options.locks) {
        const MultiLock::As as = lock.mode == Mode::shared   ? MultiLock::As::shared
                                 : lock.mode == Mode::writer ? MultiLock::As::exclusive
                                                             : MultiLock::As::mutex;
        result.push_back({lock.path, as});
    }
    return result;
}

}  // namespace

AcquireFn acquire_fn(Session& session, const Options& options) {
    LockOptions lock_options;
    lock_options.name = options.name;
    lock_options.labels = options.meta;
    lock_options.create_parents = options.create_parents;
    lock_options.dialect = options.dialect;
    if (options.together) {
        return asking(std::make_shared<MultiLock>(session, members(options), std::move(lock_options)));
    }
    switch (options.locks.front().mode) {
        case Mode::exclusive:
            return asking(std::make_shared<ExclusiveMutex>(session, options.lock, std::move(lock_options)));
        case Mode::semaphore:
            return asking(std::make_shared<Semaphore>(session, options.lock, options.leases, std::move(lock_options)));
        case Mode::writer:
            return asking(std::make_shared<ReadWriteLock>(session, options.lock, std::move(lock_options)));
        case Mode::leader: return standing(session, options);
        case Mode::shared: break;
    }
    return [lock = std::make_shared<ReadWriteLock>(session, options.lock, std::move(lock_options))](
               Deadline deadline, std::stop_token stop, auto done) {
        lock->acquire_shared_async(deadline, std::move(stop), std::move(done));
    };
}

}  // namespace zkrecipes::zklock
