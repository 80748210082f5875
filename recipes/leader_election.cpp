// LeaderElection: one leader at a time, in the order of arrival.
//
// Layout (that of Curator's LeaderLatch; in brackets, of its LeaderSelector):
//   <path>                                container; made if it is missing
//   <path>/_c_<uuid>-latch-<sequence>     ephemeral, sequential; one for each candidate; data: its id as plain text
//         [_c_<uuid>-lock-<sequence>]
// In kazoo's layout <path> is persistent and the name is <uuid without dashes>__lock__<sequence>.
//
// Steps: a candidate waits in the queue as an ExclusiveMutex does (exclusive_mutex.cpp, 1 to 4;
// src/core/acquire/acquire_fsm.cpp runs them). It leads when it is at the head.
//   5. Resign: delete the own node. The next candidate leads.
//   run() campaigns (1 to 4), calls the user, resigns (5) when the user has returned, and starts again at 1.
//   Finding the leader: list <path> and read the first node. If it is gone by then, list again. An observer
//   (src/core/node/leader_watch_fsm.cpp) reads with a watch: on the first node, or on <path> if there is none. When
//   the watch fires, it does the same again.
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>

#include <atomic>
#include <mutex>
#include <utility>

#include "core/acquire/acquire_async.hpp"
#include "core/node/election.hpp"
#include "core/node/leader_watch.hpp"
#include "core/operation/to_result.hpp"
#include "core/queue/payload.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

std::shared_ptr<const Queue> make_election_queue(const SessionCore& core, const std::string& path,
                                                 ElectionOptions options) {
    constexpr const char* operation = "LeaderElection";
    LockOptions of_nodes;
    of_nodes.id = options.id.empty() ? default_id() : std::move(options.id);
    of_nodes.acl = std::move(options.acl);
    of_nodes.create_parents = options.create_parents;
    of_nodes.max_hold = options.max_hold;
    if (options.layout == ElectionLayout::kazoo) of_nodes.dialect = Dialect::kazoo;
    if (of_nodes.id.size() > kMaxPayload) {
        throw Error(Errc::bad_option, operation, path,
                    "the id takes more than the " + std::to_string(kMaxPayload) + " bytes that a node may hold");
    }
    if (of_nodes.id == kRevocationRequest) {
        throw Error(Errc::bad_option, operation, path, "this id means a request to release the lock; choose another");
    }
    const BaseName base(options.layout == ElectionLayout::latch ? "latch-" : "lock-", "__lock__");
    auto rule = rule_exclusive(of_nodes.dialect);
    return make_queue(core, path, std::move(of_nodes), base, std::move(rule), operation, {}, NodeData::id_alone);
}

}  // namespace

/// Copied by every call that waits, so that the election object may be destroyed meanwhile.
class LeaderElectionImpl {
public:
    LeaderElectionImpl(std::shared_ptr<SessionCore> session, const std::string& path, ElectionOptions options)
        : core(std::move(session)),
          when_suspended(options.when_suspended),
          queue(make_election_queue(*core, path, std::move(options))) {}

    MakeAcquisition candidacy(const char* operation) const {
        return [this, operation](Patience patience, Acquisition::Done done) {
            if (when_suspended == WhenSuspended::step_down) {
                // Under the session lock, so that the connection cannot break between the grant and this.
                done = [session = core.get(), done = std::move(done)](AcquireAnswer answer) {
                    if (answer.share) session->lose_when_suspended(answer.share->hold());
                    done(std::move(answer));
                };
            }
            return std::make_shared<AcquireOp>(core, queue, operation, patience, std::move(done));
        };
    }

    Grant campaign(const char* operation, Deadline deadline, std::stop_token stop) const {
        return to_grant(acquire_blocking(core, candidacy(operation), deadline, std::move(stop)));
    }

    auto leader(const char* operation) const { return read_leader(core, operation, path(), queue->spec.directory); }
    auto candidates(const char* operation) const {
        return read_candidates(core, operation, path(), queue->spec.directory);
    }

    void run(const LeaderElection::Lead& lead, const std::stop_token& stop) {
        if (running_.exchange(true)) {
            throw Error(Errc::bad_option, "run", queue->user_path,
                        "another run() of this object goes on; make another LeaderElection");
        }
        const Finally not_running([this] { running_ = false; });
        while (!stop.stop_requested()) {
            const Grant leadership = campaign("run", Deadline::never(), stop);
            if (leadership) lead_once(lead, leadership, stop);
        }
    }

