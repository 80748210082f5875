// ReadWriteLock: any number of shares, or one holder alone, in the order of arrival.
//
// Layout (that of Curator's InterProcessReadWriteLock):
//   <path>                                     container, made when missing
//   <path>/_c_<uuid>-__WRIT__<sequence>        ephemeral, sequential; one per contender that wants it alone (writer)
//   <path>/_c_<uuid>-__READ__<sequence>        the same for a share (reader); both kinds count with one counter
// In the kazoo dialect <path> is persistent and the names are <uuid without dashes>__lock__<sequence> (writer) and
// …__rlock__<sequence> (reader); nothing else differs.
// Nodes of an ExclusiveMutex on the same path are waited for like writers.
//
// Steps (src/core/acquire/acquire_fsm.cpp runs them, as for the mutex):
//   1. Create the own node, and exists(<path>) right behind it. The directory has one child, and its last change was
//      that create: held. One round trip. (A reader beside readers has company, and goes on to 2.)
//   2. Otherwise list <path>. A writer: no contender with a lower number: held. A reader: no writer with a lower
//      number: held.
//   3. Otherwise watch the nearest of those, and only that one. A release wakes nobody who can neither go on nor has to
//      look for the next one to watch.
//   4. It is gone. Check the own node by a committed write, and list: back to 2. A reader that had one writer before it
//      needs no list: writers before it only become fewer. A writer always needs it: a Curator peer (5.5 and later)
//      that holds the lock alone and takes a share makes a reader's node with its own, lower number, which was not
//      there when the writer last looked. That node is made while the peer's first one is there, so the list that
//      follows the end of the first one shows it.
//   5. Release: delete the own node.
//   6. Who holds it alone asks for a share: one transaction checks the own writer's node and makes a reader's node with
//      the same number, ephemeral and not sequential (src/core/acquire/downgrade_fsm.cpp runs it). Held. Writers behind
//      see it when the writer's node goes, by the list of step 4, as Curator's do; readers behind do not mind it.
//   A try lists first, and ends there if anybody who matters stands in the queue: one read, nothing written.
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/spdlog.h>

#include <cassert>
#include <utility>

#include "core/acquire/acquire.hpp"
#include "core/acquire/downgrade.hpp"
#include "core/hold/owner_table.hpp"
#include "core/queue/participants.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

constexpr BaseName kWriter{"__WRIT__", "__lock__"};
constexpr BaseName kReader{"__READ__", "__rlock__"};

}  // namespace

/// Copied by every call that waits, so that the lock object may be destroyed meanwhile.
class ReadWriteLockImpl {
public:
    /// One of the two ways to hold the lock.
    struct Side {
        std::shared_ptr<const Queue> queue;
        std::shared_ptr<OwnerTable> holds = std::make_shared<OwnerTable>();
    };

    ReadWriteLockImpl(std::shared_ptr<SessionCore> session, const std::string& path, const LockOptions& options)
        : core(std::move(session)),
          alone{make_queue(*core, path, options, kWriter, rule_exclusive(options.dialect), "ReadWriteLock")},
          shared{make_queue(*core, path, options, kReader, rule_shared(options.dialect), "ReadWriteLock")} {}

    /// Null: timed out or stopped. Otherwise entered once more by the calling agent.
    std::shared_ptr<HoldRef> acquire(const Side& side, const char* operation, Deadline deadline, std::stop_token stop) {
        const auto agent = this_owner();
        std::shared_ptr<HoldRef> share;
        switch (side.holds->enter(agent, share)) {
            case OwnerTable::Entered::again: return share;
            case OwnerTable::Entered::lost: throw_lost(operation);
            case OwnerTable::Entered::fresh: break;
        }
        if (const Inside writer{other_side(side, operation, agent)}; writer.share) {
            const auto make = make_downgrade(core, side.queue, writer.share, operation);
            share = acquire_blocking(core, make, deadline, std::move(stop));
        } else {
            share = acquire_blocking(core, side.queue, operation, deadline, std::move(stop));
        }
        if (share) side.holds->add(agent, share);
        return share;
    }

    bool lock(const Side& side, const char* operation, Deadline deadline, std::stop_token stop) {
        if (!acquire(side, operation, deadline, std::move(stop))) return false;
        side.holds->lock(this_owner());
        return true;
    }

    void acquire_async(const Side& side, const char* operation, Deadline deadline, std::stop_token stop,
                       std::function<void(AcquireResult)> done) {
        if (!done) throw Error(Errc::bad_option, operation, path(), "the callback is empty; pass a callable");
        core->throw_if_closed(operation, path());
        acquire_later(core, side.queue, operation, deadline, std::move(stop),
                      [done = std::move(done)](AcquireAnswer answer) {
                          AcquireResult result;
                          if (answer.share) result.grant = Grant(std::move(answer.share));
                          if (answer.error) result.error = std::make_exception_ptr(*answer.error);
                          done(std::move(result));
                      });
    }

    /// False: logged.
    bool unlock(const Side& side, const char* operation) noexcept {
        if (side.holds->leave_locked(this_owner())) return true;
        core->log().error("{} {}: not locked by this fiber or thread; ignored", operation, path());
        return false;
    }

    /// What the calling agent holds: alone, or else a share. Null: nothing.
    std::shared_ptr<HoldRef> of_caller() const {
        const auto agent = this_owner();
        auto share = alone.holds->of(agent);
        return share ? share : shared.holds->of(agent);
    }

    const std::string& path() const noexcept { return alone.queue->user_path; }

