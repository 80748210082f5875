#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

namespace zkrecipes::zklock {

/// The answers to asynchronous calls, from the session's thread to ours. Shared, as callbacks may outlive the command.
template <class Answer>
class Inbox {
public:
    void post(Answer answer) {
        {
            const std::lock_guard lock(mutex_);
            answers_.push_back(std::move(answer));
        }
        posted_.notify_one();
    }
    /// Those that are there.
    std::vector<Answer> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(answers_, {});
    }
    /// Returns when there is an answer, after a stop, or after this time.
    void wait(const std::stop_token& stop, std::chrono::nanoseconds at_most) {
        std::unique_lock lock(mutex_);
        posted_.wait_for(lock, stop, at_most, [&] { return !answers_.empty(); });
    }

private:
    std::mutex mutex_;
    std::condition_variable_any posted_;
    std::vector<Answer> answers_;
};

}  // namespace zkrecipes::zklock
