#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/options_check.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionOptionsTest : public ::testing::Test {
protected:
    SessionOptionsTest() { options.hosts = "h:1"; }
    void expect_refused(Errc errc, const std::string& in_text) {
        try {
            check_options(options);
            ADD_FAILURE() << "accepted; expected: " << in_text;
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), errc) << error.what();
            EXPECT_THAT(error.what(), HasSubstr(in_text));
        }
    }
    SessionOptions options;
};

TEST_F(SessionOptionsTest, TheDefaultsAreFine) {
    const auto checked = check_options(options);
    EXPECT_THAT(checked.hosts, ElementsAre("h:1"));
    EXPECT_EQ(checked.prefix, "");
}

TEST_F(SessionOptionsTest, ChrootAndNamespaceMakeThePrefix) {
    options.hosts = "h:1,i:2/chroot";
    options.path_prefix = "/name/space";
    EXPECT_EQ(check_options(options).prefix, "/chroot/name/space");
    options.path_prefix = "/";
    EXPECT_EQ(check_options(options).prefix, "/chroot");
    options.hosts = "h:1";
    EXPECT_EQ(check_options(options).prefix, "");
}

TEST_F(SessionOptionsTest, TimesThatCannotWorkAreRefusedWithTheirNameAndTheRange) {
    for (const auto bad : {0ms, -1ms, 1ms, 99ms, std::chrono::milliseconds(24h) + 1ms, std::chrono::milliseconds::max(),
                           std::chrono::milliseconds::min()}) {
        options.timeout = bad;
        expect_refused(Errc::bad_option, "SessionOptions::timeout");
    }
    expect_refused(Errc::bad_option, "choose from 100 ms to 24 h");
    for (const auto good : {100ms, std::chrono::milliseconds(24h)}) {
        options.timeout = good;
        EXPECT_NO_THROW(check_options(options));
    }
    options.timeout = 1s;
    options.auth_timeout = 0ms;
    expect_refused(Errc::bad_option, "auth_timeout");
    options.auth_timeout = 1s;
    options.server_tick = -5ms;
    expect_refused(Errc::bad_option, "server_tick");
    options.server_tick = 2s;
    options.close_timeout = -1ms;
    expect_refused(Errc::bad_option, "close_timeout");
    options.close_timeout = 0ms;
    EXPECT_NO_THROW(check_options(options)) << "close() that does not wait";
}

TEST_F(SessionOptionsTest, AccessListsThatCannotWorkAreRefused) {
    options.acl.clear();
    expect_refused(Errc::bad_option, "acl is empty");
    options.acl = {Acl{0, "world", "anyone"}};
    expect_refused(Errc::bad_option, "permissions 0");
    options.acl = {Acl{Acl::all, "world", "somebody"}};
    expect_refused(Errc::bad_option, "somebody");
    options.acl = {Acl{Acl::all, "", ""}};
    expect_refused(Errc::bad_option, "no scheme");
    options.acl = Acl::creator_all();
    expect_refused(Errc::bad_option, "no credentials");
    options.auth = {Auth{"digest", "user:password"}};
    EXPECT_NO_THROW(check_options(options));
}

TEST_F(SessionOptionsTest, CredentialsThatCannotWorkAreRefusedWithoutShowingThem) {
    options.auth = {Auth{"digest", "secret"}};
    expect_refused(Errc::bad_option, "user:password");
    try {
        check_options(options);
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("secret")));
    }
    options.auth = {Auth{"", "user:password"}};
    expect_refused(Errc::bad_option, "no scheme");
}

TEST_F(SessionOptionsTest, BadServersAndBadNamespacesAreRefused) {
    options.hosts = "";
    expect_refused(Errc::bad_connect_string, "");
    options.hosts = "h:99999";
    expect_refused(Errc::bad_connect_string, "99999");
    options.hosts = "h:1/app,g:1/app";
    expect_refused(Errc::bad_connect_string, "SessionOptions::path_prefix");
    options.hosts = "h:1";
    options.path_prefix = "relative";
    expect_refused(Errc::bad_path, "relative");
    options.path_prefix = "/zookeeper/locks";
    expect_refused(Errc::bad_path, "/zookeeper");
}

class SessionPathTest : public SessionTest {};

TEST_F(SessionPathTest, UserPathsGetThePrefixAndLoseItAgain) {
    options.hosts = "h:1/chroot";
    options.path_prefix = "/ns";
    open();
    EXPECT_EQ(core->server_path("/locks/a", "acquire"), "/chroot/ns/locks/a");
    EXPECT_EQ(core->user_path("/chroot/ns/locks/a"), "/locks/a");
    EXPECT_EQ(core->user_path("/chroot/ns"), "/");
    EXPECT_EQ(core->user_path("/chroot/nsx/a"), "/chroot/nsx/a");
}

TEST_F(SessionPathTest, ANodeWhoseNameHasASeparatorOfListsGoesIntoThePrefix) {
    options.path_prefix = "/a,b;c:d|e f";
    open();
    EXPECT_EQ(core->server_path("/l", "acquire"), "/a,b;c:d|e f/l");
}

TEST_F(SessionPathTest, BadPathsNameTheOperation) {
    open();
    for (const char* path : {"", "a", "/a/", "//a", "/a/../b", "/./a", "/zookeeper", "/zookeeper/quota"}) {
        try {
            (void)core->server_path(path, "acquire");
            ADD_FAILURE() << "accepted: " << path;
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::bad_path);
            EXPECT_EQ(error.operation(), "acquire");
        }
    }
}

}  // namespace
}  // namespace zkrecipes::testing
