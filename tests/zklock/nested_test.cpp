// What a zklock hands to the zklocks that its command starts.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <set>
#include <zkrecipes/testenv/scratch.hpp>

#include "options_fixture.hpp"
#include "zklock/around/command_environment.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/parsed_json.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

class NestedTest : public OptionsTest {
protected:
    void SetUp() override {
        OptionsTest::SetUp();
        ::unsetenv("ZKLOCK_CONNECT");
    }
    /// Sets the variable as the command of a zklock with these arguments finds it.
    static void hand_on(std::vector<const char*> arguments) {
        const Options options = parse(std::move(arguments));
        HandedSettings handed = options.handed;
        for (HeldLock& lock : locks_of(options)) handed.held.push_back(std::move(lock));
        ::setenv(kSettingsVariable, to_text(handed).c_str(), 1);
    }
    std::string write(const std::string& name, const std::string& text) const {
        const std::string path = scratch_ / name;
        std::ofstream(path) << text;
        ::chmod(path.c_str(), 0600);
        return path;
    }
    /// Whether a zklock with these arguments waits for a lock of an outer one.
    static bool waits_for_itself(std::vector<const char*> arguments) {
        const Options options = parse(std::move(arguments));
        for (const HeldLock& held : options.handed.held) {
            for (const HeldLock& wanted : locks_of(options)) {
                if (excludes(held, wanted)) return true;
            }
        }
        return false;
    }

    const testenv::Scratch scratch_;
};

TEST_F(NestedTest, ANestedZklockUsesTheSettingsOfTheOuterOne) {
    hand_on({"--connect", "a:1/root", "--prefix", "/p", "--session-timeout", "30", "--server-tick", "16", "/l", "c"});
    const Options nested = parse({"/m", "c"});
    EXPECT_EQ(nested.connect, "a:1/root");
    EXPECT_EQ(nested.prefix, "/p");
    EXPECT_EQ(nested.session_timeout, std::chrono::seconds(30));
    EXPECT_EQ(nested.server_tick, std::chrono::seconds(16))
        << "an assumption that holds for the servers, not for a lock";
    EXPECT_THAT(nested.handed.values, UnorderedElementsAre(Pair("connect", "a:1/root"), Pair("prefix", "/p"),
                                                           Pair("session-timeout", "30"), Pair("server-tick", "16")))
        << "and hands them on";
    ASSERT_EQ(nested.handed.held.size(), 1u);
    EXPECT_EQ(nested.handed.held[0].path, "/root/p/l");
    EXPECT_EQ(nested.handed.held[0].zklock.pid, ::getpid());
    hand_on({"/m", "c"});
    EXPECT_EQ(parse({"/n", "c"}).handed.held.size(), 2u) << "the locks of all outer zklocks";
}

/// A daemon keeps the variable when the zklock that has started it is long gone.
TEST_F(NestedTest, OnceTheOuterZklocksHaveEndedTheirVariableDoesNotCount) {
    write("zklock.conf", "connect = file:1\n");
    ::setenv("XDG_CONFIG_HOME", scratch_.path().c_str(), 1);
    ::setenv("ZKLOCK_PREFIX", "/own", 1);
    const auto hand_on_by = [](std::vector<ProcessIdentity> zklocks) {
        HandedSettings handed;
        handed.values = {{"connect", "outer:1"}};
        handed.overridden = {{"ZKLOCK_PREFIX", "/own"}};
        for (const ProcessIdentity& each : zklocks) handed.held.push_back({"outer:1", "/l", "exclusive", "", 0, each});
        ::setenv(kSettingsVariable, to_text(handed).c_str(), 1);
    };
    const auto found = [] {
        const Options options = parse({"/m", "c"});
        return options.connect + options.prefix + (options.handed.held.empty() ? "" : " held");
    };
    const ProcessIdentity running = this_process();
    ASSERT_NE(running.started, 0u);
    ProcessIdentity number_used_again = running, elsewhere = running, by_an_older_version = running;
    number_used_again.started -= 1;
    elsewhere.pid = std::numeric_limits<pid_t>::max();
    elsewhere.where += "1";
    by_an_older_version.started = 0;
    by_an_older_version.where.clear();
    hand_on_by({number_used_again});
    EXPECT_EQ(found(), "file:1/own");
    hand_on_by({number_used_again, running});
    EXPECT_EQ(found(), "outer:1 held");
    hand_on_by({elsewhere});
    EXPECT_EQ(found(), "outer:1 held") << "nobody can tell";
    hand_on_by({by_an_older_version});
    EXPECT_EQ(found(), "outer:1 held");
    by_an_older_version.pid = std::numeric_limits<pid_t>::max();
    hand_on_by({by_an_older_version});
    EXPECT_EQ(found(), "outer:1 held") << "it may be of another machine";
}

