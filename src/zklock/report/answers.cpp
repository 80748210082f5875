#include "zklock/report/answers.hpp"

#include <string>
#include <utility>
#include <zkrecipes/session_stats.hpp>

namespace zkrecipes::zklock {
namespace {

constexpr std::chrono::seconds kQuiet(1);  // most calls are shorter: show nothing before that

/// Those that a call sends again if it begins again.
std::uint64_t reads_in(const SessionStats& stats) {
    std::uint64_t sum = 0;
    for (const RequestKind kind : {RequestKind::exists, RequestKind::get, RequestKind::children, RequestKind::sync}) {
        sum += stats.requests[static_cast<std::size_t>(kind)];
    }
    return sum;
}

}  // namespace

Answers::Answers(Session& session, Console& console, std::chrono::nanoseconds limit, std::stop_token stop)
    : session_(session),
      console_(console),
      limit_(limit),
      began_at_(BootClock::now()),
      on_stop_(std::move(stop), [this] { stopped_.request_stop(); }),
      progress_at_(began_at_) {}

RetryPolicy Answers::patience(std::chrono::nanoseconds limit) {
    return [limit, pauses = RetryPolicy::forever()](const RetryState& state) {
        return state.elapsed < limit * 3 / 2 ? pauses.next(state) : std::nullopt;
    };
}

void Answers::answered() {
    const SessionStats stats = session_.stats();
    connects_ = stats.connects;
    before_ = reads_in(stats);
    most_ = 0;
    progress_at_ = BootClock::now();
    show(before_);
}

void Answers::show(std::uint64_t requests) {
    if (BootClock::now() - began_at_ < kQuiet) return;
    console_.progress("zklock: reading, " + std::to_string(requests) + " requests");
}

/// An operation has a limited number of requests on their way, and sends the next one after an answer. So further
/// requests prove answers. After a new connection only those prove progress that go beyond the last attempt.
void Answers::look() {
    const SessionStats stats = session_.stats();
    const std::uint64_t reads = reads_in(stats);
    if (stats.connects != connects_) {
        connects_ = stats.connects;
        before_ = reads;
    }
    const Instant now = BootClock::now();
    if (reads - before_ > most_) {
        most_ = reads - before_;
        progress_at_ = now;
    }
    if (now - progress_at_ >= limit_) stopped_.request_stop();
    show(reads);
}

LockView Answers::inspect(const std::string& path, bool up_to_date) {
    return get<LockView>([&](Deadline deadline, std::stop_token stop, auto done) {
        inspect_lock_async(session_, path, up_to_date, deadline, std::move(stop), std::move(done));
    });
}

std::vector<Participant> Answers::candidates(const std::string& path) {
    LeaderElection election(session_, path);
    return get<std::vector<Participant>>([&](Deadline deadline, std::stop_token stop, auto done) {
        election.candidates_async(deadline, std::move(stop), std::move(done));
    });
}

}  // namespace zkrecipes::zklock
