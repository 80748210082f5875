#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class BarrierImpl;
class DoubleBarrierImpl;
}  // namespace internal

struct BarrierOptions {
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// How an asynchronous wait ended: passed; not (the deadline passed or a stop was requested); or with an error.
struct BarrierResult {
    bool passed = false;
    std::exception_ptr error;  ///< an Error, or null
};

/// A barrier that anybody closes and anybody opens: closed while its node exists. Curator's DistributedBarrier on the
/// same path.
///
/// Safe for concurrent use. Nobody's session owns it: it stays closed until somebody opens it. Calls wait for the
/// connection within their deadline, and go on across reconnects and sessions; what was cut is asked again.
class ZKRECIPES_API Barrier {
public:
    /// Throws Error bad_path, bad_option (an empty access list). Does not block and sends nothing.
    Barrier(Session& session, std::string path, BarrierOptions options = {});
    Barrier(Barrier&&) noexcept;
    Barrier& operator=(Barrier&&) noexcept;
    ~Barrier();

    /// Closes it; no error when it is closed. Blocks; throws Error: unreachable (the deadline passed, and nothing was
    /// sent), outcome_unknown (it passed before the answer came), and others of Errc.
    void set(Deadline deadline = Deadline::never());
    /// Opens it; no error when it is open. Blocks; throws as set(); not_empty where the node has children.
    void remove(Deadline deadline = Deadline::never());

    /// Blocks the fiber or thread until it is open, or was open for a moment. False: the deadline passed or a stop was
    /// requested. A passed deadline looks once. Throws Error: connection_lost (retry policy gave up), closed,
    /// no_permission, and others of Errc. Costs one read and one watch, however long it takes.
    bool wait(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// As wait() without blocking; the result comes on the session's notifier thread, exactly once. Throws Error at
    /// once where nothing can follow: closed; bad_option for an empty callback.
    void wait_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);

    const std::string& path() const noexcept;

private:
    std::shared_ptr<internal::BarrierImpl> impl_;
};

/// Members that begin together and end together: enter() returns when so many are inside, leave() when all have left.
/// Curator's DistributedDoubleBarrier on the same path.
///
/// One object is one member, in or out. How many there must be is a threshold and not a limit: who comes later, while
/// one of those is still inside, is let in. A member whose session ends counts as one that has left.
class ZKRECIPES_API DoubleBarrier {
public:
    /// `members`: how many must have entered. Throws Error bad_path, bad_option (less than one member, an empty access
    /// list). Does not block and sends nothing.
    DoubleBarrier(Session& session, std::string path, int members, BarrierOptions options = {});
    DoubleBarrier(DoubleBarrier&&) noexcept;
    DoubleBarrier& operator=(DoubleBarrier&&) noexcept;
    ~DoubleBarrier();  ///< Who is inside leaves, without waiting for the others.

    /// Blocks the fiber or thread until so many are inside, we among them. False: the deadline passed or a stop was
    /// requested; we are out, and nothing of us is left behind. A session that is lost meanwhile is replaced and
    /// entered with. Throws Error: bad_option (we are in already, or on the way), connection_lost (retry policy gave
    /// up), closed, no_permission, no_parent, budget_exceeded and others of Errc; we are out then, too.
    bool enter(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// We leave, and it blocks until the others have left, too. False: the deadline passed or a stop was requested
    /// before they had; we are out all the same. Throws Error: session_lost (our session ended while we were inside:
    /// the others took us for gone), lock_lost (somebody deleted our node), bad_option (we are not in),
    /// connection_lost, closed and others of Errc. We are out then, and may enter again.
    bool leave(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    /// The same without blocking; the result comes on the session's notifier thread, exactly once. Throw Error at once
    /// where nothing can follow: closed; bad_option for an empty callback, and as above.
    void enter_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);
    void leave_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);

    const std::string& path() const noexcept;
    int members() const noexcept;

private:
    std::shared_ptr<internal::DoubleBarrierImpl> impl_;
};

}  // namespace zkrecipes