TEST_F(NestedTest, OwnOptionsAndVariablesPrecedeThoseOfTheOuterZklockAndFilesDoNot) {
    hand_on({"--connect", "outer:1", "--prefix", "/outer", "/l", "c"});
    ::setenv("ZKLOCK_CONNECT", "variable:1", 1);
    EXPECT_EQ(parse({"/m", "c"}).connect, "variable:1");
    EXPECT_EQ(parse({"--connect", "option:1", "/m", "c"}).connect, "option:1");
    ::unsetenv("ZKLOCK_CONNECT");
    EXPECT_EQ(parse({"/m", "c"}).prefix, "/outer");
    EXPECT_EQ(parse({"--prefix", "", "/m", "c"}).prefix, "");
    write("zklock.conf", "connect = user:1\nacl = ip:10.0.0.1:r\n");
    ::setenv("XDG_CONFIG_HOME", scratch_.path().c_str(), 1);
    EXPECT_EQ(parse({"/m", "c"}).connect, "outer:1");
    EXPECT_EQ(parse({"/m", "c"}).acl, (std::vector<Acl>{{Acl::read, "ip", "10.0.0.1"}}));
}

TEST_F(NestedTest, WithServersOfItsOwnNothingComesFromTheOuterZklock) {
    const std::string servers = write("servers.conf", "connect = outer:1\n");
    hand_on({"--connect", "outer:1", "--prefix", "/outer", "--session-timeout", "30", "/l", "c"});
    EXPECT_EQ(parse({"--connect", "outer:1", "/m", "c"}).prefix, "");
    EXPECT_EQ(parse({"--config", servers.c_str(), "/m", "c"}).prefix, "");
    EXPECT_EQ(parse({"--config", servers.c_str(), "/m", "c"}).handed.held.size(), 1u) << "but the outer lock is held";
    ::setenv("ZKLOCK_CONNECT", "own:1", 1);
    EXPECT_EQ(parse({"/m", "c"}).prefix, "");
    EXPECT_NE(parse({"/m", "c"}).session_timeout, std::chrono::seconds(30));
    ::setenv("ZKLOCK_CONNECT", "outer:1", 1);
    EXPECT_EQ(parse({"/m", "c"}).prefix, "/outer") << "the outer zklock may have got the servers from this variable";
}

TEST_F(NestedTest, AVariableThatTheOuterZklockDidNotUseIsNotUsed) {
    ::setenv("ZKLOCK_CONNECT", "production:1", 1);
    ::setenv("ZKLOCK_PREFIX", "/production", 1);
    hand_on({"--connect", "test:1", "--prefix", "/test", "/l", "c"});
    EXPECT_EQ(parse({"/m", "c"}).connect, "test:1");
    EXPECT_EQ(parse({"/m", "c"}).prefix, "/test");
    hand_on({"/m", "c"});
    EXPECT_EQ(parse({"/n", "c"}).connect, "test:1") << "two levels below";
    ::setenv("ZKLOCK_CONNECT", "own:1", 1);
    EXPECT_EQ(parse({"/m", "c"}).connect, "own:1") << "the command has set it";
    EXPECT_EQ(parse({"/m", "c"}).prefix, "");
}

