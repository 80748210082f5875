#include "zklock/system/reachability.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "support/host_names.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Listener {
    explicit Listener(const char* host) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        ::inet_pton(AF_INET, host, &address.sin_addr);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::listen(fd.get(), 0), 0);
        EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
        port = std::to_string(ntohs(address.sin_port));
    }
    const UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::string port;
};

TEST(ReachabilityTest, SaysOfEachServerWhatIsWrong) {
    const Listener listener("127.0.0.1");
    const std::string open = "127.0.0.1:" + listener.port;
    const std::string text =
        why_no_answer("127.0.0.1:1," + open + ",nosuchhost.invalid:2181,[::1]:1/chroot", std::chrono::seconds(10));
    EXPECT_THAT(text,
                StartsWith("127.0.0.1:1: Connection refused; " + open + ": accepts connections but gives no session"));
    EXPECT_THAT(text, HasSubstr("; nosuchhost.invalid:2181: the name does not resolve ("));
    EXPECT_THAT(text, HasSubstr("; [::1]:1: "));
}

TEST(ReachabilityTest, SaysWhatIsWrongWithEachAddressOfAName) {
    const Listener listener("127.0.0.2");
    zkrecipes::test::host_names().set("several.test", {"127.0.0.1", "127.0.0.2", "127.0.0.3"});
    const std::string host = "several.test:" + listener.port;
    EXPECT_EQ(why_no_answer(host, std::chrono::seconds(10)),
              host + ": Connection refused (127.0.0.1, 127.0.0.3), " + kAccepted + " (127.0.0.2)");
    zkrecipes::test::host_names().set("several.test", {"127.0.0.1", "127.0.0.3"});
    EXPECT_EQ(why_no_answer(host, std::chrono::seconds(10)), host + ": Connection refused");
}

TEST(ReachabilityTest, AnAddressThatIsSilentHidesNoOther) {
    const Listener full("127.0.0.1");
    std::vector<UniqueFd> waiting;  // they fill its queue, so that the kernel drops further requests
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(full.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    for (int i = 0; i < 4; ++i) {
        waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        ::connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&address), size);
    }
    zkrecipes::test::host_names().set("silent.test", {"127.0.0.1", "127.0.0.2"});
    EXPECT_THAT(why_no_answer("silent.test:" + full.port),
                HasSubstr("no answer to a connection (127.0.0.1), Connection refused (127.0.0.2)"));
}

TEST(ReachabilityTest, AnswersInTimeAlsoWhenNothingIsKnownYet) {
    EXPECT_THAT(why_no_answer("a.invalid,b.invalid:1", Nanoseconds(0)),
                HasSubstr("b.invalid:1: the name does not resolve"));
    EXPECT_THAT(why_no_answer("a.invalid", Nanoseconds(0)), StartsWith("a.invalid:2181: "));
}

}  // namespace
}  // namespace zkrecipes::zklock
