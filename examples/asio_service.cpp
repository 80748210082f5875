// A service on one event loop: no thread waits for a lock, for ZooKeeper or for a client. It keeps journals; an entry
// is written under the journal's lock, so that of several instances one at a time looks at a journal, decides, and
// writes.
//
//     asio_service HOSTS ADDRESS [SESSION_TIMEOUT_MS]
//
// A client sends lines "JOURNAL TEXT", and gets for each of them, in order: "ok NODE", "busy" (another client had
// the lock all the time), "lost" (nothing was written), "stopping", or "error WHY". SIGTERM ends the service: clients
// that wait for a lock get "stopping", requests that have begun are finished, and locks are released.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <zkrecipes/asio.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;
using zkrecipes::Errc;
using zkrecipes::Error;
using zkrecipes::Transaction;

constexpr auto kPatience = 20s;
constexpr std::size_t kLongestLine = 10'000;

class Service {
public:
    Service(asio::io_context& io, const std::string& hosts, std::chrono::milliseconds timeout,
            const tcp::endpoint& endpoint)
        : io_(io), session_(options(hosts, timeout)), acceptor_(io, endpoint), signals_(io, SIGINT, SIGTERM) {
        signals_.async_wait([this](const auto& error, int) {
            if (!error) shut_down();
        });
        asio::co_spawn(io_, listen(), asio::detached);
    }

private:
    static zkrecipes::SessionOptions options(const std::string& hosts, std::chrono::milliseconds timeout) {
        zkrecipes::SessionOptions out;
        out.hosts = hosts;
        out.timeout = timeout;
        return out;
    }

    /// On the loop, like everything here. No io_context::stop(): the loop ends when all that is under way has ended.
    void shut_down() {
        stopping_ = true;
        acceptor_.close();
        // Waiting acquires answer "stopping", idle connections are closed.
        for (auto& client : clients_) client.emit(asio::cancellation_type::all);
    }

    asio::awaitable<void> listen() {
        for (;;) {
            boost::system::error_code error;
            tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
            if (stopping_) co_return;
            if (!error) {
                asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
                continue;
            }
            // No descriptor is free, or the client has disconnected. The service goes on with its other clients.
            std::fprintf(stderr, "cannot accept a client: %s\n", error.message().c_str());
            asio::steady_timer pause(io_, 100ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    }

    asio::awaitable<void> serve(tcp::socket socket) {
        const auto client = clients_.emplace(clients_.end());
        const std::shared_ptr<void> forget(nullptr, [&](void*) { clients_.erase(client); });
        std::string buffer;
        while (!stopping_) {
            // Only the calls that wait for others can be cancelled: the read and the acquire.
            const auto size =
                co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer, kLongestLine), '\n',
                                                asio::bind_cancellation_slot(client->slot(), asio::use_awaitable));
            const std::string line = buffer.substr(0, size - 1);
            buffer.erase(0, size);
            const std::string answer = co_await write_down(line, client->slot()) + "\n";
            co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
        }
    }

    asio::awaitable<std::string> write_down(const std::string& line, asio::cancellation_slot cancel) try {
        // [coroutine]
        const std::string journal = "/journals/" + line.substr(0, line.find(' '));
        zkrecipes::ExclusiveMutex mutex(session_, journal + "/lock");
        const zkrecipes::Grant grant = co_await zkrecipes::async_acquire(
            mutex, kPatience, asio::bind_cancellation_slot(cancel, asio::use_awaitable));
        if (!grant) co_return stopping_ ? "stopping" : "busy";

        co_await decide();  // other requests for this journal wait meanwhile; the thread does not block
        Transaction transaction(grant);
        transaction.create(journal + "/entry-", line.substr(line.find(' ') + 1), Transaction::Create::sequential)
            .idempotent_in(journal);  // through lost answers: once
        // Not cancelled: the write has begun, and the client must learn its outcome.
        const auto result = co_await zkrecipes::async_commit(transaction, kPatience, asio::use_awaitable);
        if (!result) co_return "busy";
        co_return "ok " + (result->answer_lost ? journal : result->operations[0].path);
        // [/coroutine]
    } catch (const Error& error) {
        co_return error.errc() == Errc::lock_lost ? std::string("lost") : std::string("error ") + error.what();
    }

    /// In place of requests to other services, on the same loop.
    asio::awaitable<void> decide() {
        asio::steady_timer timer(io_, 1ms);
        co_await timer.async_wait(asio::use_awaitable);
    }

    asio::io_context& io_;
    bool stopping_ = false;
    std::list<asio::cancellation_signal> clients_;
    zkrecipes::Session session_;
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
};

tcp::endpoint endpoint_of(const std::string& address) {
    const auto colon = address.rfind(':');
    if (colon == std::string::npos) throw std::invalid_argument("not host:port: " + address);
    const int port = std::atoi(address.c_str() + colon + 1);
    return {asio::ip::make_address(address.substr(0, colon)), static_cast<unsigned short>(port)};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s HOSTS ADDRESS [SESSION_TIMEOUT_MS]\n", argv[0]);
        return 64;
    }
    try {
        asio::io_context io(1);
        const std::chrono::milliseconds timeout(argc > 3 ? std::atoi(argv[3]) : 10'000);
        Service service(io, argv[1], timeout, endpoint_of(argv[2]));
        std::printf("%s serves\n", argv[2]);
        std::fflush(stdout);
        io.run();
        std::puts("nothing is left to do");
        return 0;  // the session is closed, so no lock is held any more
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
