#include "core/operation/reservation.hpp"

namespace zkrecipes::internal {

void give_back_reservation(const std::weak_ptr<SessionCore>& weak, std::uint64_t incarnation, std::size_t bytes) {
    auto core = weak.lock();
    if (!core) return;
    if (core->incarnation().number == incarnation) core->release_ephemeral(bytes);
    // This may be the last reference, and a core must not be destroyed under its own lock.
    SessionCore& inside = *core;
    inside.let_go(std::move(core));
}

bool Reservation::reserve(SessionCore& core, std::size_t bytes) {
    const auto present = core.incarnation().number;
    if (bytes_ != 0 && incarnation_ == present) return true;
    if (!core.reserve_ephemeral(bytes)) return false;
    bytes_ = bytes;
    incarnation_ = present;
    return true;
}

std::function<void(bool)> Reservation::release_when_gone(SessionCore& core) {
    if (bytes_ == 0) return {};
    return [weak = core.weak_from_this(), incarnation = incarnation_, bytes = take()](bool gone) {
        if (gone) give_back_reservation(weak, incarnation, bytes);
    };
}

void Reservation::release(SessionCore& core) {
    if (bytes_ != 0) give_back_reservation(core.weak_from_this(), incarnation_, take());
}

}  // namespace zkrecipes::internal
