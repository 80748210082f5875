#include "fake_server/engine.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <future>
#include <stdexcept>

#include "base/signal_mask.hpp"

namespace zkrecipes::fake {
namespace {

using std::chrono::steady_clock;

constexpr auto kCallbackPatience = std::chrono::seconds(1);
constexpr int kStrikes = 30;                                // of that length
constexpr auto kLookAgain = std::chrono::milliseconds(10);  // for conditions on other things than nodes

thread_local const Engine* t_inside = nullptr;

std::int64_t boot_now() noexcept {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return static_cast<std::int64_t>(ts.tv_sec) * sim::kSecond + ts.tv_nsec;
}

sim::EnsembleOptions options() {
    sim::EnsembleOptions options;
    options.servers = 1;
    options.tick_ms = 100;  // as testenv's servers
    options.most_ticks = 24 * 3600 * 10;
    return options;
}

}  // namespace

Engine::Inside::Inside(const Engine& engine) noexcept : before_(std::exchange(t_inside, &engine)) {}
Engine::Inside::~Inside() { t_inside = before_; }

Engine::Engine(bool manual)
    : manual_(manual), world_(1), ensemble_(std::make_unique<sim::SimEnsemble>(world_, options())) {
    ensemble_->network().shape = {0, 0, 0, 0};
    ensemble_->server(0).fsync_most = 0;
    ensemble_->network().refuses = [this](const sim::Actor& client) {
        return std::any_of(processes_.begin(), processes_.end(),
                           [&](const auto& process) { return &process->actor == &client && process->cut; });
    };
    ensemble_->listen([this](const sim::Txn&) {
        const std::lock_guard lock(mutex_);
        ++changes_;
        quiet_.notify_all();
    });
    wall_started_ = std::chrono::system_clock::now();
    const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(wall_started_.time_since_epoch());
    ensemble_->faults().clock_ahead_ms = wall.count() - ensemble_->server(0).actor().local_now() / sim::kMilli;
    world_.run(60 * sim::kSecond, [this] { return ensemble_->settled(); });
    world_started_ = target_ = world_.now();
    started_ = steady_clock::now();
    boot_offset_ = boot_now() - world_started_;
    now_ns_ = boot_offset_ + world_started_;
}

Engine::~Engine() = default;

std::shared_ptr<Engine> Engine::start(bool manual) {
    auto engine = std::make_shared<Engine>(manual);
    const internal::SignalMaskForNewThreads mask;
    const std::lock_guard lock(engine->mutex_);
    engine->thread_ = std::thread([engine] { engine->loop(); });
    return engine;
}

std::chrono::system_clock::time_point Engine::wall_now() const noexcept {
    using Wall = std::chrono::system_clock;
    const auto passed = now().time_since_epoch() - Nanoseconds(boot_offset_ + world_started_);
    return wall_started_ + std::chrono::duration_cast<Wall::duration>(passed);
}

// ---- any thread ----------------------------------------------------------------------------------------------------

bool Engine::post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    inbox_.push_back(std::move(work));
    poke();
    return true;
}

void Engine::run(std::function<void()> work) {
    std::promise<void> done;
    auto result = done.get_future();
    {
        const std::lock_guard lock(mutex_);
        if (t_inside == this && std::this_thread::get_id() == thread_.get_id())
            throw std::logic_error("FakeServer: called from a retry policy or a log sink");
    }
    const bool posted = post([&] {
        try {
            work();
            done.set_value();
        } catch (...) {
            done.set_exception(std::current_exception());
        }
    });
    if (!posted) throw std::logic_error("FakeServer: it has ended");
    result.get();
}

void Engine::settle() {
    if (t_inside == this) return;  // it would wait for its own callback
    Lock lock(mutex_);
    wait_quiet(lock);
}

