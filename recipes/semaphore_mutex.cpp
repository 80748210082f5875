// SemaphoreMutex: one holder at a time, in the order of arrival, and whoever likes may give it back.
//
// Layout and steps: a Semaphore (semaphore.cpp) of one lease, as Curator's InterProcessSemaphoreMutex is. The number
// one is agreed on like any other: the path cannot be that of a semaphore of several leases.
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/spdlog.h>

#include <cassert>
#include <deque>
#include <mutex>
#include <utility>

#include "core/acquire/semaphore.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the mutex object may be destroyed meanwhile.
class SemaphoreMutexImpl {
public:
    SemaphoreMutexImpl(std::shared_ptr<SessionCore> session, const std::string& path, LockOptions options)
        : core(std::move(session)),
          place(make_semaphore(*core, path, std::move(options), 1, false, "SemaphoreMutex")) {}

    MakeAcquisition acquisition(const char* operation) const { return lease_acquisition(core, place, operation, 1); }

    std::shared_ptr<HoldRef> acquire(Deadline deadline, std::stop_token stop) {
        return acquire_blocking(core, acquisition("acquire"), deadline, std::move(stop));
    }

    void add_locked(std::shared_ptr<HoldRef> share) {
        const std::lock_guard lock(mutex_);
        locked_.push_back(std::move(share));
    }
    /// Null: nothing is locked. It is taken out before it is given back, which lets in the next one that locks.
    std::shared_ptr<HoldRef> take_locked() {
        const std::lock_guard lock(mutex_);
        if (locked_.empty()) return nullptr;
        auto share = std::move(locked_.front());
        locked_.pop_front();
        return share;
    }
    std::shared_ptr<HoldRef> youngest_locked() const {
        const std::lock_guard lock(mutex_);
        return locked_.empty() ? nullptr : locked_.back();
    }

    const std::string& path() const noexcept { return place->queue->user_path; }

    static constexpr const char* kName = "SemaphoreMutex";
    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const SemaphorePlace> place;

private:
    mutable std::mutex mutex_;                     // guards locked_; nothing is called with it held
    std::deque<std::shared_ptr<HoldRef>> locked_;  // oldest first; more than one only after a loss
};

}  // namespace internal

using internal::AcquireAnswer;
using internal::SemaphoreMutexImpl;
using internal::SessionAccess;

SemaphoreMutex::SemaphoreMutex(Session& session, std::string path, LockOptions options)
    : impl_(std::make_shared<SemaphoreMutexImpl>(SessionAccess::core(session), path, std::move(options))) {}
SemaphoreMutex::SemaphoreMutex(SemaphoreMutex&&) noexcept = default;
SemaphoreMutex& SemaphoreMutex::operator=(SemaphoreMutex&&) noexcept = default;
SemaphoreMutex::~SemaphoreMutex() = default;

Grant SemaphoreMutex::acquire() { return acquire_before(Deadline::never()); }

Grant SemaphoreMutex::acquire_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return Grant(impl->acquire(deadline, std::move(stop)));
}

void SemaphoreMutex::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    const auto impl = internal::usable(impl_, "acquire_async");
    constexpr const char* operation = "acquire_async";
    if (!done) throw Error(Errc::bad_option, operation, path(), "the callback is empty; pass a callable");
    impl->core->throw_if_closed(operation, path());
    acquire_later(impl->core, impl->acquisition(operation), deadline, std::move(stop),
                  [done = std::move(done)](AcquireAnswer answer) {
                      AcquireResult result;
                      if (answer.share) result.grant = Grant(std::move(answer.share));
                      if (answer.error) result.error = std::make_exception_ptr(*answer.error);
                      done(std::move(result));
                  });
}

void SemaphoreMutex::lock() {
    [[maybe_unused]] const bool locked = lock_before(Deadline::never());
    assert(locked);  // without a hold a wait ends only by its deadline, a stop, or an exception
}

bool SemaphoreMutex::try_lock() { return lock_before(Deadline::passed()); }

bool SemaphoreMutex::lock_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    auto share = impl->acquire(deadline, std::move(stop));
    if (!share) return false;
    impl->add_locked(std::move(share));
    return true;
}

void SemaphoreMutex::unlock() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (const auto share = impl->take_locked()) return share->leave();
    impl->core->log().error("unlock {}: not locked; ignored", impl->path());
    assert(!"SemaphoreMutex::unlock without a lock");
}

bool SemaphoreMutex::held() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->youngest_locked() : nullptr;
    return share && share->hold().held();
}

FencingToken SemaphoreMutex::token() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->youngest_locked() : nullptr;
    return share ? share->hold().czxid() : 0;
}

std::stop_token SemaphoreMutex::lost() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->youngest_locked() : nullptr;
    return share ? share->hold().lost() : std::stop_token();
}

std::vector<Participant> SemaphoreMutex::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return read_semaphore(impl->core, *impl->place, "participants", deadline);
}

Deadline SemaphoreMutex::deadline_in(std::chrono::nanoseconds from_now) const {
    return Deadline::after(internal::usable(impl_, "deadline_in")->core->runtime().steady_now(), from_now);
}

const std::string& SemaphoreMutex::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
