// The code of docs/async.md. It is compiled and never run; documents.py compares it with the document.
#include <zkrecipes/asio.hpp>
#include <zkrecipes/awaitable.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <exception>
#include <future>
#include <stop_token>
#include <tuple>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> rewrite_the_catalogue(const zkrecipes::Grant& grant);
void resume_on_my_loop();
void log_error(const std::exception_ptr& error);

// [asio_first]
asio::awaitable<bool> rewrite(zkrecipes::ExclusiveMutex& mutex) {
    const zkrecipes::Grant grant = co_await zkrecipes::async_acquire(mutex, 5s, asio::use_awaitable);
    if (!grant) co_return false;  // not in time
    co_await rewrite_the_catalogue(grant);
    co_return true;
}
// [/asio_first]

asio::awaitable<void> tokens(zkrecipes::ExclusiveMutex& mutex) {
    // [asio_tokens]
    using namespace asio::experimental::awaitable_operators;
    using zkrecipes::async_acquire, zkrecipes::Deadline, zkrecipes::Grant;

    asio::steady_timer timer(co_await asio::this_coro::executor, 200ms);
    auto first = co_await (async_acquire(mutex, Deadline::never(), asio::use_awaitable) ||
                           timer.async_wait(asio::use_awaitable));  // index 1: the timer, and the acquire has ended

    auto [error, grant] = co_await async_acquire(mutex, 5s, asio::as_tuple(asio::use_awaitable));

    std::future<Grant> future = async_acquire(mutex, 5s, asio::use_future);  // needs no loop

    async_acquire(mutex, 5s, [](const std::exception_ptr& failed, const Grant&) {
        if (failed) log_error(failed);
    });
    // [/asio_tokens]
    (void)first;
    (void)error;
}

struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

Task plain(zkrecipes::ExclusiveMutex& mutex, std::stop_token stop) {
    // [awaitable]
    using zkrecipes::Grant;
    const Grant grant = co_await zkrecipes::awaitable<Grant>([&](auto done) { mutex.acquire_async(5s, stop, done); });
    resume_on_my_loop();  // we are on the session's notifier thread
    // [/awaitable]
}
