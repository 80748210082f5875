#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session.hpp>

namespace zkrecipes {

namespace internal {
class LeaderElectionImpl;
}

/// The node names of an election. All candidates for one leadership must use the same.
enum class ElectionLayout {
    latch,     ///< those of Curator's LeaderLatch
    selector,  ///< those of Curator's LeaderSelector, which is a mutex: an ExclusiveMutex on the path competes, too
    kazoo      ///< those of kazoo's Election; parents are made persistent, as kazoo expects
};

/// When a leadership ends if no server answers.
enum class WhenSuspended {
    keep,      ///< with the lease: nobody else can lead before that, and a short disconnect costs nothing
    step_down  ///< at once, as soon as the client notices
};

struct ElectionOptions {
    std::string id{};  ///< how the other candidates see us; empty: host:pid
    ElectionLayout layout = ElectionLayout::latch;
    WhenSuspended when_suspended = WhenSuspended::keep;
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing directory is Errc::no_parent
};

/// An election: of all candidates one leads at a time, in the order of arrival. The same election as that of Curator's
/// LeaderLatch or LeaderSelector on the same path.
///
/// A leadership is a Grant: held() says whether we are guaranteed to lead, lost() is signalled when we no longer lead,
/// token() grows from leader to leader, and release() resigns. Safe for concurrent use; each campaign is a candidate of
/// its own.
///
/// All waits include the wait for a connection. If the session is lost during a wait, the candidate goes on at the tail
/// of the queue with a new session, within the same deadline.
///
/// Algorithm: Apache ZooKeeper, "Recipes and Solutions", Leader Election. Costs without contention: one round trip to
/// lead, none to resign.
class ZKRECIPES_API LeaderElection {
public:
    using Observer = std::function<void(const std::optional<Participant>& leader)>;
    /// The work of a leader, called by run(). It should return soon after a stop was requested, which is done when the
    /// leadership is lost, by resign(), or when run() is stopped.
    using Lead = std::function<void(const Grant& leadership, std::stop_token stop)>;

    /// Does not block and sends nothing. Throws Error bad_path; bad_option for an id longer than 512 bytes or an empty
    /// access list.
    LeaderElection(Session& session, std::string path, ElectionOptions options = {});
    LeaderElection(LeaderElection&&) noexcept;
    LeaderElection& operator=(LeaderElection&&) noexcept;
    ~LeaderElection();  ///< Releases nothing: leaderships and waiting calls go on.

    /// Blocks until we lead. Throws Error: connection_lost (the retry policy gave up), closed, no_permission, and
    /// others of Errc.
    Grant campaign() { return try_campaign_until(Deadline::never()); }
    /// One attempt. Empty: there is another candidate, which costs one read, or no server answers. Throws as
    /// campaign().
    Grant try_campaign() { return try_campaign_until(Deadline::passed()); }
    /// Blocks until we lead. Empty: timed out or stopped; we are no candidate any more. Throws as campaign().
    Grant try_campaign_for(Timeout timeout, std::stop_token stop = {});
    Grant try_campaign_until(Deadline deadline, std::stop_token stop = {});
    /// As try_campaign_until, without blocking: `done` is called exactly once, on the session's notifier thread. Throws
    /// immediately if the call cannot be started: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void campaign_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// Campaigns, leads, resigns and campaigns again, until a stop is requested. Calls `lead` on the calling fiber or
    /// thread, never twice at the same time, and not if the leadership is known to be over. Resigns only after `lead`
    /// has returned, also after a loss: until then our node, if it still exists, keeps the next candidate out. Throws
    /// what `lead` throws, after resigning; Error as campaign() does; bad_option if another run() of this object goes
    /// on.
    void run(const Lead& lead, std::stop_token stop = {});
    /// Requests the stop of the `lead` that run() has called; run() then campaigns again, at the tail of the queue.
    /// Does not wait. False: no `lead` is running, or its stop was requested before.
    bool resign() noexcept;

    /// The leader, by the order of the nodes as the connected server knows them; empty: there is none. Blocks. Throws
    /// Error (unreachable: the deadline passed first).
    std::optional<Participant> leader(Deadline deadline = Deadline::never());
    /// All candidates, the leader first, in the order in which they will lead; `id` is how each calls itself. Blocks.
    /// Throws as leader().
    std::vector<Participant> candidates(Deadline deadline = Deadline::never());

    /// Calls `observer` on the session's notifier thread with the leader (empty: none) and then with each change, also
    /// across sessions, until the subscription ends or the session is closed. A slow observer gets the latest leader;
    /// no observer gets an earlier leader after a later one. There are no calls while no server answers: see
    /// Session::watch_state. Costs two reads for each change, and one watch. Does not block. Throws Error: closed;
    /// bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;
    const std::string& id() const noexcept;

private:
    std::shared_ptr<internal::LeaderElectionImpl> impl_;
};

}  // namespace zkrecipes
