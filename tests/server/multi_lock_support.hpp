#pragma once

#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

using As = MultiLock::As;
using Members = std::vector<MultiLock::Member>;

/// Multi-lock tests on the shared server, with directories m0, m1, … below the test's root.
class MultiLockServerTest : public ExclusiveMutexServerTest {
protected:
    std::string dir(std::size_t i) const { return path("m" + std::to_string(i)); }
    Members mutexes(std::size_t count, std::size_t first = 0) const {
        Members members;
        for (std::size_t i = 0; i < count; ++i) members.push_back({dir(first + i)});
        return members;
    }
    void make_directories(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) observer().make_path(dir(i));
    }
    /// By a thread that does nothing else: this one still holds nothing, and may wait for sets.
    template <class Lock>
    static Grant acquired_elsewhere(Lock& lock) {
        return Acquiring([&lock] { return lock.acquire(); }).get();
    }
    std::size_t nodes_in(std::size_t count) {
        std::size_t found = 0;
        for (std::size_t i = 0; i < count; ++i) found += nodes_of(dir(i)).size();
        return found;
    }
    bool await_nodes_in(std::size_t count, std::size_t nodes) {
        return await([&] { return nodes_in(count) == nodes; });
    }
};

}  // namespace zkrecipes::test
