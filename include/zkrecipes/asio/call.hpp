#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <concepts>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>

#include <zkrecipes/asio/open_calls.hpp>
#include <zkrecipes/result.hpp>

namespace zkrecipes::asio_calls {

/// The event loop of an executor. One that does not tell is treated as if its loop were never destroyed.
template <class Executor>
asio::execution_context& loop_of(const Executor& executor) {
    using Loop = asio::execution_context&;
    if constexpr (requires {
                      { asio::query(executor, asio::execution::context) } -> std::convertible_to<Loop>;
                  }) {
        return asio::query(executor, asio::execution::context);
    } else if constexpr (requires {
                             { executor.context() } -> std::convertible_to<Loop>;
                         }) {
        return executor.context();
    } else {
        return asio::query(asio::system_executor(), asio::execution::context);
    }
}

/// The handler was destroyed without being called, because its executor did not take it: mostly, memory is short.
struct NotPosted : std::exception {
    const char* what() const noexcept override { return "the handler of an asynchronous call could not be posted"; }
};

/// In memory of the handler's allocator, which is freed before the handler is called.
template <class Handler, class T>
class HandlerCall final : public OpenCall {
    using Allocator =
        typename std::allocator_traits<asio::associated_allocator_t<Handler>>::template rebind_alloc<HandlerCall>;
    using Memory = std::allocator_traits<Allocator>;

public:
    explicit HandlerCall(Handler&& handler)
        : handler_(std::move(handler)), work_(asio::make_work_guard(asio::get_associated_executor(handler_))) {}
    static HandlerCall* make(Handler handler) {
        Allocator allocator(asio::get_associated_allocator(handler));
        HandlerCall* const memory = Memory::allocate(allocator, 1);
        try {
            return ::new (static_cast<void*>(memory)) HandlerCall(std::move(handler));
        } catch (...) {
            Memory::deallocate(allocator, memory, 1);
            throw;
        }
    }
    void destroy() noexcept override { free(Allocator(asio::get_associated_allocator(handler_))); }
    void post(Result<T>&& result) {
        const auto allocator = asio::get_associated_allocator(handler_);
        const auto work = std::move(work_);
        const auto take = [&] {
            const FreeAtEnd also_if_a_move_throws{*this, Allocator(allocator)};
            return [handler = std::move(handler_), result = std::move(result)]() mutable {
                std::move(handler)(std::move(result.error), std::move(result.value));
            };
        };
        auto call = take();
        asio::post(work.get_executor(), asio::bind_allocator(allocator, std::move(call)));
    }

private:
    struct FreeAtEnd {
        HandlerCall& call;
        Allocator allocator;
        ~FreeAtEnd() { call.free(allocator); }
    };
    void free(Allocator allocator) noexcept {
        this->~HandlerCall();
        Memory::deallocate(allocator, this, 1);
    }
    Handler handler_;
    asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;  // the loop runs until the call has ended
};

/// Starts a call for a handler. `start` is passed a stop token and a callback.
template <class T, class Start>
struct Initiation {
    template <class Handler>
    void operator()(Handler handler) {
        const auto executor = asio::get_associated_executor(handler);
        auto cancel = asio::get_associated_cancellation_slot(handler);
        const auto calls = asio::use_service<LoopService>(loop_of(executor)).calls;
        auto* const call = HandlerCall<Handler, T>::make(std::move(handler));
        std::stop_source stop = call->stop;
        if (!calls->add(*call)) return call->destroy();
        const auto done = [calls, call](Result<T> result) {
            try {
                calls->complete(*call, [&] { call->post(std::move(result)); });
            } catch (...) {
                std::throw_with_nested(NotPosted());
            }
        };
        try {
            if (cancel.is_connected()) {
                cancel.assign([stop](asio::cancellation_type type) mutable {
                    if (type != asio::cancellation_type::none) stop.request_stop();
                });
            }
            std::move(start)(stop.get_token(), done);
        } catch (const NotPosted&) {  // `start` has called `done`: the grant was empty
            throw;
        } catch (...) {  // it was not started
            done({T{}, std::current_exception()});
        }
    }
    Start start;
};

/// What every function of zkrecipes/asio.hpp returns.
template <class T, class Token, class Start>
auto initiate(Token& token, Start start) {
    return asio::async_initiate<Token, void(std::exception_ptr, T)>(Initiation<T, Start>{std::move(start)}, token);
}

}  // namespace zkrecipes::asio_calls
