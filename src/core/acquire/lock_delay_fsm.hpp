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
#include "core/acquire/acquire_fsm.hpp"
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

/// What the delay asks of its surroundings; the rules are those of AcquirePort.
class LockDelayPort {
public:
    virtual ~LockDelayPort() = default;

    // ---- facts ----
    virtual bool connected() const = 0;
    virtual Instant now() const = 0;
    virtual std::uint64_t random() = 0;
    virtual std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) = 0;
    virtual bool held() const = 0;  // whether the hold that is to be used is surely ours

    // ---- requests ----
    virtual void read(Ticket ticket) = 0;  // the lock directory: on_read
    /// One transaction: check of the own node, and set of the directory's data if they have this version: on_marked.
    virtual void mark(Ticket ticket, const std::string& data, std::int32_t version) = 0;

    // ---- waiting and the end ----
    virtual void start_timer(std::chrono::milliseconds delay) = 0;  // on_timer
    virtual void stop_timer() = 0;
    virtual void note_delay() = 0;  // the last holder has vanished: worth a line in the log
    /// Once. `granted`: the lock may be used. `marked`: the directory may say that we hold.
    virtual void answer(Ended how, Errc error, std::string detail, bool marked) = 0;
    virtual void start_again() = 0;  // instead of an answer: the hold was lost before it was used
};

/// Between having the head of the queue and using the lock: waits if the last holder has vanished, and writes down that
/// we hold. Pure, as AcquireFsm is.
///
/// 1. Read the data of the lock directory.
/// 2. They say that another one holds. It does not, since we are at the head: it has vanished without giving back. Wait
///    for the whole delay from now, which is after its node was gone, on our own clock.
/// 3. One transaction: the own node is there, the data are still those of 1, now they say that we hold. Only then is
///    the lock given to the caller: who vanishes before has done nothing, and is not waited for.
/// 4. On release one transaction: the data say that we gave back, the own node is deleted. Both or none: a former
///    holder that comes back late does not write over a later one.
/// Whoever gives up in 2 writes nothing, so the next one waits in its turn.
class LockDelayFsm {
public:
    LockDelayFsm(LockDelayPort& port, std::int64_t token, std::chrono::milliseconds delay, Patience patience);

    void start();
    void deadline() { leave(Ended::timed_out); }
    void stop() { leave(Ended::stopped); }
    void on_connected() noexcept { outage_.connected(); }
    void on_session_lost();
    void on_closed(Errc why, std::string detail) { leave(Ended::failed, why, std::move(detail)); }

    void on_read(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_marked(Ticket ticket, Rc rc, std::size_t refused_at);
    void on_timer();

private:
    enum class Step : std::uint8_t { idle, backing_off, reading, delaying, marking, finished };

    void go();
    void send_mark();
    void attempt_failed();
    void lose();
    void trouble(Rc rc, const char* what);
    void leave(Ended how, Errc error = {}, std::string detail = {});
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

    LockDelayPort& port_;
    const HolderMark own_;
    const std::chrono::milliseconds delay_;
    const Patience patience_;
    Step step_ = Step::idle;
    Ticket ticket_ = 0;
    std::int32_t version_ = 0;
    std::int64_t waited_for_ = 0;  // token of the one that vanished
    bool marked_ = false;          // perhaps
    Outage outage_;
};

}  // namespace zkrecipes::internal
