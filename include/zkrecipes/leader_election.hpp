#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/acquire_result.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session.hpp>

namespace zkrecipes {

namespace internal {
class LeaderElectionImpl;
}

/// Whose node names an election uses. All candidates for one leadership must use the same.
enum class ElectionLayout {
    latch,     ///< those of Curator's LeaderLatch
    selector,  ///< those of Curator's LeaderSelector, which is a mutex: an ExclusiveMutex on the path competes, too
    kazoo      ///< those of kazoo's Election; parents are made persistent, as kazoo expects
};

/// What becomes of the leadership when no server answers.
enum class WhenSuspended {
    keep,      ///< it ends when the lease does: nobody else can lead before that, and a short cut costs nothing
    step_down  ///< it ends at once, as soon as the client notices
};

struct ElectionOptions {
    std::string id{};  ///< who we are, as the other candidates read it; empty: host:pid
    ElectionLayout layout = ElectionLayout::latch;
    WhenSuspended when_suspended = WhenSuspended::keep;
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing directory is Errc::no_parent
};

/// Candidates for one leadership, of which one leads at a time, in the order of arrival: the election of Curator's
/// LeaderLatch or LeaderSelector on the same path.
///
/// The leadership is a Grant: held() says whether we surely lead, lost() is signalled when we do not any more, token()
/// grows from leader to leader, and releasing it is to resign. Safe for concurrent use; each campaign is a candidate of
/// its own. Calls wait for the connection within their deadline; when the session is lost while waiting, the candidacy
/// goes on at the back of the queue of the new session. Costs, uncontended: one round trip to lead, none to resign.
class ZKRECIPES_API LeaderElection {
public:
    using Observer = std::function<void(const std::optional<Participant>& leader)>;
    /// What run() calls while we lead. It should return soon after a stop was requested: by a loss of the leadership,
    /// by resign() or by whoever stops run().
    using Lead = std::function<void(const Grant& leadership, std::stop_token stop)>;

    /// Throws Error bad_path and bad_option (an id longer than 512 bytes, an empty access list). Does not block and
    /// sends nothing.
    LeaderElection(Session& session, std::string path, ElectionOptions options = {});
    LeaderElection(LeaderElection&&) noexcept;
    LeaderElection& operator=(LeaderElection&&) noexcept;
    ~LeaderElection();  ///< Leaderships and waiting calls live on; nothing is released.

    /// Blocks until we lead. Throws Error: connection_lost (retry policy gave up), closed, no_permission, and others of
    /// Errc.
    Grant campaign();
    /// Empty: the deadline passed or a stop was requested; we are no candidate any more. A passed deadline makes one
    /// attempt that costs one read when there is a leader. Throws as campaign() does.
    Grant campaign_before(Deadline deadline, std::stop_token stop = {});
    /// As campaign_before without blocking; the result comes on the session's notifier thread, exactly once. Throws
    /// Error at once where nothing can follow: closed; bad_option for an empty callback.
    void campaign_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// Campaigns, leads, resigns and campaigns again, until a stop is requested. `lead` runs on the calling fiber or
    /// thread, never twice at the same time, and is not started with a leadership that is known to be over. Resigning
    /// waits until `lead` has returned, also after a loss: a node that is still there keeps the others out meanwhile.
    /// Throws what `lead` throws, after resigning; Error as campaign() does; bad_option while another run() of the same
    /// object goes on.
    void run(const Lead& lead, std::stop_token stop = {});
    /// Requests the stop of the `lead` that run() is in; run() then campaigns again, at the back. False: it is in none,
    /// or that was requested before. Does not wait.
    bool resign() noexcept;

    /// Who leads, by the order of the nodes as the connected server knows them; empty: nobody. Blocks; throws Error
    /// (unreachable when the deadline passes without an answer).
    std::optional<Participant> leader(Deadline deadline = Deadline::never());
    /// All candidates, the leader first, in the order in which they will lead. `id` is what each calls itself. Blocks;
    /// throws as leader().
    std::vector<Participant> candidates(Deadline deadline = Deadline::never());

    /// Calls `observer` on the session's notifier thread with who leads (empty: nobody) and then with each change, also
    /// across sessions, until the subscription ends or the session is closed. A slow observer is told the latest, none
    /// is told a leader after a later one. While no server answers nothing is told: see Session::watch_state. Costs two
    /// reads for each change and one watch. Does not block. Throws Error: closed; bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;
    const std::string& id() const noexcept;

private:
    std::shared_ptr<internal::LeaderElectionImpl> impl_;
};

}  // namespace zkrecipes
