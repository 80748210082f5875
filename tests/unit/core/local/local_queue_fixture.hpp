#pragma once

#include <zkrecipes/exclusive_mutex.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {

using namespace std::chrono_literals;

/// Several calls of one session for the lock /l.
class LocalQueueTest : public ServedTest {
protected:
    LocalQueueTest() {
        connect();
        put("/l");
    }
    ~LocalQueueTest() override {
        runtime->while_running([this] {
            grants.clear();
            mutex.reset();
        });
        serve();
    }
    void make_mutex(LockOptions of_lock = {}) { mutex.emplace(*session, "/l", std::move(of_lock)); }
    static LockOptions handing_over(std::uint32_t times) {
        LockOptions out;
        out.local_handovers = times;
        out.local_turn = 60s;
        return out;
    }
    static LockOptions keeping(std::chrono::milliseconds time) {
        LockOptions out;
        out.keep_for = time;
        return out;
    }
    /// Each that is granted goes to the end of `grants`.
    void ask(int times, Deadline deadline = Deadline::never()) {
        for (int i = 0; i < times; ++i) {
            mutex->acquire_async(deadline, {}, [this](AcquireResult result) {
                answers.push_back(result.error ? "error" : result.value ? "granted" : "not granted");
                if (result.value) grants.push_back(std::move(result.value));
            });
        }
        serve();
    }
    void release_first() {
        grants.erase(grants.begin());
        serve();
    }
    /// From now on the session has room for one node of this lock.
    void leave_room_for_one_node() {
        ask(1);
        ASSERT_EQ(grants.size(), 1u);
        inside([this] { EXPECT_TRUE(core->reserve_ephemeral(900'000 - 4 - core->reserved_bytes())); });
        release_first();
    }
    std::size_t nodes_of_lock() const { return children("/l").size(); }
    std::vector<std::string> asked_now() {
        serve();
        return std::exchange(asked, {});
    }

    std::optional<ExclusiveMutex> mutex;
    std::vector<Grant> grants;
    std::vector<std::string> answers;
};

}  // namespace zkrecipes::testing
