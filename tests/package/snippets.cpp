// The code in docs/ that no example or test contains. It is compiled and never run; documents.py compares it with the
// documents.
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_events.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

using namespace std::chrono_literals;

bool work_left();
void do_a_piece(zkrecipes::FencingToken token);
void do_all(zkrecipes::FencingToken token, const std::stop_token& stop);
void read_the_catalogue();
void rewrite_the_catalogue(zkrecipes::FencingToken token);
void publish_the_catalogue();
void book(zkrecipes::FencingToken token);

void encrypted_session() {
    // [tls]
    zkrecipes::SessionOptions options;
    options.hosts = "zk1:2281,zk2:2281,zk3:2281";
    options.tls = zkrecipes::TlsOptions{.ca_file = "/etc/service/ca.pem",
                                        .certificate_file = "/etc/service/client.pem",
                                        .key_file = "/etc/service/client-key.pem",
                                        .server_name = "zookeeper.example.org"};
    zkrecipes::Session session(options);
    // [/tls]
}

void authenticated_session() {
    // [sasl]
    zkrecipes::SessionOptions options;
    options.hosts = "zk1:2181,zk2:2181,zk3:2181";
    options.sasl = zkrecipes::SaslOptions{.user = "report", .password_file = "/etc/service/password"};
    options.acl = zkrecipes::Acl::creator_all();
    zkrecipes::Session session(options);
    // [/sasl]
}

void session_options() {
    // [session]
    zkrecipes::SessionOptions options;
    options.hosts = "zk1:2181,zk2:2181,zk3:2181/app";  // a path at the end is put before all paths
    options.timeout = 15s;
    zkrecipes::Session session(options);
    if (!session.wait_connected(10s)) std::fputs("no server answers yet\n", stderr);  // locks wait by themselves
    // [/session]
}

void stats() {
    // [stats]
    zkrecipes::SessionOptions options;
    options.hosts = "zk1:2181,zk2:2181,zk3:2181";
    // "/locks/customers/4711" is counted as "customers"
    options.name_of_path = [](const std::string& path) { return path.substr(7, path.find('/', 7) - 7); };
    zkrecipes::Session session(options);
    for (const zkrecipes::LockStats& lock : session.stats().locks) {
        std::printf("%s: %ju acquired, %ju wait\n", lock.name.c_str(), lock.acquired, lock.waiting);
    }
    // [/stats]
}

// [events]
class Audit final : public zkrecipes::SessionEvents {
    void on_acquired(const zkrecipes::EventSubject& lock, zkrecipes::FencingToken token,
                     std::chrono::nanoseconds waited) override {
        std::printf("%s acquired with token %jd after %jd ms\n", lock.path.c_str(), std::intmax_t{token},
                    std::intmax_t{waited / 1ms});
    }
    void on_lost(const zkrecipes::EventSubject& lock, zkrecipes::FencingToken token, zkrecipes::LossReason reason,
                 std::chrono::nanoseconds) override {
        std::printf("%s lost, token %jd: %s\n", lock.path.c_str(), std::intmax_t{token}, to_string(reason));
    }
};
// [/events]

void with_events() {
    zkrecipes::SessionOptions options;
    options.events = std::make_shared<Audit>();
}

void session_in_one_line() {
    // [session_in_one_line]
    zkrecipes::Session session({.hosts = "zk1:2181,zk2:2181,zk3:2181", .timeout = 15s});
    // [/session_in_one_line]
}

void graceful_stop(const std::string& hosts) {
    // [graceful_stop]
    sigset_t stop_signals;
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);  // before any thread: new threads inherit it

    zkrecipes::Session session(hosts);
    zkrecipes::ExclusiveMutex mutex(session, "/locks/report");
    std::jthread worker([&](const std::stop_token& stop) {
        try {
            while (zkrecipes::Grant grant = mutex.try_acquire_until(zkrecipes::Deadline::never(), stop)) {
                while (grant.held() && !stop.stop_requested()) do_a_piece(grant.token());
            }  // the grant is released here; an empty grant means that the stop was requested
        } catch (const zkrecipes::Error& error) {
            std::fprintf(stderr, "%s\n", error.what());
            kill(getpid(), SIGTERM);
        }
    });

    int received = 0;
    sigwait(&stop_signals, &received);  // blocks this thread until the signal comes
    worker.request_stop();
    worker.join();    // the protected work has ended
    session.close();  // only now: it ends every hold of the session
    // [/graceful_stop]
}

