#include "zklock/system/reachability.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ReachabilityTest, SaysOfEachServerWhatIsWrong) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::string open = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    const std::string text =
        why_no_answer("127.0.0.1:1," + open + ",nosuchhost.invalid:2181,[::1]:1/chroot", std::chrono::seconds(10));
    EXPECT_THAT(text,
                StartsWith("127.0.0.1:1: Connection refused; " + open + ": accepts connections but gives no session"));
    EXPECT_THAT(text, HasSubstr("; nosuchhost.invalid:2181: the name does not resolve ("));
    EXPECT_THAT(text, HasSubstr("; [::1]:1: "));
}

TEST(ReachabilityTest, AnswersInTimeAlsoWhenNothingIsKnownYet) {
    EXPECT_THAT(why_no_answer("a.invalid,b.invalid:1", Nanoseconds(0)),
                HasSubstr("b.invalid:1: the name does not resolve"));
    EXPECT_THAT(why_no_answer("a.invalid", Nanoseconds(0)), StartsWith("a.invalid:2181: "));
}

}  // namespace
}  // namespace zkrecipes::zklock