    bool resign() noexcept {
        std::stop_source leading(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            leading = leading_;
        }
        return leading.request_stop();
    }

    static constexpr const char* kName = "LeaderElection";
    const std::string& path() const noexcept { return queue->user_path; }

    const std::shared_ptr<SessionCore> core;
    const WhenSuspended when_suspended;
    const std::shared_ptr<const Queue> queue;

private:
    struct Finally {
        explicit Finally(std::function<void()> action) : action_(std::move(action)) {}
        Finally(const Finally&) = delete;
        Finally& operator=(const Finally&) = delete;
        ~Finally() { action_(); }
        const std::function<void()> action_;
    };

    void lead_once(const LeaderElection::Lead& lead, const Grant& leadership, const std::stop_token& stop) {
        std::stop_source leading;
        const auto end = [&leading] { leading.request_stop(); };
        const std::stop_callback on_loss(leadership.lost(), end);
        const std::stop_callback on_stop(stop, end);
        set_leading(leading);
        const Finally not_leading([this] { set_leading(std::stop_source(std::nostopstate)); });
        if (leadership.held() && !leading.stop_requested()) lead(leadership, leading.get_token());
    }

    void set_leading(const std::stop_source& leading) {
        if (core->inherited()) return;  // `lead` has forked, and returned in the child
        const std::lock_guard lock(mutex_);
        leading_ = leading;
    }

    std::atomic<bool> running_{false};
    std::mutex mutex_;                            // guards leading_; nothing is called with it held
    std::stop_source leading_{std::nostopstate};  // of the `lead` that run() is in
};

}  // namespace internal

using internal::LeaderElectionImpl;
using internal::SessionAccess;

LeaderElection::LeaderElection(Session& session, std::string path, ElectionOptions options)
    : impl_(std::make_shared<LeaderElectionImpl>(SessionAccess::core(session), path, std::move(options))) {}
LeaderElection::LeaderElection(LeaderElection&&) noexcept = default;
LeaderElection& LeaderElection::operator=(LeaderElection&&) noexcept = default;
LeaderElection::~LeaderElection() = default;

Grant LeaderElection::try_campaign_for(Timeout timeout, std::stop_token stop) {
    return try_campaign_until(internal::deadline_in(impl_, timeout, "campaign"), std::move(stop));
}

Grant LeaderElection::try_campaign_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "campaign");
    return impl->campaign("campaign", deadline, std::move(stop));
}

void LeaderElection::campaign_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "campaign_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, impl->candidacy(operation), operation, path(), deadline, std::move(stop),
                            std::move(done));
}

void LeaderElection::run(const Lead& lead, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "run");
    internal::check_callable(lead, "run", path());
    impl->run(lead, stop);
}

bool LeaderElection::resign() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return false;
    return impl->resign();
}

std::optional<Participant> LeaderElection::leader(Deadline deadline) {
    const auto impl = internal::usable(impl_, "leader");
    return impl->leader("leader").get(deadline);
}

void LeaderElection::leader_async(Deadline deadline, std::stop_token stop,
                                  std::function<void(Result<std::optional<Participant>>)> done) {
    constexpr const char* operation = "leader_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, path(), impl->leader(operation), deadline, std::move(stop), std::move(done));
}

std::vector<Participant> LeaderElection::candidates(Deadline deadline) {
    const auto impl = internal::usable(impl_, "candidates");
    return impl->candidates("candidates").get(deadline);
}

void LeaderElection::candidates_async(Deadline deadline, std::stop_token stop,
                                      std::function<void(Result<std::vector<Participant>>)> done) {
    constexpr const char* operation = "candidates_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, path(), impl->candidates(operation), deadline, std::move(stop), std::move(done));
}

Subscription LeaderElection::observe(Observer observer) {
    const auto impl = internal::usable(impl_, "observe");
    constexpr const char* operation = "observe";
    internal::check_callable(observer, operation, path());
    return watch_leader(impl->core, operation, path(), impl->queue->spec.directory, std::move(observer));
}

const std::string& LeaderElection::path() const noexcept { return internal::path_of(impl_); }
const std::string& LeaderElection::id() const noexcept {
    static const auto& none = *new std::string;
    return impl_ ? impl_->queue->options.id : none;
}

}  // namespace zkrecipes
