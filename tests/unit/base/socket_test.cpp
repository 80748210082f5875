// Connections that are begun and not waited for.
#include "base/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace zkrecipes::internal {
namespace {

TEST(SocketTest, AConnectBlocksNobodySendsAtOnceAndIsNotInherited) {
    const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const Socket one = start_connect("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
    ASSERT_TRUE(one);
    int at_once = 0;
    size = sizeof at_once;
    ASSERT_EQ(::getsockopt(one.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, &size), 0);
    EXPECT_NE(at_once, 0);
    EXPECT_NE(::fcntl(one.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(one.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_TRUE(Socket(::accept(listener.get(), nullptr, nullptr)));
}

TEST(SocketTest, WhatIsNoAddressIsAnErrorAtOnce) {
    for (const char* const wrong : {"a-name:2181", "127.0.0.1:x"}) {
        errno = 0;
        EXPECT_FALSE(start_connect(wrong)) << wrong;
        EXPECT_EQ(errno, EINVAL) << wrong;
    }
}

}  // namespace
}  // namespace zkrecipes::internal
