#pragma once

#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

/// Semaphore tests on the shared server: the semaphore is at lock_path(), its directories are there.
class SemaphoreServerTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (IsSkipped()) return;
        observer().make_path(queue_path());
        observer().make_path(leases_path());
    }
    std::string queue_path() const { return lock_path() + "/locks"; }
    std::string leases_path() const { return lock_path() + "/leases"; }
    std::size_t waiting() { return nodes_of(queue_path()).size(); }
    std::size_t leased() { return nodes_of(leases_path()).size(); }
    bool await_waiting(std::size_t count) {
        return await([&] { return waiting() == count; });
    }
    bool await_leased(std::size_t count) {
        return await([&] { return leased() == count; });
    }
    /// Those on children, too, which server().watch_count() leaves out.
    std::int64_t watches() {
        const std::string answer = server().four_letter("mntr"), label = "zk_watch_count\t";
        const auto begin = answer.find(label);
        EXPECT_NE(begin, std::string::npos) << answer;
        return begin == std::string::npos ? -1 : std::stoll(answer.substr(begin + label.size()));
    }
    std::string terms() { return observer().get(leases_path())->data; }
};

}  // namespace zkrecipes::test
