#pragma once

#include <functional>
#include <utility>

#include "base/threads/serial.hpp"

namespace zkrecipes::internal {

/// One piece of work.
struct Piece : Serial {
    explicit Piece(std::function<void()> what) : work(std::move(what)) {}
    bool run_one() noexcept override {
        work();
        return false;
    }
    const std::function<void()> work;
};

}  // namespace zkrecipes::internal
