#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>
#include <zkrecipes/testenv/gate.hpp>

#include "keeper.hpp"
#include "loop.hpp"
#include "wire.hpp"

namespace zkrecipes::testenv::internal {

class GateConnection;

/// Guarded by the loop's mutex, but for what waiters look at, which has a mutex of its own.
struct FaultState {
    enum class Kind { cut_before, cut_after, hold_reply };
    enum class Held { no, yes, released, dropped };

    FaultState(Kind k, Match m) : kind(k), match(std::move(m)), left(match.nth()) {}
    void mark_reached();

    const Kind kind;
    const Match match;
    int left;  // requests that fit, until it is the one
    Held held = Held::no;
    Record request;
    std::weak_ptr<GateCore> gate;
    std::shared_ptr<Loop> loop;

    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
};

/// Rewrites the beginning of what a raw connection sends: takes the bytes so far, answers what to send instead of them,
/// or nothing while it needs more.
using StreamHead = std::function<std::optional<std::string>(const std::string& bytes)>;

/// What a Gate is inside. All members with the loop's mutex held, except where noted.
class GateCore : public Loop::Timed, public std::enable_shared_from_this<GateCore> {
public:
    GateCore(std::shared_ptr<Loop> loop, const Endpoint& target, const GateOptions& options);
    /// A raw gate at an address that its owner has claimed.
    GateCore(std::shared_ptr<Loop> loop, const Endpoint& target, const Endpoint& at);
    ~GateCore() override;
    void open();   // without the mutex
    void close();  // without the mutex; nothing is called any more afterwards

    [[nodiscard]] Clock::time_point next_due() const override;
    void on_due(Clock::time_point now) override;

    [[nodiscard]] bool in_hole(Direction direction) const {
        return direction == Direction::to_server ? hole_to_server : hole_to_client;
    }
    [[nodiscard]] std::chrono::milliseconds delay_of(Direction direction) const {
        return direction == Direction::to_server ? delay_to_server : delay_to_client;
    }
    void pass();
    void stop_accepting();
    /// Who connects in between waits, and is not refused. Calls nest.
    void let_newcomers_wait();
    void admit_newcomers();
    void settle_all();
    void for_each(const std::function<void(GateConnection&)>& action);
    void forget(std::uint64_t connection);

    /// The fault that this request, which just came, is the one for.
    [[nodiscard]] std::shared_ptr<FaultState> fault_for(const Record& request);
    void record(Record record);
    void count_request(const Record& request);
    /// Something will be due at this time.
    void expect_timer(Clock::time_point due) { timers_until_ = std::max(timers_until_, due); }
    void learn_session(std::int64_t session, const std::string& password);

    const std::shared_ptr<Loop> loop;
    AddressClaim claim;
    Endpoint endpoint;
    Endpoint target;
    const bool raw;
    StreamHead stream_head;  // raw gates only

    bool hole_to_server = false;
    bool hole_to_client = false;
    std::chrono::milliseconds delay_to_server{0};
    std::chrono::milliseconds delay_to_client{0};

    std::vector<std::shared_ptr<FaultState>> faults;
    std::deque<Record> records;
    std::size_t record_limit = 200'000;
    Counts counts;
    std::map<std::int64_t, Counts> session_counts;
    std::vector<std::int64_t> sessions;
    std::map<std::int64_t, std::string> passwords;
    std::map<std::uint64_t, std::shared_ptr<GateConnection>> connections;

private:
    void start_accepting();
    void watch_listener();
    void unwatch_listener();
    void on_accept();

    // No connection has anything due after this: spares the loop the look at all of them while no delay is set.
    Clock::time_point timers_until_ = Clock::time_point::min();
    const pid_t owner_ = ::getpid();
    bool port_is_final_ = false;
    UniqueFd listener_;
    std::uint64_t listener_token_ = 0;
    bool listener_watched_ = false;
    int newcomers_wait_ = 0;
    std::uint64_t next_connection_ = 1;
};

}  // namespace zkrecipes::testenv::internal
