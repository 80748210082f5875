// Leases of a semaphore and sets of locks, run and looked at.
#include <algorithm>
#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockRecipeTest : public ZklockTest {
protected:
    std::string other() const { return path("other"); }
    testenv::RawClient& observer() {
        if (!observer_) observer_ = std::make_unique<testenv::RawClient>(connect_string());
        return *observer_;
    }
    std::size_t nodes_in(const std::string& directory) {
        return observer().children(directory).value_or(std::vector<std::string>{}).size();
    }
    std::size_t leased() { return nodes_in(lock() + "/leases"); }
    std::size_t waiting() { return nodes_in(lock() + "/locks"); }
    /// A zklock whose command has started, and goes on until it is stopped.
    std::unique_ptr<ZklockProcess> hold(std::vector<std::string> what) {
        const std::string mark = scratch_ / ("mark" + std::to_string(++holders_));
        what.insert(what.end(), {"-c", "touch " + mark + "; exec sleep 300"});
        auto process = start(std::move(what));
        EXPECT_TRUE(await([&] { return exists(mark); })) << process->err();
        return process;
    }
    /// status, ls, break and wait, whose options come after the word.
    Outcome look(const std::string& word, std::vector<std::string> rest) {
        rest.insert(rest.begin(), {word, "--connect", connect_string()});
        return zklock(rest);
    }
    Json status(const std::string& of) { return Json::parse(look("status", {"--json", of}).out); }
    std::string listed() { return look("ls", {root()}).out; }

private:
    int holders_ = 0;
};

TEST_F(ZklockRecipeTest, AtMostNHoldALease) {
    const auto first = hold({"-j", "2", lock()}), second = hold({"-j", "2", lock()});
    const Outcome busy = run({"-n", "-j", "2", lock(), "true"});
    EXPECT_EQ(busy.code, 75);
    EXPECT_THAT(busy.err, HasSubstr("held by"));
    EXPECT_EQ(run({"-w", "6s", "-E", "3", "-j", "2", lock(), "true"}).code, 3);
    EXPECT_TRUE(await([&] { return leased() == 2 && waiting() == 0; })) << "those who gave up left something behind";
    auto third = start({"--events", scratch_ / "events", "-j", "2", lock(), "-c",
                        "printf '%s\n' $ZKLOCK_PATH $ZKLOCK_MODE $ZKLOCK_NODE; [ $ZKLOCK_FENCING_TOKEN -gt 0 ]"});
    ASSERT_TRUE(await([&] { return !events_named(scratch_ / "events", "waiting").empty(); }));
    EXPECT_EQ(events_named(scratch_ / "events", "waiting")[0]["position"], 3);
    first->signal(SIGTERM);
    EXPECT_EQ(third->wait(), 0) << third->err();
    EXPECT_THAT(third->out(), testing::MatchesRegex(lock() + "\nsemaphore\n" + lock() + "/leases/_c_.*-lease-0+\n"));
    EXPECT_EQ(first->wait(), 128 + SIGTERM);
    second->signal(SIGTERM);
    second->wait();
    EXPECT_EQ(leased() + waiting(), 0u);
}

TEST_F(ZklockRecipeTest, AnotherNumberOfLeasesIs65AndSaysWhatToDo) {
    const auto holder = hold({"-j", "4", lock()});
    for (const std::vector<std::string>& how : {std::vector<std::string>{"-n"}, {}}) {
        std::vector<std::string> arguments = {"--result", scratch_ / "result", "-j", "3", lock(),
                                              "touch",    scratch_ / "ran"};
        arguments.insert(arguments.begin(), how.begin(), how.end());
        const Outcome outcome = run(arguments);
        EXPECT_EQ(outcome.code, 65);
        EXPECT_THAT(outcome.err, HasSubstr(lock() + " has 4 leases, not 3"));
        EXPECT_THAT(outcome.err, HasSubstr("use -j 4"));
        EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "error");
    }
    EXPECT_EQ(waiting(), 0u);
    EXPECT_EQ(leased(), 1u);
    observer().set(lock() + "/leases", "four");
    EXPECT_EQ(run({"-j", "4", lock(), "touch", scratch_ / "ran"}).code, 65) << "no number at all";
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockRecipeTest, ASetIsHeldAsAWholeAndEachMemberByItself) {
    auto holder =
        start({"-L", lock(), "-L", other() + ":shared", "--result", scratch_ / "result", "-c",
               "printf '%s\n' \"$ZKLOCK_PATH\" \"$ZKLOCK_MODE\" \"$ZKLOCK_NODE\" \"$ZKLOCK_FENCING_TOKEN\"; touch " +
                   (scratch_ / "held") + "; exec sleep 300"});
    ASSERT_TRUE(await([&] { return exists(scratch_ / "held"); })) << holder->err();
    EXPECT_THAT(holder->out(),
                testing::MatchesRegex(lock() + "\n" + other() + "\nexclusive\nshared\n" + lock() +
                                      "/_c_.*-lock-[0-9]+\n" + other() + "/_c_.*-__READ__[0-9]+\n[1-9][0-9]*\n"));
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 75);
    EXPECT_EQ(run({"-n", other(), "true"}).code, 75);
    EXPECT_EQ(run({"-n", "-s", other(), "true"}).code, 0);
    const Outcome busy = run({"-n", "-L", other() + ":shared", "-L", lock(), "--", "true"});
    EXPECT_EQ(busy.code, 75);
    EXPECT_THAT(busy.err, HasSubstr(other() + ":shared, " + lock() + " were not acquired: " + lock() + " is held by"));
    EXPECT_EQ(run({"-n", "-L", other() + ":shared", "-L", path("third"), "--", "true"}).code, 0);
    EXPECT_EQ(run({"-w", "6s", "-L", path("third"), "-L", lock(), "--", "true"}).code, 75);
    EXPECT_TRUE(await([&] { return nodes_in(lock()) == 1 && nodes_in(other()) == 1 && nodes_in(path("third")) == 0; }))
        << "those who gave up left something behind";
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 128 + SIGTERM);
    EXPECT_EQ(nodes_in(lock()) + nodes_in(other()), 0u);
    const auto locks = Json::parse(read_file(scratch_ / "result"))["locks"];
    ASSERT_EQ(locks.size(), 2u);
    EXPECT_EQ(locks[1]["path"], other());
    EXPECT_EQ(locks[1]["mode"], "shared");
    EXPECT_THAT(locks[1]["node"].text(), HasSubstr(other() + "/_c_"));
}

