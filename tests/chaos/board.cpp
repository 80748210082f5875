#include "chaos/board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace zkrecipes::chaos {

struct Board::Layout {
    std::atomic<std::int32_t> used;
    std::atomic<std::uint64_t> kept;  // one bit for each of the first locks
    std::atomic<std::int64_t> counters[kLocks];
    HoldSlot holds[kHolds];
};

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

Hold read_slot(const HoldSlot& slot) {
    Hold hold;
    hold.granted_at = slot.granted_at.load(std::memory_order_acquire);
    hold.actor = slot.actor;
    hold.lock = slot.lock;
    hold.mode = static_cast<HoldMode>(slot.mode.load());
    hold.token = slot.token;
    hold.handovers = slot.handovers;
    hold.session = slot.session;
    hold.node.assign(slot.node, strnlen(slot.node, sizeof(slot.node)));
    hold.last_true_at = slot.last_true_at;
    hold.first_false_at = slot.first_false_at;
    hold.lost_at = slot.lost_at;
    hold.released_at = slot.released_at;
    hold.stopped_at = slot.stopped_at;
    hold.resumed_at = slot.resumed_at;
    hold.held_after_resume = slot.held_after_resume != 0;
    hold.revivals = slot.revivals;
    hold.writes = slot.writes;
    hold.last_write_at = slot.last_write_at;
    hold.fenced = slot.fenced;
    hold.refused = slot.refused;
    return hold;
}

}  // namespace

Board Board::create() {
    const int descriptor = memfd_create("zkrecipes-board", MFD_CLOEXEC);
    if (descriptor < 0) fail("memfd_create");
    if (ftruncate(descriptor, sizeof(Layout)) != 0) {
        close(descriptor);
        fail("ftruncate");
    }
    return attach(descriptor);
}

Board Board::attach(int descriptor) {
    // All zeroes is a valid empty board: the pages of a new file are zero, and the atomics are plain integers.
    void* memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) fail("mmap of the board");
    return Board(descriptor, static_cast<Layout*>(memory));
}

Board::Board(Board&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), layout_(std::exchange(other.layout_, nullptr)) {}

Board::~Board() {
    if (layout_ != nullptr) munmap(layout_, sizeof(Layout));
    if (descriptor_ >= 0) close(descriptor_);
}

HoldSlot& Board::add_hold(int actor, int lock, Stamp granted_at, std::int64_t token, const std::string& node,
                          HoldMode mode, std::int64_t session, std::int64_t handovers) {
    const int index = layout_->used.fetch_add(1);
    if (index >= kHolds || lock < 0 || lock >= kLocks) throw std::runtime_error("the board is full");
    HoldSlot& slot = layout_->holds[index];
    slot.actor = actor;
    slot.lock = lock;
    slot.mode = static_cast<std::int32_t>(mode);
    slot.token = token;
    slot.handovers = handovers;
    slot.session = session;
    std::strncpy(slot.node, node.c_str(), sizeof(slot.node) - 1);
    slot.last_true_at = granted_at;
    slot.granted_at.store(granted_at, std::memory_order_release);  // last: a slot without it does not exist yet
    return slot;
}

std::int64_t Board::read_counter(int lock) const noexcept { return layout_->counters[lock].load(); }
void Board::write_counter(int lock, std::int64_t value) noexcept { layout_->counters[lock].store(value); }

int Board::used() const noexcept { return std::min(layout_->used.load(), kHolds); }

void Board::ask_to_keep(const std::set<int>& locks) noexcept {
    std::uint64_t bits = 0;
    for (const int lock : locks) bits |= std::uint64_t{1} << lock;
    layout_->kept = bits;
}
bool Board::is_to_be_kept(int lock) const noexcept { return lock < 64 && (layout_->kept >> lock & 1) != 0; }

std::vector<Hold> Board::holds() const { return holds_of(0, kLocks); }

std::vector<Hold> Board::holds_of(int first_lock, int locks) const {
    std::vector<Hold> all;
    const int count = used();
    for (int i = 0; i < count; ++i) {
        const HoldSlot& slot = layout_->holds[i];
        if (slot.granted_at.load(std::memory_order_acquire) == 0) continue;
        if (slot.lock < first_lock || slot.lock >= first_lock + locks) continue;
        all.push_back(read_slot(slot));
    }
    return all;
}

History Board::history(int first_lock, int locks) const {
    History history;
    history.holds = holds_of(first_lock, locks);
    for (int lock = first_lock; lock < first_lock + locks; ++lock)
        history.counters.push_back({lock, read_counter(lock)});
    return history;
}

}  // namespace zkrecipes::chaos
