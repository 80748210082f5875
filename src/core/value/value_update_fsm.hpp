#pragma once

#include <chrono>
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

/// What stands in a node that was looked at.
struct FoundValue {
    std::string data;
    std::int32_t version = 0;
};

/// One write of a value.
struct ValueWrite {
    enum class How {
        create,
        set,     // if the data are of `version`
        set_any  // whatever they are
    };
    How how = How::create;
    std::string data{};
    std::int32_t version = 0;
};

/// What is to become of a value. Pure; a ValueUpdateFsm asks it, step by step.
class ValueUpdateRule {
public:
    enum class Then {
        look,
        write,
        unchanged,  // the end: it is not to be changed
        fail
    };
    struct Step {
        Then then = Then::look;
        ValueWrite write{};
        Errc error{};
        std::string detail{};
    };

    ValueUpdateRule() = default;
    ValueUpdateRule(const ValueUpdateRule&) = delete;
    ValueUpdateRule& operator=(const ValueUpdateRule&) = delete;
    virtual ~ValueUpdateRule() = default;

    virtual Step begin() = 0;
    /// Whether a look must show what the leader knows.
    virtual bool looks_fresh() const { return false; }
    virtual Step on_found(const std::optional<FoundValue>& found) = 0;  // empty: there is no node
    /// The last write did not happen: no_node, node_exists or bad_version.
    virtual Step on_refused(Errc why) = 0;
    /// The last write has happened. `version`: of the data now; empty: the answer that told it was lost.
    virtual void on_written(const ValueWrite& write, std::optional<std::int32_t> version) = 0;
};

/// How one write ended that was sent as a commit, which has tried again where that was safe.
struct WriteEnd {
    enum class How {
        written,
        nothing,  // timed out or stopped before anything was sent
        failed
    };
    How how = How::nothing;
    std::optional<std::int32_t> version{};  // written: of the data now, if that is known
    std::optional<Error> error{};           // failed; nothing was written, unless it is outcome_unknown
    bool of_mark = false;                   // failed: it is about the mark, not about the value
};

struct LockEnd {
    bool locked = false;
    std::optional<Error> error{};  // neither: timed out or stopped
};

/// How a change ended.
struct ValueUpdateEnd {
    enum class How { changed, unchanged, nothing, failed };  // nothing: timed out or stopped; nothing was written
    How how = How::nothing;
    Errc error{};  // failed
    std::string detail{};
    std::optional<Error> ready{};  // failed: complete, instead of the two above
};

/// What a change asks of its surroundings. Unlike other requests, write() and lock() may be answered before they
/// return.
class ValueUpdatePort : public virtual OperationPort {
public:
    enum class Directory { parent, of_marks };

    // ---- facts ----
    virtual std::optional<std::chrono::milliseconds> conflict_delay(const RetryState& state, bool locked) = 0;
    virtual bool has_lock() const = 0;
    virtual bool lacks_marks() const = 0;  // marks are wanted, and nobody knows yet that their directory is there

    // ---- requests ----
    virtual void look(Ticket ticket, bool fresh) = 0;                 // on_looked; fresh: behind a sync
    virtual void write(Ticket ticket, const ValueWrite& write) = 0;   // on_written; keeps the deadline itself
    virtual void make_directory(Ticket ticket, Directory which) = 0;  // on_directory
    virtual void lock(Ticket ticket) = 0;                             // on_locked; keeps the deadline itself
    virtual void unlock() = 0;
    virtual void stop_waiting() = 0;  // of the write or the lock under way: it answers soon

    virtual void answer(ValueUpdateEnd end) = 0;  // once
};

enum class ValueUpdateStep : std::uint8_t {
    idle,
    awaiting_session,
    backing_off,
    leaving,
    finished,
    looking,
    writing,
    making_directory,
    pausing,  // after a conflict
    locking
};

/// Changes the data of one node as a rule says, and never overwrites a version that the rule has not seen. It reads,
/// writes on the condition that the version is still the same, and reads again if it is not.
///
/// Writes are commits (commit_fsm.hpp). If the answer of a write is lost, it is sent again only with a mark that shows
/// whether it has happened. Without a mark the change ends with outcome_unknown. A refused write has not happened, so
/// reading again is safe.
///
/// Conflicts are retried as long as their policy says. After that, if there is a lock, the change goes on under it:
/// changes under the lock do not disturb each other. The condition is checked there, too, since other clients need not
/// use the lock. So nothing depends on the lock being held.
class ValueUpdateFsm final : public RetryingFsm<ValueUpdatePort, ValueUpdateStep> {
public:
    struct Spec {
        bool make_directories = true;
        bool once = false;  // the deadline has passed already: one attempt, which waits for nobody
    };
    ValueUpdateFsm(ValueUpdatePort& port, ValueUpdateRule& rule, Spec spec)
        : RetryingFsm(port, spec.once ? Patience::try_once : Patience::wait), rule_(rule), spec_(spec) {}

    void start() override;
    void deadline() override;
    void stop() override;
    void on_timer() override;

    // ---- the session ----
    void on_closed(Errc why, std::string detail) override;

    // ---- answers ----
    void on_looked(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_written(Ticket ticket, WriteEnd end);
    void on_directory(Ticket ticket, Rc rc);
    void on_locked(Ticket ticket, LockEnd end);

private:
    using How = ValueUpdateEnd::How;
    /// What needs a connection that a commit does not look after.
    enum class Request : std::uint8_t { look, directory };

    // RetryingFsm
    void resume() override { request(request_); }
    void answer(Ended, Errc, std::string) override { port_.answer(std::move(end_)); }
    void attempt_was_the_only_one() override { end(How::nothing); }
    void policy_gave_up(const std::string& why) override { fail(Errc::connection_lost, why + "; nothing was written"); }

    void follow(const ValueUpdateRule::Step& step);
    void send_write();
    void request(Request request);
    /// Whether the answer says something. If not, the request is sent again later, or this has failed.
    bool usable(Rc rc, const char* what);
    void refused(Errc why);
    void conflict(ValueUpdateRule::Step next);
    void end(How how);
    void fail(Errc error, std::string detail);
    void fail(Error error);
    void leave(ValueUpdateEnd end);

    ValueUpdateRule& rule_;
    const Spec spec_;
    Request request_ = Request::look;  // was sent last, or is to be
    ValueWrite write_;                 // was sent last
    ValueUpdatePort::Directory directory_{};
    int directories_made_ = 0;
    ValueUpdateRule::Step next_;  // after the pause, or with the lock
    bool locked_ = false;
    bool late_ = false;  // the deadline has passed
    Outage conflicts_;
    ValueUpdateEnd end_;
};

}  // namespace zkrecipes::internal
