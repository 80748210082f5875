// ReadWriteLock: one exclusive holder (writer), or any number of shared holders (readers), in the order of arrival.
//
// Layout (that of Curator's InterProcessReadWriteLock):
//   <path>                                container; made if it is missing
//   <path>/_c_<uuid>-__WRIT__<sequence>   ephemeral, sequential; one for each writer
//   <path>/_c_<uuid>-__READ__<sequence>   the same for a reader; writers and readers share one counter
// In the kazoo dialect <path> is persistent and the names are <uuid without dashes>__lock__<sequence> (writer) and
// …__rlock__<sequence> (reader). Nodes of an ExclusiveMutex on the same path count as writers.
//
// Steps (src/core/acquire/acquire_fsm.cpp runs them, as for the mutex):
//   1. Create the own node, and send exists(<path>) directly after it. If the directory has one child, and its last
//      change was that create, the lock is held. One round trip. (A reader beside other readers goes on to 2.)
//   2. Otherwise list <path>. The lock is held by a writer if no contender has a lower number, and by a reader if no
//      writer has one.
//   3. Otherwise watch the nearest of those, and only that one. A release wakes only waiters that can go on or must
//      find the next node to watch.
//   4. When it is gone: check the own node by a committed write, list, and go back to 2. A reader that had one writer
//      before it needs no list, because there are never new writers before it. A writer always needs the list: a
//      Curator peer (5.5 and later) that downgrades makes a reader's node with the lower number of its writer's node,
//      after the waiting writer has listed. It does so while its writer's node exists, so a list after the end of
//      that node shows it.
//   5. Release: delete the own node.
//   6. Downgrade: one transaction checks the own writer's node and makes a reader's node with the same number,
//      ephemeral and not sequential (src/core/acquire/downgrade_fsm.cpp runs it). The lock is held. Later writers see
//      that node by the list of step 4, as with Curator's; later readers ignore it.
//   A try lists first, and ends if a contender is in the way: one read, nothing written.
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

#include "base/paths.hpp"
#include "core/acquire/acquire_async.hpp"
#include "core/acquire/downgrade.hpp"
#include "core/hold/reentrant_lock.hpp"
#include "core/local/local_share.hpp"
#include "core/operation/to_result.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"

namespace zkrecipes {
namespace internal {
namespace {

constexpr BaseName kWriter{"__WRIT__", "__lock__", true};
constexpr BaseName kReader{"__READ__", "__rlock__", true};

}  // namespace

/// Copied by every call that waits, so that the lock object may be destroyed meanwhile.
class ReadWriteLockImpl {
public:
    /// One of the two modes.
    struct Side {
        std::shared_ptr<const Queue> queue;
        ReentrantLock holders;
    };

    ReadWriteLockImpl(std::shared_ptr<SessionCore> session, const std::string& path, const LockOptions& options)
        : core(std::move(session)),
          exclusive{make_queue(*core, path, options, kWriter, rule_exclusive(options.dialect), kName), {core, path}},
          local(LocalQueue::of(core, exclusive.queue)),
          shared{make_queue(*core, path, options, kReader, rule_shared(options.dialect), kName), {core, path}},
          shares(LocalShare::of(core, *shared.queue)) {}

    /// Waits in the queue for the exclusive mode.
    auto wait_exclusive(Deadline deadline, const std::stop_token& stop) const {
        return [this, deadline, &stop] {
            constexpr const char* operation = "acquire";
            exclusive.holders.warn_of_own_hold(operation, deadline);
            shared.holders.warn_of_own_hold(operation, deadline);
            return acquire_blocking(core, local_acquisition(core, local, operation), deadline, stop);
        };
    }
    /// The same for lock(), which refuses to wait for the caller's own lock_shared().
    auto lock_exclusive(Deadline deadline, const std::stop_token& stop) const {
        return [this, wait = wait_exclusive(deadline, stop)] {
            if (shared.holders.locked_by(this_owner(), "acquire")) throw_would_deadlock("acquire");
            return wait();
        };
    }
    /// Waits in the queue for the shared mode.
    auto wait_shared(Deadline deadline, const std::stop_token& stop) const {
        return [this, deadline, &stop] {
            constexpr const char* operation = "acquire_shared";
            exclusive.holders.warn_of_own_hold(operation, deadline);
            return acquire_blocking(core, shared_acquisition(core, shared.queue, shares, local, operation), deadline,
                                    stop);
        };
    }
    /// The same for lock_shared(), which downgrades the caller's own lock().
    auto lock_shared(Deadline deadline, const std::stop_token& stop) const {
        return [this, deadline, &stop, wait = wait_shared(deadline, stop)] {
            constexpr const char* operation = "acquire_shared";
            const auto writer = exclusive.holders.locked_by(this_owner(), operation);
            return writer ? acquire_blocking(core, downgrade(writer, operation), deadline, stop) : wait();
        };
    }
    MakeAcquisition downgrade(std::shared_ptr<HoldRef> writer, const char* operation) const {
        return make_downgrade(core, shared.queue, std::move(writer), operation);
    }
    /// The hold of the grant, if it is one that this lock can downgrade.
    std::shared_ptr<HoldRef> writer_of(const Grant& grant, const char* operation) const;

