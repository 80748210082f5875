#include "zklock/command_line/settings.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <zkrecipes/testenv/scratch.hpp>

#include "modes_count.hpp"
#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {
namespace {

using testing::HasSubstr;

const std::map<std::string, std::string> kNoOptions;

class SettingsTest : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"ZKLOCK_CONNECT", "ZK_HOSTS", "ZKHOSTS", "ZKLOCK_PREFIX", "ZKLOCK_SESSION_TIMEOUT",
                                 "ZKLOCK_SERVER_TICK", "ZKLOCK_AUTH_FILE", "ZKLOCK_ACL", "ZKLOCK_CONNECT_TIMEOUT",
                                 "ZKLOCK_CONFIG", "ZKLOCK_SETTINGS", "XDG_CONFIG_HOME"}) {
            ::unsetenv(name);
        }
        ::setenv("HOME", directory_.c_str(), 1);
    }

    std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
        const std::filesystem::path path = directory_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path.string();
    }

    /// What is said when this is --config; empty: nothing.
    static std::string refusal(const std::string& config) {
        std::map<std::string, std::string> options;
        if (!config.empty()) options["config"] = config;
        try {
            const Settings settings(std::move(options));
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.code, 78);
            return failure.what();
        }
        return {};
    }

    const testenv::Scratch scratch_;
    const std::filesystem::path directory_ = scratch_.path();
};

TEST_F(SettingsTest, OptionBeforeEnvironmentBeforeConfigBeforeUserFile) {
    write(".config/zklock.conf", "connect = user:1\nprefix = /user\nsession-timeout = 1\nconnect-timeout = 4\n");
    const std::string config = write("c.conf", "connect = config:1\nprefix=/config\nsession-timeout = 2\n");
    ::setenv("ZKLOCK_CONNECT", "environment:1", 1);
    ::setenv("ZKLOCK_PREFIX", "/environment", 1);
    const Settings settings(std::map<std::string, std::string>{{"config", config}, {"connect", "option:1"}});
    EXPECT_EQ(settings.find("connect")->value, "option:1");
    EXPECT_EQ(settings.find("connect")->origin, "--connect");
    EXPECT_EQ(settings.find("prefix")->value, "/environment");
    EXPECT_EQ(settings.find("prefix")->origin, "ZKLOCK_PREFIX");
    EXPECT_EQ(settings.find("session-timeout")->value, "2");
    EXPECT_EQ(settings.find("connect-timeout")->value, "4");
    EXPECT_FALSE(settings.find("acl"));
}

TEST_F(SettingsTest, OtherToolsVariablesComeLast) {
    ::setenv("ZKHOSTS", "c:1", 1);
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "c:1");
    ::setenv("ZK_HOSTS", "b:1", 1);
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "b:1");
    write(".config/zklock.conf", "connect = file:1\n");
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "file:1");
    ::setenv("ZKLOCK_CONNECT", "a:1", 1);
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "a:1");
}

TEST_F(SettingsTest, EachSettingHasAVariable) {
    for (const Setting& setting : kSettings) {
        std::string name = "ZKLOCK_" + std::string(setting.key);
        for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        EXPECT_EQ(setting.variable, name);
    }
}

TEST_F(SettingsTest, ListsOfServersSurviveTheFileFormat) {
    write(".config/zklock.conf",
          "# comment\n; comment\n\n[zklock]\nconnect = a:2181,b:2181,[::1]:2181/chroot\nprefix = \"/a b\"\n");
    const Settings settings(kNoOptions);
    EXPECT_EQ(settings.find("connect")->value, "a:2181,b:2181,[::1]:2181/chroot");
    EXPECT_EQ(settings.find("prefix")->value, "/a b");
}

TEST_F(SettingsTest, ACommentStandsBehindABlankAndOutsideQuotes) {
    write(".config/zklock.conf",
          "  # all of it\n[zklock]  # of this program\nconnect = [::1]:1, b:2;c#d/x y\t# digest:user:password, mode "
          "0600\r\n"
          "prefix = '/a # b ; c'  ; quoted\nacl = \"digest:a;b#c:r, ip:x:r\"\nauth-file =/etc/a#b;c ; here\n"
          "session-timeout = 15 # s\n");
    const Settings settings(kNoOptions);
    EXPECT_EQ(settings.find("connect")->value, "[::1]:1,b:2;c#d/x y");
    EXPECT_EQ(settings.find("prefix")->value, "/a # b ; c");
    EXPECT_EQ(settings.find("acl")->value, "digest:a;b#c:r, ip:x:r");
    EXPECT_EQ(settings.find("auth-file")->value, "/etc/a#b;c");
    EXPECT_EQ(settings.find("session-timeout")->value, "15");
}

TEST_F(SettingsTest, ALineThatMeansNothingIsNamed) {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"connect\n", "line 1: expected \"setting = value\""},
        {"\n[other]\nconnect = a:1\n", "line 2: unknown section [other]"},
        {"prefix = \"/a\n", "line 1: the closing quote is missing"},
        {"prefix = \"/a\" b\n", "line 1: only a comment"},
        {"connect = a:1\nprefix = /a\nconnect = b:1\n", "line 3: \"connect\" is set twice"},
        {"= a:1\n", "line 1: unknown setting \"\""},
        {"connect = a:1\nconect = b:1\n", "line 2: unknown setting \"conect\""},
        {"config = /etc/other\n", "line 1: unknown setting \"config\""},
        {"# servers\nconnect =\n", "line 2: \"connect\" has no value"},
        {"acl = \"\"\n", "line 1: \"acl\" has no value"},
    };
    for (const auto& [text, problem] : wrong) EXPECT_THAT(refusal(write("c.conf", text)), HasSubstr(problem)) << text;
}

