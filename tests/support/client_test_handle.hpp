#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/runtime.hpp"
#include "base/wait_event.hpp"
#include "client/client.hpp"
#include "support/await.hpp"

namespace zkrecipes::internal {

inline void PrintTo(Rc rc, std::ostream* out) { *out << to_string(rc); }

/// Waits until so many have been counted; false when the count stands still for kMaxWait before.
[[nodiscard]] inline bool await_count(const std::atomic<int>& count, int wanted) {
    while (count < wanted) {
        const int before = count;
        if (!test::await([&] { return count != before; })) return false;
    }
    return true;
}

/// Writes down what a handle tells, and whether it keeps to its rules.
class RecordedEvents final : public ClientEvents {
public:
    void on_status(const ClientStatus& status) override {
        {
            const Entered entered(*this);
            statuses_.push_back(status);
        }
        if (then) then(status);
    }
    void on_watch(WatchEventType type, const std::string& path) override {
        const Entered entered(*this);
        watches_.emplace_back(type, path);
    }
    void on_auth(Rc rc) override {
        const Entered entered(*this);
        auths_.push_back(rc);
    }

    std::vector<ClientStatus> statuses() const { return copy(statuses_); }
    std::vector<std::pair<WatchEventType, std::string>> watches() const { return copy(watches_); }
    std::vector<Rc> auths() const { return copy(auths_); }
    std::size_t times(ClientState state) const {
        std::size_t count = 0;
        for (const auto& status : statuses()) count += status.state == state ? 1 : 0;
        return count;
    }
    void expect_none_from_now_on() { over_ = true; }

    std::function<void(const ClientStatus&)> then;  ///< called by the thread that tells it; set while it tells nothing

private:
    class Entered {
    public:
        explicit Entered(RecordedEvents& events) : events_(events) {
            EXPECT_FALSE(events_.busy_.exchange(true)) << "two events at the same time";
            EXPECT_FALSE(events_.over_) << "an event after the handle was closed";
            events_.mutex_.lock();
        }
        ~Entered() {
            events_.mutex_.unlock();
            events_.busy_ = false;
        }

    private:
        RecordedEvents& events_;
    };
    template <class List>
    List copy(const List& list) const {
        const std::lock_guard lock(mutex_);
        return list;
    }

    mutable std::mutex mutex_;
    std::atomic<bool> busy_ = false;
    std::atomic<bool> over_ = false;
    std::vector<ClientStatus> statuses_;
    std::vector<std::pair<WatchEventType, std::string>> watches_;
    std::vector<Rc> auths_;
};

/// The answer to one request.
struct Answer {
    Rc rc = Rc::ok;
    std::string text{};  // created path, or data
    NodeStat stat{};
    std::vector<std::string> names{};
    std::vector<MultiResult> results{};
};

/// Waits for one answer and notices a second one.
class OneAnswer {
public:
    std::function<void(Answer)> taker() {
        return [state = state_](Answer answer) {
            EXPECT_EQ(state->count.fetch_add(1), 0) << "answered twice";
            state->answer = std::move(answer);
            state->event.set();
        };
    }
    Answer wait() {
        EXPECT_TRUE(test::await([&] { return state_->event.is_set(); })) << "no answer";
        return state_->event.is_set() ? state_->answer : Answer{.rc = Rc::nothing};
    }
    bool answered() const { return state_->count > 0; }

private:
    struct State {
        WaitEvent event;
        std::atomic<int> count = 0;
        Answer answer;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// A handle of the real client, with calls that wait for their answers.
class TestHandle {
public:
    explicit TestHandle(const std::string& hosts, std::chrono::milliseconds timeout = std::chrono::seconds(20),
                        std::shared_ptr<spdlog::logger> logger = nullptr)
        : TestHandle(std::vector<std::string>{hosts}, timeout, std::move(logger)) {}
    TestHandle(std::vector<std::string> hosts, std::chrono::milliseconds timeout,
               std::shared_ptr<spdlog::logger> logger = nullptr)
        : client(make_zk_client_factory(runtime)->open({std::move(hosts), timeout, std::move(logger)}, events)) {}
    ~TestHandle() {
        close();
        runtime->stop();
    }
    TestHandle(const TestHandle&) = delete;
    TestHandle& operator=(const TestHandle&) = delete;

    bool wait_for(ClientState state) {
        return test::await([&] { return client->status().state == state; });
    }
    bool connected() { return wait_for(ClientState::connected); }
    void close() {
        if (closed_) return;
        closed_ = true;
        auto done = std::make_shared<WaitEvent>();
        client->close([done, this] {
            events->expect_none_from_now_on();
            EXPECT_FALSE(done->is_set()) << "closed twice";
            done->set();
        });
        EXPECT_TRUE(test::await([&] { return done->is_set(); })) << "not closed";
    }

    OneAnswer async_create(const std::string& path, const std::string& data = {},
                           CreateMode mode = CreateMode::persistent, std::vector<Acl> acl = Acl::open()) {
        OneAnswer one;
        client->create(path, data, acl, mode, [take = one.taker()](Rc rc, std::string name, const NodeStat& stat) {
            take({.rc = rc, .text = std::move(name), .stat = stat});
        });
        return one;
    }
    OneAnswer async_exists(const std::string& path, bool watch = false) {
        OneAnswer one;
        client->exists(path, watch,
                       [take = one.taker()](Rc rc, const NodeStat& stat) { take({.rc = rc, .stat = stat}); });
        return one;
    }
    OneAnswer async_get(const std::string& path, bool watch = false) {
        OneAnswer one;
        client->get(path, watch, [take = one.taker()](Rc rc, std::string data, const NodeStat& stat) {
            take({.rc = rc, .text = std::move(data), .stat = stat});
        });
        return one;
    }
    OneAnswer async_children(const std::string& path, bool watch = false) {
        OneAnswer one;
        client->children(path, watch,
                         [take = one.taker()](Rc rc, std::vector<std::string> names, const NodeStat& stat) {
                             take({.rc = rc, .stat = stat, .names = std::move(names)});
                         });
        return one;
    }
    OneAnswer async_multi(std::vector<MultiOp> ops) {
        OneAnswer one;
        client->multi(std::move(ops), [take = one.taker()](Rc rc, std::vector<MultiResult> results) {
            take({.rc = rc, .results = std::move(results)});
        });
        return one;
    }
    OneAnswer async_remove(const std::string& path, std::int32_t version = -1) {
        OneAnswer one;
        client->remove(path, version, [take = one.taker()](Rc rc) { take({.rc = rc}); });
        return one;
    }
    OneAnswer async_set(const std::string& path, const std::string& data, std::int32_t version = -1) {
        OneAnswer one;
        client->set(path, data, version,
                    [take = one.taker()](Rc rc, const NodeStat& stat) { take({.rc = rc, .stat = stat}); });
        return one;
    }
    OneAnswer async_sync(const std::string& path) {
        OneAnswer one;
        client->sync(path, [take = one.taker()](Rc rc) { take({.rc = rc}); });
        return one;
    }
    OneAnswer async_remove_watches(const std::string& path) {
        OneAnswer one;
        client->remove_watches(path, [take = one.taker()](Rc rc) { take({.rc = rc}); });
        return one;
    }

    const std::shared_ptr<Runtime> runtime = make_thread_runtime();
    const std::shared_ptr<RecordedEvents> events = std::make_shared<RecordedEvents>();
    const std::shared_ptr<Client> client;

private:
    bool closed_ = false;
};

}  // namespace zkrecipes::internal
