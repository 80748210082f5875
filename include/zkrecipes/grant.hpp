#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
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

/// Grows with every later lock node of the same lock. A resource that remembers the largest token it has seen can
/// refuse a former holder. The token is the zxid of the transaction that created the lock node (after a downgrade: that
/// of the exclusive node plus one). So holders with the same lock node, which are in one process, have the same token.
/// See LockOptions::local_handovers, LockOptions::keep_for and Grant::handovers().
using FencingToken = std::int64_t;

/// Why an acquire returned an empty grant.
enum class Missed : std::uint8_t {
    none,         ///< The grant is not empty, or it is empty for another reason: released, moved from or
                  ///< default-constructed.
    busy,         ///< The servers answered: others hold the lock or wait for it. Or somebody deleted the lock node of a
                  ///< call that does not wait.
    unreachable,  ///< When the time was over, answers of the servers were missing. It is not known whether others hold
                  ///< the lock. Also the result of a try while no server is connected.
    stopped       ///< A stop was requested.
};

/// "none", "busy", "unreachable", "stopped"
ZKRECIPES_API const char* to_string(Missed missed) noexcept;

/// A hold: of a lock, of one or more leases of a semaphore, or of a leadership. Move-only. The destructor releases it.
///
/// A hold belongs to its Grant object, not to the thread or fiber that acquired it. So a Grant may be moved to another
/// thread or fiber, and be kept while a coroutine is suspended. A Grant is not re-entrant: another acquire of the lock
/// waits for it, also in the same thread. See again().
///
/// All functions may be called from any thread or fiber. The const ones, such as `held` and `again`, may be called on
/// one object by several threads at the same time. The others, which move, assign, release or destroy it, must not
/// overlap with any other call on that object.
///
/// A hold ends when it is released or *lost*. It is lost if, by the clock of this machine, the servers may have
/// ended the session; if the session was ended; if the lock node was deleted; if it has lasted for
/// LockOptions::max_hold; or by WhenSuspended::step_down. A lost hold never comes back.
class [[nodiscard]] ZKRECIPES_API Grant {
public:
    Grant() noexcept;  ///< empty
    /// For the library.
    explicit Grant(std::shared_ptr<internal::HoldRef> share, Missed missed = Missed::none) noexcept;
    Grant(Grant&&) noexcept;
    Grant& operator=(Grant&&) noexcept;  ///< releases what it held
    ~Grant();                            ///< release()

    /// False if the grant is empty, see missed(). After a loss it is still true, until the grant is released.
    explicit operator bool() const noexcept { return share_ != nullptr; }

    /// Why the call that returned this empty grant did not get the lock. Says what was known when that call ended;
    /// sends no request.
    Missed missed() const noexcept { return missed_; }

    /// Whether it is guaranteed, now, that no other client holds the lock. (After a shared acquire: no exclusive
    /// holder. For a semaphore: no more leases than its limit.) Compares a time with the clock and does no I/O, so
    /// after a loss it is false even before `lost()` is signalled. Once false it stays false. False in a child made by
    /// fork().
    bool held() const noexcept;

    /// A stop is requested on this token when the hold is lost: end the work that the lock protects. A release requests
    /// no stop. The request is made on the session's notifier thread.
    std::stop_token lost() const noexcept;

    /// A stop is requested on this token when another client asks this holder to release the lock, by
    /// request_revocation() or Curator's Revoker. The hold goes on until it is released. The stop is requested on the
    /// session's notifier thread. It is also requested if the client asked before this call, or while this contender
    /// still waited for the lock. The first call makes the session watch the lock nodes, which costs one read each.
    /// Does not block. For an empty grant, the token is empty.
    std::stop_token revocation() const;

    /// How long `held()` is guaranteed to stay true without a further answer of the servers: at most until the end that
    /// LockOptions::max_hold sets. Zero if lost or empty.
    std::chrono::milliseconds remaining_lease() const noexcept;

    FencingToken token() const noexcept;  ///< 0: empty
    /// Distinguishes exclusive holds that have the same lock node, and so the same token (LockOptions::local_handovers,
    /// keep_for). It is 0 for the first of them, and larger for each later one. So the pair of token and this number
    /// grows with every exclusive holder. 0 for a shared hold.
    std::uint64_t handovers() const noexcept;
    std::string node() const;  ///< absolute path of the lock node as the servers see it; "": empty
    /// All nodes of the hold: one for each member of a MultiLock, in the order of its members, or one for each lease.
    std::vector<std::string> nodes() const;
    std::int64_t session_id() const noexcept;

    /// Replaces the labels that participants() and `zklock status` show for this hold (LockOptions::labels). Writes
    /// them into its nodes, all or none. The labels belong to the node: a later hold with the same node (LockOptions::
    /// local_handovers, keep_for), or one that shares it, has them until it sets others. Costs two round trips. Blocks
    /// until a server has answered, and does not delay a release. False: another client has asked this holder to
    /// release the lock (see `revocation`). The request has replaced the labels. It is not overwritten.
    ///
    /// Throws Error: lock_lost (the hold has ended or ends during the call, or the grant is empty); bad_option (id and
    /// labels take more than 512 bytes); unsupported (a leadership: the node of a candidate contains only its id);
    /// too_large; no_permission; unreachable (the deadline passed or a stop was requested; the labels may have been
    /// written, or may still be written before the next call); connection_lost (the same); closed.
    bool set_labels(std::map<std::string, std::string> labels, Deadline deadline = Deadline::never(),
                    std::stop_token stop = {}) const;
    /// As set_labels, without blocking: `done` is called exactly once, on the session's notifier thread. The grant may
    /// be released or destroyed meanwhile. If the call cannot be started, throws immediately: closed, lock_lost for an
    /// empty grant, bad_option, also for an empty callback, unsupported.
    void set_labels_async(std::map<std::string, std::string> labels, Deadline deadline, std::stop_token stop,
                          std::function<void(Result<bool>)> done) const;

    /// Another grant of the same hold. The hold ends when all of its grants are released. Does not block and sends
    /// nothing. An empty grant gives an empty one; a lost hold gives a grant that is not held.
    Grant again() const noexcept;

    /// Releases the lock. Does not block and does not fail: while no server answers, the session keeps trying until the
    /// node or the session is gone. With LockOptions::local_handovers or keep_for, the node may stay for the next
    /// holder of this session. Does nothing if the grant is empty.
    void release() noexcept;

    /// Releases the lock and blocks until the servers have confirmed it. Returns false if the deadline passes before
    /// (the session then keeps trying), or if the session ends before. Returns true at once if the grant is empty, or
    /// if other grants of the hold, or shared holds that joined it (LockOptions::local_handovers), still hold the lock.
    /// Throws Error only where the library must not be used: closed in a child made by fork(); would_deadlock in a
    /// retry policy, where it releases the lock all the same.
    bool release_and_wait(Deadline deadline = Deadline::never());
    /// The same without blocking: `done` is called exactly once, on the session's notifier thread; for an empty grant,
    /// at once by the calling thread. A stop ends the wait, as the deadline does. Also throws Error bad_option for an
    /// empty callback. An exception thrown by the callback is logged.
    void release_and_wait_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

private:
    friend struct internal::GrantAccess;
    std::shared_ptr<internal::HoldRef> share_;
    Missed missed_ = Missed::none;
};

/// How an asynchronous acquire ended. An empty grant without an error: timed out or stopped, see Grant::missed().
using AcquireResult = Result<Grant>;

}  // namespace zkrecipes
