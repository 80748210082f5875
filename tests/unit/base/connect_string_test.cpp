#include "base/connect_string.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string problem(std::string_view text) {
    try {
        parse_connect_string(text);
        return "no error";
    } catch (const Error& error) {
        return (error.errc() == Errc::bad_connect_string || error.errc() == Errc::bad_path) ? error.what()
                                                                                            : "wrong Errc";
    }
}

TEST(ConnectStringTest, HostsGetTheDefaultPort) {
    const ConnectString parsed = parse_connect_string("zk1,zk2:2182,10.0.0.1,[::1],[2001:db8::1]:21810");
    EXPECT_THAT(parsed.hosts(),
                ElementsAre("zk1:2181", "zk2:2182", "10.0.0.1:2181", "[::1]:2181", "[2001:db8::1]:21810"));
    EXPECT_THAT(parsed.chroot, IsEmpty());
    EXPECT_THAT(parse_connect_string("AZ-az.09_x").hosts(), ElementsAre("AZ-az.09_x:2181"));
}

TEST(ConnectStringTest, TheChrootIsSplitOff) {
    EXPECT_EQ(parse_connect_string("zk1:2181,zk2/a/b").chroot, "/a/b");
    EXPECT_THAT(parse_connect_string("zk1,zk2/a/b").hosts(), ElementsAre("zk1:2181", "zk2:2181"));
    EXPECT_EQ(parse_connect_string("zk1/").chroot, "");
    EXPECT_EQ(parse_connect_string("[::1]/x").chroot, "/x");
}

TEST(ConnectStringTest, APathBehindAServerThatIsNotTheLastIsRefused) {
    for (const char* text : {"zk1/app,zk2/app",
                             "zk1/app,zk2",
                             "zk1:2181/app,zk2:2181/app",
                             "zk1/app,",
                             "zk1/app;zk2/app",
                             "zk1/app;",
                             "zk1/app zk2/app",
                             "zk1/app ",
                             "zk1/app\tzk2",
                             "zk1/app\n",
                             "zk1/app|zk2/app",
                             "zk1/app:2181",
                             "zk1/app/[::1]:2181",
                             "zk1/,zk2",
                             "zk1/,zk2/app",
                             "zk1/app/,zk2/app",
                             "zk1/,",
                             "[::1]/app,[::2]/app",
                             "zk1/app\uff0czk2/app",
                             "zk1/app\u00a0zk2",
                             "zk1/app\uff1bzk2",
                             "zk1/app\uff1a2181",
                             "zk1/app\u3001zk2"}) {
        try {
            parse_connect_string(text);
            ADD_FAILURE() << "accepted: " << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::bad_connect_string) << text;
            EXPECT_THAT(error.what(), HasSubstr("write the path once, behind the last server")) << text;
        }
    }
}

TEST(ConnectStringTest, ItKnowsWhatNeedsNoNameResolution) {
    EXPECT_TRUE(parse_host_port("127.0.0.1:1").is_address);
    EXPECT_TRUE(parse_host_port("[fe80::1%eth0]:1").is_address);
    EXPECT_FALSE(parse_host_port("localhost").is_address);
    EXPECT_FALSE(parse_host_port("127.0.0.300").is_address);
    EXPECT_EQ(parse_host_port("[::1]:7").host, "::1");
}

TEST(ConnectStringTest, EachMistakeIsNamedWithItsEntryAndAnExample) {
    EXPECT_THAT(problem(""), HasSubstr("the list of servers is empty"));
    EXPECT_THAT(problem("/a"), HasSubstr("empty entry"));
    EXPECT_THAT(problem("zk1,"), HasSubstr("empty entry"));
    EXPECT_THAT(problem(",zk1"), HasSubstr("empty entry"));
    EXPECT_THAT(problem("zk1,,zk2"), HasSubstr("empty entry"));
    EXPECT_THAT(problem("zk1, zk2"), HasSubstr("\" zk2\": blanks are not allowed"));
    EXPECT_THAT(problem("zk1:2181\n"), HasSubstr("blanks are not allowed"));
    EXPECT_THAT(problem(" "), HasSubstr("blanks are not allowed"));
    EXPECT_THAT(problem("zk1:"), HasSubstr("\"zk1:\": the port is not a number"));
    EXPECT_THAT(problem("zk1:x"), HasSubstr("the port is not a number"));
    EXPECT_THAT(problem("zk1:21x"), HasSubstr("the port is not a number"));
    EXPECT_THAT(problem("zk1:-1"), HasSubstr("the port is not a number"));
    EXPECT_THAT(problem("zk1:0"), HasSubstr("between 1 and 65535"));
    EXPECT_THAT(problem("zk1:65536"), HasSubstr("between 1 and 65535"));
    EXPECT_THAT(problem("zk1:99999999999999"), HasSubstr("between 1 and 65535"));
    EXPECT_THAT(problem(":2181"), HasSubstr("the host is missing"));
    EXPECT_THAT(problem("a:1:2"), HasSubstr("more than one colon"));
    EXPECT_THAT(problem("::1"), HasSubstr("must stand in brackets"));
    EXPECT_THAT(problem("[::1"), HasSubstr("closing ] is missing"));
    EXPECT_THAT(problem("[zk1]:2181"), HasSubstr("not an IPv6 address"));
    EXPECT_THAT(problem("[::1]2181"), HasSubstr("only :port may follow"));
    EXPECT_THAT(problem("zk1,zk2,zk1:2181"), HasSubstr("\"zk1:2181\": this server is listed twice"));
    EXPECT_THAT(problem("zk://zk1:2181"), HasSubstr("leave out \"zk://\""));
    EXPECT_THAT(problem("z\n://zk1:2181"), HasSubstr("leave out \"z?://\""));
    EXPECT_THAT(problem("user@zk1"), HasSubstr("cannot be in a host name"));
    EXPECT_THAT(problem("zk1;zk2"), HasSubstr("cannot be in a host name"));
    EXPECT_THAT(problem(std::string_view("zk\0", 3)), HasSubstr("cannot be in a host name"));
    EXPECT_THAT(problem(std::string(256, 'a')), HasSubstr("255 characters"));
    EXPECT_THAT(problem("zk1/a//b"), HasSubstr("empty component"));
    EXPECT_THAT(problem("zk1/a/"), HasSubstr("leave the last / out"));
    EXPECT_THAT(problem("zk1:x"), HasSubstr("zk1:2181,zk2:2181"));
}

}  // namespace
}  // namespace zkrecipes::internal
