#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/result.hpp>

namespace zkrecipes {

namespace internal {
class HoldRef;
struct GrantAccess;
}  // namespace internal

/// Grows with every later holder of the same lock. A resource that remembers the largest token it has seen can refuse a
/// former holder. It is the zxid of the transaction that created the lock node.
using FencingToken = std::int64_t;

/// One hold of a lock, some leases of a semaphore, or a leadership. Move-only; releases itself when destroyed.
///
/// All functions may be called from any thread or fiber. Two of them must not use one object at the same time, except
/// for `held`, `lost`, `revocation`, `remaining_lease` and `token`.
///
/// A hold ends when it is released or *lost*. It is lost if, by our own clock, the servers may have ended the session;
/// if the session was ended; or if the lock node was deleted. A lost hold never comes back.
class [[nodiscard]] ZKRECIPES_API Grant {
public:
    Grant() noexcept;  ///< empty
    explicit Grant(std::shared_ptr<internal::HoldRef> share) noexcept;
    Grant(Grant&&) noexcept;
    Grant& operator=(Grant&&) noexcept;  ///< releases what it held
    ~Grant();                            ///< release()

    /// False if the grant is empty: busy, timed out, stopped, released or moved from. A lost grant stays true until it
    /// is released.
    explicit operator bool() const noexcept { return share_ != nullptr; }

    /// Whether it is guaranteed, now, that nobody else can hold the lock. Reads the clock and does no I/O, so it is
    /// right even before `lost()` is signalled. Once false it stays false. False in a child made by fork().
    bool held() const noexcept;

    /// Stop is requested when the hold is lost, and not when it is released: stop the guarded work. The request is made
    /// on the session's notifier thread.
    std::stop_token lost() const noexcept;

    /// Stop is requested when another client asks this holder to give the lock back: request_revocation(), or Curator's
    /// Revoker. The hold goes on until it is released. The request is made on the session's notifier thread, also if it
    /// came before this call or while we still waited for the lock. The first call makes the session watch the lock
    /// nodes, which costs one read each. Does not block. Empty grant: an empty token.
    std::stop_token revocation() const;

    /// For how long `held()` is guaranteed to stay true without a further answer of the servers. Zero: lost or empty.
    std::chrono::milliseconds remaining_lease() const noexcept;

    FencingToken token() const noexcept;  ///< 0: empty
    std::string node() const;             ///< absolute path of the lock node as the servers see it; "": empty
    /// All nodes of the hold: one for each member of a MultiLock, in the order of its members, or one for each lease.
    std::vector<std::string> nodes() const;
    std::int64_t session_id() const noexcept;

    /// Gives the lock back. Does not block and does not fail: while no server answers, the session keeps trying until
    /// the node or the session is gone. Does nothing if the grant is empty.
    void release() noexcept;

    /// Gives the lock back and blocks until the servers have confirmed it. False: not confirmed by the deadline; the
    /// session keeps trying. True at once if the grant is empty, or if other re-entrant grants still hold the lock.
    bool release_and_wait(Deadline deadline = Deadline::never());

private:
    friend struct internal::GrantAccess;
    std::shared_ptr<internal::HoldRef> share_;
};

/// How an asynchronous acquire ended. An empty grant without an error: timed out or stopped.
using AcquireResult = Result<Grant>;

}  // namespace zkrecipes
