#include "testing/sim_runtime.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace zkrecipes::sim {

namespace {

// The clocks that the library sees are offset from each other, so that code which mixes them up fails at once.
constexpr SimTime kSteadyBehindBoot = 77 * kMilli;
constexpr SimTime kWallStart = 1'790'000'000 * kSecond;
constexpr SimTime kFarAway = 400LL * 24 * 3600 * kSecond;  // nobody lives that long; keeps the arithmetic in range

}  // namespace

SimRuntime::SimRuntime(Actor& process, RuntimeShape shape)
    : process_(process),
      world_(process.world()),
      shape_(shape),
      random_(world_.fork("runtime " + process.name())),
      delays_(random_.fork("delays")) {}

Instant SimRuntime::now() const noexcept {
    // Before the read: a pause right after the read is a pause before the next one, and the read must not be older than
    // the pause that has just ended.
    world_.maybe_pause(process_);
    const Instant at{Nanoseconds(process_.local_now())};
    return at;
}

Deadline::TimePoint SimRuntime::steady_now() const noexcept {
    return Deadline::TimePoint(Nanoseconds(process_.local_now() - kSteadyBehindBoot));
}

std::chrono::system_clock::time_point SimRuntime::wall_now() const noexcept {
    using Wall = std::chrono::system_clock;
    return Wall::time_point(std::chrono::duration_cast<Wall::duration>(Nanoseconds(kWallStart + process_.local_now())));
}

TimerId SimRuntime::at(Instant when, std::function<void()> work) {
    if (stopped_) return 0;
    const SimTime local = std::min(when.time_since_epoch().count(), process_.local_now() + kFarAway);
    const SimTime due = std::max(process_.to_true(local), world_.now()) + delays_.between(0, shape_.timer_delay);
    ++timers_;
    return world_.at_or_late(due, shape_.timer_delay, &process_,
                             [self = shared_from_this(), run = std::move(work)]() mutable {
                                 --self->timers_;
                                 if (self->stopped_) return;
                                 run();
                                 run = nullptr;
                             });
}

bool SimRuntime::cancel(TimerId timer) noexcept {
    if (timer == 0 || !world_.cancel(timer)) return false;
    --timers_;
    return true;
}

void SimRuntime::post(Lane lane, std::function<void()> work) {
    if (stopped_) return;
    Queue& queue = lanes_[static_cast<std::size_t>(lane)];
    SimTime delay = delays_.between(0, lane == Lane::notifier ? shape_.notifier_delay : shape_.lane_delay);
    if (lane == Lane::notifier && delays_.one_in(shape_.slow_notifier_one_in))
        delay += delays_.between(0, shape_.slow_notifier);
    queue.last = std::max(queue.last, world_.now() + delay);
    auto item = std::make_shared<Item>();
    item->work = std::move(work);
    queue.items.push_back(item);
    item->event =
        world_.at(queue.last, &process_, [self = shared_from_this(), lane, item] { self->run_item(lane, item); });
}

void SimRuntime::run_item(Lane lane, const std::shared_ptr<Item>& item) {
    auto& items = lanes_[static_cast<std::size_t>(lane)].items;
    const auto found = std::find(items.begin(), items.end(), item);
    if (found == items.end()) return;
    items.erase(found);
    auto work = std::move(item->work);
    if (work) work();
}

std::size_t SimRuntime::open_posts() const noexcept {
    std::size_t open = 0;
    for (const Queue& queue : lanes_) open += queue.items.size();
    return open;
}

void SimRuntime::stop() noexcept {
    if (stopped_) return;
    stopped_ = true;
    const auto self = shared_from_this();  // the last piece of work may drop the last reference
    for (auto& queue : lanes_) {
        while (!queue.items.empty()) {
            const auto item = queue.items.front();
            queue.items.erase(queue.items.begin());
            world_.cancel(item->event);
            auto work = std::move(item->work);
            if (work) work();
        }
    }
}

}  // namespace zkrecipes::sim
