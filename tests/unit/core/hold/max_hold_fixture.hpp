#pragma once

#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {

using namespace std::chrono_literals;

/// Holds with LockOptions::max_hold, before a small server.
class MaxHoldTest : public ServedTest {
protected:
    MaxHoldTest() {
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
        connect();
        put("/l");
    }
    ~MaxHoldTest() override {
        over = true;
        runtime->while_running([this] { grants.clear(); });
        serve();
        runtime->while_running([this] { session.reset(); });  // which writes into `log`
        destroy();
    }
    static LockOptions limited(std::chrono::milliseconds max_hold = 2s) {
        LockOptions out;
        out.max_hold = max_hold;
        return out;
    }
    /// The same for turns, and for shares of one node.
    static LockOptions in_turns(std::chrono::milliseconds max_hold = 2s) {
        LockOptions out = limited(max_hold);
        out.local_handovers = 9;
        out.local_turn = 60s;
        return out;
    }
    /// Time passes, and the servers answer.
    void pass(std::chrono::milliseconds time) {
        for (; time > 100ms; time -= 100ms) {
            runtime->advance(100ms);
            serve();
        }
        runtime->advance(time);
        serve();
    }
    template <class Lock>
    void ask(Lock& lock, int times = 1) {
        for (int i = 0; i < times; ++i) lock.acquire_async(Deadline::never(), {}, take());
        serve();
    }
    void share(ReadWriteLock& lock) {
        lock.acquire_shared_async(Deadline::never(), {}, take());
        serve();
    }
    std::function<void(AcquireResult)> take() {
        return [this](AcquireResult result) {
            if (over) return;  // of a test that has failed, which leaves waiters behind
            ASSERT_FALSE(result.error);
            grants.push_back(std::move(result.value));
        };
    }
    static bool told(const Grant& grant) { return grant.lost().stop_requested(); }

    std::ostringstream log;
    std::vector<Grant> grants;  // in the order in which they came
    bool over = false;
};

}  // namespace zkrecipes::testing