TEST_F(ZklockRecipeTest, StoppedWhileWaitingItLeavesNoNodeInAnyDirectory) {
    const auto lease = hold({"-j", "1", path("s")});
    const auto member = hold({other()});
    const std::size_t before = nodes_in(path("s/leases")) + nodes_in(path("s/locks")) + nodes_in(other());
    for (const std::vector<std::string>& what :
         {std::vector<std::string>{"-j", "1", path("s")}, {"-L", lock(), "-L", other() + ":shared"}}) {
        std::vector<std::string> arguments = what;
        arguments.insert(arguments.end(), {"-c", "touch " + (scratch_ / "ran")});
        auto waiter = start(arguments);
        const auto all = [&] {
            return nodes_in(path("s/leases")) + nodes_in(path("s/locks")) + nodes_in(other()) + nodes_in(lock());
        };
        ASSERT_TRUE(await([&] { return all() > before; }));
        waiter->signal(SIGINT);
        EXPECT_EQ(waiter->wait(), -SIGINT) << waiter->err();
        EXPECT_EQ(all(), before) << "its nodes outlive it";
    }
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockRecipeTest, OverlappingSetsInAnyOrderAllRunAndNeverTogether) {
    const std::string command = "mkdir " + (scratch_ / "in") + " || exit 9; sleep 0.02; rmdir " + (scratch_ / "in");
    std::vector<std::unique_ptr<ZklockProcess>> all;
    for (int i = 0; i < 6; ++i) {
        const std::string a = i % 2 ? lock() : other(), b = i % 2 ? other() : lock();
        all.push_back(start({"-q", "-L", a, "-L", b + ":rw", "-c", command}));
    }
    for (const auto& process : all) EXPECT_EQ(process->wait(), 0) << process->err();
    EXPECT_EQ(nodes_in(lock()) + nodes_in(other()), 0u);
}

TEST_F(ZklockRecipeTest, HoldPrintsALineForEachNode) {
    ZklockProcess::Setup open;
    open.keep_input = true;
    ZklockProcess hold({"hold", "--connect", connect_string(), "-L", lock(), "-L", other()}, open);
    ASSERT_TRUE(await([&] { return std::ranges::count(hold.out(), '\n') == 2; })) << hold.err();
    EXPECT_THAT(hold.out(), testing::MatchesRegex(lock() + "/_c_[^ ]* [0-9]+\n" + other() + "/_c_[^ ]* [0-9]+\n"));
    hold.end_input();
    EXPECT_EQ(hold.wait(), 0);
    ZklockProcess lease({"hold", "--json", "--connect", connect_string(), "-j", "3", path("s")}, open);
    ASSERT_TRUE(await([&] { return lease.out().find('\n') != std::string::npos; })) << lease.err();
    EXPECT_EQ(Json::parse(lease.out())["path"], path("s"));
    lease.end_input();
    EXPECT_EQ(lease.wait(), 0);
}

TEST_F(ZklockRecipeTest, KazoosNamesAreUsedWhereTheyAreAskedFor) {
    EXPECT_EQ(run({"--dialect", "kazoo", lock(), "-c", "case $ZKLOCK_NODE in *__lock__*) ;; *) exit 9;; esac"}).code,
              0);
    EXPECT_EQ(
        run({"--dialect", "kazoo", "-s", lock(), "-c", "case $ZKLOCK_NODE in *__rlock__*) ;; *) exit 9;; esac"}).code,
        0);
    observer().create(lock() + "/0123456789abcdef0123456789abcdef__lock__", "python",
                      testenv::CreateMode::ephemeral_sequential);
    EXPECT_EQ(run({"--dialect", "kazoo", "-n", lock(), "true"}).code, 75);
    const auto json = status(lock());
    EXPECT_EQ(json["holders"][0]["payload_raw"], "python");
}

