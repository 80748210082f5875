#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class BarrierImpl;
class DoubleBarrierImpl;
}  // namespace internal

/// Options of a Barrier or DoubleBarrier.
struct BarrierOptions {
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// How an asynchronous wait ended. If there is no error and the value is false, it timed out or was stopped.
using BarrierResult = Result<bool>;

/// A barrier that any client can close and any client can open. It is closed while its node exists. The same as
/// Curator's DistributedBarrier on that path.
///
/// Safe for concurrent use. The barrier belongs to no session: it stays closed until a client opens it. All calls also
/// wait for a connection. wait() goes on after reconnects and in later sessions.
class ZKRECIPES_API Barrier {
public:
    /// Does not block and sends nothing. Throws Error bad_path; bad_option for an empty access list.
    Barrier(Session& session, std::string path, BarrierOptions options = {});
    Barrier(Barrier&&) noexcept;
    Barrier& operator=(Barrier&&) noexcept;
    ~Barrier();

    /// Closes the barrier. It is no error if it is closed already. Blocks. Throws Error: unreachable (the deadline
    /// passed and nothing was sent), outcome_unknown (the deadline passed before the answer), and others of Errc.
    void set(Deadline deadline = Deadline::never());
    /// Opens the barrier. It is no error if it is open already. Blocks. Throws as set(), and not_empty if the node has
    /// children.
    void remove(Deadline deadline = Deadline::never());
    /// The same without blocking; the value is true. A stop has the same effect as a deadline. Called back as
    /// wait_async.
    void set_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);
    void remove_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);

    /// Blocks until the barrier is open, or was open for a moment. Returns false if the deadline passes or a stop is
    /// requested before. Throws Error: connection_lost (the retry policy gave up), closed, no_permission, and others of
    /// Errc. Costs one read and one watch, however long it takes.
    bool wait(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// As wait(), without blocking: `done` is called exactly once, on the session's notifier thread. If the call cannot
    /// be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the callback is
    /// logged.
    void wait_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::BarrierImpl> impl_;
};

/// A barrier for members that start together and finish together: enter() returns when N members are inside, and
/// leave() when all have left. The same as Curator's DistributedDoubleBarrier on that path.
///
/// One object is one member. N is a threshold and no limit: a member that comes later is let in as long as one of the N
/// is still inside. If the session of a member ends, the member has left. Safe for concurrent use. All calls also wait
/// for a connection.
class ZKRECIPES_API DoubleBarrier {
public:
    /// `members`: how many must enter. Does not block and sends nothing. Throws Error bad_path; bad_option for less
    /// than one member or an empty access list.
    DoubleBarrier(Session& session, std::string path, int members, BarrierOptions options = {});
    DoubleBarrier(DoubleBarrier&&) noexcept;
    DoubleBarrier& operator=(DoubleBarrier&&) noexcept;
    ~DoubleBarrier();  ///< If this member is inside, leaves without waiting for the others.

    /// Blocks until N members are inside, including this one. Returns false if the deadline passes or a stop is
    /// requested before; then this member is outside, and its node is deleted. If the session is lost during the wait,
    /// the member enters again with a new one. Throws Error: bad_option (this member is inside or entering already),
    /// connection_lost (the retry policy gave up), closed, no_permission, no_parent, budget_exceeded and others of
    /// Errc. Except after bad_option, the member is then outside.
    bool enter(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// Leaves, and blocks until the others have left. Returns false if the deadline passes or a stop is requested
    /// before; this member is outside all the same. Throws Error: session_lost (the session ended while this member was
    /// inside, so the others may have left without it), lock_lost (another client deleted its node), bad_option (it is
    /// not inside), connection_lost, closed and others of Errc. After an error, too, the member is outside and may
    /// enter again.
    bool leave(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    /// The same without blocking: `done` is called exactly once, on the session's notifier thread. If the call cannot
    /// be started, they throw immediately: closed; bad_option for an empty callback, and for the reasons above. An
    /// exception thrown by the callback is logged.
    void enter_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);
    void leave_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor
    int members() const noexcept;              ///< how many must enter, as given to the constructor

private:
    std::shared_ptr<internal::DoubleBarrierImpl> impl_;
};

}  // namespace zkrecipes