    static constexpr const char* kName = "ReadWriteLock";
    const std::shared_ptr<SessionCore> core;
    const Side alone;
    const Side shared;

private:
    [[noreturn]] void throw_lost(const char* operation) const {
        throw Error(Errc::lock_lost, operation, path(),
                    "this fiber or thread still holds it, but the hold was lost; give it back first");
    }

    /// Keeps a hold from being given back meanwhile.
    struct Inside {
        explicit Inside(std::shared_ptr<HoldRef> entered) : share(std::move(entered)) {}
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
        ~Inside() {
            if (share) share->leave();
        }
        const std::shared_ptr<HoldRef> share;
    };

    /// What the agent, who wants a share, holds alone, entered once more. Null: nothing.
    std::shared_ptr<HoldRef> other_side(const Side& side, const char* operation, OwnerId agent) const {
        const bool wants_exclusive = &side == &alone;
        const Side& other = wants_exclusive ? shared : alone;
        std::shared_ptr<HoldRef> share;
        switch (other.holds->enter(agent, share)) {
            case OwnerTable::Entered::fresh: return nullptr;
            case OwnerTable::Entered::lost: throw_lost(operation);
            case OwnerTable::Entered::again: break;
        }
        if (!wants_exclusive) return share;
        // Whoever waits behind a node of its own waits for ever, and fair as the queue is, so does everybody behind it.
        share->leave();
        throw Error(Errc::would_deadlock, operation, path(),
                    "this fiber or thread holds a share and would wait for itself; give the share back first");
    }
};

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
// Whoever waits has a copy of the pointer; new copies come from same(), which is called under the same mutex.
bool ReadWriteLock::unused() const noexcept {
    return impl_.use_count() == 1 && impl_->alone.holds->empty() && impl_->shared.holds->empty();
}
ReadWriteLock::ReadWriteLock(ReadWriteLock&&) noexcept = default;
ReadWriteLock& ReadWriteLock::operator=(ReadWriteLock&&) noexcept = default;
ReadWriteLock::~ReadWriteLock() = default;

// ---- alone ----------------------------------------------------------------------------------------------------------

Grant ReadWriteLock::acquire() { return acquire_before(Deadline::never()); }

Grant ReadWriteLock::acquire_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return Grant(impl->acquire(impl->alone, "acquire", deadline, std::move(stop)));
}

void ReadWriteLock::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    const auto impl = internal::usable(impl_, "acquire_async");
    impl->acquire_async(impl->alone, "acquire_async", deadline, std::move(stop), std::move(done));
}

void ReadWriteLock::lock() {
    [[maybe_unused]] const bool locked = lock_before(Deadline::never());
    assert(locked);  // without a hold a wait ends only by its deadline, a stop, or an exception
}

bool ReadWriteLock::try_lock() { return lock_before(Deadline::passed()); }

bool ReadWriteLock::lock_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    return impl->lock(impl->alone, "acquire", deadline, std::move(stop));
}

void ReadWriteLock::unlock() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (impl->unlock(impl->alone, "unlock")) return;
    assert(!"ReadWriteLock::unlock by a fiber or thread that has not locked it");
}

// ---- shared ---------------------------------------------------------------------------------------------------------

Grant ReadWriteLock::acquire_shared() { return acquire_shared_before(Deadline::never()); }

Grant ReadWriteLock::acquire_shared_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire_shared");
    return Grant(impl->acquire(impl->shared, "acquire_shared", deadline, std::move(stop)));
}

void ReadWriteLock::acquire_shared_async(Deadline deadline, std::stop_token stop,
                                         std::function<void(AcquireResult)> done) {
    const auto impl = internal::usable(impl_, "acquire_shared_async");
    impl->acquire_async(impl->shared, "acquire_shared_async", deadline, std::move(stop), std::move(done));
}

void ReadWriteLock::lock_shared() {
    [[maybe_unused]] const bool locked = lock_shared_before(Deadline::never());
    assert(locked);  // without a hold a wait ends only by its deadline, a stop, or an exception
}

bool ReadWriteLock::try_lock_shared() { return lock_shared_before(Deadline::passed()); }

bool ReadWriteLock::lock_shared_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock_shared");
    return impl->lock(impl->shared, "acquire_shared", deadline, std::move(stop));
}

void ReadWriteLock::unlock_shared() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (impl->unlock(impl->shared, "unlock_shared")) return;
    assert(!"ReadWriteLock::unlock_shared by a fiber or thread that has not locked it shared");
}

// ---- looking --------------------------------------------------------------------------------------------------------

bool ReadWriteLock::held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->alone.holds->of(internal::this_owner()) : nullptr;
    return share && share->hold().held();
}

bool ReadWriteLock::shared_held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->shared.holds->of(internal::this_owner()) : nullptr;
    return share && share->hold().held();
}

FencingToken ReadWriteLock::token() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->of_caller() : nullptr;
    return share ? share->token() : 0;
}

std::stop_token ReadWriteLock::lost() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->of_caller() : nullptr;
    return share ? share->hold().lost() : std::stop_token();
}

std::vector<Participant> ReadWriteLock::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return internal::read_queue(impl->core, "participants", impl->path(), impl->alone.queue->spec.directory, deadline,
                                false)
        .participants;
}

Deadline ReadWriteLock::deadline_in(std::chrono::nanoseconds from_now) const {
    return Deadline::after(internal::usable(impl_, "deadline_in")->core->runtime().steady_now(), from_now);
}

const std::string& ReadWriteLock::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
