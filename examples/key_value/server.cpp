// One process of a replicated key-value service. One of the processes leads and does the writes; the others redirect
// clients to it. The data are in ZooKeeper, so a new leader has nothing to copy.
//
//     key_value_server HOSTS ADDRESS [SESSION_TIMEOUT_MS]
//
// The process listens at ADDRESS (host:port). Clients and the other processes know it by this address. On SIGTERM it
// resigns and ends, and the next process leads at once.
#include <boost/asio/awaitable.hpp>
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
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>

#include "protocol.hpp"
#include "store.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using key_value::Request;
using key_value::Store;
using zkrecipes::Errc;
using zkrecipes::Error;

constexpr const char* kRoot = "/kv";
constexpr int kThreads = 8;  // each does one request at a time, and waits for ZooKeeper meanwhile
constexpr std::size_t kLongestLine = 100'000;

/// A candidate of the election, from its constructor to its destructor. Knows the leader.
class Member {
public:
    Member(zkrecipes::Session& session, const std::string& address)
        : session_(session),
          election_(session, std::string(kRoot) + "/leader", {.id = address}),  // clients find the leader by its id
          subscription_(election_.observe([this](const auto& leader) { told(leader); })),
          thread_([this](const std::stop_token& stop) { stand(stop); }) {}

    std::string answer(const std::string& line) {
        const auto request = Request::parse(line);
        if (!request) return "refused what is that";
        try {
            if (request->verb == "peek") return key_value::peek(session_, kRoot, *request);
            const auto store = leading();
            return store ? store->answer(*request) : elsewhere();
        } catch (const std::exception& error) {  // outcome_unknown: perhaps written; all others: not written
            return std::string("retry ") + error.what();
        }
    }

private:
    /// Leads for one term after the other. Requests share the ownership of the store, so the leadership is released
    /// when the last request that uses it has ended.
    void stand(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            try {
                zkrecipes::Grant leadership = election_.try_campaign_until(zkrecipes::Deadline::never(), stop);
                if (!leadership) return;
                auto store = std::make_shared<Store>(session_, kRoot, std::move(leadership));
                store->prepare();
                serve_with(store);
                wait_for_the_end(store->lost(), stop);
                serve_with(nullptr);
            } catch (const Error& error) {
                if (error.errc() == Errc::closed) return;
                std::fprintf(stderr, "the term ended: %s\n", error.what());  // the loop campaigns again
            }
        }
    }

    void wait_for_the_end(const std::stop_token& lost, const std::stop_token& stop) {
        const std::stop_callback wake(lost, [this] {
            const std::lock_guard lock(mutex_);
            changed_.notify_all();
        });
        // Locked only now: the callback may run in the constructor above, and its destructor waits for the callback.
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return lost.stop_requested(); });
    }

    void serve_with(std::shared_ptr<Store> store) {
        const std::lock_guard lock(mutex_);
        store_.swap(store);  // the former store is destroyed after the unlock
    }
    std::shared_ptr<Store> leading() {
        const std::lock_guard lock(mutex_);
        return store_ && store_->leads() ? store_ : nullptr;
    }
    void told(const std::optional<zkrecipes::Participant>& leader) {
        const std::lock_guard lock(mutex_);
        leader_ = leader ? leader->id : "";
    }
    std::string elsewhere() {
        const std::lock_guard lock(mutex_);
        if (leader_.empty()) return "retry nobody leads";
        return leader_ == election_.id() ? "retry not ready" : "leader " + leader_;
    }

    zkrecipes::Session& session_;
    zkrecipes::LeaderElection election_;
    std::mutex mutex_;  // guards store_ and leader_
    std::condition_variable_any changed_;
    std::shared_ptr<Store> store_;  // null: this process does not lead
    std::string leader_;            // the latest known leader; empty: none
    zkrecipes::Subscription subscription_;
    std::jthread thread_;
};

asio::awaitable<void> serve(tcp::socket socket, Member& member) {
    std::string buffer;
    for (;;) {  // until the client closes the connection, which throws
        const auto size = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer, kLongestLine), '\n',
                                                          asio::use_awaitable);
        const std::string answer = member.answer(buffer.substr(0, size - 1)) + "\n";
        buffer.erase(0, size);
        co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    }
}

asio::awaitable<void> listen(tcp::acceptor acceptor, Member& member) {
    const auto executor = acceptor.get_executor();
    for (;;) {
        boost::system::error_code error;
        tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
        if (!error) {
            asio::co_spawn(executor, serve(std::move(socket), member), asio::detached);
            continue;
        }
        // No descriptor is free, or the client has disconnected. The service goes on with its other clients.
        std::fprintf(stderr, "cannot accept a client: %s\n", error.message().c_str());
        asio::steady_timer pause(executor, std::chrono::milliseconds(100));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

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
        zkrecipes::SessionOptions options;
        options.hosts = argv[1];
        if (argc > 3) options.timeout = std::chrono::milliseconds(std::atoi(argv[3]));
        zkrecipes::Session session(options);

        asio::io_context io(kThreads);
        asio::signal_set signals(io, SIGINT, SIGTERM);
        signals.async_wait([&](auto, int) { io.stop(); });
        tcp::acceptor acceptor(io, endpoint_of(argv[2]));  // before this process can lead and clients come
        Member member(session, argv[2]);
        asio::co_spawn(io, listen(std::move(acceptor), member), [](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);
        });
        std::printf("%s serves\n", argv[2]);
        std::fflush(stdout);
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { io.run(); });
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
