#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// *lock held*: gives back the room that a node took in the budget, unless the session that owned it is over.
/// By a weak reference, because what the cleaner still has to do must not keep an unused session alive.
void give_back_reservation(const std::weak_ptr<SessionCore>& core, std::uint64_t incarnation, std::size_t bytes);

/// The room that one operation has reserved for ephemeral nodes in the budget of a session incarnation. *Lock held.*
class Reservation {
public:
    /// Room for paths of `bytes`, unless it is reserved already. False: the budget is used up.
    bool reserve(SessionCore& core, std::size_t bytes);
    /// The room belongs to the caller from now on.
    std::size_t take() noexcept { return std::exchange(bytes_, 0); }
    /// What gives the room back when the nodes are gone; it belongs to that from now on. Null: nothing is reserved.
    std::function<void(bool gone)> release_when_gone(SessionCore& core);
    void release(SessionCore& core);

private:
    std::size_t bytes_ = 0;
    std::uint64_t incarnation_ = 0;
};

}  // namespace zkrecipes::internal
