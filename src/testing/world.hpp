#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "testing/rng.hpp"

namespace zkrecipes::sim {

/// True time of a run, in nanoseconds since its start. Nobody inside the run can read it: each actor has a clock of its
/// own.
using SimTime = std::int64_t;
inline constexpr SimTime kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;
inline constexpr SimTime kForever = INT64_MAX / 4;

using EventId = std::uint64_t;  // 0: none

class World;

/// Something that runs and can be stopped: a client process or a server. While it is paused none of its events and
/// tasks run; they do when it goes on, in their order.
class Actor {
public:
    Actor(World& world, std::string name, std::int64_t rate_ppm);
    virtual ~Actor() = default;
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    const std::string& name() const noexcept { return name_; }
    int id() const noexcept { return id_; }
    World& world() const noexcept { return world_; }
    bool paused() const noexcept { return paused_ > 0; }

    /// This actor's clock: starts anywhere, runs at its own rate.
    SimTime local_now() const noexcept;
    SimTime to_local(SimTime true_time) const noexcept;
    /// The first true time at which local_now() >= local.
    SimTime to_true(SimTime local) const noexcept;

    /// The first time from then on at which it ran. Now, if it has been paused since.
    SimTime runs_at(SimTime time) const noexcept;

    void pause();  // nests
    void resume();
    void pause_for(SimTime duration);
    /// Stops the actor in the middle of what it is doing (a clock read in its own code), for `duration` of true time.
    void pause_here(SimTime duration);

private:
    friend class World;
    World& world_;
    const std::string name_;
    const int id_;
    const std::int64_t rate_ppm_;  // local seconds per true second, minus one, in millionths
    const SimTime offset_;
    int paused_ = 0;
    struct Pause {
        SimTime from, to;
    };
    std::vector<Pause> pauses_;            // the last one may go on
    const void* resuming_task_ = nullptr;  // runs before any other task of this actor: it may hold a mutex
    struct Parked {
        std::uint64_t order;
        EventId event;
    };
    std::vector<Parked> parked_;
};

/// One simulated run: true time, and the queue of what happens next.
///
/// Everything happens on one thread. Each event is one step that takes no time. What the program does not decide is
/// drawn from the seed. A subclass can run tasks between the events: code that waits, such as fibers.
class World {
public:
    explicit World(std::uint64_t seed, bool keep_trace = false);
    virtual ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    std::uint64_t seed() const noexcept { return seed_; }
    SimTime now() const noexcept { return now_; }
    Rng fork(std::string_view name) const noexcept { return root_.fork(name); }

    /// Runs `work` as `actor` (null: the world itself) at true time `when`, or when the actor goes on.
    EventId at(SimTime when, Actor* actor, std::function<void()> work);
    EventId in(SimTime delay, Actor* actor, std::function<void()> work) {
        return at(now_ + delay, actor, std::move(work));
    }
    /// As at(). What became due during a pause of the actor runs up to `late` after its end: by a thread that wakes up
    /// beside the others.
    EventId at_or_late(SimTime when, SimTime late, Actor* actor, std::function<void()> work);
    /// True: it has not begun and will not.
    bool cancel(EventId event) noexcept;

    /// When the next event is due; kForever: there is none.
    SimTime next_due() noexcept;

    /// Drops everything that has not run yet: before what it refers to is destroyed.
    void drop_events() noexcept;

    /// Runs what is due until `until` or until `done` answers true (asked between events). False: `done` was never
    /// true.
    bool run(SimTime until, const std::function<bool()>& done = {});

    /// On whose behalf code runs at present; null: the world's (a checker, the nemesis).
    Actor* current() const noexcept { return current_; }
    /// Runs `look` as the world: clock reads in it cannot pause anybody.
    template <class Look>
    auto as_world(Look look) {
        Actor* const before = current_;
        current_ = nullptr;
        auto result = look();
        current_ = before;
        return result;
    }
    /// One in `n` clock reads of an actor's own code stops it there. 0: never.
    void set_pause_in_code(std::uint64_t one_in, SimTime longest) noexcept {
        pause_one_in_ = one_in;
        pause_longest_ = longest;
    }
    void maybe_pause(const Actor& actor) noexcept;

    // ---- trace: what two runs of one seed must agree on ---------------------------------------------------------
    std::uint64_t hash() const noexcept { return hash_; }
    std::uint64_t events() const noexcept { return events_; }
    bool tracing() const noexcept { return keep_trace_; }
    /// One line of the trace. Counts into the hash. Texts that are costly to make: only the tag, unless tracing().
    void note(const Actor* actor, std::string_view tag, std::uint64_t value = 0);
    void note_text(const Actor* actor, const std::string& text);
    const std::deque<std::string>& trace() const noexcept { return trace_; }

protected:
    /// Runs every task that can go on until none can.
    virtual void run_tasks() {}
    virtual void after_run() {}
    /// Stops code of the actor, which has been paused, until `until`. Here: the world goes on around its stack frame.
    virtual void stop_code(Actor& actor, SimTime until) { run_around(actor, until); }
    void run_around(Actor& actor, SimTime until);
    static const void*& resuming_task(Actor& actor) noexcept { return actor.resuming_task_; }

    Actor* current_ = nullptr;
    Actor* event_actor_ = nullptr;  // on whose behalf the present event runs

private:
    friend class Actor;
    struct Slot {
        std::function<void()> work;
        Actor* actor = nullptr;
        std::uint32_t generation = 1;
        SimTime late = 0;  // at most, when its actor goes on after a pause
    };
    struct Due {
        SimTime when;
        std::uint64_t order;
        EventId event;
        bool operator>(const Due& other) const noexcept {
            return when != other.when ? when > other.when : order > other.order;
        }
    };
    bool loop(SimTime until, const std::function<bool()>& done);
    Slot* slot_of(EventId event) noexcept;
    void free_slot(EventId event) noexcept;
    void unpark(Actor& actor);
    void mix(std::uint64_t value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3ULL; }

    const std::uint64_t seed_;
    const Rng root_;
    Rng pause_rng_;
    Rng wake_rng_;
    SimTime now_ = 0;
    std::uint64_t next_order_ = 1;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;
    int next_actor_id_ = 0;
    int depth_ = 0;
    std::uint64_t pause_one_in_ = 0;
    SimTime pause_longest_ = 0;
    std::uint64_t hash_ = 0xcbf29ce484222325ULL;
    std::uint64_t events_ = 0;
    const bool keep_trace_;
    std::deque<std::string> trace_;
};

}  // namespace zkrecipes::sim
