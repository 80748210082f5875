#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "bench/floors/client_lock.hpp"
#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"

namespace zkrecipes::bench {

/// Contenders that hand over one lock, each in a session of its own. No thread waits for the lock: the callback that
/// gets it releases it at once and joins the queue again. Outlives its sessions.
class Contest {
public:
    /// A callback of the C client calls `ended` when all contenders have released the lock for the last time.
    Contest(int contenders, std::function<void()> ended)
        : ended_(std::move(ended)), active_(contenders), meter_(warm_hand_overs(contenders), kHandOvers) {}

    /// Call it once for each contender.
    void enter(zhandle_t* session) {
        Contender& one = contenders_.emplace_back();
        one.lock.emplace(
            session, directory_of(0), [this, &one] { granted(one); }, [this, &one] { released(one); });
        one.lock->acquire();
    }
    HandOvers result() const { return meter_.result(); }

private:
    struct Contender {
        std::optional<ClientLock> lock;
        bool leaves = false;
    };
    void granted(Contender& one) {
        meter_.held(HandOverMeter::Clock::now());
        one.leaves = meter_.enough();
        meter_.releases();
        one.lock->release();
        if (!one.leaves) one.lock->acquire();
    }
    // Answers come in the order of the requests: if the contender leaves, this is the answer to its last request.
    void released(const Contender& one) {
        if (one.leaves && --active_ == 0) ended_();
    }

    const std::function<void()> ended_;
    std::atomic<int> active_;
    HandOverMeter meter_;
    std::deque<Contender> contenders_;
};

}  // namespace zkrecipes::bench
