// zklock top, before a real server. With ZKRECIPES_TEST_WHOLE=1 it has 5,000 locks with 20,000 nodes.
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <deque>
#include <fstream>
#include <future>
#include <sstream>

#include "support/whole.hpp"
#include "zklock/on_terminal.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testenv::Opcode;
using testenv::RawClient;
using testing::HasSubstr;

constexpr double kMostPerSecond = 50;

class ZklockTopTest : public ZklockTest {
protected:
    static int locks() { return zkrecipes::test::share_of(5000, 200); }
    std::string many(int number) const { return path("many/") + std::to_string(10'000 + number); }
    static std::string node(int number) {
        std::string digits = std::to_string(number);
        digits.insert(0, 10 - digits.size(), '0');
        return "/_c_00000000-0000-4000-8000-" + std::to_string(100'000'000'000 + number) + "-lock-" + digits;
    }
    static constexpr const char* kHolder = R"({"v":1,"id":"h","host":"web1","pid":4711,"user":"ops","name":"job"})";

    /// Creates all of them without waiting for each.
    static void create(RawClient& client, const std::vector<std::string>& paths) {
        std::deque<std::future<RawClient::Reply>> sent;
        const auto take = [&] {
            ASSERT_EQ(sent.front().get().error, 0);
            sent.pop_front();
        };
        for (const std::string& one : paths) {
            sent.push_back(client.send(Opcode::create, RawClient::create_body(one, kHolder, 0)));
            if (sent.size() == 1000) take();
        }
        while (!sent.empty()) take();
    }
    /// Locks, each with a holder and two waiters.
    void plant(RawClient& client) const {
        client.make_path(path("many"));
        std::vector<std::string> paths;
        for (int i = 0; i < locks(); ++i) {
            paths.push_back(many(i));
            for (int position = 0; position < 3; ++position) paths.push_back(many(i) + node(position));
        }
        create(client, paths);
    }
    std::unique_ptr<ZklockProcess> top(std::vector<std::string> rest, const std::string& connect = {}) const {
        rest.insert(rest.begin(), {"top", "--connect", connect.empty() ? connect_string() : connect});
        return std::make_unique<ZklockProcess>(rest);
    }
    static std::vector<Json> pictures(const ZklockProcess& process) {
        std::vector<Json> result;
        std::istringstream stream(process.out());
        for (std::string line; std::getline(stream, line);) {
            if (auto picture = Json::parse_or_null(line); picture.is_object()) result.push_back(std::move(picture));
        }
        return result;
    }
    static Json last(const ZklockProcess& process) {
        const auto all = pictures(process);
        return all.empty() ? Json() : all.back();
    }
    /// The waiters of this lock in the last picture; -1: it is not shown.
    static int waiters(const ZklockProcess& process, const std::string& lock) {
        const Json picture = last(process);
        for (std::size_t i = 0; i < picture["locks"].size(); ++i) {
            if (picture["locks"][i]["path"] == lock) return picture["locks"][i]["waiters"].number<int>();
        }
        return -1;
    }
    /// Fails if more requests have passed the gate since `begin` than so many in each second. Takes in any time that
    /// passes meanwhile: on a slow machine the limit is higher, never lower.
    static void expect_few_requests(const testenv::Gate& gate, std::uint64_t at_once, Clock::time_point begin,
                                    double per_second) {
        const auto sent = gate.counts().total();
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        EXPECT_LE(static_cast<double>(sent), static_cast<double>(at_once) + per_second * (1 + seconds))
            << "in " << seconds << " s";
    }
    static Clock::duration time_until(const std::function<bool()>& condition) {
        const auto begin = Clock::now();
        EXPECT_TRUE(await(condition, 4 * zkrecipes::test::kMaxWait));  // a lock that is not shown is read every 20 s
        return Clock::now() - begin;
    }
};

TEST_F(ZklockTopTest, TheFirstPictureComesSoonAndThenFewRequestsFollow) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    RawClient client(connect_string());
    plant(client);
    testenv::Gate gate(server().endpoint());
    const auto begin = Clock::now();
    const auto process = top({"--json", "--interval", "250ms", path("many")}, gate.connect_string());
    ASSERT_TRUE(await([&] { return !pictures(*process).empty(); })) << process->err();
    const auto first = Clock::now() - begin;
    RecordProperty("first_picture_ms",
                   static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(first).count()));
    const Json picture = last(*process);
    EXPECT_EQ(picture["total"], locks());
    EXPECT_EQ(picture["held"], locks());
    EXPECT_EQ(picture["waiters"], 2 * locks());
    EXPECT_EQ(picture["locks"].size(), 50u);
    EXPECT_EQ(picture["locks"][49]["holder"]["payload"]["host"], "web1");
    expect_few_requests(gate, static_cast<std::uint64_t>(locks()), begin, kMostPerSecond);  // one for each lock
    const auto shown_since = Clock::now();
    gate.reset_trace();

    // A lock that is shown.
    const std::string shown = picture["locks"][20]["path"].text();
    create(client, {shown + node(3)});
    const auto waiter = time_until([&] { return waiters(*process, shown) == 3; });
    ASSERT_TRUE(client.remove(shown + node(0)));
    EXPECT_TRUE(await([&] { return waiters(*process, shown) == 2; }));
    // A new lock.
    create(client, {path("many/new")});
    std::vector<std::string> nodes;
    for (int i = 0; i < 10; ++i) nodes.push_back(path("many/new") + node(i));
    create(client, nodes);
    const auto fresh = time_until([&] { return waiters(*process, path("many/new")) == 9; });
    EXPECT_EQ(last(*process)["locks"][0]["path"], path("many/new"));
    // Any other lock.
    create(client, {many(locks() - 1) + node(3)});
    const auto other =
        locks() > 1000 ? Clock::duration(0) : time_until([&] { return waiters(*process, many(locks() - 1)) == 3; });
    expect_few_requests(gate, 0, shown_since, kMostPerSecond);
    std::printf(
        "%d locks: first picture %lld ms, %llu requests after it; shown after: waiter %lld ms, lock %lld ms, lock "
        "elsewhere %lld ms\n",
        locks(), static_cast<long long>(first / 1ms), static_cast<unsigned long long>(gate.counts().total()),
        static_cast<long long>(waiter / 1ms), static_cast<long long>(fresh / 1ms), static_cast<long long>(other / 1ms));
}

TEST_F(ZklockTopTest, AnIdleTreeCostsFewRequests) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    const auto holder = hold_with_command();
    const auto begin = Clock::now();
    const auto process = top({"--json", "--interval", "100ms", root()}, gate.connect_string());
    ASSERT_TRUE(await([&] { return pictures(*process).size() >= 30; }));
    expect_few_requests(gate, 0, begin, 15);
}