TEST_F(NestedTest, AnAccessListThatAnOptionReplacedDoesNotReachTheCommand) {
    ::setenv("ZKLOCK_ACL", "creator", 1);
    const auto passed_on = [](std::vector<const char*> arguments) {
        return bare_environment(parse(std::move(arguments)));
    };
    EXPECT_THAT(passed_on({"--connect", "a:1", "--acl", "open", "/l", "c"}),
                testing::Not(testing::Contains("ZKLOCK_ACL=creator")));
    EXPECT_THAT(passed_on({"--connect", "a:1", "/l", "c"}), testing::Contains("ZKLOCK_ACL=creator"));
}

TEST_F(NestedTest, APrefixOfAnotherUsersFileDoesNotJoinTheServersOfTheOuterZklock) {
    hand_on({"--connect", "outer:1", "/l", "c"});
    write("zklock.conf", "prefix = /other\n");
    ::setenv("XDG_CONFIG_HOME", scratch_.path().c_str(), 1);
    EXPECT_EQ(parse({"/m", "c"}).prefix, "");
}

TEST_F(NestedTest, AFileThatTheNestedZklockNamesItselfPrecedes) {
    const std::string shared = write("shared.conf", "connect = shared:1\nprefix = /shared\n");
    const std::string own = write("own.conf", "connect = own:1\n");
    ::setenv("ZKLOCK_CONFIG", shared.c_str(), 1);
    hand_on({"--connect", "outer:1", "/l", "c"});
    EXPECT_EQ(parse({"/m", "c"}).connect, "outer:1") << "the outer zklock had the same file";
    EXPECT_EQ(parse({"/m", "c"}).prefix, "/shared");
    EXPECT_EQ(parse({"--config", own.c_str(), "/m", "c"}).connect, "own:1");
    EXPECT_EQ(parse({"--config", shared.c_str(), "/m", "c"}).connect, "shared:1");
    ::setenv("ZKLOCK_CONFIG", own.c_str(), 1);
    EXPECT_EQ(parse({"/m", "c"}).connect, "own:1");
    ::unsetenv("ZKLOCK_CONFIG");
    hand_on({"--config", own.c_str(), "/l", "c"});
    EXPECT_EQ(parse({"/m", "c"}).origins.at("config"), "ZKLOCK_SETTINGS: config");
}

TEST_F(NestedTest, NothingThatMayBeSecretIsHandedOn) {
    const std::string auth = write("auth", "digest:ops:secret\n");
    for (const char* acl : {"digest:ops:HASHHASHHASHHASHHASHHASHHAS=:rwcda", "creator",
                            "ip:10.0.0.1:r,digest:ops:HASHHASHHASHHASHHASHHASHHAS=:r"}) {
        hand_on({"--connect", "a:1", "--auth-file", auth.c_str(), "--acl", acl, "/l", "c"});
        const std::string text = ::getenv(kSettingsVariable);
        for (const char* secret : {"secret", "HASH", "auth", "creator"}) {
            EXPECT_THAT(text, testing::Not(HasSubstr(secret))) << acl;
        }
        EXPECT_EQ(parse({"/m", "c"}).acl, Acl::open());
        EXPECT_TRUE(parse({"/m", "c"}).handed.acl_withheld) << "of which the nested zklock warns";
        EXPECT_FALSE(parse({"--acl", "open", "/m", "c"}).handed.acl_withheld);
    }
    hand_on({"--connect", "a:1", "--acl", "ip:10.0.0.1:r,world:anyone:r", "/l", "c"});
    EXPECT_EQ(parse({"/m", "c"}).acl.size(), 2u) << "such a list may be handed on";
    for (const char* key : {"auth-file", "tls-key", "sasl-password-file", "something-new"})
        EXPECT_FALSE(may_be_handed(key, "/x")) << key;
    const std::set<std::string> kept = {"auth-file", "tls-key", "sasl-password-file"};
    for (const Setting& setting : kSettings) {
        const std::string key = setting.key;
        const std::string value = key == "acl" ? "open" : key == "config" ? auth : "/x";
        EXPECT_NE(may_be_handed(key, value), kept.contains(key))
            << "decide whether a new setting is handed on: " << key;
    }
    EXPECT_FALSE(may_be_handed("config", "/dev/fd/0"));
    EXPECT_FALSE(may_be_handed("config", "/nonexistent"));
}

