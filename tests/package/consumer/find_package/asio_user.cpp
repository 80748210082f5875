// A program of somebody who uses the installed zkrecipes/asio.hpp.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <utility>

#include <zkrecipes/asio.hpp>

namespace asio = boost::asio;

asio::awaitable<void> lock(zkrecipes::ExclusiveMutex& mutex, int& code) {
    using namespace std::chrono_literals;
    zkrecipes::Grant grant = co_await zkrecipes::async_acquire(mutex, 20s, asio::use_awaitable);
    if (!grant) co_return;
    if (co_await zkrecipes::async_release_and_wait(std::move(grant), 20s, asio::use_awaitable)) code = 0;
}

int main(int, char** argv) {
    int code = 1;
    zkrecipes::Session session(argv[1]);
    zkrecipes::ExclusiveMutex mutex(session, "/consumer/awaited");
    asio::io_context loop;
    asio::co_spawn(loop, lock(mutex, code), asio::detached);
    loop.run();
    std::puts(code == 0 ? "awaited and released" : "not released");
    return code;
}
