#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/runtime.hpp"
#include "testing/ensemble.hpp"
#include "testing/sim_client.hpp"
#include "testing/world.hpp"

namespace zkrecipes::fake {

using internal::Instant;
using internal::Lane;
using internal::Nanoseconds;
using internal::TimerId;
using sim::SimTime;

/// One session object of the user, as the simulated network knows it.
struct Process {
    Process(sim::World& world, const std::string& name) : actor(world, name, 0) {}
    sim::Actor actor;
    std::atomic<int> open_clients{0};
    // ---- on the world's thread
    std::vector<std::weak_ptr<sim::SimClient>> clients;
    const void* session = nullptr;  // its id, once it is open
    bool cut = false;
    std::function<bool()> closing;
    std::function<void()> check_holds;
};

/// The simulated server, and the thread on which all of it runs: its only user. Requests are posted to that thread, and
/// answers and events are given on it, with no lock held.
///
/// With real time, the world follows the clock of this machine. With manual time, it stands still until advance(): then
/// the clock goes from one event or timer to the next, and each time waits until the sessions have nothing left to do.
/// Only where a session is being closed does the manual clock go on by itself: the caller waits for that.
///
/// The thread keeps the engine. It ends when the server is gone and every client is closed.
class Engine final : public std::enable_shared_from_this<Engine> {
public:
    static std::shared_ptr<Engine> start(bool manual);
    explicit Engine(bool manual);
    ~Engine();

    bool manual() const noexcept { return manual_; }
    /// Of the manual clock.
    Instant now() const noexcept { return Instant(Nanoseconds(now_ns_.load(std::memory_order_acquire))); }
    std::chrono::system_clock::time_point wall_now() const noexcept;

    // ---- any thread ------------------------------------------------------------------------------------------------
    /// Runs `work` on the world's thread, in the order of the calls. False: that thread has ended.
    bool post(std::function<void()> work);
    /// … and waits for it. What it throws is thrown here.
    void run(std::function<void()> work);
    /// Waits until the server and the sessions have nothing left to do at the present time.
    void settle();
    void advance(Nanoseconds by);
    /// False: not within this time of the real clock.
    bool await(const std::function<bool()>& condition, std::chrono::milliseconds within);
    /// The server dies. Called once, at the end.
    void leave() noexcept;

    /// While the answer lives, the sessions have something to do.
    std::shared_ptr<void> busy(Lane lane);
    /// Manual time. `fire` runs on the world's thread.
    TimerId add_timer(Instant when, const void* owner, std::function<void()> fire);
    bool cancel_timer(TimerId timer) noexcept;
    void drop_timers(const void* owner) noexcept;
    void client_opened(Process& process);
    void client_closed(Process& process);

    /// Marks a thread as one that runs work of the sessions: it must not wait for itself.
    class Inside {
    public:
        explicit Inside(const Engine& engine) noexcept;
        ~Inside();
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

    private:
        const Engine* const before_;
    };

    // ---- the world's thread ----------------------------------------------------------------------------------------
    sim::SimEnsemble& ensemble() noexcept { return *ensemble_; }
    Process& add_process();
    const std::vector<std::unique_ptr<Process>>& processes() const noexcept { return processes_; }

private:
    struct Timer {
        const void* owner;
        std::function<void()> fire;
    };
    using Lock = std::unique_lock<std::mutex>;

    void loop() noexcept;
    SimTime time() const noexcept;
    void work_through(Lock& lock);
    bool step(Lock& lock);
    bool fire_timers(Lock& lock);
    bool somebody_closes() const;
    void sleep(Lock& lock);
    void poke() noexcept;
    bool timers_due() const noexcept { return !timers_.empty() && timers_.begin()->first.first <= now(); }
    bool lanes_busy() const noexcept { return busy_ > 0 || (calling_ > 0 && !impatient_); }
    bool quiet() const noexcept;
    void tell_if_quiet() noexcept;
    void wait_quiet(Lock& lock);
    void refuse_inside(const char* what) const;
    void lane_done(Lane lane) noexcept;

    const bool manual_;
    std::thread thread_;

    // The world's thread alone.
    sim::World world_;
    std::unique_ptr<sim::SimEnsemble> ensemble_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::chrono::steady_clock::time_point started_;
    std::chrono::system_clock::time_point wall_started_;
    SimTime world_started_ = 0;
    std::int64_t boot_offset_ = 0;  // boot time minus the world's
    std::atomic<std::int64_t> now_ns_{0};

    mutable std::mutex mutex_;       // guards what follows
    std::condition_variable wake_;   // the world's thread waits on it
    std::condition_variable quiet_;  // the others
    std::vector<std::function<void()>> inbox_;
    std::map<std::pair<Instant, TimerId>, Timer> timers_;
    std::unordered_map<TimerId, Instant> due_of_timers_;
    TimerId last_timer_ = 0;
    SimTime target_ = 0;         // up to where the manual clock may go
    std::uint64_t steps_ = 0;    // of the manual clock
    std::uint64_t changes_ = 0;  // transactions
    std::uint64_t quiet_moments_ = 0;
    int busy_ = 0;     // pieces of work on the lanes of all sessions, but the notifiers
    int calling_ = 0;  // on the notifiers: code of users
    int open_clients_ = 0;
    bool impatient_ = false;  // a user's callback takes so long that nobody waits for it
    bool poked_ = false;
    bool idle_ = false;
    bool over_ = false;
    bool ended_ = false;
};

}  // namespace zkrecipes::fake
