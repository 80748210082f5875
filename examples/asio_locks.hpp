#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/transaction.hpp>

/// The calls of zkrecipes that answer by a callback, as coroutines of an Asio event loop.
namespace asio_locks {

namespace asio = boost::asio;

/// Starts a call that answers by a callback, and resumes the coroutine on its own event loop with the answer.
///
/// The callback comes on the session's notifier thread, of which there is one: so it does nothing but post. Until it
/// has come, the loop has work: io_context::run() does not return before, and nothing is ever posted to a loop that is
/// gone. That holds as long as the loop ends because nothing is left to do, and not by io_context::stop().
template <class Result, class Start>
asio::awaitable<Result> answer_of(Start start) {
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(Result)>(
        [](auto handler, Start begin) {
            const auto executor = asio::get_associated_executor(handler);
            // A std::function can be copied and a coroutine cannot: it is shared.
            auto waiting = std::make_shared<decltype(handler)>(std::move(handler));
            const auto answer = [waiting, work = asio::make_work_guard(executor)](Result result) {
                asio::post(work.get_executor(),
                           [waiting, result = std::move(result)]() mutable { (*waiting)(std::move(result)); });
            };
            try {
                begin(answer);
            } catch (...) {  // nothing follows, for example because the session is closed
                Result failed;
                failed.error = std::current_exception();
                answer(std::move(failed));
            }
        },
        asio::use_awaitable, std::move(start));
}

/// As ExclusiveMutex::try_acquire_until. The grant belongs to nobody in particular.
inline asio::awaitable<zkrecipes::Grant> acquire(zkrecipes::ExclusiveMutex& mutex, zkrecipes::Deadline deadline,
                                                 std::stop_token stop) {
    auto result = co_await answer_of<zkrecipes::AcquireResult>(
        [&](auto answer) { mutex.acquire_async(deadline, stop, std::move(answer)); });
    if (result.error) std::rethrow_exception(result.error);
    co_return std::move(result.value);
}

/// As Transaction::try_commit_until.
inline asio::awaitable<std::optional<zkrecipes::TransactionResult>> commit(zkrecipes::Transaction& transaction,
                                                                           zkrecipes::Deadline deadline,
                                                                           std::stop_token stop) {
    auto result = co_await answer_of<zkrecipes::CommitResult>(
        [&](auto answer) { transaction.commit_async(deadline, stop, std::move(answer)); });
    if (result.error) std::rethrow_exception(result.error);
    co_return std::move(result.value);
}

}  // namespace asio_locks
