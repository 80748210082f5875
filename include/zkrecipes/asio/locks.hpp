#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/asio/call.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

namespace zkrecipes {

// Locks, semaphores and elections. The rules for all of these functions: zkrecipes/asio.hpp.
// The comments name the type of the result.

/// Of an ExclusiveMutex, ReadWriteLock, MultiLock, Semaphore or SemaphoreMutex. Grant.
template <class Lock, class Token>
auto async_acquire(Lock& lock, Deadline deadline, Token&& token) {
    return asio_calls::initiate<Grant, Token>(
        token, [&lock, deadline](auto... last) { lock.acquire_async(deadline, last...); });
}

/// Several leases. Grant.
template <class Token>
auto async_acquire(Semaphore& semaphore, std::int32_t count, Deadline deadline, Token&& token) {
    return asio_calls::initiate<Grant, Token>(
        token, [&semaphore, count, deadline](auto... last) { semaphore.acquire_async(count, deadline, last...); });
}

/// Grant.
template <class Token>
auto async_acquire_shared(ReadWriteLock& lock, Deadline deadline, Token&& token) {
    return asio_calls::initiate<Grant, Token>(
        token, [&lock, deadline](auto... last) { lock.acquire_shared_async(deadline, last...); });
}

/// Grant. `exclusive` must live until the operation is initiated.
template <class Token>
auto async_downgrade(ReadWriteLock& lock, const Grant& exclusive, Deadline deadline, Token&& token) {
    return asio_calls::initiate<Grant, Token>(
        token, [&lock, &exclusive, deadline](auto... last) { lock.downgrade_async(exclusive, deadline, last...); });
}

/// Grant.
template <class Token>
auto async_campaign(LeaderElection& election, Deadline deadline, Token&& token) {
    return asio_calls::initiate<Grant, Token>(
        token, [&election, deadline](auto... last) { election.campaign_async(deadline, last...); });
}

/// bool. The grant is released in any case.
template <class Token>
auto async_release_and_wait(Grant grant, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [grant = std::move(grant), deadline](auto... last) mutable {
        grant.release_and_wait_async(deadline, last...);
    });
}

/// bool.
template <class Token>
auto async_set_labels(const Grant& grant, std::map<std::string, std::string> labels, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&grant, labels, deadline](auto... last) { grant.set_labels_async(labels, deadline, last...); });
}

/// std::vector<Participant>; of a MultiLock, std::vector<LockView>.
template <class Lock, class Token>
auto async_participants(Lock& lock, Deadline deadline, Token&& token) {
    using Participants = decltype(lock.participants());
    return asio_calls::initiate<Participants, Token>(
        token, [&lock, deadline](auto... last) { lock.participants_async(deadline, last...); });
}

/// std::int32_t; bool.
template <class Token>
auto async_leases(Semaphore& semaphore, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::int32_t, Token>(
        token, [&semaphore, deadline](auto... last) { semaphore.leases_async(deadline, last...); });
}
template <class Token>
auto async_set_leases(Semaphore& semaphore, std::int32_t leases, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&semaphore, leases, deadline](auto... last) { semaphore.set_leases_async(leases, deadline, last...); });
}

/// std::optional<Participant>; std::vector<Participant>.
template <class Token>
auto async_leader(LeaderElection& election, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<Participant>, Token>(
        token, [&election, deadline](auto... last) { election.leader_async(deadline, last...); });
}
template <class Token>
auto async_candidates(LeaderElection& election, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::vector<Participant>, Token>(
        token, [&election, deadline](auto... last) { election.candidates_async(deadline, last...); });
}

}  // namespace zkrecipes
