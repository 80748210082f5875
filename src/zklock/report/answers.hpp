#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/retry_policy.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/report/console.hpp"
#include "zklock/report/inbox.hpp"
#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {

/// Awaits the answers to asynchronous calls that may send many requests, such as one for each contender of a lock. The
/// time limit is that of one answer and not of the whole call: as long as the servers answer, the call goes on, and a
/// terminal shows the progress. Used by one thread.
class Answers {
public:
    /// `limit`: a call that has sent no further request for so long is stopped.
    Answers(Session& session, Console& console, std::chrono::nanoseconds limit, std::stop_token stop = {});

    /// For the session: a call whose requests are answered, but in vain, as by a server that throttles, fails after one
    /// and a half times `limit`. What is not answered at all is stopped before.
    static RetryPolicy patience(std::chrono::nanoseconds limit);

    Session& session() noexcept { return session_; }
    /// For the calls: they have no other limit.
    std::stop_token stop() const noexcept { return stopped_.get_token(); }
    /// Of one request.
    Deadline answer_by() const { return Deadline(limit_); }
    /// Waits for answers and takes them. Returns none at times, to be called again. Requests a stop of all calls if the
    /// servers have not answered in time.
    template <class Answer>
    std::vector<Answer> await(Inbox<Answer>& inbox) {
        inbox.wait({}, kLook);
        std::vector<Answer> answers = inbox.take();
        answers.empty() ? look() : answered();
        return answers;
    }

    /// After the last await(): removes the progress from the terminal.
    void finished() { console_.progress(""); }

    /// `call` gets a deadline, a stop token and a callback. Blocks. Throws Error.
    template <class T, class Call>
    T get(const Call& call) {
        const auto inbox = std::make_shared<Inbox<Result<T>>>();
        answered();
        call(Deadline::never(), stop(), [inbox](Result<T> result) { inbox->post(std::move(result)); });
        std::vector<Result<T>> results;
        while (results.empty()) results = await(*inbox);
        finished();
        if (results.front().error) std::rethrow_exception(results.front().error);
        return std::move(results.front().value);
    }

    // As the blocking functions of the library.
    LockView inspect(const std::string& path, bool up_to_date = true);
    std::vector<Participant> candidates(const std::string& path);

private:
    static constexpr std::chrono::milliseconds kLook{100};

    void answered();
    void look();
    void show(std::uint64_t requests);

    Session& session_;
    Console& console_;
    const std::chrono::nanoseconds limit_;
    const Instant began_at_;
    std::stop_source stopped_;
    std::stop_callback<std::function<void()>> on_stop_;
    std::uint64_t connects_ = 0;  // of the session; the calls under way begin again after each
    std::uint64_t before_ = 0;    // requests that were sent before that
    std::uint64_t most_ = 0;      // how many were sent after a connect since the last answer to a call
    Instant progress_at_;
};

}  // namespace zkrecipes::zklock