void Engine::advance(Nanoseconds by) {
    if (!manual_)
        throw std::logic_error("FakeServer::advance: the server follows the real clock; make it with Time::manual");
    if (by < Nanoseconds::zero()) throw std::logic_error("FakeServer::advance: time does not go back");
    if (t_inside == this)
        throw std::logic_error("FakeServer::advance: called from a callback, for which it would wait");
    Lock lock(mutex_);
    wait_quiet(lock);  // what is under way happens before
    target_ = std::max(target_, now_ns_.load() - boot_offset_ + by.count());
    poke();
    wait_quiet(lock);
}

bool Engine::await(const std::function<bool()>& condition, std::chrono::milliseconds within) {
    const auto limit = steady_clock::now() + within;
    for (;;) {
        std::uint64_t seen = 0;
        {
            const std::lock_guard lock(mutex_);
            seen = changes_;
        }
        if (condition()) return true;
        const auto now = steady_clock::now();
        if (now >= limit) return false;
        Lock lock(mutex_);
        quiet_.wait_until(lock, std::min(limit, now + kLookAgain), [&] { return changes_ != seen; });
    }
}

void Engine::leave() noexcept {
    try {
        run([this] { ensemble_->kill(0); });
        settle();
    } catch (...) {
        // A callback of the user waits for something: the thread ends when its session is closed.
    }
    std::thread ending;
    {
        Lock lock(mutex_);
        over_ = true;
        poke();
        quiet_.wait(lock, [this] { return ended_ || (idle_ && open_clients_ > 0); });
        ending = std::move(thread_);
        if (!ended_) return ending.detach();
    }
    ending.join();
}

std::shared_ptr<void> Engine::busy(Lane lane) {
    const std::lock_guard lock(mutex_);
    ++(lane == Lane::notifier ? calling_ : busy_);
    return {this, [self = shared_from_this(), lane](void*) { self->lane_done(lane); }};
}

void Engine::lane_done(Lane lane) noexcept {
    const std::lock_guard lock(mutex_);
    int& count = lane == Lane::notifier ? calling_ : busy_;
    if (--count > 0) return;
    if (calling_ == 0) impatient_ = false;
    if (manual_) poke();
    tell_if_quiet();
}

TimerId Engine::add_timer(Instant when, const void* owner, std::function<void()> fire) {
    const std::lock_guard lock(mutex_);
    timers_.emplace(std::pair(when, ++last_timer_), Timer{owner, std::move(fire)});
    due_of_timers_.emplace(last_timer_, when);
    poke();
    return last_timer_;
}

bool Engine::cancel_timer(TimerId timer) noexcept {
    std::function<void()> dropped;  // destroyed after the lock was given back: it may own anything
    const std::lock_guard lock(mutex_);
    const auto found = due_of_timers_.find(timer);
    if (found == due_of_timers_.end()) return false;
    dropped = std::move(timers_.extract({found->second, timer}).mapped().fire);
    due_of_timers_.erase(found);
    return true;
}

void Engine::drop_timers(const void* owner) noexcept {
    std::vector<Timer> dropped;
    const std::lock_guard lock(mutex_);
    for (auto each = timers_.begin(); each != timers_.end();) {
        if (each->second.owner != owner) {
            ++each;
            continue;
        }
        dropped.push_back(std::move(each->second));
        due_of_timers_.erase(each->first.second);
        each = timers_.erase(each);
    }
}

void Engine::client_opened(Process& process) {
    const std::lock_guard lock(mutex_);
    ++process.open_clients;
    ++open_clients_;
}

void Engine::client_closed(Process& process) {
    const std::lock_guard lock(mutex_);
    --process.open_clients;
    --open_clients_;
    poke();
}

void Engine::poke() noexcept {
    poked_ = true;
    wake_.notify_one();
}

bool Engine::quiet() const noexcept {
    if (!idle_ || !inbox_.empty() || lanes_busy()) return false;
    return !manual_ || (!timers_due() && now_ns_.load() - boot_offset_ >= target_);
}

void Engine::tell_if_quiet() noexcept {
    if (!quiet()) return;
    ++quiet_moments_;
    quiet_.notify_all();
}

