#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "session/session_core.hpp"
#include "support/await.hpp"
#include "support/error_of.hpp"
#include "support/round_trips.hpp"
#include "support/secure_server.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {

using namespace std::chrono_literals;

inline SessionOptions session_options(const std::string& hosts, std::chrono::milliseconds timeout = 10s) {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = timeout;
    options.server_tick = 100ms;  // what the servers of the tests have
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    secure(options);
    return options;
}

inline Session connected_session(const std::string& hosts, std::chrono::milliseconds timeout = 10s) {
    Session session(session_options(hosts, timeout));
    EXPECT_TRUE(session.wait_connected(kMaxWait));
    return session;
}

/// Mutex tests on the shared server: an observer beside it, and a gate before it for those that ask.
class ExclusiveMutexServerTest : public ZkServerTest {
protected:
    void TearDown() override {
        if (HasFailure() && gate_) std::cerr << "--- trace:\n" << to_string(gate_->trace());
        gate_.reset();
        observer_.reset();
        ZkServerTest::TearDown();
    }

    Session session(std::chrono::milliseconds timeout = 10s) { return connected_session(session_string(), timeout); }
    std::string lock_path() const { return path("lock"); }

    testenv::RawClient& observer() {
        if (!observer_) observer_.emplace(connect_string());
        return *observer_;
    }
    /// The children of the lock directory now.
    std::vector<std::string> nodes() { return nodes_of(lock_path()); }
    std::vector<std::string> nodes_of(const std::string& directory) {
        return observer().children(directory).value_or(std::vector<std::string>());
    }
    bool await_nodes(std::size_t count) {
        return await([&] { return nodes().size() == count; });
    }
    /// Requests that name the lock or its nodes, as the gate saw them. Without the look at the own node: where the test
    /// is slow, it comes half a second after the grant.
    std::size_t requests_of_lock() {
        const auto trace = gate().trace();
        return static_cast<std::size_t>(std::count_if(trace.begin(), trace.end(), [&](const testenv::Record& record) {
            return record.kind == testenv::Record::Kind::request && record.opcode != testenv::Opcode::get_data &&
                   record.path.starts_with(lock_path());
        }));
    }
    testenv::Gate& gate() {
        if (!gate_ && tests_use_tls().empty()) gate_.emplace(server().endpoint());
        if (!gate_) {  // over TLS, it can only break connections
            testenv::GateOptions raw;
            raw.raw = true;
            gate_.emplace(testenv::Endpoint{server().endpoint().address, kTlsPort}, raw);
        }
        return *gate_;
    }
    /// What passed the gate for the nodes of this test, and how many requests of it there are of each kind.
    std::vector<testenv::Record> trace() { return trace_of(gate(), root()); }
    testenv::Counts counts() { return count(trace()); }
    template <class Call>
    auto in_round_trips(std::vector<std::uint64_t> requests, Call call) {
        return test::in_round_trips(gate(), root(), std::move(requests), std::move(call));
    }
    /// The answers that have passed the gate, of any path.
    testenv::Counts replies() {
        testenv::Counts out;
        for (const auto& record : gate().trace()) {
            if (record.kind == testenv::Record::Kind::reply) out.add(record.opcode);
        }
        return out;
    }
    /// A session through the gate.
    Session gated_session(std::chrono::milliseconds timeout = 10s) {
        return connected_session(gate().connect_string(), timeout);
    }
    Session gated_session(SessionOptions options) {
        options.hosts = gate().connect_string();
        Session s(std::move(options));
        EXPECT_TRUE(s.wait_connected(kMaxWait));
        return s;
    }

private:
    std::optional<testenv::RawClient> observer_;
    std::optional<testenv::Gate> gate_;
};

/// A call that blocks, on a thread of its own, and what became of it.
class Acquiring {
public:
    template <class Call>
    explicit Acquiring(Call call)
        : thread_([this, call = std::move(call)] {
              try {
                  grant_ = call();
              } catch (...) {
                  error_ = std::current_exception();
              }
              done_ = true;
          }) {}
    bool done() const { return done_; }
    /// Waits for the end. Throws what the call threw.
    Grant get() {
        EXPECT_TRUE(await([&] { return done(); }));
        if (!done()) std::abort();  // it would wait for ever here
        thread_.join();
        if (error_) std::rethrow_exception(error_);
        return std::move(grant_);
    }

private:
    std::atomic<bool> done_{false};
    Grant grant_;
    std::exception_ptr error_;
    std::jthread thread_;
};

}  // namespace zkrecipes::test
