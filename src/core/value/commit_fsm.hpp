#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "core/operation/retrying_fsm.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {

/// How a commit ended.
struct CommitEnd {
    enum class How {
        committed,
        committed_before,  // by an attempt whose answer was lost: what the servers said of it is not known
        timed_out,         // nothing was written; only before anything was sent
        stopped,           // the same
        refused,           // nothing was written: the servers refused the operation of the last answer
        failed             // `error`; nothing was written, unless it is outcome_unknown
    };
    How how{};
    Rc rc{};  // refused
    Errc error{};
    std::string detail{};
};

/// What a commit asks of its surroundings.
class CommitPort : public virtual OperationPort {
public:
    /// What one request consists of.
    enum class What {
        all,         // the mark, if there is one, the checks of the holds, the operations
        mark_alone,  // to learn whether an earlier attempt has happened, where none may happen any more; can be told
                     // from the mark of one that has happened
        which_mark   // whether the mark that is there is that of an attempt: refused with bad_version if not
    };
    virtual bool all_held() const = 0;  // whether all required grants are held, by our own clock

    // ---- requests, cleaning up ----
    virtual void send(Ticket ticket, What what) = 0;  // on_answer
    virtual bool reserve_mark() = 0;                  // room for the mark in the session's budget
    virtual void delete_mark() = 0;                   // it is there
    virtual void delete_mark_if_any() = 0;            // it may be there, or come

    virtual void answer(CommitEnd end) = 0;  // once
};

enum class CommitStep : std::uint8_t { idle, awaiting_session, backing_off, leaving, finished, sent };

/// Sends one guarded transaction, and never one that may happen twice.
///
/// A transaction is sent while the required grants are held by our own clock, and the servers check the same. It is
/// sent again only if it is certain that it was not executed. If the answer is lost there are two cases:
///
/// - It has no mark: the outcome is unknown, and that is the answer.
/// - It has a mark: an ephemeral node with a name that only this commit uses. Its create is the first operation of
/// every
///   attempt, so at most one attempt can happen while the session lives. The next one is answered "exists already" if
///   an earlier one has happened. Any other answer proves that none has happened, and that none will.
///   If the holds have been lost meanwhile, nothing may be written any more, and the mark alone is sent to find out.
///   Its answer can be lost as well. Then the mark that the next attempt meets may be that one, and one more request
///   finds out which it is. If the session ends, so does the mark, and the outcome stays unknown.
class CommitFsm final : public RetryingFsm<CommitPort, CommitStep> {
public:
    enum class Mark { no, yes };
    CommitFsm(CommitPort& port, Mark mark, Patience patience);

    void start() override;
    void deadline() override;
    void stop() override;

    // ---- the session ----
    void on_session_lost() override;
    void on_closed(Errc why, std::string detail) override;

    // ---- answers ----
    /// `refused_at`: the operation that was refused, if one was; 0 is the mark, if there is one.
    void on_answer(Ticket ticket, Rc rc, std::size_t refused_at);

private:
    enum class Known : std::uint8_t { none, unknown, there };

    using How = CommitEnd::How;
    // RetryingFsm
    void resume() override;
    void answer(Ended, Errc, std::string) override { port_.answer(std::move(end_)); }
    bool outcome_open() const noexcept override { return step_ == Step::sent && has_mark_; }
    void attempt_was_the_only_one() override;
    void policy_gave_up(const std::string& why) override;

    void send(CommitPort::What what);
    void give_up(How how, const char* unknown_because);
    void fail(Errc error, std::string detail);
    void fail_lost();
    void fail_unknown(const std::string& because);
    void mark_is_there();
    void refused(Rc rc);
    void lost_answer(Rc rc);
    void leave(CommitEnd end);
    void settle_mark(Rc rc, std::size_t refused_at);
    void drop_mark();

    const bool has_mark_;
    Known mark_ = Known::none;
    CommitPort::What what_ = CommitPort::What::all;  // was sent last
    bool alone_perhaps_ = false;                     // the mark may be one that was sent alone
    std::uint64_t incarnation_ = 0;                  // in which it was sent
    CommitEnd end_;
};

}  // namespace zkrecipes::internal
