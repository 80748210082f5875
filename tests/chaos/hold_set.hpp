#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chaos/board.hpp"

namespace zkrecipes::chaos {

/// What one client has been given and how it finds out whether it still has it. This is all that the harness knows of
/// the rule on trial: the library's, or one of the naive ones that it must catch.
struct Belief {
    std::function<bool()> held;
    std::function<void()> release;
    std::optional<std::stop_token> lost;  // empty: the rule has no such signal; the first held() == false stands for it
};

/// The holds of one actor: notes on the board, a thousand times a second, what held() answers for each of them, and
/// increments the unfenced counter of each under the protection of held() alone.
class HoldSet {
public:
    struct Options {
        std::chrono::microseconds poll_every{1000};
        /// Between the read and the guarded write of an increment, so that two believers do lose updates. Zero: no
        /// increments unless write() is called.
        std::chrono::milliseconds think{10};
    };
    class Entry;

    HoldSet(Board& board, int actor, Options options);
    ~HoldSet();  // releases nothing: what is still held ends with its session

    /// `granted_at` was read right after the grant was returned; session 0: unknown.
    std::shared_ptr<Entry> add(int lock, Stamp granted_at, std::int64_t token, const std::string& node, Belief belief,
                               HoldMode mode = HoldMode::exclusive, std::int64_t session = 0,
                               std::int64_t handovers = 0);

    /// One guarded write: only if held. True: written and counted as acknowledged.
    bool write(Entry& entry, std::int64_t value);
    /// What the fenced register said to an increment of this hold.
    static void note_fenced(Entry& entry, bool acknowledged);
    void release(const std::shared_ptr<Entry>& entry);
    /// Of one grant: all are over before any of them is given back.
    void release(const std::vector<std::shared_ptr<Entry>>& entries);
    void release_all();

    /// Stops the whole process with SIGSTOP, but not in the middle of a guarded write (the one thing that a lock
    /// without fencing cannot promise: guarantees, A4). Returns when somebody has sent SIGCONT; the first thing that
    /// runs then is held() of every hold.
    void stop_process();

private:
    void poll(std::stop_token stop);
    void act(std::stop_token stop);

    Board& board_;
    const int actor_;
    const Options options_;
    std::mutex mutex_;  // guards entries_, and makes each check and its note, each check and its write, one step
    std::list<std::shared_ptr<Entry>> entries_;
    std::jthread poller_;  // last: they use the rest
    std::jthread writer_;
};

}  // namespace zkrecipes::chaos