void exclusive_mutex() {
    // [exclusive_mutex]
    zkrecipes::Session session("zk1:2181,zk2:2181,zk3:2181");
    zkrecipes::ExclusiveMutex mutex(session, "/locks/orders/42");

    if (zkrecipes::Grant grant = mutex.try_acquire_for(30s)) {
        while (work_left() && grant.held()) do_a_piece(grant.token());  // the resource refuses smaller tokens
    }                                                                   // released here

    std::unique_lock lock(mutex, 5s);  // or like any std mutex
    // [/exclusive_mutex]
}

void loss(zkrecipes::ExclusiveMutex& mutex) {
    // [loss]
    zkrecipes::Grant grant = mutex.acquire();
    do_all(grant.token(), grant.lost());  // returns early when the token of lost() is stopped
    const bool done_in_time = grant.held();
    grant.release();  // also after a loss: then it only tidies up
    if (!done_in_time) std::fputs("lost on the way: the work may overlap with the next holder's\n", stderr);
    // [/loss]
}

void read_write_lock() {
    // [read_write_lock]
    zkrecipes::Session session("zk1:2181,zk2:2181,zk3:2181");
    zkrecipes::ReadWriteLock lock(session, "/locks/catalogue");
    {
        std::shared_lock shared(lock, 5s);  // or lock.acquire_shared(), for a Grant
        if (shared.owns_lock()) read_the_catalogue();
    }
    if (zkrecipes::Grant exclusive = lock.try_acquire_for(30s)) {
        rewrite_the_catalogue(exclusive.token());
    }
    // [/read_write_lock]
}

void downgrade(zkrecipes::ReadWriteLock& lock) {
    // [downgrade]
    zkrecipes::Grant exclusive = lock.acquire();
    rewrite_the_catalogue(exclusive.token());
    const zkrecipes::Grant shared = lock.downgrade(exclusive);  // does not wait for others
    exclusive.release();                                        // readers come in, writers do not
    publish_the_catalogue();
    // [/downgrade]
}

void lock_delay(zkrecipes::Session& session) {
    // [lock_delay]
    zkrecipes::LockOptions options;
    options.delay_after_loss = 15s;  // all clients of the lock must set it; at most 366 days
    zkrecipes::ExclusiveMutex mutex(session, "/locks/printer", options);
    // [/lock_delay]
}

void max_hold(zkrecipes::Session& session) {
    // [max_hold]
    zkrecipes::LockOptions options;
    options.max_hold = 10min;  // at most 366 days; zero, the default: no limit
    zkrecipes::ExclusiveMutex mutex(session, "/locks/report", options);

    const zkrecipes::Grant grant = mutex.acquire();
    do_all(grant.token(), grant.lost());  // also stopped after ten minutes
    // [/max_hold]
}

void set_labels(zkrecipes::ExclusiveMutex& mutex) {
    // [set_labels]
    const zkrecipes::Grant grant = mutex.acquire();
    for (int table = 1; table <= 12 && grant.held(); ++table) {
        grant.set_labels({{"table", std::to_string(table)}, {"of", "12"}}, 5s);
        do_a_piece(grant.token());
    }
    // [/set_labels]
}

void dialect(zkrecipes::Session& session) {
    // [dialect]
    zkrecipes::LockOptions options;
    options.dialect = zkrecipes::Dialect::kazoo;
    zkrecipes::ExclusiveMutex mutex(session, "/locks/orders/42", options);
    // [/dialect]
}

void multi_lock() {
    // [multi_lock]
    using zkrecipes::MultiLock;
    zkrecipes::Session session("zk1:2181,zk2:2181,zk3:2181");
    MultiLock transfer(session, {"/accounts/4711", "/accounts/42", {"/rates", MultiLock::As::shared}});

    if (zkrecipes::Grant grant = transfer.try_acquire_for(30s)) {
        book(grant.token());  // one token for all three
    }
    // [/multi_lock]
}

// [ensemble_of]
std::uint32_t ensemble_of(std::string_view key, std::uint32_t ensembles) {
    std::uint32_t hash = 2166136261;  // FNV-1a
    for (const unsigned char byte : key) hash = (hash ^ byte) * 16777619;
    return hash % ensembles;
}
// [/ensemble_of]
