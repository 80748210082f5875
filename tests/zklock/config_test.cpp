#include "zklock/look/config_command.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <zkrecipes/testenv/scratch.hpp>

#include "options_fixture.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/parsed_json.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConfigTest : public OptionsTest {
protected:
    void SetUp() override {
        OptionsTest::SetUp();
        ::unsetenv("ZKLOCK_CONNECT");
    }

    std::string write(const std::string& name, const std::string& text) {
        const std::string path = scratch_ / name;
        std::ofstream(path) << text;
        ::chmod(path.c_str(), 0600);
        return path;
    }

    struct Shown {
        int code = 0;
        std::string out, error;
    };
    static Shown config(std::vector<const char*> arguments = {}) {
        arguments.insert(arguments.begin(), "config");
        Shown shown;
        testing::internal::CaptureStdout();
        try {
            shown.code = config_command(parse(arguments));
        } catch (const Failure& failure) {
            shown.code = failure.code;
            shown.error = failure.what();
        }
        shown.out = testing::internal::GetCapturedStdout();
        return shown;
    }
    static Json json(std::vector<const char*> arguments = {}) {
        arguments.push_back("--json");
        return Json::parse(config(std::move(arguments)).out)["settings"];
    }

    const testenv::Scratch scratch_;
};

TEST_F(ConfigTest, EachSettingIsShownWithThePlaceItComesFrom) {
    const std::string auth = write("auth", "digest:ops:secret\n");
    const std::string file = write("c.conf", "# ensemble\nconnect = zk1:1,zk2:1\nprefix = /file\nauth-file = " + auth);
    ::setenv("ZKLOCK_PREFIX", "/env", 1);
    const Shown shown = config({"--config", file.c_str(), "--session-timeout", "30"});
    EXPECT_EQ(shown.code, 0) << shown.error;
    EXPECT_THAT(shown.out, testing::ContainsRegex("connect +zk1:1,zk2:1 +" + file + ", line 2\n"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("prefix +/env +ZKLOCK_PREFIX\n"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("session-timeout +30 +--session-timeout\n"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("connect-timeout +10s +default\n"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("auth-file +" + auth + " +" + file + ", line 4\n"));
    EXPECT_THAT(shown.out, HasSubstr("  " + file + "\n"));
    EXPECT_THAT(shown.out, HasSubstr("  /nonexistent/.config/zklock.conf (missing)\n"));

    const Json all = json({"--config", file.c_str(), "--session-timeout", "30"});
    EXPECT_EQ(all["connect"]["source"], "file");
    EXPECT_EQ(all["connect"]["file"], file);
    EXPECT_EQ(all["connect"]["line"], 2);
    EXPECT_EQ(all["prefix"]["source"], "environment");
    EXPECT_EQ(all["prefix"]["variable"], "ZKLOCK_PREFIX");
    EXPECT_EQ(all["session-timeout"]["source"], "option");
    EXPECT_EQ(all["session-timeout"]["option"], "--session-timeout");
    EXPECT_EQ(all["acl"]["source"], "default");
    EXPECT_EQ(all["acl"]["value"], "open");
}

TEST_F(ConfigTest, TheColumnsAreAlignedAlsoWithLongNamesAndThreeServers) {
    const char* const servers = "zk1.example.org:2181,zk2.example.org:2181,zk3.example.org:2181";
    std::istringstream lines(config({"--connect", servers, "--sasl-user", "ops"}).out);
    std::set<std::size_t> values, places;
    for (std::string line; std::getline(lines, line) && !line.empty();) {
        values.insert(line.find_first_not_of(' ', line.find(' ')));
        const std::size_t place = line.find("  ", line.find_first_not_of(' ', line.find(' ')));
        if (place != std::string::npos) places.insert(line.find_first_not_of(' ', place));
    }
    EXPECT_EQ(values.size(), 1u);
    EXPECT_EQ(places.size(), 1u);
}

TEST_F(ConfigTest, TheVariablesOfTheAccessListAndTheConnectTimeoutAreRead) {
    ::setenv("ZKLOCK_CONNECT", "zk:1", 1);
    ::setenv("ZKLOCK_ACL", "ip:10.0.0.1:r", 1);
    ::setenv("ZKLOCK_CONNECT_TIMEOUT", "3s", 1);
    const Options options = parse({"/l", "true"});
    EXPECT_EQ(options.acl, (std::vector<Acl>{{Acl::read, "ip", "10.0.0.1"}}));
    EXPECT_EQ(options.connect_timeout, std::chrono::seconds(3));
    EXPECT_EQ(options.handed.values.at("acl"), "ip:10.0.0.1:r") << "nested zklocks use it, too";
    EXPECT_EQ(options.handed.values.at("connect-timeout"), "3s");
    EXPECT_EQ(json()["acl"]["variable"], "ZKLOCK_ACL");
    ::setenv("ZKLOCK_ACL", "open,x", 1);
    EXPECT_EQ(refusal({"/l", "true"}).first, 78);
}

TEST_F(ConfigTest, APathBehindEachServerIsRefusedWhereverTheServersComeFrom) {
    const auto refusal_of = [](std::vector<const char*> arguments) -> std::pair<int, std::string> {
        arguments.insert(arguments.end(), {"/l", "true"});
        const Options options = parse(std::move(arguments));
        Console console(options);
        try {
            open_session(options, console);
        } catch (const Failure& failure) {
            EXPECT_THAT(failure.what(), HasSubstr("write the path once, behind the last server"));
            EXPECT_THAT(failure.what(), HasSubstr("--prefix"));
            return {failure.code, failure.what()};
        }
        return {0, "accepted"};
    };
    using testing::Pair;
    using testing::StartsWith;
    EXPECT_THAT(refusal_of({"--connect", "zk1/app,zk2/app"}), Pair(64, StartsWith("--connect: ")));
    const std::string file = write("c.conf", "connect = zk1:2181/app, zk2:2181/app\n");
    EXPECT_THAT(refusal_of({"--config", file.c_str()}), Pair(78, StartsWith(file + ", line 1: connect: ")));
    for (const char* const variable : {"ZK_HOSTS", "ZKHOSTS", "ZKLOCK_CONNECT"}) {
        ::setenv(variable, "zk1/app,zk2/app", 1);
        EXPECT_THAT(refusal_of({}), Pair(78, StartsWith(std::string(variable) + ": ")));
        ::unsetenv(variable);
    }
    ::setenv("ZKLOCK_SETTINGS", R"({"v":1,"settings":{"connect":"zk1/app;zk2/app"},"held":[]})", 1);
    EXPECT_THAT(refusal_of({}), Pair(78, StartsWith("ZKLOCK_SETTINGS: connect: ")));
}

TEST_F(ConfigTest, TheServersTickCanBeStatedAndIsNeverTakenForLess) {
    ::setenv("ZKLOCK_CONNECT", "zk:1", 1);
    EXPECT_EQ(parse({"/l", "c"}).server_tick, 0ms) << "not known";
    EXPECT_EQ(parse({"--server-tick", "10", "/l", "c"}).server_tick, 10s);
    EXPECT_EQ(parse({"--server-tick", "1.0001ms", "status", "/l"}).server_tick, 2ms);
    ::setenv("ZKLOCK_SERVER_TICK", "3s", 1);
    EXPECT_EQ(parse({"elect", "/l", "c"}).server_tick, 3s);
    ::setenv("ZKLOCK_SERVER_TICK", "soon", 1);
    EXPECT_EQ(refusal({"/l", "c"}).first, 78);
    EXPECT_EQ(refusal({"--server-tick", "25h", "/l", "c"}).first, 64);
}

/// A tick is a fact about servers: that of others must not shorten what is assumed of these.
TEST_F(ConfigTest, AServerTickCountsOnlyForTheServersOfItsSource) {
    ::unsetenv("ZKLOCK_CONNECT");
    const auto tick = [&](std::vector<const char*> arguments) {
        arguments.insert(arguments.end(), {"/l", "c"});
        return parse(std::move(arguments)).server_tick;
    };
    const std::string file = write("c.conf", "connect = a:1\nserver-tick = 500ms\n");
    EXPECT_EQ(tick({"--config", file.c_str()}), 500ms);
    EXPECT_EQ(tick({"--config", file.c_str(), "--connect", "a:1"}), 500ms) << "the same servers";
    EXPECT_EQ(tick({"--config", file.c_str(), "--connect", "b:1"}), 0ms);
    EXPECT_EQ(tick({"--config", file.c_str(), "--connect", "b:1", "--server-tick", "2s"}), 2s);
    ::setenv("ZKLOCK_CONNECT", "a:1", 1);
    ::setenv("ZKLOCK_SERVER_TICK", "500ms", 1);
    EXPECT_EQ(tick({}), 500ms);
    EXPECT_EQ(tick({"--connect", "b:1"}), 0ms);
    ::setenv("ZKLOCK_SERVER_TICK", "10s", 1);
    const auto [code, text] = refusal({"--connect", "b:1", "/l", "c"});
    EXPECT_EQ(code, 78) << "a longer one may be needed there, too";
    EXPECT_THAT(
        text, ::testing::AllOf(HasSubstr("ZKLOCK_SERVER_TICK: "), HasSubstr("--connect"), HasSubstr("--server-tick")));
    EXPECT_EQ(parse({"--connect", "b:1", "status", "/l"}).server_tick, 0ms) << "it takes no lock";
    ::unsetenv("ZKLOCK_CONNECT");
    ::unsetenv("ZKLOCK_SERVER_TICK");
    const std::string of_user = write("zklock.conf", "connect = a:1\nserver-tick = 500ms\n");
    ::setenv("XDG_CONFIG_HOME", of_user.substr(0, of_user.rfind('/')).c_str(), 1);
    EXPECT_EQ(tick({}), 500ms);
    ::setenv("ZKLOCK_SETTINGS", R"({"v":1,"settings":{"connect":"b:1"},"held":[]})", 1);
    EXPECT_EQ(tick({}), 0ms) << "the outer zklock has other servers";
}

TEST_F(ConfigTest, SecretsAreNotShown) {
    const std::string auth = write("auth", "digest:ops:secret\n");
    ::setenv("ZKLOCK_CONNECT", "zk:1", 1);
    const char* const acl = "digest:ops:HASHHASHHASHHASHHASHHASHHAS=:rwcda,ip:10.0.0.0/8:r,mine:HASH:r";
    for (const Shown& shown : {config({"--auth-file", auth.c_str(), "--acl", acl}),
                               config({"--json", "--auth-file", auth.c_str(), "--acl", acl})}) {
        EXPECT_EQ(shown.code, 0) << shown.error;
        EXPECT_THAT(shown.out, HasSubstr("digest:ops:(not shown):rwcda,ip:10.0.0.0/8:r,mine:(not shown)"));
        EXPECT_THAT(shown.out, HasSubstr(auth));
        EXPECT_THAT(shown.out, AllOf(Not(HasSubstr("HASH")), Not(HasSubstr("secret"))));
    }
    for (const char* wrong : {"digest:ops:HASH=", "digest:ops:HASHHASHHASHHASHHASHHASHHAS=:xyz", "digest:ops:HASH:r",
                              "digest:HASH", "HASH"}) {
        const Shown shown = config({"--acl", wrong});
        EXPECT_EQ(shown.code, 64) << wrong;
        EXPECT_THAT(shown.out, Not(HasSubstr("HASH"))) << wrong;
        if (std::string(wrong) != "HASH") {
            EXPECT_THAT(shown.error, Not(HasSubstr("HASH"))) << wrong;
        }
    }
}

TEST_F(ConfigTest, AHashMayBeOfAnyAlgorithmThatTheServersCanUse) {
    ::setenv("ZKLOCK_CONNECT", "zk:1", 1);
    const auto acl = [](std::size_t chars, const std::string& padding) {
        return "digest:ops:" + std::string(chars, 'x') + padding + ":rwcda";
    };
    for (const auto& [chars, padding] : std::vector<std::pair<std::size_t, const char*>>{
             {22, "=="}, {27, "="}, {38, "=="}, {43, "="}, {64, ""}, {86, "=="}}) {
        const Shown shown = config({"--acl", acl(chars, padding).c_str()});
        EXPECT_EQ(shown.code, 0) << chars << ": " << shown.error;
        EXPECT_EQ(config({"--acl", acl(chars - 1, padding).c_str()}).code, 64) << chars;
        EXPECT_EQ(config({"--acl", acl(chars + 1, padding).c_str()}).code, 64) << chars;
    }
    EXPECT_THAT(config({"--acl", "digest:ops:secret:r"}).error,
                AllOf(HasSubstr("prefer creator"), HasSubstr("DigestAuthenticationProvider.digestAlg")));
}

TEST_F(ConfigTest, FilesAreShownWithTheirWholePath) {
    ::setenv("ZKLOCK_CONNECT", "zk:1", 1);
    write("auth", "digest:ops:secret\n");
    write("c.conf", "auth-file = ./auth\n");
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(scratch_.path());
    const Json all = json({"--config", "c.conf"});
    std::filesystem::current_path(before);
    EXPECT_EQ(all["auth-file"]["value"], scratch_ / "auth");
    EXPECT_EQ(all["auth-file"]["file"], scratch_ / "c.conf");
    EXPECT_EQ(all["config"]["value"], scratch_ / "c.conf");
}

TEST_F(ConfigTest, WhatIsWrongIsSaidAfterTheSettings) {
    Shown shown = config();
    EXPECT_EQ(shown.code, 78);
    EXPECT_THAT(shown.out, testing::ContainsRegex("connect +\\(not set\\)\n"));
    std::string file = write("empty.conf", "prefix = /p\n");
    shown = config({"--config", file.c_str()});
    EXPECT_THAT(shown.error, HasSubstr("no ZooKeeper servers are configured: use --connect host:port, ZKLOCK_CONNECT"));
    EXPECT_THAT(shown.error, HasSubstr("in " + file + " or /nonexistent/.config/zklock.conf or /etc/zklock.conf"));
    file = write("c.conf", "connect = zk:1\nsession-timeout = soon\n");
    shown = config({"--config", file.c_str()});
    EXPECT_EQ(shown.code, 78);
    EXPECT_THAT(shown.out, HasSubstr("soon"));
    EXPECT_THAT(shown.error, HasSubstr(file + ", line 2: session-timeout: \"soon\" is not a duration"));
    EXPECT_EQ(refusal({"config", "/l"}).first, 64);
}

TEST_F(ConfigTest, SettingsOfAnOuterZklockAreShownAsSuch) {
    ::setenv("ZKLOCK_SETTINGS", R"({"v":1,"settings":{"connect":"outer:1"},"held":[]})", 1);
    EXPECT_THAT(config().out, HasSubstr("outer:1    ZKLOCK_SETTINGS, of an outer zklock\n"));
    const Json all = json();
    EXPECT_EQ(all["connect"]["source"], "environment");
    EXPECT_EQ(all["connect"]["variable"], "ZKLOCK_SETTINGS");
}

TEST_F(ConfigTest, EverySettingSaysWhetherItMayBeShown) {
    for (const Setting& setting : kSettings) EXPECT_TRUE(kind_of_setting(setting.key)) << setting.key;
    EXPECT_FALSE(kind_of_setting("something-new"));
}

}  // namespace
}  // namespace zkrecipes::zklock
