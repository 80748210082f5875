#include "chaos/hold_set.hpp"

#include <csignal>
#include <utility>
#include <vector>

namespace zkrecipes::chaos {

class HoldSet::Entry {
public:
    Entry(HoldSlot& slot, Belief belief) : slot_(slot), belief_(std::move(belief)) {
        if (belief_.lost) {
            on_lost_.emplace(*belief_.lost, [&slot] { slot.lost_at = stamp_now(); });
        }
    }

    /// Guarded by the set's mutex. Nobody looks at it any more: held() is false after a release, and that is no loss.
    bool given_back = false;

    HoldSlot& slot() noexcept { return slot_; }

    // One look at the belief. The stamp for "true" is taken before the look and the one for "false" after it, so that
    // neither can make the holder look better than it is.
    bool look(Stamp before) {
        if (belief_.held()) {
            if (slot_.first_false_at != 0) ++slot_.revivals;
            slot_.last_true_at = before;
            return true;
        }
        if (slot_.first_false_at == 0) {
            slot_.first_false_at = stamp_now();
            if (!belief_.lost) slot_.lost_at = slot_.first_false_at.load();
        }
        return false;
    }

    void end() {
        given_back = true;
        slot_.released_at = stamp_now();
    }

    void release() {
        on_lost_.reset();
        belief_.release();
    }

private:
    HoldSlot& slot_;
    Belief belief_;
    std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

HoldSet::HoldSet(Board& board, int actor, Options options)
    : board_(board),
      actor_(actor),
      options_(options),
      poller_([this](std::stop_token stop) { poll(std::move(stop)); }) {
    if (options_.think.count() != 0) writer_ = std::jthread([this](std::stop_token stop) { act(std::move(stop)); });
}

HoldSet::~HoldSet() = default;

std::shared_ptr<HoldSet::Entry> HoldSet::add(int lock, Stamp granted_at, std::int64_t token, const std::string& node,
                                             Belief belief, HoldMode mode, std::int64_t session,
                                             std::int64_t handovers) {
    HoldSlot& slot = board_.add_hold(actor_, lock, granted_at, token, node, mode, session, handovers);
    auto entry = std::make_shared<Entry>(slot, std::move(belief));
    const std::lock_guard lock_entries(mutex_);
    entries_.push_back(entry);
    return entry;
}

bool HoldSet::write(Entry& entry, std::int64_t value) {
    const std::lock_guard lock(mutex_);
    if (entry.given_back) return false;
    const Stamp before = stamp_now();
    if (!entry.look(before)) return false;
    HoldSlot& slot = entry.slot();
    board_.write_counter(slot.lock, value);
    slot.last_write_at = before;
    ++slot.writes;
    return true;
}

void HoldSet::note_fenced(Entry& entry, bool acknowledged) {
    ++(acknowledged ? entry.slot().fenced : entry.slot().refused);
}

void HoldSet::release(const std::shared_ptr<Entry>& entry) { release(std::vector{entry}); }

void HoldSet::release(const std::vector<std::shared_ptr<Entry>>& entries) {
    {
        const std::lock_guard lock(mutex_);
        for (const auto& entry : entries) {
            entries_.remove(entry);
            entry->end();
        }
    }
    for (const auto& entry : entries) entry->release();
}

void HoldSet::release_all() {
    std::list<std::shared_ptr<Entry>> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(entries_);
        for (const auto& entry : all) entry->end();
    }
    for (const auto& entry : all) entry->release();
}

void HoldSet::stop_process() {
    const std::lock_guard lock(mutex_);
    const Stamp stopped = stamp_now();
    for (const auto& entry : entries_) entry->slot().stopped_at = stopped;
    raise(SIGSTOP);  // directed at this thread, so it stops here and not some instructions later
    const Stamp resumed = stamp_now();
    for (const auto& entry : entries_) {
        entry->slot().held_after_resume = entry->look(resumed) ? 1 : 0;
        entry->slot().resumed_at = resumed;
    }
}

void HoldSet::poll(std::stop_token stop) {
    while (!stop.stop_requested()) {
        {
            const std::lock_guard lock(mutex_);
            for (const auto& entry : entries_) entry->look(stamp_now());
        }
        std::this_thread::sleep_for(options_.poll_every);
    }
}

void HoldSet::act(std::stop_token stop) {
    while (!stop.stop_requested()) {
        std::vector<std::pair<std::shared_ptr<Entry>, std::int64_t>> read;
        {
            const std::lock_guard lock(mutex_);
            for (const auto& entry : entries_) {
                // First look, then read: what is read outside the hold may be another's increment in the making.
                if (entry->look(stamp_now())) read.emplace_back(entry, board_.read_counter(entry->slot().lock));
            }
        }
        std::this_thread::sleep_for(options_.think);
        for (const auto& [entry, value] : read) write(*entry, value + 1);
    }
}

}  // namespace zkrecipes::chaos
