#pragma once

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zkrecipes/asio.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

namespace asio = boost::asio;

/// What calls that have returned have left in the session.
inline std::string core_leftovers(const Session& session) {
    const auto core = internal::SessionAccess::core(session);
    std::string text;
    core->run_locked([&] { text = core->leftovers(); });
    return text;
}

class AsioServerTest : public ExclusiveMutexServerTest {
protected:
    /// Runs a coroutine on an event loop of its own, to its end. Throws what it throws.
    template <class Make>
    static void run(Make make) {
        asio::io_context loop;
        run_on(loop, make);
    }
    template <class Make>
    static void run_on(asio::io_context& loop, Make make) {
        std::exception_ptr thrown;
        bool ended = false;
        asio::co_spawn(loop, make(), [&](std::exception_ptr error) {
            thrown = error;
            ended = true;
        });
        loop.run_for(2 * kMaxWait);
        EXPECT_TRUE(ended);
        if (thrown) std::rethrow_exception(thrown);
    }
};

}  // namespace zkrecipes::test
