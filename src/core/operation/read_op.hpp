#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>

#include "base/wait_event.hpp"
#include "session/common/backoff.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// So many requests of one operation at the same time at most: a queue may have ten thousand nodes.
inline constexpr std::size_t kInFlight = 64;

/// Reads (and other things that may be done twice) for people: one or more requests that start again from the beginning
/// when the connection breaks, within one deadline and as long as the retry policy goes on.
///
/// A subclass sends requests from begin() and passes every answer through guard(), which drops those of a former
/// beginning; it ends with done() or fail(). Everything but run() happens under the session lock.
class ReadOp : public SessionObserver, public std::enable_shared_from_this<ReadOp> {
public:
    enum class Outcome { done, timed_out, stopped };

    /// Blocks the calling fiber or thread. Throws Error.
    Outcome run(Deadline deadline, std::stop_token stop = {});
    /// Without blocking: `done` is called on the notifier lane, exactly once, with the error or null.
    void run_later(Deadline deadline, std::stop_token stop, std::function<void(Outcome, const Error*)> done);
    /// As run(), but a deadline that passes is an Error too: unreachable.
    void run_or_throw(Deadline deadline);

protected:
    ReadOp(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path)
        : operation_(operation), user_path_(std::move(user_path)), core_(std::move(core)) {}

    virtual void begin() = 0;   // connected; whatever was collected before is void
    virtual void clean_up() {}  // take watches back
    virtual void at_end() {}    // however it ends; give back what was made

    SessionCore& core() const noexcept { return *core_; }
    void done();
    void timed_out() { end(Outcome::timed_out); }
    /// One attempt was asked for: a deadline that had passed already.
    bool once() const noexcept { return once_; }
    void fail(Errc error, std::string detail);
    /// Whether the request was executed and answered in a way that has a meaning to the caller (done or refused). If
    /// not, this begins again later, or fails.
    bool usable(Rc rc, const char* request, const std::string& path);

    /// Wraps an answer: not called any more once this has begun again or ended.
    template <class Answer>
    auto guard(Answer answer) {
        return [self = shared_from_this(), round = round_, answer = std::move(answer)](auto&&... values) {
            if (self->round_ == round && !self->over_) answer(std::forward<decltype(values)>(values)...);
        };
    }

    const char* const operation_;
    const std::string user_path_;

private:
    void on_connected(bool same_session) override;
    void on_suspended() override;
    void on_session_lost() override;
    void on_closed(const Error& why) override;
    void start(Deadline deadline);
    void broken();
    void end(Outcome outcome, std::optional<Error> error = {});
    void tell();

    struct Later;
    struct StopLater {
        Later* later;
        void operator()() const;
    };

    std::shared_ptr<SessionCore> core_;  // null when over
    WaitEvent event_;
    std::shared_ptr<Later> later_;
    std::uint64_t round_ = 0;
    bool started_ = false;
    bool stopped_early_ = false;
    bool over_ = false;
    bool once_ = false;
    bool observing_ = false;
    bool in_backoff_ = false;
    bool waiting_for_session_ = false;
    Outage outage_;
    TimerId deadline_timer_ = 0;
    TimerId retry_timer_ = 0;
    Outcome outcome_ = Outcome::done;
    std::optional<Error> error_;
};

}  // namespace zkrecipes::internal
