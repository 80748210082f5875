#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "core/operation/retrying_fsm.hpp"
#include "core/operation/types.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What the data of a lock directory say of its last holder, where locks are used with a delay:
/// {"v":1,"token":43,"held":1}.
struct HolderMark {
    std::int64_t token = 0;  // 0: nobody has held yet
    bool held = false;       // it has not given the lock back
    bool operator==(const HolderMark&) const = default;
};
std::string write_holder_mark(const HolderMark& mark);
/// Empty data: nobody. Nothing: it is something else.
std::optional<HolderMark> read_holder_mark(std::string_view data);

/// What the delay asks of its surroundings.
class LockDelayPort : public virtual OperationPort {
public:
    // ---- the queue ----
    /// on_acquired or on_not_acquired, possibly before it returns. Has the same deadline, and observes it itself.
    virtual void enter_queue() = 0;
    virtual bool in_queue() const = 0;        // on_acquired or on_not_acquired will follow
    virtual bool queue_is_busy() const = 0;   // others keep it there, as far as the servers' answers tell
    virtual void leave_queue() = 0;           // on_not_acquired follows
    virtual bool held() const = 0;            // whether what was acquired is still guaranteed
    virtual void give_back(bool marked) = 0;  // what was acquired; `marked`: the directory may say that we hold

    // ---- requests ----
    virtual void read(Ticket ticket) = 0;  // the lock directory: on_read
    /// One transaction: check of the own node, and set of the directory's data if they have this version: on_marked.
    virtual void mark(Ticket ticket, const std::string& data, std::int32_t version) = 0;

    // ---- the log, and the end ----
    virtual void note_delay() = 0;  // the last holder has vanished: worth a line in the log
    /// Once. `granted`: the lock may be used, and the directory says that we hold.
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
};

enum class LockDelayStep : std::uint8_t {
    idle,
    awaiting_session,
    backing_off,
    leaving,
    finished,
    queueing,
    reading,
    delaying,
    marking
};

/// Acquires in the queue. Then, before the lock is used, it waits if the last holder has vanished, and writes down that
/// this one holds.
///
/// 0. Acquire. If the hold is lost in one of the steps before 4, start again from here.
/// 1. Read the data of the lock directory.
/// 2. If they say that another client holds, it has vanished without a release, since our node is at the head. Wait for
///    the whole delay on our own clock. It begins now, which is after the other's node was gone.
/// 3. One transaction: the own node is there, the data are still those of 1, and now they say that we hold. Only then
///    does the caller get the lock. A client that vanishes before has done nothing, and nobody waits for it.
/// 4. On release one transaction: the data say that the lock was released, and the own node is deleted. Both or none,
/// so
///    a former holder that comes back late does not overwrite the data of a later one.
/// A call that gives up in 2 writes nothing, so the next contender waits in its turn.
class LockDelayFsm final : public RetryingFsm<LockDelayPort, LockDelayStep> {
public:
    LockDelayFsm(LockDelayPort& port, std::chrono::milliseconds delay, Patience patience);

    void start() override { queue_up(); }
    void deadline() override;
    void stop() override;
    void on_timer() override;
    void on_session_lost() override;
    void on_closed(Errc why, std::string detail) override;

    void on_acquired(std::int64_t token, bool met_others);  // … in the queue
    void on_not_acquired(Ended how);
    void on_read(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_marked(Ticket ticket, Rc rc, std::size_t refused_at);

private:
    // RetryingFsm
    void resume() override;
    void answer(Ended how, Errc error, std::string detail) override;
    void clean_up() override;
    void forget_attempt() override { met_others_ = false; }
    bool others_in_the_way() const override;

    void queue_up();
    void send_mark();
    void lose(Ended as_try = Ended::unreachable);
    void handle_error(Rc rc, const std::string& what);

    const std::chrono::milliseconds delay_;
    bool late_ = false;  // the deadline passed before the queue answered
    // Of what was acquired last:
    HolderMark own_;  // token 0: nothing is acquired
    std::int32_t version_ = 0;
    std::int64_t waited_for_ = 0;  // token of the one that vanished
    bool marked_ = false;          // the directory may say that we hold
    bool met_others_ = false;      // in the queue, or the one that vanished; and the connection has not broken since
};

}  // namespace zkrecipes::internal
