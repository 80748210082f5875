#pragma once

#include <zkrecipes/export.hpp>  // first: <coroutine> alone says less to a compiler without C++20

#include <coroutine>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <zkrecipes/result.hpp>

namespace zkrecipes {

/// Lets a coroutine await an asynchronous call, unless the promise type of the coroutine restricts what may be awaited.
/// That of boost::asio::awaitable does: there, use zkrecipes/asio.hpp. Header-only.
///
///     Grant grant = co_await zkrecipes::awaitable<Grant>(
///         [&](auto done) { mutex.acquire_async(5s, stop, done); });
///
/// co_await runs the function, which starts one call and passes `done` to it as the callback. It then suspends the
/// coroutine until the callback is called. It returns what the blocking form of the call would return, and throws what
/// that form would throw. If the call cannot be started, co_await throws at once, and the coroutine is not suspended.
///
/// The coroutine continues on the session's notifier thread, which all callbacks of the session share. So before it
/// blocks or computes for long, it must move to a thread of its own event loop or thread pool. If the call answers at
/// once, as release_and_wait_async() of an empty grant does, the coroutine goes on in its own thread without being
/// suspended. If the coroutine throws out of resume(), the exception is logged.
///
/// To cancel the call, request a stop on the token that was passed to it. If the coroutine is destroyed while it is
/// suspended here, the result is dropped: a grant is released. It must not be destroyed while the notifier thread is
/// resuming it.
template <class T, class Start>
class [[nodiscard]] Awaitable {
public:
    /// `start` is called with the callback when the object is awaited.
    explicit Awaitable(Start start) : start_(std::move(start)) {}
    Awaitable(const Awaitable&) = delete;
    Awaitable& operator=(const Awaitable&) = delete;
    ~Awaitable() {
        if (!call_) return;
        const std::lock_guard lock(call_->mutex);
        call_->coroutine = nullptr;
    }

    /// For the compiler: what `co_await` calls.
    bool await_ready() const noexcept { return false; }
    /// For the compiler, as above. Throws if the call cannot be started.
    // Not inlined: clang before 17 may put `call` into the coroutine, which may be gone when `start` returns.
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> coroutine) {
        const auto call = call_ = std::make_shared<Call>();
        call->coroutine = coroutine;
        call->starter = std::this_thread::get_id();
        // The coroutine may go on, and this object be gone, before `start` returns.
        auto start = std::move(start_);
        start([call](Result<T> result) { call->end(std::move(result)); });
        return call->is_to_come();
    }
    /// For the compiler, as above. Returns or throws what the call ended with.
    T await_resume() {
        auto& result = *call_->result;
        if (result.error) std::rethrow_exception(result.error);
        return std::move(result.value);
    }

private:
    struct Call {
        void end(Result<T> ended) {
            std::coroutine_handle<> resumed;
            {
                const std::lock_guard lock(mutex);
                resumed = std::exchange(coroutine, nullptr);
                if (!resumed) return;
                result.emplace(std::move(ended));
                // Not from within await_suspend: what the coroutine throws would be thrown into it a second time.
                at_once = starter == std::this_thread::get_id();
                if (at_once) return;
            }
            resumed.resume();
        }
        bool is_to_come() {
            const std::lock_guard lock(mutex);
            starter = {};
            return !at_once;
        }
        std::mutex mutex;
        std::coroutine_handle<> coroutine;  // null: resumed, or destroyed
        std::thread::id starter;            // the thread that is in `start`
        bool at_once = false;               // it was called there
        std::optional<Result<T>> result;
    };

    Start start_;
    std::shared_ptr<Call> call_;
};

/// `T` is the result type of the blocking form; `start` starts the call. A lambda that captures objects by value must
/// be a variable, because g++ 12 destroys the captures of a temporary lambda in a co_await expression twice.
template <class T, class Start>
Awaitable<T, std::remove_cvref_t<Start>> awaitable(Start&& start) {
    static_assert(std::is_lvalue_reference_v<Start> || std::is_trivially_destructible_v<Start>,
                  "give this lambda a name, and pass that: its captures are not safe in a co_await expression");
    return Awaitable<T, std::remove_cvref_t<Start>>(std::forward<Start>(start));
}

}  // namespace zkrecipes