TEST_F(ZklockTopTest, PlainPicturesAreCounted) {
    const auto holder = hold_with_command({"--name", "job"});
    const auto lease = start(
        {"--name", "lease", "-j", "2", path("limit"), "-c", "touch " + (scratch_ / "lease") + "; exec sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "lease"); }));
    Outcome once = zklock({"top", "--once", "--connect", connect_string(), root()});
    EXPECT_EQ(once.code, 0) << once.err;
    EXPECT_THAT(once.out, HasSubstr(root() + ": 2 locks, 2 held, 0 waiters"));
    EXPECT_THAT(once.out, testing::ContainsRegex(" 0 +1  " + path("limit") + " +[^\n]*\"lease\" "));
    EXPECT_THAT(once.out, testing::ContainsRegex(" 0 +1  " + lock() + " +[^\n]*\"job\" "));
    EXPECT_EQ(once.out.find('\x1b'), std::string::npos);
    const Outcome three = zklock({"top", "--count", "3", "--interval", "100ms", "--connect", connect_string(), root()});
    EXPECT_EQ(three.code, 0);
    std::size_t count = 0;
    for (std::size_t at = 0; (at = three.out.find("WAITING", at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, 3u);
    once = zklock({"top", "--once", "--connect", connect_string(), path("nothing")});
    EXPECT_EQ(once.code, 0);
    EXPECT_THAT(once.err, HasSubstr(path("nothing") + ": no such path"));
    EXPECT_EQ(zklock({"top", "--once", "--connect", "127.0.0.1:1", "--connect-timeout", "100ms"}).code, 69);
}

TEST_F(ZklockTopTest, WhatMayNotBeReadIsTold) {
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    const auto open = hold_with_command();
    const auto secret = start({"--auth-file", credentials, "--acl", "creator", path("secret/lock"), "-c",
                               "touch " + (scratch_ / "secret") + "; exec sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "secret"); }));
    const Outcome outcome = zklock({"top", "--once", "--connect", connect_string(), root()});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.out, HasSubstr("an access list forbids reading " + path("secret") + ": use --auth-file"));
    EXPECT_THAT(outcome.out, HasSubstr(lock()));
}

TEST_F(ZklockTopTest, AfterAnInterruptionItGoesOnAndASignalEndsIt) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    const auto process = top({"--json", "--interval", "200ms", root()}, gate.connect_string());
    ASSERT_TRUE(await([&] { return !pictures(*process).empty(); }));
    EXPECT_TRUE(last(*process).contains("message") && last(*process)["message"].is_null());
    gate.refuse();
    gate.reset_all();
    ASSERT_TRUE(await([&] { return process->err().find("tries again") != std::string::npos; }));
    EXPECT_TRUE(await([&] { return !last(*process)["message"].is_null() && last(*process)["oldest_look_ms"] > 3000; }));
    EXPECT_THAT(last(*process)["message"].text(), HasSubstr("no ZooKeeper server answered"));
    const auto holder = hold_with_command();
    gate.pass();
    EXPECT_TRUE(await([&] { return waiters(*process, lock()) == 0; }));
    EXPECT_TRUE(await([&] { return last(*process)["message"].is_null(); }));
    EXPECT_THAT(process->err(), HasSubstr("reading works again"));
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(), -SIGTERM);
    EXPECT_TRUE(await([&] { return gate.counts()[Opcode::close_session] == 1u; }));
}

TEST_F(ZklockTopTest, OnATerminalItFillsTheTerminalAndNoMore) {
    RawClient client(connect_string());
    client.make_path(path("many"));
    std::vector<std::string> paths;
    for (int i = 0; i < 30; ++i) {
        paths.push_back(many(i));
        paths.push_back(many(i) + node(0));
    }
    create(client, paths);
    OnTerminal terminal({"sh", "-c", "stty rows 12 cols 80; exec \"$@\"", "sh", ZKLOCK_BINARY, "top", "--count", "1",
                         "--connect", connect_string(), path("many")});
    EXPECT_EQ(terminal.wait(), 0);
    const std::string& seen = terminal.seen();
    const std::string picture = seen.substr(seen.find("\x1b[H\x1b[J"));
    EXPECT_EQ(std::count(picture.begin(), picture.end(), '\n'), 11);
    EXPECT_THAT(picture, HasSubstr("and 23 further locks"));
    EXPECT_THAT(picture, HasSubstr("/many/10006  web1 pid 471")) << "the end of the path tells the locks apart";
}

}  // namespace
}  // namespace zkrecipes::zklock::test
