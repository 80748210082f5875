#include "core/queue/lock_layout.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zkrecipes::internal {
namespace {

const std::string kKazooLease = "0123456789abcdef0123456789abcdef";
const std::string kLockNode = "_c_00000000-0000-4000-8000-000000000001-lock-0000000001";

TEST(LockLayoutTest, WhatMayBeASemaphoreHasLeasesOrANumber) {
    const auto may_be = [](const std::vector<std::string>& children, std::int32_t data_length) {
        NodeStat stat;
        stat.data_length = data_length;
        return may_be_semaphore(children, stat);
    };
    EXPECT_TRUE(may_be({"locks", "leases"}, 0));
    EXPECT_TRUE(may_be({kKazooLease}, 0));
    EXPECT_TRUE(may_be({}, 1)) << "kazoo's, with its number of leases and no holder";
    EXPECT_TRUE(may_be({}, 10));
    EXPECT_FALSE(may_be({}, 0)) << "nothing";
    EXPECT_FALSE(may_be({}, 11)) << "no number of leases is so long";
    EXPECT_FALSE(may_be({kLockNode, "leases"}, 1)) << "a queue";
    EXPECT_FALSE(may_be({kKazooLease, "other"}, 1));
    EXPECT_FALSE(may_be({kKazooLease + "0"}, 1));
    EXPECT_FALSE(may_be({"0123456789abcdef0123456789abcdeg"}, 1));
    EXPECT_FALSE(may_be({"other"}, 1));
}

TEST(LockLayoutTest, TheDirectoriesOfEachLayout) {
    const auto directories = [](LockLayout::Kind kind) {
        LockLayout layout;
        layout.kind = kind;
        return queue_directory(layout, "/l") + " " + lease_directory(layout, "/l");
    };
    EXPECT_EQ(directories(LockLayout::Kind::queue), "/l /l");
    EXPECT_EQ(directories(LockLayout::Kind::semaphore), "/l/locks /l/leases");
    EXPECT_EQ(directories(LockLayout::Kind::kazoo_semaphore), "/l-__lock__ /l");
}

TEST(LockLayoutTest, ALeaseEndsWithItsNumber) {
    EXPECT_TRUE(is_lease_name("_c_00000000-0000-4000-8000-000000000001-lease-0000000001"));
    EXPECT_TRUE(is_lease_name("lease-7"));
    EXPECT_FALSE(is_lease_name("lease-"));
    EXPECT_TRUE(is_lease_name("x-lease-7"));
    EXPECT_FALSE(is_lease_name("lease-7x"));
    EXPECT_FALSE(is_lease_name("release-12"));
    EXPECT_FALSE(is_lease_name("12"));
    EXPECT_FALSE(is_lease_name("0000000001"));
    EXPECT_FALSE(is_lease_name(kLockNode));
}

}  // namespace
}  // namespace zkrecipes::internal
