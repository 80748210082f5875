#pragma once

#include <zkrecipes/read_write_lock.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {

using namespace std::chrono_literals;

/// Shares of the lock /l, of which two may join the first one.
class LocalShareTest : public ServedTest {
protected:
    LocalShareTest() {
        connect();
        put("/l");
        make_lock(2);
    }
    ~LocalShareTest() override {
        runtime->while_running([this] {
            grants.clear();
            lock.reset();
        });
        serve();
    }
    void make_lock(std::uint32_t joins, std::chrono::milliseconds max_hold = 0ms) {
        LockOptions of_lock;
        of_lock.local_handovers = joins;
        of_lock.local_turn = 10s;
        of_lock.max_hold = max_hold;
        lock.emplace(*session, "/l", of_lock);
    }
    /// Whoever is granted goes to the end of `grants`. Returns what was asked of the servers for it.
    std::vector<std::string> share(int times = 1) {
        asked.clear();
        for (int i = 0; i < times; ++i) lock->acquire_shared_async(Deadline::never(), {}, take());
        serve();
        return asked;
    }
    void write() {
        lock->acquire_async(Deadline::never(), {}, take());
        serve();
    }
    void release(std::size_t which) {
        asked.clear();
        grants.erase(grants.begin() + static_cast<std::ptrdiff_t>(which));
        serve();
    }
    std::size_t nodes_of_lock() const { return children("/l").size(); }

    std::optional<ReadWriteLock> lock;
    std::vector<Grant> grants;

    std::function<void(AcquireResult)> take() {
        return [this](AcquireResult result) {
            ASSERT_FALSE(result.error);
            grants.push_back(std::move(result.value));
        };
    }
};

}  // namespace zkrecipes::testing
