// zklock --notify: what a service manager is told, by a path and by an abstract socket.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// The socket of a service manager.
class Manager {
public:
    explicit Manager(std::string name) : name_(std::move(name)), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, name_.data(), name_.size());
        if (name_.front() == '@') address.sun_path[0] = '\0';
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
        EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << std::strerror(errno);
    }
    ~Manager() { ::close(fd_); }
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    std::string variable() const { return "NOTIFY_SOCKET=" + name_; }
    /// All that was said until now, each message on lines of its own.
    const std::string& heard() {
        char buffer[4096];
        for (ssize_t size = 0; (size = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
            heard_ += std::string(buffer, static_cast<std::size_t>(size)) + "\n";
        }
        return heard_;
    }
    bool hears(const std::string& text) {
        return await([&] { return heard().find(text) != std::string::npos; });
    }
    void forget() { heard_.clear(); }

private:
    const std::string name_;
    const int fd_;
    std::string heard_;
};

class ZklockNotifyTest : public ZklockTest {
protected:
    std::unique_ptr<ZklockProcess> start_with(Manager& manager, std::vector<std::string> arguments,
                                              bool keep_input = false) {
        ZklockProcess::Setup setup;
        setup.environment = {manager.variable(), "WATCHDOG_USEC=1000000"};
        setup.keep_input = keep_input;
        return std::make_unique<ZklockProcess>(std::move(arguments), setup);
    }
    std::string until_told() const {
        return "env >" + (scratch_ / "env") + "; while [ ! -e " + (scratch_ / "go") + " ]; do sleep 0.02; done";
    }
};

TEST_F(ZklockNotifyTest, AServiceIsReadyWhenItsCommandRunsUnderTheLock) {
    for (const std::string& name : {scratch_ / "manager", "@" + (scratch_ / "abstract")}) {
        Manager manager(name);
        const auto holder = hold_with_command();
        const auto service = start_with(manager, with({"--notify", lock(), "-c", until_told()}));
        EXPECT_TRUE(manager.hears("STATUS=waiting for " + lock() + ", position 2 of 2\n")) << manager.heard();
        EXPECT_THAT(manager.heard(), Not(HasSubstr("READY=1")));
        holder->signal(SIGTERM);
        EXPECT_TRUE(manager.hears("READY=1\nSTATUS=holding " + lock() + ", the command runs\n")) << manager.heard();
        EXPECT_THAT(manager.heard(), Not(HasSubstr("STOPPING")));
        ASSERT_TRUE(await([&] { return exists(scratch_ / "env"); }));
        std::system(("touch " + (scratch_ / "go")).c_str());
        EXPECT_EQ(service->wait(), 0) << service->err();
        EXPECT_THAT(manager.heard(), HasSubstr("STATUS=the command has ended\n"));
        EXPECT_THAT(manager.heard(), HasSubstr("STOPPING=1\nSTATUS=released "));
        const std::string environment = read_file(scratch_ / "env");
        EXPECT_THAT(environment, Not(HasSubstr("NOTIFY_SOCKET=")));
        EXPECT_THAT(environment, Not(HasSubstr("WATCHDOG_USEC=")));
        for (const char* file : {"go", "env", "held"}) ::unlink((scratch_ / file).c_str());
    }
}

TEST_F(ZklockNotifyTest, WithoutTheOptionTheVariableIsTheCommands) {
    Manager manager(scratch_ / "manager");
    const auto process = start_with(manager, with({lock(), "-c", "env"}));
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->out(), HasSubstr(manager.variable() + "\n"));
    EXPECT_EQ(manager.heard(), "");
}

TEST_F(ZklockNotifyTest, AHoldIsReadyWhenItHolds) {
    Manager manager(scratch_ / "manager");
    auto arguments = with({"--notify", lock()});
    arguments.insert(arguments.begin(), "hold");
    const auto holder = start_with(manager, arguments, true);
    EXPECT_TRUE(manager.hears("READY=1\nSTATUS=holding " + lock() + "\n")) << manager.heard();
    manager.forget();
    EXPECT_EQ(zklock({"break", "--connect", connect_string(), lock(), "--holder", "--yes"}).code, 0);
    EXPECT_EQ(holder->wait(), 79);
    EXPECT_THAT(manager.heard(), StartsWith("STOPPING=1\nSTATUS=lost " + lock() + ": its node "));
}

TEST_F(ZklockNotifyTest, ACandidateThatStandsAgainDoesNotStop) {
    Manager manager(scratch_ / "manager");
    const auto service =
        start_with(manager, {"elect", "--connect", connect_string(), "-k", "100ms", "--notify", lock(), "-c",
                             "trap 'exit 3' TERM; touch " + (scratch_ / "trap") + "; while :; do sleep 0.05; done"});
    const std::string ready = "READY=1\nSTATUS=leading at " + lock() + ", the command runs\n";
    EXPECT_TRUE(manager.hears(ready)) << manager.heard();
    manager.forget();
    ASSERT_TRUE(await([&] { return exists(scratch_ / "trap"); }));
    ::unlink((scratch_ / "trap").c_str());
    EXPECT_EQ(zklock({"break", "--connect", connect_string(), lock(), "--all", "--yes"}).code, 0);
    EXPECT_TRUE(manager.hears(ready)) << manager.heard();
    EXPECT_THAT(manager.heard(), HasSubstr("STATUS=lost " + lock()));
    EXPECT_THAT(manager.heard(), Not(HasSubstr("STOPPING")));
    manager.forget();
    ASSERT_TRUE(await([&] { return exists(scratch_ / "trap"); }));
    service->signal(SIGTERM);
    EXPECT_EQ(service->wait(), 3);
    EXPECT_THAT(manager.heard(), HasSubstr("STOPPING=1\n"));
}

TEST_F(ZklockNotifyTest, AMissingManagerIsNoErrorAndANameThatCannotBeIs78) {
    EXPECT_EQ(run({"--notify", lock(), "true"}).code, 0);
    ZklockProcess::Setup setup;
    setup.environment = {"NOTIFY_SOCKET=" + (scratch_ / "nobody")};
    const Outcome nobody = run({"--notify", lock(), "true"}, setup);
    EXPECT_EQ(nobody.code, 0);
    EXPECT_THAT(nobody.err, HasSubstr("the service manager cannot be told anything"));
    setup.environment = {"NOTIFY_SOCKET=relative"};
    const Outcome bad = run({"--notify", lock(), "touch", scratch_ / "ran"}, setup);
    EXPECT_EQ(bad.code, 78);
    EXPECT_THAT(bad.err, HasSubstr("NOTIFY_SOCKET (--notify): \"relative\""));
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

}  // namespace
}  // namespace zkrecipes::zklock::test
