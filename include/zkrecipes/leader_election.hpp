#pragma once

#include <chrono>
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

/// The node names of an election. All candidates for one leadership must use the same layout.
enum class ElectionLayout {
    latch,     ///< the names of Curator's LeaderLatch
    selector,  ///< the names of Curator's LeaderSelector, which is a mutex: an ExclusiveMutex on the path competes, too
    kazoo      ///< the names of kazoo's Election; parents are made persistent, as kazoo expects
};

/// When a leadership ends if no server answers.
enum class WhenSuspended {
    keep,      ///< when the lease ends: no other candidate can lead before, and a short disconnect costs nothing
    step_down  ///< as soon as the client notices
};

/// Options of a LeaderElection.
struct ElectionOptions {
    std::string id{};                                    ///< what the other candidates see; empty: host:pid
    ElectionLayout layout = ElectionLayout::latch;       ///< the same for all candidates
    WhenSuspended when_suspended = WhenSuspended::keep;  ///< of this candidate
    std::optional<std::vector<Acl>> acl{};               ///< empty: the session's
    bool create_parents = true;                          ///< false: a missing directory is Errc::no_parent
    /// A leadership ends so long after it began, as in LockOptions::max_hold. Zero: no limit. At most 366 days.
    std::chrono::milliseconds max_hold{0};
};

/// An election: one of all candidates leads at a time, in the order of arrival. The same election as that of Curator's
/// LeaderLatch or LeaderSelector on the same path.
///
/// A leadership is a Grant: held() says whether it is guaranteed that no other candidate leads, lost() is signalled
/// when the leadership is lost, token() grows from leader to leader, and release() resigns. Safe for concurrent use;
/// each call of campaign() is a candidate of its own.
///
/// A call that waits to lead also waits for a connection. If the session is lost meanwhile, the candidate goes on at
/// the tail of the queue with a new session, within the same deadline.
///
/// Algorithm: Apache ZooKeeper, "Recipes and Solutions", Leader Election. Costs without contention: one round trip to
/// lead; resigning does not wait for the servers.
class ZKRECIPES_API LeaderElection {
public:
    /// Is called with the leader. Empty: nobody leads.
    using Observer = std::function<void(const std::optional<Participant>& leader)>;
    /// The work of a leader, called by run(). A stop is requested when the leadership is lost, by resign(), or when
    /// run() is stopped. The function should then return soon.
    using Lead = std::function<void(const Grant& leadership, std::stop_token stop)>;

    /// Does not block and sends nothing. Throws Error bad_path; bad_option for an id longer than 512 bytes, an empty
    /// access list, or a bad max_hold.
    LeaderElection(Session& session, std::string path, ElectionOptions options = {});
    LeaderElection(LeaderElection&&) noexcept;
    LeaderElection& operator=(LeaderElection&&) noexcept;
    ~LeaderElection();  ///< Releases nothing: leaderships and waiting calls go on.

    /// Blocks until this candidate leads. Throws Error: connection_lost (the retry policy gave up), closed,
    /// no_permission, and others of Errc.
    Grant campaign() { return try_campaign_until(Deadline::never()); }
    /// One attempt. Returns an empty grant if there is another candidate, which costs one read, or if no server
    /// answers. Throws as campaign().
    Grant try_campaign() { return try_campaign_until(Deadline::passed()); }
    /// Blocks until this candidate leads. Returns an empty grant if the deadline passes or a stop is requested before;
    /// then it is no candidate any more. Throws as campaign().
    Grant try_campaign_for(Timeout timeout, std::stop_token stop = {});
    Grant try_campaign_until(Deadline deadline, std::stop_token stop = {});
    /// As try_campaign_until, without blocking: `done` is called exactly once, on the session's notifier thread. If the
    /// call cannot be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void campaign_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// Campaigns, leads, resigns and campaigns again, until a stop is requested. Calls `lead` on the calling fiber or
    /// thread, never twice at the same time, and not if the leadership is known to be over. Resigns only after `lead`
    /// has returned, also after a loss: until then the node of this candidate, if it still exists, keeps the next
    /// candidate out. If `lead` throws, resigns and passes the exception on. Throws Error as campaign() does, and
    /// bad_option if another run() of this object is not over.
    void run(const Lead& lead, std::stop_token stop = {});
    /// Requests the stop of the `lead` that run() has called. When `lead` has returned, run() campaigns again, at the
    /// tail of the queue. Does not wait. Returns false if no `lead` is running, or if its stop was requested before.
    bool resign() noexcept;

    /// The leader, by the order of the nodes as the connected server knows them; empty if there is none. Blocks. Throws
    /// Error (unreachable: the deadline passed first).
    std::optional<Participant> leader(Deadline deadline = Deadline::never());
    /// All candidates, the leader first, in the order in which they will lead. The field `id` is the id that each has
    /// chosen. Blocks. Throws as leader().
    std::vector<Participant> candidates(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as campaign_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void leader_async(Deadline deadline, std::stop_token stop,
                      std::function<void(Result<std::optional<Participant>>)> done);
    void candidates_async(Deadline deadline, std::stop_token stop,
                          std::function<void(Result<std::vector<Participant>>)> done);

    /// Calls `observer` on the session's notifier thread with the leader (empty: there is none), and then after each
    /// change. It continues in later sessions, until the subscription ends or the session is closed. A slow observer
    /// gets the latest leader; no observer gets an earlier leader after a later one. While no server answers, the
    /// observer is not called; see Session::watch_state. Costs two reads for each change, and one watch. Does not
    /// block. Throws Error: closed; bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;  ///< as given to the constructor
    const std::string& id() const noexcept;    ///< of this candidate

private:
    std::shared_ptr<internal::LeaderElectionImpl> impl_;
};

}  // namespace zkrecipes
