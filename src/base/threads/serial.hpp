#pragma once

#include <memory>
#include <utility>

namespace zkrecipes::internal {

/// Work that is done piece by piece, one piece at a time: a lane of a session. Whoever has work for it schedules it on
/// a Loop or on Workers, once until run_one() has said that there is no more.
class Serial {
public:
    virtual ~Serial() = default;
    /// Does the next piece. True: there is more, and the caller schedules it again, so that others have their turn.
    virtual bool run_one() noexcept = 0;

private:
    friend class SerialQueue;
    std::shared_ptr<Serial> next_;  // while it is in a queue
};

/// First in, first out. It needs no memory of its own, so that scheduling cannot fail. Not thread-safe.
class SerialQueue {
public:
    SerialQueue() = default;
    ~SerialQueue() {
        while (pop()) {  // one by one: not each of them in the destructor of the one before
        }
    }
    SerialQueue(const SerialQueue&) = delete;
    SerialQueue& operator=(const SerialQueue&) = delete;

    bool empty() const noexcept { return first_ == nullptr; }
    /// `work` is in no queue.
    void push(std::shared_ptr<Serial> work) noexcept {
        Serial* const last = work.get();
        (empty() ? first_ : last_->next_) = std::move(work);
        last_ = last;
    }
    /// Null if it is empty.
    std::shared_ptr<Serial> pop() noexcept {
        std::shared_ptr<Serial> work = std::move(first_);
        if (work) first_ = std::move(work->next_);
        return work;
    }

private:
    std::shared_ptr<Serial> first_;
    Serial* last_ = nullptr;  // valid unless empty
};

}  // namespace zkrecipes::internal
