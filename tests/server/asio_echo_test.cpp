// A service on one event loop: a thousand connections, and each request is answered under the lock of its key.
#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <map>

#include <zkrecipes/lock_registry.hpp>

#include "server/asio_support.hpp"

namespace zkrecipes::test {
namespace {

using asio::use_awaitable;
using asio::ip::tcp;

asio::awaitable<std::string> read_line(tcp::socket& socket, std::string& buffer) {
    const auto size = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer), '\n', use_awaitable);
    std::string line = buffer.substr(0, size - 1);
    buffer.erase(0, size);
    co_return line;
}

asio::awaitable<void> write_line(tcp::socket& socket, std::string line) {
    line += '\n';
    co_await asio::async_write(socket, asio::buffer(line), use_awaitable);
}

/// Answers each line "KEY TEXT" with that line, under the lock of the key.
class EchoService {
public:
    EchoService(Session& session, const std::string& locks)
        : locks_(session, locks), acceptor_(loop_, {asio::ip::address_v4::loopback(), 0}) {
        asio::co_spawn(loop_, listen(), asio::detached);
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~EchoService() {
        loop_.stop();
        thread_.join();
    }
    tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
    int most_at_once() const { return most_at_once_; }
    int answered() const { return answered_; }

private:
    asio::awaitable<void> listen() {
        for (;;) asio::co_spawn(loop_, serve(co_await acceptor_.async_accept(use_awaitable)), asio::detached);
    }
    asio::awaitable<void> serve(tcp::socket socket) {
        std::string buffer;
        for (;;) {
            const std::string line = co_await read_line(socket, buffer);
            const std::string key = line.substr(0, line.find(' '));
            auto lock = locks_.get(key);
            const Grant grant = co_await async_acquire(lock, kMaxWait, use_awaitable);
            EXPECT_TRUE(grant.held());
            most_at_once_ = std::max(most_at_once_.load(), ++inside_[key]);
            asio::steady_timer work(loop_, 1ms);
            co_await work.async_wait(use_awaitable);
            --inside_[key];
            ++answered_;
            co_await write_line(socket, line);
        }
    }

    asio::io_context loop_{1};
    LockRegistry locks_;
    std::map<std::string, int> inside_;  // on the loop
    std::atomic<int> most_at_once_{0};
    std::atomic<int> answered_{0};
    tcp::acceptor acceptor_;
    std::thread thread_;
};

asio::awaitable<void> ask(tcp::endpoint service, int number, int& right) {
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(service, use_awaitable);
    std::string buffer;
    for (int i = 0; i < 3; ++i) {
        const std::string line = "key-" + std::to_string((number + i) % 100) + " hello " + std::to_string(number);
        co_await write_line(socket, line);
        if (co_await read_line(socket, buffer) == line) ++right;
    }
}

TEST_F(AsioServerTest, AnEchoServiceWithAThousandConnectionsThatLockByKey) {
    constexpr int connections = 1000;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4 * connections);
    ::setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 3 * connections) GTEST_SKIP() << "too few descriptors: " << files.rlim_cur;

    auto client = session(30s);
    EchoService service(client, path("locks"));
    asio::io_context loop;
    int right = 0;
    for (int i = 0; i < connections; ++i) {
        asio::co_spawn(loop, ask(service.endpoint(), i, right), [](std::exception_ptr error) {
            if (error) std::rethrow_exception(error);
        });
    }
    loop.run_for(4 * kMaxWait);
    EXPECT_EQ(right, 3 * connections);
    EXPECT_EQ(service.answered(), 3 * connections);
    EXPECT_EQ(service.most_at_once(), 1) << "under one key";
}

}  // namespace
}  // namespace zkrecipes::test