void Engine::wait_quiet(Lock& lock) {
    // One such moment will do: whatever the caller has caused is over then, though other threads go on.
    const auto rested = [this, before = quiet_moments_] { return quiet_moments_ != before || quiet(); };
    std::uint64_t seen = steps_;
    for (int strikes = 0; !quiet_.wait_for(lock, kCallbackPatience, rested);) {
        if (steps_ != seen) {
            seen = steps_;
            strikes = 0;
        } else if (busy_ == 0 && calling_ > 0 && !impatient_) {
            impatient_ = true;
            poke();
        } else if (!manual_) {
            return;  // the threads of the user keep the sessions busy
        } else if (++strikes == kStrikes) {
            throw std::runtime_error(
                "FakeServer: the sessions do not come to rest; does a log sink wait, or a retry policy?");
        }
    }
}

// ---- the world's thread --------------------------------------------------------------------------------------------

Process& Engine::add_process() {
    processes_.push_back(std::make_unique<Process>(world_, "session " + std::to_string(processes_.size() + 1)));
    return *processes_.back();
}

SimTime Engine::time() const noexcept {
    if (manual_) return world_.now();
    return world_started_ + std::chrono::duration_cast<Nanoseconds>(steady_clock::now() - started_).count();
}

void Engine::loop() noexcept {
    pthread_setname_np(pthread_self(), "zkr-fake-server");
    const Inside inside(*this);
    Lock lock(mutex_);
    while (true) {
        idle_ = poked_ = false;
        if (!inbox_.empty() || world_.next_due() <= time()) {
            work_through(lock);
            continue;
        }
        if (manual_ && step(lock)) continue;
        if (poked_) continue;
        if (over_ && open_clients_ == 0) {
            lock.unlock();
            world_.drop_events();  // what they own may post
            lock.lock();
            if (inbox_.empty()) break;
            continue;
        }
        idle_ = true;
        tell_if_quiet();
        if (over_) quiet_.notify_all();
        sleep(lock);
    }
    ended_ = true;
    quiet_.notify_all();
}

void Engine::work_through(Lock& lock) {
    auto work = std::exchange(inbox_, {});
    lock.unlock();
    world_.run(time());
    for (auto& each : work) {
        each();
        each = nullptr;
        world_.run(time());
    }
    lock.lock();
}

bool Engine::fire_timers(Lock& lock) {
    std::vector<Timer> due;
    while (timers_due()) {
        due.push_back(std::move(timers_.begin()->second));
        due_of_timers_.erase(timers_.begin()->first.second);
        timers_.erase(timers_.begin());
    }
    if (due.empty()) return false;
    lock.unlock();
    for (Timer& each : due) each.fire();
    due.clear();
    lock.lock();
    return true;
}

bool Engine::somebody_closes() const {
    return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
        return process->open_clients > 0 && process->closing && process->closing();
    });
}

/// One step of the manual clock. False: there is nothing to do before somebody says so.
bool Engine::step(Lock& lock) {
    if (fire_timers(lock)) return true;
    if (lanes_busy()) return false;
    SimTime until = target_;
    if (until <= world_.now()) {
        lock.unlock();
        const bool closing = somebody_closes();
        lock.lock();
        if (poked_) return true;
        if (!closing) return false;
        until = sim::kForever;
    }
    SimTime next = std::min(until, world_.next_due());
    if (!timers_.empty() && timers_.begin()->first.first < Instant::max()) {
        const SimTime timer = timers_.begin()->first.first.time_since_epoch().count() - boot_offset_;
        next = std::min(next, timer);
    }
    target_ = std::max(target_, next);
    ++steps_;
    now_ns_.store(next + boot_offset_, std::memory_order_release);
    lock.unlock();
    world_.run(next);
    lock.lock();
    return true;
}

void Engine::sleep(Lock& lock) {
    const auto poked = [this] { return poked_; };
    if (manual_) return wake_.wait(lock, poked);
    wake_.wait_until(lock, started_ + Nanoseconds(world_.next_due() - world_started_), poked);
}

}  // namespace zkrecipes::fake
