#include "testing/world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace zkrecipes::sim {

namespace {

constexpr std::size_t kTraceLines = 200'000;

}  // namespace

Actor::Actor(World& world, std::string name, std::int64_t rate_ppm)
    : world_(world),
      name_(std::move(name)),
      id_(world.next_actor_id_++),
      rate_ppm_(rate_ppm),
      offset_(Rng(world.seed()).fork(name_).between(1, 1'000'000) * kMilli) {}

SimTime Actor::local_now() const noexcept { return to_local(world_.now()); }

SimTime Actor::to_local(SimTime true_time) const noexcept {
    return offset_ + true_time + static_cast<SimTime>(static_cast<__int128>(true_time) * rate_ppm_ / 1'000'000);
}

SimTime Actor::to_true(SimTime local) const noexcept {
    const SimTime since = local - offset_;
    if (since <= 0) return 0;
    if (since >= kForever) return kForever;
    auto guess = static_cast<SimTime>(static_cast<__int128>(since) * 1'000'000 / (1'000'000 + rate_ppm_));
    while (to_local(guess) < local) ++guess;
    return guess;
}

SimTime Actor::runs_at(SimTime time) const noexcept {
    for (const Pause& pause : pauses_) {
        if (pause.from <= time && time < pause.to) time = pause.to;
    }
    return std::min(time, world_.now());
}

void Actor::pause() {
    if (paused_++ > 0) return;
    pauses_.push_back({world_.now(), kForever});
    world_.note(this, "paused");
}

void Actor::resume() {
    if (--paused_ > 0) return;
    pauses_.back().to = world_.now();
    world_.note(this, "goes on");
    world_.unpark(*this);
}

void Actor::pause_for(SimTime duration) {
    pause();
    world_.in(duration, nullptr, [this] { resume(); });
}

void Actor::pause_here(SimTime duration) {
    const SimTime until = world_.now() + duration;
    if (paused_++ == 0) pauses_.push_back({world_.now(), kForever});
    world_.note(this, "paused in its code", static_cast<std::uint64_t>(duration / kMilli));
    world_.stop_code(*this, until);
}

void World::run_around(Actor& actor, SimTime until) {
    // The actor stays paused until this stack frame is on top again, which may be later than `until` if another actor
    // has been stopped in the same way meanwhile.
    Actor* const before = current_;
    Actor* const event_actor = event_actor_;
    loop(until, {});
    current_ = before;
    event_actor_ = event_actor;
    actor.resume();
}

World::World(std::uint64_t seed, bool keep_trace)
    : seed_(seed),
      root_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL),
      pause_rng_(root_.fork("pauses in code")),
      wake_rng_(root_.fork("waking up")),
      keep_trace_(keep_trace) {
    slots_.reserve(1024);
}

World::~World() { drop_events(); }

void World::drop_events() noexcept {
    // What is dropped may own objects whose destructors schedule or cancel.
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!slots_[i].work) continue;
        const auto work = std::exchange(slots_[i].work, nullptr);
        ++slots_[i].generation;
        free_.push_back(static_cast<std::uint32_t>(i));
    }
}

EventId World::at(SimTime when, Actor* actor, std::function<void()> work) {
    std::uint32_t index;
    if (free_.empty()) {
        index = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        index = free_.back();
        free_.pop_back();
    }
    Slot& slot = slots_[index];
    slot.work = std::move(work);
    slot.actor = actor;
    slot.late = 0;
    const EventId event = (static_cast<EventId>(slot.generation) << 32) | (index + 1);
    due_.push({std::max(when, now_), next_order_++, event});
    return event;
}

EventId World::at_or_late(SimTime when, SimTime late, Actor* actor, std::function<void()> work) {
    const EventId event = at(when, actor, std::move(work));
    slot_of(event)->late = late;
    return event;
}

