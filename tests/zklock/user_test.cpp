// A command that becomes another user, as with sudo: no signal of zklock reaches it.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ZklockUserTest : public ZklockTest {
protected:
    void SetUp() override {
        ZklockTest::SetUp();
        if (IsSkipped()) return;
        if (::geteuid() != 0) GTEST_SKIP() << "needs the right to become another user";
        // A program that becomes root, where the other user finds it.
        const std::string directory = scratch_ / "x";
        for (std::filesystem::path at = directory.substr(0, directory.rfind('/')); at.has_relative_path();
             at = at.parent_path()) {
            if (::access(at.c_str(), F_OK) == 0 && at != "/tmp") allow(at);
        }
        std::filesystem::copy_file("/usr/bin/setpriv", scratch_ / "become");
        ::chmod((scratch_ / "become").c_str(), 04755);
        ZklockProcess::Setup setup;
        setup.launcher = as_other_user();
        setup.launcher.insert(setup.launcher.end(), {"sh", "-c", "test -r $0 && " + become_root("true")});
        if (zklock({}, setup).code != 0) GTEST_SKIP() << "a setuid program cannot be run here, or zklock not be read";
    }
    void TearDown() override {
        std::ofstream(scratch_ / "go") << "";
        ZklockTest::TearDown();
        for (auto& [directory, mode] : modes_) ::chmod(directory.c_str(), mode);
    }

    std::vector<std::string> as_other_user() const {
        const std::string id = std::to_string(1'000'000 + ::getpid() % 1'000'000);
        return {"setpriv", "--pdeathsig", "KILL", "--reuid", id, "--regid", id, "--clear-groups"};
    }
    std::string become_root(const std::string& command) const {
        return (scratch_ / "become") + " --reuid 0 " + command;
    }
    /// Becomes root, and runs until the test says "go", or is over.
    std::string rootly() const {
        return become_root("sh -c 'trap \"\" TERM; echo $$ >" + (scratch_ / "root.new") + "; mv " +
                           (scratch_ / "root.new") + " " + (scratch_ / "root") + "; while kill -0 " +
                           std::to_string(::getpid()) + " && ! test -e " + (scratch_ / "go") +
                           "; do sleep 0.05; done'");
    }
    std::unique_ptr<ZklockProcess> hold(const std::string& command, std::vector<std::string> launcher,
                                        std::vector<std::string> options = {}) {
        ZklockProcess::Setup setup;
        setup.launcher = std::move(launcher);
        for (const char* const file : {"events", "result"}) {
            std::ofstream(scratch_ / file) << "";
            ::chmod((scratch_ / file).c_str(), 0666);
        }
        options.insert(options.end(), {"-k", "300ms", "--events", scratch_ / "events", "--result", scratch_ / "result",
                                       lock(), "-c", command});
        auto holder = start(std::move(options), std::move(setup));
        EXPECT_TRUE(await([&] { return exists(scratch_ / "root"); })) << holder->err();
        return holder;
    }
    pid_t root_process() const { return std::stoi(read_file(scratch_ / "root")); }
    std::vector<Json> reports() const { return events_named(scratch_ / "events", "cannot_kill"); }

private:
    void allow(const std::filesystem::path& directory) {
        struct stat status {};
        if (::stat(directory.c_str(), &status) != 0 || (status.st_mode & S_IXOTH)) return;
        modes_.emplace_back(directory, status.st_mode & 07777);
        ::chmod(directory.c_str(), (status.st_mode & 07777) | S_IXOTH);
    }
    std::vector<std::pair<std::string, mode_t>> modes_;
};

TEST_F(ZklockUserTest, ACommandThatBecameAnotherUserIsReportedAndNeverSaidToHaveBeenStopped) {
    const auto holder = hold("exec " + rootly(), as_other_user());
    const pid_t process = root_process();
    const std::string who = "process " + std::to_string(process) + " of the command runs as user id 0";
    ASSERT_TRUE(await([&] { return holder->err().find("warning: " + who) != std::string::npos; })) << "early";
    EXPECT_EQ(reports().at(0)["pid"], process);
    EXPECT_EQ(reports().at(0)["uid"], 0);
    EXPECT_FALSE(reports().at(0).contains("signal"));
    contenders();
    ASSERT_TRUE(await([&] { return observer_->remove(lock() + "/" + contenders().at(0)); }));
    ASSERT_TRUE(
        await([&] { return holder->err().find(who + ": zklock cannot send it SIGTERM") != std::string::npos; }));
    EXPECT_EQ(reports().back()["signal"], SIGTERM);
    EXPECT_TRUE(holder->running());
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_THAT(holder->err(), HasSubstr("ended by itself"));
    EXPECT_THAT(holder->err(), Not(HasSubstr("was stopped")));
}

TEST_F(ZklockUserTest, AHelperThatBecameAnotherUserIsFound) {
    const auto holder = hold(rootly() + "; true", as_other_user());
    ASSERT_TRUE(await([&] { return !reports().empty(); })) << "early";
    EXPECT_EQ(reports().at(0)["pid"], root_process());
    holder->signal(SIGXCPU);
    ASSERT_TRUE(await([&] { return reports().size() > 1; }));
    EXPECT_EQ(reports().at(1)["pid"], root_process()) << "and not what it starts all the time";
    EXPECT_EQ(reports().at(1)["signal"], SIGTERM);
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), -SIGXCPU);
    EXPECT_EQ(reports().size(), 2u);
    EXPECT_THAT(holder->err(), HasSubstr("ended by itself"));
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockUserTest, WithTheWholeTreeADaemonThatBecameAnotherUserIsFoundAndKeepsTheLock) {
    const auto holder = hold("(setsid " + rootly() + " &)", as_other_user(), {"--whole-tree"});
    ASSERT_TRUE(await([&] { return !reports().empty(); })) << "early";
    EXPECT_EQ(reports().at(0)["pid"], root_process());
    holder->signal(SIGXCPU);
    ASSERT_TRUE(await([&] { return reports().size() > 1; }));
    EXPECT_EQ(reports().at(1)["pid"], root_process());
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 75);
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), -SIGXCPU);
    EXPECT_THAT(holder->err(), HasSubstr("ended by itself"));
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockUserTest, AHelperThatProcHidesKeepsTheLock) {
    std::vector<std::string> hidden = {
        "unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"};
    const std::vector<std::string> user = as_other_user();
    hidden.insert(hidden.end(), user.begin(), user.end());
    ZklockProcess::Setup setup;
    setup.launcher = hidden;
    setup.launcher.insert(setup.launcher.end(), {"sh", "-c", "! test -e /proc/1/status"});
    if (zklock({}, setup).code != 0) GTEST_SKIP() << "needs the right to mount /proc so that it hides processes";
    const auto holder =
        hold(rootly() + " & until test -e " + (scratch_ / "root") + "; do sleep 0.02; done; exit 3", hidden);
    // Found when the command's first process is dead, and only this helper is left of the group.
    EXPECT_TRUE(await([&] { return !reports().empty() || !holder->running(); }));
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 75) << "the lock was given back while a helper was alive";
    EXPECT_TRUE(reports().at(0)["pid"].is_null());
    std::ofstream(scratch_ / "go") << "";
    EXPECT_EQ(holder->wait(), 3);
    EXPECT_EQ(queue_length(), 0u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