TEST_F(SettingsTest, AnEmptyPrefixIsOne) {
    write(".config/zklock.conf", "prefix = /user\n");
    const std::string config = write("c.conf", "prefix = # none\n");
    EXPECT_EQ(Settings({{"config", config}}).find("prefix")->value, "");
}

TEST_F(SettingsTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
    write(".config/zklock.conf",
          "\xEF\xBB\xBF"
          "connect = a:1\n");
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "a:1");
    write(".config/zklock.conf", "\xEF\xBB\xBF");
    EXPECT_FALSE(Settings(kNoOptions).find("connect"));
}

TEST_F(SettingsTest, AFileThatCannotBeReadIsNotTakenForAnEmptyOne) {
    for (const std::string& unreadable : {directory_.string(), std::string("/proc/self/mem")}) {
        EXPECT_THAT(refusal(unreadable), HasSubstr("cannot read the configuration file " + unreadable + ": "));
    }
    const std::filesystem::path user = directory_ / ".config/zklock.conf";
    std::filesystem::create_directories(user);
    EXPECT_THAT(refusal({}), HasSubstr(user.string() + ": Is a directory"));
    std::filesystem::remove(user);
    std::filesystem::create_symlink("nowhere", user);
    EXPECT_THAT(refusal({}), HasSubstr(user.string() + ": No such file"));
    std::filesystem::remove(user);

    write(".config/zklock.conf", "connect = a:1\n", 0000);
    const test::ModesCount count;
    ASSERT_TRUE(count);
    EXPECT_THAT(refusal({}), HasSubstr(user.string() + ": Permission denied"));
    ::chmod(user.parent_path().c_str(), 0000);
    EXPECT_EQ(refusal({}), "") << "the home of somebody else";
    ::chmod(user.parent_path().c_str(), 0700);
}

TEST_F(SettingsTest, XdgConfigHomeReplacesTheHomeDirectory) {
    write(".config/zklock.conf", "connect = home:1\n");
    write("xdg/zklock.conf", "connect = xdg:1\n");
    ::setenv("XDG_CONFIG_HOME", (directory_ / "xdg").c_str(), 1);
    EXPECT_EQ(Settings(kNoOptions).find("connect")->value, "xdg:1");
}

TEST_F(SettingsTest, AMissingConfigFileIsAnErrorOnlyWhenNamed) {
    EXPECT_FALSE(Settings(kNoOptions).find("connect"));
    try {
        const Settings settings(std::map<std::string, std::string>{{"config", "/nonexistent/file"}});
        FAIL();
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.code, 78);
        EXPECT_THAT(failure.what(), HasSubstr("/nonexistent/file"));
    }
}

TEST_F(SettingsTest, CredentialsComeFromAFileThatOnlyItsOwnerMayRead) {
    const std::string good = write("auth", "# who\ndigest:ops:pass:word\n\nip:x\n", 0600);
    const std::vector<Auth> auth = read_auth_file(good);
    ASSERT_EQ(auth.size(), 2u);
    EXPECT_EQ(auth[0].scheme, "digest");
    EXPECT_EQ(auth[0].credential, "ops:pass:word");
    for (const mode_t mode : {0640, 0604, 0660, 0610}) {
        const std::string bad = write("bad", "digest:ops:secret\n", mode);
        try {
            read_auth_file(bad);
            ADD_FAILURE() << mode;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.code, 78);
            EXPECT_THAT(failure.what(), HasSubstr("chmod 600"));
        }
    }
}

TEST_F(SettingsTest, ASecretIsNeverRepeatedInAnError) {
    const std::string bad = write("auth", "topsecret\n");
    try {
        read_auth_file(bad);
        FAIL();
    } catch (const Failure& failure) {
        EXPECT_THAT(failure.what(), HasSubstr("line 1"));
        EXPECT_THAT(failure.what(), testing::Not(HasSubstr("topsecret")));
    }
    const std::string refused = refusal(write("auth", "digest:topuser:topsecret==\n"));
    EXPECT_THAT(refused, HasSubstr("line 1: unknown setting"));
    EXPECT_THAT(refused, testing::Not(HasSubstr("top")));
    EXPECT_THROW(read_auth_file(write("digest", "digest:user\n")), Failure) << "no password";
    EXPECT_THROW(read_auth_file(write("empty", "\n")), Failure);
    EXPECT_THROW(read_auth_file("/nonexistent"), Failure);
}

TEST_F(SettingsTest, CredentialsComeFromADescriptorThatIsClosedAfterwards) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "digest:a:b\n", 11), 11);
    ::close(ends[1]);
    EXPECT_EQ(read_auth_file("fd:" + std::to_string(ends[0])).at(0).credential, "a:b");
    EXPECT_EQ(::fcntl(ends[0], F_GETFD), -1);
    EXPECT_THROW(read_auth_file("fd:999"), Failure);
    EXPECT_THROW(read_auth_file("fd:x"), Failure);
}

}  // namespace
}  // namespace zkrecipes::zklock
