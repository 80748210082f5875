#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/session.hpp>

#include "session/session_core.hpp"
#include "support/await.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {

using namespace std::chrono_literals;

inline SessionOptions session_options(const std::string& hosts, std::chrono::milliseconds timeout = 10s) {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = timeout;
    options.server_tick = 100ms;  // what the servers of the tests have
    return options;
}

inline Session connected_session(const std::string& hosts, std::chrono::milliseconds timeout = 10s) {
    Session session(session_options(hosts, timeout));
    EXPECT_TRUE(session.wait_connected(kMaxWait));
    return session;
}

/// What an operator or another client does, one request at a time.
class Raw {
public:
    explicit Raw(const std::string& hosts)
        : session_(connected_session(hosts)), core_(internal::SessionAccess::core(session_)) {}

    std::vector<std::string> children(const std::string& path) {
        std::vector<std::string> out;
        call([&](auto done) {
            core_->children(path, [&out, done](internal::Rc rc, std::vector<std::string> names,
                                               const internal::NodeStat&, internal::Instant) {
                out = std::move(names);
                done(rc);
            });
        });
        return out;
    }
    internal::Rc remove(const std::string& path) {
        return call(
            [&](auto done) { core_->remove(path, -1, [done](internal::Rc rc, internal::Instant) { done(rc); }); });
    }
    internal::Rc create(const std::string& path, const std::string& data = "",
                        internal::CreateMode mode = internal::CreateMode::persistent,
                        const std::vector<Acl>& acl = Acl::open()) {
        return call([&](auto done) {
            core_->create(
                path, data, acl, mode,
                [this, done](internal::Rc rc, std::string made, const internal::NodeStat&, internal::Instant) {
                    created = std::move(made);
                    done(rc);
                });
        });
    }
    void make_directory(const std::string& path) {
        const auto rc = call([&](auto done) {
            core_->make_directory(path, Acl::open(), [done](internal::Rc r, internal::Instant) { done(r); });
        });
        EXPECT_EQ(rc, internal::Rc::ok);
    }
    internal::Rc set(const std::string& path, const std::string& data) {
        return call([&](auto done) {
            core_->set(path, data, -1,
                       [done](internal::Rc rc, const internal::NodeStat&, internal::Instant) { done(rc); });
        });
    }
    void sync(const std::string& path) {
        call([&](auto done) { core_->sync(path, [done](internal::Rc rc, internal::Instant) { done(rc); }); });
    }
    Session& session() { return session_; }
    std::string created;

private:
    template <class Send>
    internal::Rc call(Send send) {
        const auto answered = std::make_shared<std::promise<internal::Rc>>();
        auto answer = answered->get_future();
        core_->enter([&] { send([answered](internal::Rc rc) { answered->set_value(rc); }); });
        if (answer.wait_for(kMaxWait) != std::future_status::ready) {
            ADD_FAILURE() << "no answer";
            std::abort();
        }
        return answer.get();
    }
    Session session_;
    std::shared_ptr<internal::SessionCore> core_;
};

/// Fails where an Error with another code, or none, is thrown.
template <class Call>
Error error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(Errc::protocol, "nothing was thrown", "");
}

class ExclusiveMutexServerTest : public ZkServerTest {
protected:
    Session session(std::chrono::milliseconds timeout = 10s) { return connected_session(connect_string(), timeout); }
    std::string lock_path() const { return path("lock"); }
    std::vector<std::string> nodes() {
        if (!raw_) raw_ = std::make_unique<Raw>(connect_string());
        raw_->sync(lock_path());
        return raw_->children(lock_path());
    }
    Raw& raw() {
        if (!raw_) raw_ = std::make_unique<Raw>(connect_string());
        return *raw_;
    }
    void TearDown() override {
        raw_.reset();
        ZkServerTest::TearDown();
    }

private:
    std::unique_ptr<Raw> raw_;
};

}  // namespace zkrecipes::test
