#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>

namespace zkrecipes {

namespace internal {
class HoldRef;
struct GrantAccess;
}  // namespace internal

/// Grows with every later holder of the same lock; a resource that remembers the largest one it has seen can
/// refuse a former holder. It is the zxid of the transaction that created the lock node.
using FencingToken = std::int64_t;

/// One held lock, share, lease or leadership. Move-only; releases itself.
///
/// All functions may be called from any thread or fiber; one object must not be used by two at the same time,
/// except for `held`, `lost`, `revocation`, `remaining_lease` and `token`, which may be called beside each other. The
/// hold ends when it is released, or is *lost*: when our own clock says that the servers may end the session, when the
/// session ended, or when the lock node is gone. A lost hold never comes back.
class [[nodiscard]] ZKRECIPES_API Grant {
public:
    Grant() noexcept;  ///< empty
    explicit Grant(std::shared_ptr<internal::HoldRef> share) noexcept;
    Grant(Grant&&) noexcept;
    Grant& operator=(Grant&&) noexcept;  ///< releases what it held
    ~Grant();                            ///< release()

    /// False: timed out, stopped, released or moved from. A lost grant stays true until it is released.
    explicit operator bool() const noexcept { return share_ != nullptr; }

    /// Whether it is certain, now, that nobody else can hold this lock. Reads the clock itself, without any I/O, so
    /// it is right even before `lost()` could fire. Once false it stays false. False in a child made by fork().
    bool held() const noexcept;

    /// Stop is requested when the hold is lost (not when it is released): stop the guarded work. The request is made on
    /// the session's notifier thread.
    std::stop_token lost() const noexcept;

    /// Stop is requested when somebody asks this hold to give way: request_revocation() or Curator's
    /// Revoker. It is a request: the hold goes on until it is released. The request is made on the session's notifier
    /// thread, also when it came before this was called, even while we still waited. Asking for the token makes the
    /// session watch for requests; does not block, the first call sends one read for each node. Empty token: empty
    /// grant.
    std::stop_token revocation() const;

    /// For how much longer `held()` is certain to stay true without news from the servers. Zero: lost or empty.
    std::chrono::milliseconds remaining_lease() const noexcept;

    FencingToken token() const noexcept;  ///< 0: empty
    std::string node() const;             ///< absolute path of the lock node as the servers see it; "": empty
    /// All nodes, where several stand for one hold: those of a MultiLock in the order of its members, several leases.
    std::vector<std::string> nodes() const;
    std::int64_t session_id() const noexcept;

    /// Gives it back. Does not block and does not fail: while no server answers, the session goes on trying until
    /// the node or the session is gone. Idempotent.
    void release() noexcept;

    /// Gives it back and blocks until the servers have confirmed that the node is gone. False: not confirmed by the
    /// deadline; the session goes on trying. True at once when empty, or when re-entrant calls still hold it.
    bool release_and_wait(Deadline deadline);

private:
    friend struct internal::GrantAccess;
    std::shared_ptr<internal::HoldRef> share_;
};

}  // namespace zkrecipes
