// Semaphore: at most N leases at the same time, taken one or several at once, in the order of arrival.
//
// Layout (that of Curator's InterProcessSemaphoreV2):
//   <path>/locks                              container, made if it is missing: the queue
//   <path>/locks/_c_<uuid>-lock-<sequence>    ephemeral, sequential; one for each contender
//   <path>/leases                             container, made if it is missing; each child is a lease; data: N, as
//                                             {"v":1,"leases":N}, or empty until this library takes a lease
//   <path>/leases/_c_<uuid>-lease-<number>    ephemeral; the leases of one grant differ in the number; data: the owner
//
// Steps (src/core/acquire/semaphore_fsm.cpp runs them, and src/core/acquire/acquire_fsm.cpp those in the queue):
//   1. Create the own node in <path>/locks, and directly after it send exists(<path>/locks) and get(<path>/leases).
//      If there is no other contender, we are at the head of the queue. One round trip. Otherwise wait as for a mutex
//      until we are at the head.
//   2. At the head: the children of <path>/leases are the leases that are held, whoever made them; its data is N.
//      (Empty data: the N of this object. Another N: an error.) If enough leases are free, go on. Otherwise watch the
//      children and look again whenever they change. Only the head of the queue does so.
//   3. One transaction: check that the data of <path>/leases are still those of step 2 (or write N there), delete the
//      own node in the queue, create all leases, set the data of the first one, which answers the token. Held. If the
//      transaction is refused because N was changed: back to 2; because the own node is gone: back to 1; because the
//      data may not be set: again without that, and directly after it exists(first lease) for the token. Directly
//      before it get(<path>/leases) with a watch, unless there is one or the transaction writes N. Then this must be
//      the node of step 2, and the watch must not have fired. Otherwise (also where there can be no watch, and where
//      the answer to the transaction was lost) read <path>/leases once more: if it was made anew, give the leases back,
//      and back to 1.
//   4. Release: delete the leases. The caller does not wait; the session makes sure that it happens.
//   A try lists <path>/locks and reads <path>/leases first. It ends if there is any contender or too few leases are
//   free: two reads in one round trip, nothing written.
//   If the answer to the transaction is lost: sync, exists(first lease). If it exists and belongs to this session, all
//   leases are ours. Otherwise the own node is still in the queue, and the call goes on at its position.
//   A change of N: one transaction that writes the data and creates and deletes a child, which wakes the head.
//
// There are never more than N leases: only the head of the queue creates leases, and it leaves the queue by the same
// transaction. So from the moment when our node is at the head until that transaction, leases only become fewer.
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

#include "core/acquire/acquire_async.hpp"
#include "core/acquire/semaphore.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the semaphore object may be destroyed meanwhile.
class SemaphoreImpl {
public:
    SemaphoreImpl(std::shared_ptr<SessionCore> session, const std::string& path, std::int32_t leases,
                  LockOptions options)
        : core(std::move(session)), place(make_semaphore(*core, path, std::move(options), leases, true, "Semaphore")) {}

    static constexpr const char* kName = "Semaphore";
    const std::string& path() const noexcept { return place->queue->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const SemaphorePlace> place;
};

}  // namespace internal

using internal::SemaphoreImpl;
using internal::SessionAccess;

Semaphore::Semaphore(Session& session, std::string path, std::int32_t leases, LockOptions options)
    : impl_(std::make_shared<SemaphoreImpl>(SessionAccess::core(session), path, leases, std::move(options))) {}
Semaphore::Semaphore(Semaphore&&) noexcept = default;
Semaphore& Semaphore::operator=(Semaphore&&) noexcept = default;
Semaphore::~Semaphore() = default;

Grant Semaphore::try_acquire_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_for(1, timeout, std::move(stop));
}

Grant Semaphore::try_acquire_for(std::int32_t count, Timeout timeout, std::stop_token stop) {
    return try_acquire_until(count, internal::deadline_in(impl_, timeout, "acquire"), std::move(stop));
}

Grant Semaphore::try_acquire_until(Deadline deadline, std::stop_token stop) {
    return try_acquire_until(1, deadline, std::move(stop));
}

Grant Semaphore::try_acquire_until(std::int32_t count, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return to_grant(acquire_blocking(impl->core, lease_acquisition(impl->core, impl->place, "acquire", count), deadline,
                                     std::move(stop)));
}

void Semaphore::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    acquire_async(1, deadline, std::move(stop), std::move(done));
}

void Semaphore::acquire_async(std::int32_t count, Deadline deadline, std::stop_token stop,
                              std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, lease_acquisition(impl->core, impl->place, operation, count), operation,
                            impl->path(), deadline, std::move(stop), std::move(done));
}

std::int32_t Semaphore::leases(Deadline deadline) {
    const auto impl = internal::usable(impl_, "leases");
    return read_terms(impl->core, impl->place, "leases").get(deadline);
}

void Semaphore::leases_async(Deadline deadline, std::stop_token stop, std::function<void(Result<std::int32_t>)> done) {
    constexpr const char* operation = "leases_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), read_terms(impl->core, impl->place, operation), deadline,
              std::move(stop), std::move(done));
}

void Semaphore::set_leases(std::int32_t leases, Deadline deadline) {
    const auto impl = internal::usable(impl_, "set_leases");
    write_terms(impl->core, impl->place, leases, "set_leases").get(deadline);
}

void Semaphore::set_leases_async(std::int32_t leases, Deadline deadline, std::stop_token stop,
                                 std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "set_leases_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), write_terms(impl->core, impl->place, leases, operation), deadline,
              std::move(stop), std::move(done));
}

std::vector<Participant> Semaphore::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return read_semaphore(impl->core, impl->place, "participants").get(deadline);
}

void Semaphore::participants_async(Deadline deadline, std::stop_token stop,
                                   std::function<void(Result<std::vector<Participant>>)> done) {
    constexpr const char* operation = "participants_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), read_semaphore(impl->core, impl->place, operation), deadline,
              std::move(stop), std::move(done));
}

const std::string& Semaphore::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