    std::shared_ptr<HoldRef> current_hold() const {
        auto share = exclusive.holders.of_caller();
        return share ? share : shared.holders.of_caller();
    }
    auto participants(const char* operation) const {
        return read_participants(core, operation, path(), exclusive.queue->spec.directory);
    }
    bool unused() const noexcept { return exclusive.holders.unused() && shared.holders.unused(); }

    static constexpr const char* kName = "ReadWriteLock";
    const std::string& path() const noexcept { return exclusive.queue->user_path; }

    const std::shared_ptr<SessionCore> core;
    const Side exclusive;
    const std::shared_ptr<LocalQueue> local;  // of the exclusive mode
    const Side shared;
    const std::shared_ptr<LocalShare> shares;

private:
    /// A waiter behind a node of its own waits for ever, and in a fair queue so do all later ones.
    [[noreturn]] void throw_would_deadlock(const char* operation) const {
        throw Error(Errc::would_deadlock, operation, path(),
                    "this fiber or thread has locked it in shared mode and would wait for itself; unlock that first");
    }
};

std::shared_ptr<HoldRef> ReadWriteLockImpl::writer_of(const Grant& grant, const char* operation) const {
    const auto refuse = [&](const char* why) {
        throw Error(Errc::bad_option, operation, path(),
                    std::string(why) + "; pass a grant that this lock gave in exclusive mode, with the same session");
    };
    const auto& share = GrantAccess::share(grant);
    if (!share) refuse("the grant is empty");
    if (share->core() != core) refuse("the grant belongs to another session");
    const auto& nodes = share->hold().nodes();
    const std::string writers[] = {exclusive.queue->spec.base};
    if (nodes.size() != 1 || parent_path(nodes.front()) != exclusive.queue->spec.directory ||
        !parse_queue_name(base_name(nodes.front()), writers)) {
        refuse("the grant is not one of this lock in exclusive mode");
    }
    return share;
}

}  // namespace internal

using internal::ReadWriteLockImpl;
using internal::SessionAccess;

ReadWriteLock::ReadWriteLock(Session& session, std::string path, LockOptions options)
    : impl_(std::make_shared<ReadWriteLockImpl>(SessionAccess::core(session), path, options)) {}
ReadWriteLock::ReadWriteLock(std::shared_ptr<ReadWriteLockImpl> impl) noexcept : impl_(std::move(impl)) {}
ReadWriteLock ReadWriteLock::in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                                const LockOptions& options) {
    return ReadWriteLock(std::make_shared<ReadWriteLockImpl>(core, path, options));
}
ReadWriteLock ReadWriteLock::same() const { return ReadWriteLock(impl_); }
// A waiter has a copy of the pointer; new copies come from same(), which is called under the registry's mutex.
bool ReadWriteLock::unused() const noexcept { return impl_.use_count() == 1 && impl_->unused(); }
ReadWriteLock::ReadWriteLock(ReadWriteLock&&) noexcept = default;
ReadWriteLock& ReadWriteLock::operator=(ReadWriteLock&&) noexcept = default;
ReadWriteLock::~ReadWriteLock() = default;

// ---- exclusive ------------------------------------------------------------------------------------------------------

Grant ReadWriteLock::try_acquire_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_until(internal::deadline_in(impl_, timeout, "acquire"), std::move(stop));
}

Grant ReadWriteLock::try_acquire_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return internal::to_grant(impl->exclusive.holders.acquire(impl->wait_exclusive(deadline, stop)));
}

