// SemaphoreMutex: one holder at a time, in the order of arrival; any fiber or thread may release it.
//
// Layout and steps: a Semaphore (semaphore.cpp) with one lease, as in Curator's InterProcessSemaphoreMutex. The path
// must not be that of a semaphore with several leases.
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/spdlog.h>

#include <cassert>
#include <deque>
#include <mutex>
#include <utility>

#include "core/acquire/acquire_async.hpp"
#include "core/acquire/semaphore.hpp"
#include "core/hold/reentrant_lock.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the mutex object may be destroyed meanwhile.
class SemaphoreMutexImpl {
public:
    SemaphoreMutexImpl(std::shared_ptr<SessionCore> session, const std::string& path, LockOptions options)
        : core(std::move(session)),
          place(make_semaphore(*core, path, std::move(options), 1, false, "SemaphoreMutex")) {}

    MakeAcquisition acquisition(const char* operation) const { return lease_acquisition(core, place, operation, 1); }

    Acquired acquire(Deadline deadline, std::stop_token stop) {
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
    std::shared_ptr<HoldRef> current_hold() const {
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

using internal::SemaphoreMutexImpl;
using internal::SessionAccess;

SemaphoreMutex::SemaphoreMutex(Session& session, std::string path, LockOptions options)
    : impl_(std::make_shared<SemaphoreMutexImpl>(SessionAccess::core(session), path, std::move(options))) {}
SemaphoreMutex::SemaphoreMutex(SemaphoreMutex&&) noexcept = default;
SemaphoreMutex& SemaphoreMutex::operator=(SemaphoreMutex&&) noexcept = default;
SemaphoreMutex::~SemaphoreMutex() = default;

Grant SemaphoreMutex::try_acquire_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_until(internal::deadline_in(impl_, timeout, "acquire"), std::move(stop));
}

Grant SemaphoreMutex::try_acquire_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return internal::to_grant(impl->acquire(deadline, std::move(stop)));
}

void SemaphoreMutex::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, impl->acquisition(operation), operation, impl->path(), deadline,
                            std::move(stop), std::move(done));
}

void SemaphoreMutex::lock() { internal::must_hold(try_lock_until(Deadline::never())); }

bool SemaphoreMutex::try_lock_for(Timeout timeout, std::stop_token stop) {
    return try_lock_until(internal::deadline_in(impl_, timeout, "lock"), std::move(stop));
}

bool SemaphoreMutex::try_lock_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    const auto share = impl->acquire(deadline, std::move(stop)).share;
    if (!share) return false;
    try {
        impl->add_locked(share);
    } catch (...) {
        share->leave();  // nobody else knows of it
        throw;
    }
    return true;
}

void SemaphoreMutex::unlock() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (const auto share = impl->take_locked()) return share->leave();
    impl->core->log().error("unlock {}: not locked; ignored", impl->path());
    assert(false && "SemaphoreMutex::unlock without a lock");
}

bool SemaphoreMutex::held() const noexcept { return is_held(current_hold(impl_)); }
FencingToken SemaphoreMutex::token() const noexcept { return token_of(current_hold(impl_)); }
std::stop_token SemaphoreMutex::lost() const noexcept { return lost_of(current_hold(impl_)); }

std::vector<Participant> SemaphoreMutex::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return read_semaphore(impl->core, impl->place, "participants").get(deadline);
}

void SemaphoreMutex::participants_async(Deadline deadline, std::stop_token stop,
                                        std::function<void(Result<std::vector<Participant>>)> done) {
    constexpr const char* operation = "participants_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), read_semaphore(impl->core, impl->place, operation), deadline,
              std::move(stop), std::move(done));
}

const std::string& SemaphoreMutex::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