World::Slot* World::slot_of(EventId event) noexcept {
    const auto index = static_cast<std::uint32_t>(event & 0xffffffffU);
    if (index == 0 || index > slots_.size()) return nullptr;
    Slot& slot = slots_[index - 1];
    return slot.generation == static_cast<std::uint32_t>(event >> 32) ? &slot : nullptr;
}

void World::free_slot(EventId event) noexcept {
    const auto index = static_cast<std::uint32_t>(event & 0xffffffffU) - 1;
    ++slots_[index].generation;
    free_.push_back(index);
}

bool World::cancel(EventId event) noexcept {
    Slot* const slot = slot_of(event);
    if (slot == nullptr) return false;
    const auto dropped = std::exchange(slot->work, nullptr);  // destroyed after the slot is free again
    free_slot(event);
    return true;
}

SimTime World::next_due() noexcept {
    while (!due_.empty() && slot_of(due_.top().event) == nullptr) due_.pop();
    return due_.empty() ? kForever : due_.top().when;
}

void World::unpark(Actor& actor) {
    // With their old order numbers: what was parked comes before what is due now, and keeps its order, but for timers.
    for (const auto& parked : std::exchange(actor.parked_, {})) {
        const Slot* const slot = slot_of(parked.event);
        const SimTime late = slot != nullptr && slot->late > 0 ? wake_rng_.between(0, slot->late) : 0;
        due_.push({now_ + late, parked.order, parked.event});
    }
}

bool World::run(SimTime until, const std::function<bool()>& done) {
    const bool result = loop(until, done);
    after_run();
    return result;
}

bool World::loop(SimTime until, const std::function<bool()>& done) {
    // Pauses inside pauses inside pauses: the stack has an end.
    if (++depth_ > 64) {
        std::fputs("simulation: too many nested pauses\n", stderr);
        std::abort();
    }
    bool result = false;
    for (;;) {
        run_tasks();
        current_ = nullptr;
        if (done && done()) {
            result = true;
            break;
        }
        if (due_.empty() || due_.top().when > until) {
            now_ = std::max(now_, until);
            break;
        }
        const Due due = due_.top();
        due_.pop();
        Slot* const slot = slot_of(due.event);
        if (slot == nullptr) continue;
        now_ = std::max(now_, due.when);
        if (slot->actor != nullptr && slot->actor->paused()) {
            slot->actor->parked_.push_back({due.order, due.event});
            continue;
        }
        auto work = std::move(slot->work);
        Actor* const actor = slot->actor;
        slot->work = nullptr;
        free_slot(due.event);
        ++events_;
        mix(static_cast<std::uint64_t>(now_));
        mix(due.order);
        current_ = event_actor_ = actor;
        work();
        work = nullptr;
        current_ = event_actor_ = nullptr;
    }
    --depth_;
    return result;
}

void World::maybe_pause(const Actor& actor) noexcept {
    if (pause_one_in_ == 0 || current_ != &actor || actor.paused() || depth_ > 8) return;
    if (!pause_rng_.one_in(pause_one_in_)) return;
    const_cast<Actor&>(actor).pause_here(pause_rng_.between(0, pause_longest_));
}

void World::note(const Actor* actor, std::string_view tag, std::uint64_t value) {
    mix(static_cast<std::uint64_t>(now_));
    mix(actor == nullptr ? 0U : static_cast<std::uint64_t>(actor->id()) + 1);
    for (const char c : tag) mix(static_cast<unsigned char>(c));
    mix(value);
    if (keep_trace_) {
        std::string text(tag);
        if (value != 0) text += " " + std::to_string(value);
        note_text(actor, text);
    }
}

void World::note_text(const Actor* actor, const std::string& text) {
    if (!keep_trace_) return;
    char head[64];
    std::snprintf(head, sizeof head, "%10.4f  %-6s ", static_cast<double>(now_) / 1e9,
                  actor == nullptr ? "-" : actor->name().c_str());
    trace_.push_back(head + text);
    if (trace_.size() > kTraceLines) trace_.pop_front();
}

}  // namespace zkrecipes::sim