void ReadWriteLock::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, internal::local_acquisition(impl->core, impl->local, operation), operation,
                            impl->path(), deadline, std::move(stop), std::move(done));
}

void ReadWriteLock::lock() { internal::must_hold(try_lock_until(Deadline::never())); }

bool ReadWriteLock::try_lock_for(Timeout timeout, std::stop_token stop) {
    return try_lock_until(internal::deadline_in(impl_, timeout, "lock"), std::move(stop));
}

bool ReadWriteLock::try_lock_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    return impl->exclusive.holders.lock("acquire", impl->lock_exclusive(deadline, stop));
}

void ReadWriteLock::unlock() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->exclusive.holders.unlock("unlock");
}

// ---- shared ---------------------------------------------------------------------------------------------------------

Grant ReadWriteLock::try_acquire_shared_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_shared_until(internal::deadline_in(impl_, timeout, "acquire_shared"), std::move(stop));
}

Grant ReadWriteLock::try_acquire_shared_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire_shared");
    return internal::to_grant(impl->shared.holders.acquire(impl->wait_shared(deadline, stop)));
}

void ReadWriteLock::acquire_shared_async(Deadline deadline, std::stop_token stop,
                                         std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_shared_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(
        impl->core, internal::shared_acquisition(impl->core, impl->shared.queue, impl->shares, impl->local, operation),
        operation, impl->path(), deadline, std::move(stop), std::move(done));
}

void ReadWriteLock::lock_shared() { internal::must_hold(try_lock_shared_until(Deadline::never())); }

bool ReadWriteLock::try_lock_shared_for(Timeout timeout, std::stop_token stop) {
    return try_lock_shared_until(internal::deadline_in(impl_, timeout, "lock_shared"), std::move(stop));
}

bool ReadWriteLock::try_lock_shared_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock_shared");
    return impl->shared.holders.lock("acquire_shared", impl->lock_shared(deadline, stop));
}

void ReadWriteLock::unlock_shared() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->shared.holders.unlock("unlock_shared");
}

// ---- downgrade ------------------------------------------------------------------------------------------------------

Grant ReadWriteLock::downgrade(const Grant& exclusive, Deadline deadline, std::stop_token stop) {
    constexpr const char* operation = "downgrade";
    const auto impl = internal::usable(impl_, operation);
    const Grant kept = exclusive.again();  // until the answer, whatever another thread does with `exclusive`
    const auto downgrade = impl->downgrade(impl->writer_of(kept, operation), operation);
    return internal::to_grant(impl->shared.holders.acquire(
        [&] { return acquire_blocking(impl->core, downgrade, deadline, std::move(stop)); }));
}

void ReadWriteLock::downgrade_async(const Grant& exclusive, Deadline deadline, std::stop_token stop,
                                    std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "downgrade_async";
    const auto impl = internal::usable(impl_, operation);
    internal::check_callable(done, operation, impl->path());
    // Functions must be copyable, and a Grant is not.
    auto kept = std::make_shared<Grant>(exclusive.again());
    const auto downgrade = impl->downgrade(impl->writer_of(exclusive, operation), operation);
    internal::acquire_async(impl->core, downgrade, operation, impl->path(), deadline, std::move(stop),
                            [kept = std::move(kept), done = std::move(done)](AcquireResult result) mutable {
                                kept->release();
                                done(std::move(result));
                            });
}

// ---- both -----------------------------------------------------------------------------------------------------------

bool ReadWriteLock::held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    return impl && is_held(impl->exclusive.holders.of_caller());
}

bool ReadWriteLock::shared_held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    return impl && is_held(impl->shared.holders.of_caller());
}

FencingToken ReadWriteLock::token() const noexcept { return token_of(current_hold(impl_)); }
std::stop_token ReadWriteLock::lost() const noexcept { return lost_of(current_hold(impl_)); }

std::vector<Participant> ReadWriteLock::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return impl->participants("participants").get(deadline);
}

void ReadWriteLock::participants_async(Deadline deadline, std::stop_token stop,
                                       std::function<void(Result<std::vector<Participant>>)> done) {
    constexpr const char* operation = "participants_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), impl->participants(operation), deadline, std::move(stop),
              std::move(done));
}

const std::string& ReadWriteLock::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
