#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>

#include "core/operation/operation.hpp"
#include "core/operation/retrying_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// So many requests of one operation at the same time at most: a queue may have ten thousand nodes.
inline constexpr std::size_t kInFlight = 64;

/// What a ReadFsm asks of its surroundings.
class ReadPort : public virtual OperationPort {
public:
    virtual void begin() = 0;     // connected; whatever was collected before is void
    virtual void clean_up() = 0;  // takes watches back
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
};

/// Whether the node is that of a session. ClickHouse Keeper marks a container by the least number.
bool is_ephemeral(const NodeStat& stat) noexcept;

enum class ReadStep : std::uint8_t { idle, awaiting_session, backing_off, leaving, finished, reading };

/// Begins again whenever the connection breaks.
class ReadFsm final : public RetryingFsm<ReadPort, ReadStep> {
public:
    using RetryingFsm::once;
    ReadFsm(ReadPort& port, Patience patience) : RetryingFsm(port, patience) {}

    // A request on its way is answered in any case; a watch that is waited for is not.
    void on_suspended() override {
        if (step_ == Step::reading) attempt_failed();
    }
    void on_session_lost() override { on_suspended(); }

    /// Tells the answers of one beginning from those of an earlier one.
    Ticket round() const noexcept { return ticket_; }
    /// As ReadOp::usable.
    bool usable(Rc rc, const char* request, const std::string& path);
    void end(Ended how, Errc error = {}, std::string detail = {}) {
        if (!is_over()) leave(how, error, std::move(detail));
    }

private:
    void resume() override {
        step_ = Step::reading;
        port_.begin();
    }
    void answer(Ended how, Errc error, std::string detail) override { port_.answer(how, error, std::move(detail)); }
    void drop_watches() override { port_.clean_up(); }
};

/// Reads (and other things that may be done twice) for people: one or more requests that start again from the beginning
/// when the connection breaks, within one deadline and as long as the retry policy goes on.
///
/// A subclass sends requests from begin() and passes every answer through guard(), which drops those of a former
/// beginning; it ends with done() or fail(). Everything but run() happens under the session lock.
class ReadOp : public Operation, public ReadPort {
public:
    enum class Outcome { done, timed_out, stopped };

    /// Blocks the calling fiber or thread. Throws Error.
    Outcome run(Deadline deadline, std::stop_token stop = {});
    /// Without blocking: `done` is called on the notifier lane, exactly once, with the error or null.
    void run_later(Deadline deadline, std::stop_token stop, std::function<void(Outcome, const Error*)> done);
    /// Throws Error unreachable for any other outcome.
    void must_be_done(Outcome outcome) const;

protected:
    ReadOp(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path)
        : Operation(std::move(core), operation), user_path_(std::move(user_path)) {}

    void begin() override = 0;
    void clean_up() override {}
    virtual void at_end() {}  // however it ends; give back what was made

    SessionCore& core() const noexcept { return *core_; }
    void done() { fsm_->end(Ended::granted); }
    /// A call that waits for others has found them, and may not wait.
    void timed_out() { fsm_->end(Ended::busy); }
    /// One attempt was asked for: a deadline that had passed already.
    bool once() const noexcept { return fsm_->once(); }
    void fail(Errc error, std::string detail) { fsm_->end(Ended::failed, error, std::move(detail)); }
    /// Whether the request was executed and answered in a way that has a meaning to the caller (done or refused). If
    /// not, this begins again later, or fails.
    bool usable(Rc rc, const char* request, const std::string& path) { return fsm_->usable(rc, request, path); }

    /// Wraps an answer: not called any more once this has begun again or ended.
    template <class Answer>
    auto guard(Answer answer) {
        return answered([this, round = fsm_->round(), answer = std::move(answer)](auto&&... values) mutable {
            if (fsm_->round() == round) answer(std::forward<decltype(values)>(values)...);
        });
    }

    /// As guard(), for a request whose answer matters only if it is usable().
    template <class Answer>
    auto executed(const char* request, std::string path, Answer answer) {
        return guard([this, request, path = std::move(path), answer = std::move(answer)](Rc rc, auto&&... values) {
            if (usable(rc, request, path)) answer(rc, std::forward<decltype(values)>(values)...);
        });
    }

    /// As executed(), for a list of the directory that the caller has named. Fails if that is an ephemeral node: it has
    /// no children, and the caller would take that for an empty queue.
    template <class Answer>
    auto listed(std::string path, Answer answer) {
        return executed("list", std::move(path),
                        [this, answer = std::move(answer)](Rc rc, const std::vector<std::string>& names,
                                                           const NodeStat& stat, Instant sent) {
                            if (can_be_directory(stat)) answer(rc, names, stat, sent);
                        });
    }
    bool can_be_directory(const NodeStat& stat);

    const std::string user_path_;

private:
    struct Result {
        Outcome outcome = Outcome::done;
        std::optional<Error> error;
    };
    auto maker();
    OperationFsm& machine() noexcept override { return *fsm_; }
    void answer(Ended how, Errc error, std::string detail) override;

    std::optional<ReadFsm> fsm_;  // when it runs
    std::function<void(Result)> done_;
};

}  // namespace zkrecipes::internal
