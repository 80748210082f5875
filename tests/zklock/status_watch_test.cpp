// status --watch, before a real server.
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using testenv::Opcode;
using testing::HasSubstr;

class ZklockStatusWatchTest : public ZklockTest {
protected:
    std::unique_ptr<ZklockProcess> watch(std::vector<std::string> rest, const std::string& connect = {}) const {
        rest.insert(rest.begin(), {"status", "--watch", "--connect", connect.empty() ? connect_string() : connect});
        return std::make_unique<ZklockProcess>(rest);
    }
    static std::vector<Json> lines(const ZklockProcess& process) {
        std::vector<Json> result;
        std::istringstream stream(process.out());
        for (std::string line; std::getline(stream, line);) result.push_back(Json::parse_or_null(line));
        return result;
    }
    /// Waits until a list was sent so many times. Fails if that took less than half a second for each, apart from the
    /// lists of the first look and of the whole one every five seconds.
    static void expect_two_lists_a_second(const testenv::Gate& gate, std::chrono::steady_clock::time_point begin,
                                          std::uint64_t lists) {
        const auto sent = [&] { return gate.counts()[Opcode::get_children2]; };
        ASSERT_TRUE(await([&] { return sent() >= lists; }));
        const auto seen = sent();
        const auto took = std::chrono::steady_clock::now() - begin;
        EXPECT_LE(seen, static_cast<std::uint64_t>(4 + took / 500ms + 3 * (took / 5s)));
    }
};

TEST_F(ZklockStatusWatchTest, EachChangeIsPrinted) {
    const auto watcher = watch({"--json", lock()});
    ASSERT_TRUE(await([&] { return lines(*watcher).size() == 1; })) << watcher->err();
    EXPECT_EQ(lines(*watcher)[0]["exists"], false);
    auto holder = hold_with_command({"--name", "first"});
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["state"] == "held"; }));
    const auto waiter = start({"--name", "second", lock(), "-c", "exec sleep 300"});
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["waiters"].size() == 1; }));
    EXPECT_EQ(lines(*watcher).back()["waiters"][0]["payload"]["name"], "second");
    holder->signal(SIGTERM);
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["holders"][0]["payload"]["name"] == "second"; }));
    waiter->signal(SIGTERM);
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["state"] == "free"; }));
    for (const Json& line : lines(*watcher)) {
        EXPECT_EQ(line["v"], 1);
        EXPECT_EQ(line["path"], lock());
        EXPECT_THAT(line["ts"].text(), HasSubstr("T"));
    }
    EXPECT_TRUE(watcher->running());
}

TEST_F(ZklockStatusWatchTest, ASemaphoreIsWatchedToo) {
    const auto first = start({"-j", "2", lock(), "-c", "touch " + (scratch_ / "1") + "; exec sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "1"); }));
    const auto watcher = watch({lock()});
    ASSERT_TRUE(await([&] { return watcher->out().find("held (1 of 2 leases)") != std::string::npos; }));
    const auto second = start({"-j", "2", lock(), "-c", "exec sleep 300"});
    ASSERT_TRUE(await([&] { return watcher->out().find("held (2 of 2 leases)") != std::string::npos; }));
    const auto third = start({"-j", "2", lock(), "true"});
    ASSERT_TRUE(await([&] { return watcher->out().find("waiter 1") != std::string::npos; }));
}

TEST_F(ZklockStatusWatchTest, TheRunOfThePeriodIsShownAndItsOutcome) {
    const auto watcher = watch({"--json", lock()});
    const auto plain = watch({lock()});
    ASSERT_TRUE(await([&] { return lines(*watcher).size() == 1 && !plain->out().empty(); })) << watcher->err();
    EXPECT_TRUE(lines(*watcher)[0]["once"].is_null());
    const auto holder = start({"--once-per", "1d", lock(), "-c", "exec sleep 300"});
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["once"]["state"] == "running"; }));
    EXPECT_EQ(lines(*watcher).back()["state"], "held");
    holder->signal(SIGKILL);  // the command dies with it, and nobody knows how far it came
    ASSERT_TRUE(await([&] { return lines(*watcher).back()["once"]["state"] == "unknown"; }));
    EXPECT_EQ(lines(*watcher).back()["state"], "free");
    EXPECT_TRUE(await([&] { return plain->out().find("last run unknown") != std::string::npos; })) << plain->out();
}

TEST_F(ZklockStatusWatchTest, ASignalEndsItAndItsSession) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    for (const int signal : {SIGTERM, SIGUSR1}) {  // nohup and a shell's & may have others ignored
        testenv::Gate gate(server().endpoint());
        const auto watcher = watch({lock()}, gate.connect_string());
        ASSERT_TRUE(await([&] { return !watcher->out().empty(); }));
        watcher->signal(signal);
        EXPECT_EQ(watcher->wait(), -signal);
        EXPECT_TRUE(await([&] { return gate.counts()[Opcode::close_session] == 1u; }));
        EXPECT_EQ(watcher->err(), "");
    }
}

TEST_F(ZklockStatusWatchTest, ASignalEndsItWhileNoServerAnswers) {
    const auto watcher = watch({"--connect-timeout", "0", lock()}, "127.0.0.1:1");
    EXPECT_TRUE(watcher->running());
    watcher->signal(SIGTERM);
    EXPECT_EQ(watcher->wait(), -SIGTERM);
}

TEST_F(ZklockStatusWatchTest, IfTheFirstLookFailsItExitsAsStatusDoes) {
    EXPECT_EQ(watch({"--connect-timeout", "100ms", lock()}, "127.0.0.1:1")->wait(), 69);
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    ASSERT_EQ(run({"--auth-file", credentials, "--acl", "creator", lock(), "true"}).code, 0);
    EXPECT_EQ(watch({lock()})->wait(), 77);
}

TEST_F(ZklockStatusWatchTest, AfterAnInterruptionItGoesOn) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    const auto watcher = watch({lock()}, gate.connect_string());
    ASSERT_TRUE(await([&] { return !watcher->out().empty(); }));
    gate.refuse();
    gate.reset_all();
    ASSERT_TRUE(await([&] { return watcher->err().find("tries again") != std::string::npos; }));
    const auto holder = hold_with_command();
    gate.pass();
    EXPECT_TRUE(await([&] { return watcher->out().find(": held") != std::string::npos; }));
    EXPECT_TRUE(await([&] { return watcher->err().find("reading works again") != std::string::npos; }));
    EXPECT_TRUE(watcher->running());
}

TEST_F(ZklockStatusWatchTest, ItAsksTwiceASecondAndPausesAfterAnError) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    auto begin = std::chrono::steady_clock::now();
    const auto watcher = watch({path("secret")}, gate.connect_string());
    ASSERT_NO_FATAL_FAILURE(expect_two_lists_a_second(gate, begin, 10));
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    const auto holder = start({"--auth-file", credentials, "--acl", "creator", path("secret"), "sleep", "300"});
    ASSERT_TRUE(await([&] { return watcher->err().find("does not grant the right") != std::string::npos; }));
    begin = std::chrono::steady_clock::now();
    gate.reset_trace();
    ASSERT_NO_FATAL_FAILURE(expect_two_lists_a_second(gate, begin, 5));
    EXPECT_TRUE(watcher->running());
    const std::string said = watcher->err();
    EXPECT_EQ(said.find("tries again"), said.rfind("tries again")) << "said once: " << said;
}

}  // namespace
}  // namespace zkrecipes::zklock::test
