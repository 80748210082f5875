// Semaphore: at most n leases at the same time, taken one or several at once, in the order of arrival.
//
// Layout (that of Curator's InterProcessSemaphoreV2):
//   <path>/locks                                   container, made when missing: the queue of those who want leases
//   <path>/locks/_c_<uuid>-lock-<sequence>         ephemeral, sequential; one per contender
//   <path>/leases                                  container, made when missing; each child is a lease; data: n, as
//                                                  {"v":1,"leases":n}, or empty while nobody of ours has taken one
//   <path>/leases/_c_<uuid>-lease-<number>         ephemeral; the leases of one grant differ in the number; data: who
//   it
//                                                  is, for people
//
// Steps (src/core/acquire/semaphore_fsm.cpp runs them, and src/core/acquire/acquire_fsm.cpp those in the queue):
//   1. Create the own node in <path>/locks and, right behind it, exists(<path>/locks) and get(<path>/leases). Nobody
//      else is in the queue: at its head. One round trip. Otherwise stand in the queue as for a mutex, up to its head.
//   2. At the head: <path>/leases tells how many leases are held (its children, whoever made them) and how many there
//      are (its data; empty: as many as this object was made for; another number: an error). As many are free as are
//      wanted: go on. Otherwise watch its children, and look again whenever they change. Only the head does.
//   3. One transaction: check that the data of <path>/leases are still those of step 2 (or write the number there),
//      delete the own node in the queue, create all leases. Right behind it, exists(first lease) for its token. Held.
//      It did not happen, because the number was changed: back to 2; because the own node is gone: back to 1.
//   4. Release: delete the leases. Nobody waits for that; the session sees to it that it happens.
//   A try lists <path>/locks and reads <path>/leases first, and ends there if anybody stands in the queue or too few
//   leases are free: two reads in one round trip, nothing written.
//   The reply to the transaction is lost: sync, exists(first lease). It is there, and is of this session: all of them
//   are ours. It is not: the own node is still in the queue, and the call goes on at its place.
//   Changing n: one transaction that writes the data and creates and deletes a child, which wakes the head.
//
// Never more than n: only the head of the queue creates leases, and it leaves the queue with the same transaction. So
// from the moment in which our node is at the head until that transaction the leases only become fewer.
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

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

using internal::AcquireAnswer;
using internal::SemaphoreImpl;
using internal::SessionAccess;

Semaphore::Semaphore(Session& session, std::string path, std::int32_t leases, LockOptions options)
    : impl_(std::make_shared<SemaphoreImpl>(SessionAccess::core(session), path, leases, std::move(options))) {}
Semaphore::Semaphore(Semaphore&&) noexcept = default;
Semaphore& Semaphore::operator=(Semaphore&&) noexcept = default;
Semaphore::~Semaphore() = default;

Grant Semaphore::acquire(std::int32_t count) { return acquire_before(Deadline::never(), {}, count); }

Grant Semaphore::acquire_before(Deadline deadline, std::stop_token stop, std::int32_t count) {
    const auto impl = internal::usable(impl_, "acquire");
    return Grant(acquire_blocking(impl->core, lease_acquisition(impl->core, impl->place, "acquire", count), deadline,
                                  std::move(stop)));
}

Grant Semaphore::try_acquire(std::int32_t count) { return acquire_before(Deadline::passed(), {}, count); }

void Semaphore::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done,
                              std::int32_t count) {
    const auto impl = internal::usable(impl_, "acquire_async");
    constexpr const char* operation = "acquire_async";
    if (!done) throw Error(Errc::bad_option, operation, path(), "the callback is empty; pass a callable");
    impl->core->throw_if_closed(operation, path());
    acquire_later(impl->core, lease_acquisition(impl->core, impl->place, operation, count), deadline, std::move(stop),
                  [done = std::move(done)](AcquireAnswer answer) {
                      AcquireResult result;
                      if (answer.share) result.grant = Grant(std::move(answer.share));
                      if (answer.error) result.error = std::make_exception_ptr(*answer.error);
                      done(std::move(result));
                  });
}

std::int32_t Semaphore::leases(Deadline deadline) {
    const auto impl = internal::usable(impl_, "leases");
    return read_terms(impl->core, impl->place, "leases", deadline);
}

void Semaphore::set_leases(std::int32_t leases, Deadline deadline) {
    const auto impl = internal::usable(impl_, "set_leases");
    write_terms(impl->core, impl->place, leases, "set_leases", deadline);
}

std::vector<Participant> Semaphore::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return read_semaphore(impl->core, *impl->place, "participants", deadline);
}

Deadline Semaphore::deadline_in(std::chrono::nanoseconds from_now) const {
    return Deadline::after(internal::usable(impl_, "deadline_in")->core->runtime().steady_now(), from_now);
}

const std::string& Semaphore::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
