#pragma once

#include <optional>
#include <utility>

namespace zkrecipes::internal {

/// What a listener that was slow is still to be told: the latest. For a Subscriber.
template <class T>
class Latest {
public:
    using Value = T;
    void push(T value) { latest_.emplace(std::move(value)); }
    bool empty() const noexcept { return !latest_.has_value(); }
    T pop() {
        T value = std::move(*latest_);
        latest_.reset();
        return value;
    }

private:
    std::optional<T> latest_;
};

}  // namespace zkrecipes::internal