TEST_F(ZklockRecipeTest, ASemaphoreIsShownWaitedForAndBrokenAsOneLock) {
    const auto first = hold({"-j", "2", "--name", "one", lock()}), second = hold({"-j", "2", "--name", "two", lock()});
    auto third = start({"-j", "2", lock(), "true"});
    ASSERT_TRUE(await([&] { return waiting() == 1; }));
    const Outcome outcome = look("status", {lock()});
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.out, HasSubstr(lock() + ": held (2 of 2 leases)\n"));
    EXPECT_THAT(outcome.out, HasSubstr("waiter 1"));
    auto json = status(lock());
    EXPECT_EQ(json["mode"], "semaphore");
    EXPECT_EQ(json["count"], 2);
    ASSERT_EQ(json["holders"].size(), 2u);
    EXPECT_EQ(json["holders"][0]["payload"]["name"], "one");
    EXPECT_EQ(json["holders"][0]["mode"], "semaphore");
    EXPECT_EQ(json["waiters"].size(), 1u);
    EXPECT_THAT(listed(), testing::StartsWith(lock() + "\theld (2 of 2 leases) by "));
    EXPECT_EQ(std::ranges::count(listed(), '\n'), 1) << listed();
    EXPECT_EQ(look("ls", {"--complete", root()}).out, lock() + "\n");
    EXPECT_EQ(look("wait", {"-w", "6s", lock()}).code, 75);
    const std::string node = json["holders"][1]["node"].text();
    EXPECT_EQ(look("break", {lock(), "--node", node, "--yes"}).code, 0);
    EXPECT_EQ(second->wait(), 79);
    EXPECT_EQ(third->wait(), 0);
    ZklockProcess waits({"wait", "--connect", connect_string(), lock()});
    first->signal(SIGTERM);
    EXPECT_EQ(waits.wait(), 0);
    EXPECT_EQ(look("status", {lock()}).code, 0);
    EXPECT_EQ(listed(), "");
}

TEST_F(ZklockRecipeTest, CuratorsAndKazoosSemaphoresAreUnderstood) {
    const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const auto with_sequence = testenv::CreateMode::ephemeral_sequential;
    for (const char* directory :
         {"curator/locks", "curator/leases", "kazoo-__lock__", "plain/leases/tenant", "plain/locks"}) {
        observer().make_path(path(directory));
    }
    observer().create(path("curator/leases/_c_") + uuid + "-lease-", "10.0.0.7", with_sequence);
    observer().create(path("curator/locks/_c_") + uuid + "-lock-", "10.0.0.8", with_sequence);
    observer().create(path("kazoo"), "3");
    observer().create(path("kazoo/0123456789abcdef0123456789abcdef"), "python", testenv::CreateMode::ephemeral);
    observer().create(path("kazoo-__lock__/0123456789abcdef0123456789abcdef__lock__"), "b", with_sequence);
    // Locks that happen to be called so are locks.
    observer().create(path("plain/locks/_c_") + uuid + "-lock-", "10.0.0.9", with_sequence);

    auto json = status(path("curator"));
    EXPECT_EQ(json["mode"], "semaphore");
    EXPECT_TRUE(json["count"].is_null());
    ASSERT_EQ(json["holders"].size(), 1u);
    EXPECT_EQ(json["holders"][0]["payload_raw"], "10.0.0.7");
    EXPECT_EQ(json["waiters"].size(), 0u) << "the waiter has the identity of the lease: it is the same client";
    json = status(path("kazoo"));
    EXPECT_EQ(json["mode"], "semaphore");
    EXPECT_EQ(json["count"], 3);
    ASSERT_EQ(json["holders"].size(), 1u);
    EXPECT_EQ(json["holders"][0]["payload_raw"], "python");
    ASSERT_EQ(json["waiters"].size(), 1u);
    EXPECT_EQ(json["waiters"][0]["payload_raw"], "b");
    EXPECT_EQ(status(path("plain"))["state"], "free");
    const std::string all = look("ls", {"--complete", root()}).out;
    EXPECT_EQ(all, path("curator") + "\n" + path("kazoo") + "\n" + path("plain/locks") + "\n");
    const Outcome broken = look("break", {path("kazoo"), "--all", "--yes"});
    EXPECT_EQ(broken.code, 0) << broken.err;
    EXPECT_THAT(broken.out, HasSubstr("do not watch their own nodes"));
    EXPECT_EQ(nodes_in(path("kazoo")) + nodes_in(path("kazoo-__lock__")), 0u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
