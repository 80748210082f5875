#pragma once

#include <cstdint>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {

/// Told what happens to the session. Always called under the session lock, in the order in which the observers were
/// added. A callback may add and remove any observer: a removed one is not called any more, an added one only for what
/// comes next. Must be removed before it is destroyed, unless the session was closed.
class SessionObserver {
public:
    SessionObserver() = default;
    SessionObserver(const SessionObserver&) = delete;
    SessionObserver& operator=(const SessionObserver&) = delete;
    virtual ~SessionObserver() = default;
    virtual void on_connected(bool same_session) = 0;  // each connect; requests may be sent
    virtual void on_suspended() = 0;                   // answers of what was sent arrive as unknown
    virtual void on_session_lost() = 0;                // the incarnation is over; a new one will follow
    virtual void on_room() {}                          // there are no longer many_given_up()
    virtual void on_closed(const Error& why) = 0;      // for ever; the observer has been removed already

private:
    friend class ObserverList;
    SessionObserver* previous_ = nullptr;
    SessionObserver* next_ = nullptr;
    std::uint64_t added_ = 0;  // 0: in no list
};

/// The observers in the order of adding, linked through themselves: adding and removing cost the same with ten thousand
/// of them, and are allowed from within a callback.
class ObserverList {
public:
    void add(SessionObserver& observer) {
        if (observer.added_ != 0) return;
        observer.added_ = ++last_added_;
        observer.previous_ = last_;
        observer.next_ = nullptr;
        (last_ != nullptr ? last_->next_ : first_) = &observer;
        last_ = &observer;
    }
    void remove(SessionObserver& observer) {
        if (observer.added_ == 0) return;
        if (cursor_ == &observer) cursor_ = observer.next_;
        (observer.previous_ != nullptr ? observer.previous_->next_ : first_) = observer.next_;
        (observer.next_ != nullptr ? observer.next_->previous_ : last_) = observer.previous_;
        observer.previous_ = observer.next_ = nullptr;
        observer.added_ = 0;
    }
    /// Calls `tell` for those that were in the list at the beginning.
    template <class Tell>
    void each(Tell&& tell) {
        const std::uint64_t newest = last_added_;
        cursor_ = first_;
        while (cursor_ != nullptr && cursor_->added_ <= newest) {
            SessionObserver& present = *cursor_;
            cursor_ = present.next_;  // remove() moves it on when that one goes
            tell(present);
        }
        cursor_ = nullptr;
    }
    bool empty() const noexcept { return first_ == nullptr; }

private:
    SessionObserver* first_ = nullptr;
    SessionObserver* last_ = nullptr;
    SessionObserver* cursor_ = nullptr;
    std::uint64_t last_added_ = 0;
};

}  // namespace zkrecipes::internal