TEST_F(NestedTest, AVariableThatNoZklockHasWrittenIsRefused) {
    for (const char* text :
         {"x", "{}", "{\"v\":2,\"settings\":{},\"held\":[]}",
          "{\"v\":1,\"settings\":{\"auth-file\":\"/x\"},\"held\":[]}",
          "{\"v\":1,\"settings\":{\"connect\":1},\"held\":[]}", "{\"v\":1,\"settings\":{},\"held\":[{}]}", "[]"}) {
        ::setenv(kSettingsVariable, text, 1);
        const auto [code, why] = refusal({"--connect", "a:1", "/l", "c"});
        EXPECT_EQ(code, 78) << text;
        EXPECT_THAT(why, HasSubstr("ZKLOCK_SETTINGS: ")) << text;
    }
    ::setenv(kSettingsVariable, "", 1);
    EXPECT_EQ(parse({"--connect", "a:1", "/l", "c"}).connect, "a:1");
    ::setenv(kSettingsVariable, "{\"v\":1,\"settings\":{\"session-timeout\":\"x\"},\"held\":[]}", 1);
    EXPECT_THAT(refusal({"/l", "c"}).second,
                testing::StartsWith("ZKLOCK_SETTINGS: session-timeout: \"x\" is not a duration"));
}

TEST_F(NestedTest, ANestedLockThatExcludesTheOuterOneIsKnown) {
    hand_on({"--connect", "a:1", "--prefix", "/p", "/l", "c"});
    EXPECT_TRUE(waits_for_itself({"/l", "c"}));
    EXPECT_TRUE(waits_for_itself({"-s", "/l", "c"}));
    EXPECT_TRUE(waits_for_itself({"--rw", "/l", "c"}));
    EXPECT_TRUE(waits_for_itself({"-L", "/m", "-L", "/l:shared", "--", "c"}));
    EXPECT_TRUE(waits_for_itself({"--connect", "a:1/p", "--prefix", "", "/l", "c"}));
    EXPECT_FALSE(waits_for_itself({"/m", "c"}));
    EXPECT_FALSE(waits_for_itself({"--prefix", "/q", "/l", "c"}));
    EXPECT_FALSE(waits_for_itself({"--connect", "b:1", "/l", "c"}));
    EXPECT_FALSE(waits_for_itself({"-j", "1", "/l", "c"})) << "a semaphore and a mutex do not exclude each other";
    EXPECT_FALSE(waits_for_itself({"--dialect", "kazoo", "/l", "c"}));
    hand_on({"--connect", "a:1", "-s", "/l", "c"});
    EXPECT_TRUE(waits_for_itself({"--prefix", "", "/p/l", "c"})) << "the outermost still holds /p/l";
    ::unsetenv(kSettingsVariable);
    hand_on({"--connect", "a:1", "-s", "/l", "c"});
    EXPECT_FALSE(waits_for_itself({"-s", "/l", "c"}));
    EXPECT_TRUE(waits_for_itself({"-x", "/l", "c"}));
    ::unsetenv(kSettingsVariable);
    hand_on({"--connect", "a:1", "-j", "1", "/l", "c"});
    EXPECT_TRUE(waits_for_itself({"-j", "1", "/l", "c"}));
    ::unsetenv(kSettingsVariable);
    hand_on({"--connect", "a:1", "-j", "2", "/l", "c"});
    EXPECT_FALSE(waits_for_itself({"-j", "2", "/l", "c"}));
}

}  // namespace
}  // namespace zkrecipes::zklock
