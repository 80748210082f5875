#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "interop/peer.hpp"
#include "support/await.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {

using namespace std::chrono_literals;

/// Whose client: ours, or that of a peer.
enum class Who { cpp, curator, kazoo };

inline const char* to_string(Who who) { return who == Who::cpp ? "Cpp" : who == Who::curator ? "Curator" : "Kazoo"; }

/// Skips the running test when one of these has no peer here.
#define ZKRECIPES_NEEDS(...)                                                                          \
    do {                                                                                              \
        for (const Who who : {__VA_ARGS__}) {                                                         \
            if (const std::string reason = why_missing(who); !reason.empty()) GTEST_SKIP() << reason; \
        }                                                                                             \
    } while (false)

std::string why_missing(Who who);

/// Clients of several languages on one server. Peers are one process for each language, shared by all tests of the
/// program; a test that kills a peer makes a process of its own.
class InteropTest : public ZkServerTest {
protected:
    static constexpr std::chrono::milliseconds kTimeout = 10s;

    void SetUp() override;
    void TearDown() override;

    std::unique_ptr<Client> client(Who who, Names names = Names::curator, std::chrono::milliseconds timeout = kTimeout);
    std::string lock_path() const { return path("lock"); }

    testenv::RawClient& observer();
    std::vector<std::string> nodes() { return observer().children(lock_path()).value_or(std::vector<std::string>()); }
    bool await_nodes(std::size_t count) {
        return await([&] { return nodes().size() == count; });
    }
    /// Names of the children, in the order of their numbers.
    std::vector<std::string> queue();
    /// Waits until somebody watches this child: whoever stands behind it has come as far as it can.
    bool await_watched(const std::string& child);
    /// The contender for this lock that was last to come waits, and for that child.
    void expect_waiting(const Answer& acquire, const std::string& child);
    /// A file with the number 0 in it.
    std::string counter_file();
    long counted() const;

private:
    std::optional<testenv::RawClient> observer_;
    std::optional<testenv::Scratch> scratch_;
    std::string counter_file_;
};

}  // namespace zkrecipes::test
