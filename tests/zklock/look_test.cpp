#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

class ZklockLookTest : public ZklockTest {};

TEST_F(ZklockLookTest, StatusIs0WhenFreeAnd75WhenHeld) {
    Outcome outcome = run({"status", lock()});
    EXPECT_EQ(outcome.code, 0) << "options may also come before the word";
    const auto status = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments = {"status", "--connect", connect_string()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return zklock(arguments);
    };
    EXPECT_EQ(status({lock()}).code, 0);
    const auto holder = hold_with_command({"--name", "deploy", "--meta", "ticket=OPS-7"});
    const auto waiter = start({lock(), "true"});
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    outcome = status({lock()});
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.out, HasSubstr("\"deploy\""));
    EXPECT_THAT(outcome.out, HasSubstr("ticket=OPS-7"));
    EXPECT_THAT(outcome.out, HasSubstr("waiter 1"));
    outcome = status({"--json", lock()});
    EXPECT_EQ(outcome.code, 75);
    const auto json = Json::parse(outcome.out);
    EXPECT_EQ(json["state"], "held");
    EXPECT_EQ(json["path"], lock());
    ASSERT_EQ(json["holders"].size(), 1u);
    EXPECT_EQ(json["holders"][0]["payload"]["name"], "deploy");
    EXPECT_GT(json["holders"][0]["fencing_token"], 0);
    EXPECT_EQ(json["waiters"][0]["position"], 1);
    EXPECT_EQ(status({"-q", lock()}).out, "");
}

TEST_F(ZklockLookTest, StatusShowsTheModeOfEachAndWhoItIs) {
    ZklockProcess::Setup service;  // has no such variables
    service.launcher = {"env", "-u", "LOGNAME", "-u", "USER"};
    const auto first = start({"-s", lock(), "-c", "touch " + (scratch_ / "1") + "; exec sleep 300"}, service);
    const auto second = start({"-s", lock(), "-c", "touch " + (scratch_ / "2") + "; exec sleep 300"}, service);
    ASSERT_TRUE(await([&] { return exists(scratch_ / "1") && exists(scratch_ / "2"); }));
    const auto waiter = start({"-x", lock(), "true"});
    ASSERT_TRUE(await([&] { return queue_length() == 3; }));
    const auto later = start({"-s", lock(), "true"});
    ASSERT_TRUE(await([&] { return queue_length() == 4; }));
    const Outcome outcome = zklock({"status", "--connect", connect_string(), lock()});
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.out, HasSubstr(lock() + ": held (shared)\n"));
    const auto json = Json::parse(zklock({"status", "--json", "--connect", connect_string(), lock()}).out);
    EXPECT_EQ(json["mode"], "shared");
    ASSERT_EQ(json["holders"].size(), 2u);
    ASSERT_EQ(json["waiters"].size(), 2u);
    EXPECT_EQ(json["holders"][1]["mode"], "shared");
    EXPECT_EQ(json["waiters"][0]["mode"], "exclusive");
    EXPECT_EQ(json["waiters"][1]["mode"], "shared");
    const passwd* me = ::getpwuid(::getuid());
    ASSERT_NE(me, nullptr);
    EXPECT_EQ(json["holders"][0]["payload"]["user"], me->pw_name);
    EXPECT_THAT(zklock({"ls", "--connect", connect_string(), lock()}).out, HasSubstr(" and 1 more, 2 waiting"));
}

TEST_F(ZklockLookTest, LsFindsLocksBelowAPath) {
    const auto holder = hold_with_command();
    Outcome outcome = zklock({"ls", "--connect", connect_string(), root()});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr(lock() + "\theld by "));
    EXPECT_EQ(zklock({"ls", "--complete", "--connect", connect_string(), root()}).out, lock() + "\n");
    outcome = zklock({"ls", "--json", "--connect", connect_string(), root()});
    const auto json = Json::parse(outcome.out);
    ASSERT_EQ(json["locks"].size(), 1u);
    EXPECT_EQ(json["locks"][0]["path"], lock());
    EXPECT_EQ(json["locks"][0]["state"], "held");
}

TEST_F(ZklockLookTest, LsSaysWhatItMayNotRead) {
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    const auto open = hold_with_command();
    ZklockProcess::Setup input;
    input.keep_input = true;
    ZklockProcess secret(
        {"hold", "--connect", connect_string(), "--auth-file", credentials, "--acl", "creator", path("secret/lock")},
        input);
    ASSERT_TRUE(await([&] { return secret.out().find('\n') != std::string::npos; })) << secret.err();
    Outcome outcome = zklock({"ls", "--connect", connect_string(), root()});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.out, HasSubstr(lock() + "\theld by "));
    EXPECT_THAT(outcome.err, HasSubstr("incomplete: an access list forbids reading " + path("secret")));
    EXPECT_THAT(outcome.err, HasSubstr("--auth-file"));
    outcome = zklock({"ls", "--json", "--connect", connect_string(), root()});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_EQ(Json::parse(outcome.out)["unreadable"], boost::json::array{path("secret")});
    EXPECT_EQ(Json::parse(outcome.out)["complete"], false);
    outcome = zklock({"ls", "--connect", connect_string(), "--auth-file", credentials, root()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(path("secret/lock")));
    for (const std::string& about : {path("secret"), path("secret/lock")}) {
        outcome = zklock({"status", "--connect", connect_string(), about});
        EXPECT_EQ(outcome.code, 77);
        EXPECT_EQ(outcome.err, "zklock: " + about + ": the access list of " + about +
                                   " does not grant the right 'read' to this session, which presents no credentials: "
                                   "use --auth-file, or ask the owner of the nodes for access\n");
    }
    outcome = run({"-n", path("secret/lock"), "true"});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.err, HasSubstr("does not grant the right"));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("acquire")));
}

TEST_F(ZklockLookTest, WithAPrefixANodeToLookAtHasItsPathOnTheServers) {
    const std::string credentials = scratch_ / "auth";
    std::ofstream(credentials) << "digest:ops:secret\n";
    ASSERT_EQ(::chmod(credentials.c_str(), 0600), 0);
    ASSERT_EQ(run({lock(), "true"}).code, 0);  // so anybody may read root()
    ASSERT_EQ(run({"--auth-file", credentials, "--acl", "creator", path("secret/lock"), "true"}).code, 0);
    const std::string secret = path("secret"), nowhere = path("nowhere");
    const auto forbids = [&](const char* right) {
        return HasSubstr("the access list of " + secret + " does not grant the right '" + right + "'");
    };
    for (const bool chroot : {false, true}) {
        const auto below = [&](const std::string& prefix, std::vector<std::string> words) {
            const std::vector<std::string> where =
                chroot ? std::vector<std::string>{"--connect", connect_string() + prefix}
                       : std::vector<std::string>{"--connect", connect_string(), "--prefix", prefix};
            words.insert(words.begin() + 1, where.begin(), where.end());
            return zklock(words);
        };
        EXPECT_THAT(below(secret, {"run", "-n", "/a", "true"}).err,
                    AllOf(HasSubstr("zklock: /a: "), forbids("create")));
        EXPECT_THAT(below(secret, {"ls"}).err, forbids("read"));
        EXPECT_THAT(below(secret, {"top", "--once"}).err, forbids("read"));
        EXPECT_THAT(below(root(), {"ls"}).err, HasSubstr("forbids reading " + secret));
        EXPECT_THAT(below(root(), {"top", "--once"}).out, HasSubstr("forbids reading " + secret));
        for (const std::vector<std::string>& search : {std::vector<std::string>{"ls"}, {"top", "--once"}}) {
            EXPECT_THAT(below(nowhere, search).err, HasSubstr("warning: " + nowhere + ": no such path"));
        }
        EXPECT_THAT(below(nowhere, {"status", "/a"}).out, HasSubstr("/a: free (no such path " + nowhere + "/a: "));
        EXPECT_THAT(below(nowhere, {"break", "--all", "/a"}).err, HasSubstr(nowhere + "/a does not exist"));
        EXPECT_THAT(below(nowhere, {"leases", "/a"}).err, HasSubstr(nowhere + "/a does not exist"));
    }
}

TEST_F(ZklockLookTest, AMistypedPathIsNotCalledFree) {
    Outcome outcome = zklock({"status", "--connect", connect_string(), path("typo")});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, path("typo") + ": free (no such path: not used recently, or mistyped)\n");
    outcome = zklock({"status", "--json", "--connect", connect_string(), path("typo")});
    EXPECT_EQ(Json::parse(outcome.out)["exists"], false);
    EXPECT_THAT(zklock({"ls", "--connect", connect_string(), path("typo")}).err, HasSubstr("no such path"));
    for (const auto& which : {std::vector<std::string>{"--all"}, {"--node", "x"}}) {
        std::vector<std::string> words = {"break", "--yes", "--connect", connect_string(), path("typo")};
        words.insert(words.end(), which.begin(), which.end());
        outcome = zklock(words);
        EXPECT_EQ(outcome.code, 65);
        EXPECT_THAT(outcome.err, HasSubstr(path("typo") + " does not exist, so there is nothing to remove"));
    }
    EXPECT_EQ(run({lock(), "true"}).code, 0);
    EXPECT_EQ(zklock({"status", "--connect", connect_string(), lock()}).out, lock() + ": free\n");
    outcome = zklock({"break", "--all", "--connect", connect_string(), lock()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, lock() + ": free: there is nothing to remove\n");
    outcome = zklock({"status", "--json", "--connect", connect_string(), lock()});
    EXPECT_EQ(Json::parse(outcome.out)["exists"], true);
}

TEST_F(ZklockLookTest, ADirectoryOfLocksIsNotJustCalledFree) {
    ASSERT_EQ(run({lock(), "true"}).code, 0);
    const std::string hint =
        root() + ": free (the nodes below it, such as " + lock() + ", are no lock nodes: is this path a lock?)\n";
    const Outcome outcome = zklock({"status", "--connect", connect_string(), root()});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, hint);
    ZklockProcess watching({"status", "--watch", "--connect", connect_string(), root()});
    EXPECT_TRUE(await([&] { return watching.out().find(hint) != std::string::npos; }));
    ASSERT_EQ(run({"-j", "2", path("limit"), "true"}).code, 0);
    EXPECT_EQ(zklock({"status", "--connect", connect_string(), path("limit")}).out, path("limit") + ": free\n");
}

TEST_F(ZklockLookTest, WhyNoServerAnswersIsSaidWithoutV) {
    const std::pair<const char*, const char*> wrong[] = {
        {"nosuchhost.invalid:2181", "nosuchhost.invalid:2181: the name does not resolve ("},
        {"127.0.0.1:1,[::1]:1", "127.0.0.1:1: Connection refused; [::1]:1: "},
    };
    for (const auto& [connect, why] : wrong) {
        for (const std::vector<std::string>& command :
             {std::vector<std::string>{"ping"}, {"status", "/l"}, {"/l", "true"}}) {
            std::vector<std::string> words = {"--connect", connect, "--connect-timeout", "100ms"};
            words.insert(words.end(), command.begin(), command.end());
            const Outcome outcome = zklock(words);
            EXPECT_EQ(outcome.code, 69);
            EXPECT_THAT(outcome.err, HasSubstr(std::string("no ZooKeeper server answered within 100ms: ") + why));
        }
    }
}

TEST_F(ZklockLookTest, WhoNamesTheServersIsSaidIfTheCommandLineDoesNot) {
    ZklockProcess::Setup setup;
    setup.environment = {"ZK_HOSTS=127.0.0.1:1"};
    const std::string said = "the servers are named by ZK_HOSTS\n";
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"ping"}, {"status", "/l"}, {"/l", "true"}}) {
        std::vector<std::string> words = {"--connect-timeout", "100ms"};
        words.insert(words.end(), command.begin(), command.end());
        EXPECT_THAT(zklock(words, setup).err, HasSubstr("Connection refused; " + said));
    }
    setup.environment = {"ZK_HOSTS=" + connect_string()};
    EXPECT_THAT(zklock({"-v", lock(), "true"}, setup).err, HasSubstr(said));
    EXPECT_EQ(zklock({lock(), "true"}, setup).err, "");
    EXPECT_THAT(run({"-v", lock(), "true"}, setup).err, testing::Not(HasSubstr("named by")));
}

TEST_F(ZklockLookTest, WaitReturnsWhenNobodyHoldsTheLock) {
    EXPECT_EQ(zklock({"wait", "--connect", connect_string(), lock()}).code, 0);
    auto holder = hold_with_command();
    EXPECT_EQ(zklock({"wait", "-w", "6s", "--connect", connect_string(), lock()}).code, 75);
    EXPECT_EQ(zklock({"wait", "-w", "0", "--connect", connect_string(), lock()}).code, 75);
    ZklockProcess waiting({"wait", "--connect", connect_string(), lock()});
    EXPECT_TRUE(waiting.running());
    holder->signal(SIGTERM);
    EXPECT_EQ(waiting.wait(), 0);
}

TEST_F(ZklockLookTest, WaitWaitsNoLongerForServersThanItMayWait) {
    const Outcome outcome =
        zklock({"wait", "-w", "300ms", "--connect", "127.0.0.1:1", "--connect-timeout", "0", lock()});
    EXPECT_EQ(outcome.code, 69);
    EXPECT_THAT(outcome.err, HasSubstr("no ZooKeeper server answered within 300ms: 127.0.0.1:1: Connection refused"));
}

TEST_F(ZklockLookTest, PingNamesServerTimeoutAndFeatures) {
    const auto json = Json::parse(zklock({"ping", "--json", "--connect", connect_string()}).out);
    EXPECT_THAT(json["server"].text(), HasSubstr(connect_string().substr(0, connect_string().find(':'))));
    EXPECT_EQ(json["session_timeout_ms"], 15000);
    EXPECT_TRUE(json["features"].is_array());
    const std::string text = zklock({"ping", "--connect", connect_string()}).out;
    EXPECT_THAT(text, HasSubstr("connected to "));
    EXPECT_EQ(text.find(" (neither TLS nor SASL)\n") != std::string::npos, json["features"].size() == 0) << text;
    EXPECT_TRUE(Json::parse(zklock({"--version", "--json"}).out)["features"].is_array());
    EXPECT_THAT(zklock({"--version"}).out, HasSubstr("zklock "));
    EXPECT_EQ(zklock({"ping", "--connect", "127.0.0.1:1", "--connect-timeout", "300ms"}).code, 69);
}

TEST_F(ZklockLookTest, HoldHoldsUntilStdinEnds) {
    ZklockProcess::Setup open;
    open.keep_input = true;
    ZklockProcess hold({"hold", "--connect", connect_string(), lock()}, open);
    ASSERT_TRUE(await([&] { return hold.out().find('\n') != std::string::npos; }));
    EXPECT_THAT(hold.out(), testing::MatchesRegex(".*/lock/_c_[^ ]* [0-9]+\n"));
    EXPECT_EQ(run({"-n", lock(), "true"}).code, 75);
    const std::string result = scratch_ / "result";
    const Outcome busy = zklock({"hold", "-n", "-E", "3", "--result", result, "--connect", connect_string(), lock()});
    EXPECT_EQ(busy.code, 3);
    EXPECT_EQ(Json::parse(read_file(result))["outcome"], "busy");
    ZklockProcess waiting({"hold", "--result", result, "--connect", connect_string(), lock()}, open);
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    EXPECT_FALSE(exists(result)) << "that one is over";
    waiting.signal(SIGTERM);
    EXPECT_EQ(waiting.wait(), -SIGTERM);
    EXPECT_EQ(Json::parse(read_file(result))["outcome"], "interrupted");
    hold.end_input();
    EXPECT_EQ(hold.wait(), 0);
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockLookTest, HoldEndsWithASignalOrWithTheLock) {
    ZklockProcess::Setup open;
    open.keep_input = true;
    ZklockProcess hold({"hold", "--json", "--connect", connect_string(), lock()}, open);
    ASSERT_TRUE(await([&] { return hold.out().find('\n') != std::string::npos; }));
    EXPECT_GT(Json::parse(hold.out())["fencing_token"], 0);
    hold.signal(SIGTERM);
    EXPECT_EQ(hold.wait(), 0);
    ZklockProcess lost({"hold", "--connect", connect_string(), lock()}, open);
    ASSERT_TRUE(await([&] { return lost.out().find('\n') != std::string::npos; }));
    // Only after half a second the node is watched; before that, the next heartbeat sees that it is gone.
    EXPECT_EQ(zklock({"break", "--all", "--yes", "--connect", connect_string(), lock()}).code, 0);
    EXPECT_EQ(lost.wait(), 79);
    EXPECT_THAT(lost.err(), HasSubstr("is gone"));
}

TEST_F(ZklockLookTest, BreakRemovesTheLastOneFirst) {
    const auto holder = hold_with_command({});
    const auto waiter = start({lock(), "touch", scratch_ / "ran"});
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const Outcome broken = zklock({"break", "--all", "--yes", "--connect", connect_string(), lock()});
    EXPECT_EQ(broken.code, 0);
    const auto removed = broken.out.substr(broken.out.find("\nremoved "));
    EXPECT_LT(removed.find("-lock-0000000001"), removed.find("-lock-0000000000")) << broken.out;
    EXPECT_EQ(waiter->wait(), 0);
    EXPECT_THAT(waiter->err(), HasSubstr("removed while it waited")) << "and it may be the holder now";
}

TEST_F(ZklockLookTest, AWaiterWhoseNodeIsRemovedSaysSoAndWaitsAgain) {
    const auto holder = hold_with_command();
    const auto waiter = start({lock(), "true"});
    ASSERT_TRUE(await([&] { return queue_length() == 2; }));
    const auto json = Json::parse(zklock({"status", "--json", "--connect", connect_string(), lock()}).out);
    const std::string node = json["waiters"][0]["node"].text();
    const Outcome broken = zklock({"break", "--node", node, "--yes", "--connect", connect_string(), lock()});
    ASSERT_EQ(broken.code, 0) << broken.err;
    const std::string warning = "zklock: warning: the lock node of zklock was removed while it waited for " + lock() +
                                ": zklock waits again, at the tail of the queue\n";
    EXPECT_TRUE(await([&] { return queue_length() == 2 && waiter->err() == warning; }));
    EXPECT_FALSE(testenv::RawClient(connect_string()).exists(node));
}

TEST_F(ZklockLookTest, BreakAsJsonSaysWhatItRemoves) {
    const auto holder = hold_with_command({"--name", "deploy"});
    const auto removing = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"break", "--json", "--holder", "--connect", connect_string(), lock()});
        return zklock(more);
    };
    Outcome outcome = removing({});
    EXPECT_EQ(outcome.code, 64) << "there is no terminal to ask at";
    const auto asked = Json::parse(outcome.out);
    EXPECT_EQ(asked["path"], lock());
    EXPECT_EQ(asked["nodes"][0]["payload"]["name"], "deploy");
    EXPECT_EQ(asked["nodes"][0]["holder"], true);
    EXPECT_EQ(asked["nodes"][0]["notices"], true);
    EXPECT_EQ(queue_length(), 1u);
    outcome = removing({"--yes"});
    EXPECT_EQ(outcome.code, 0);
    const std::size_t end = outcome.out.find('\n');
    EXPECT_EQ(Json::parse(outcome.out.substr(0, end))["nodes"][0]["node"], asked["nodes"][0]["node"].text());
    const auto removed = Json::parse(outcome.out.substr(end + 1));
    EXPECT_EQ(removed["node"], asked["nodes"][0]["node"].text());
    EXPECT_EQ(removed["removed"], true);
    outcome = removing({"--yes"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(Json::parse(outcome.out)["nodes"].size(), 0u);
}

TEST_F(ZklockLookTest, NothingOfZklocksOwnBecomesStdin) {
    ZklockProcess::Setup secret;
    secret.input = "digest:u:p\n";
    Outcome outcome = zklock({"hold", "--connect", connect_string(), "--auth-file", "fd:0", lock()}, secret);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("/lock/_c_")) << "held until stdin ended: at once";
    outcome = run({"--auth-file", "fd:0", lock(), "readlink", "/proc/self/fd/0"}, secret);
    EXPECT_EQ(outcome.out, "/dev/null\n");
    ZklockProcess::Setup closed;
    closed.launcher = {"sh", "-c", "exec <&-; exec \"$@\"", "sh"};
    outcome = zklock({"hold", "--connect", connect_string(), lock()}, closed);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("/lock/_c_"));
}

TEST_F(ZklockLookTest, TheCommandFindsDevNullInPlaceOfWhatIsClosedAndCannotUseIt) {
    ZklockProcess::Setup closed;
    closed.launcher = {"sh", "-c", "exec <&- >&-; exec \"$@\"", "sh"};
    const Outcome outcome =
        run({lock(), "-c",
             // By way of a variable: dash turns its own stdout round while it runs `readlink ... >&2`.
             "found=$(readlink /proc/$$/fd/0 /proc/$$/fd/1); echo \"$found\" >&2; "
             "(read x; echo x) 2>/dev/null && echo used >&2"},
            closed);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "/dev/null\n/dev/null\n");
    EXPECT_EQ(run({"--events", "1", lock(), "true"}, closed).code, 64);
}

TEST_F(ZklockLookTest, HoldTellsOfABrokenConnection) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    ZklockProcess::Setup open;
    open.keep_input = true;
    const std::string events = scratch_ / "events";
    ZklockProcess hold(
        {"hold", "--events", events, "--session-timeout", "20s", "--connect", gate.connect_string(), lock()}, open);
    ASSERT_TRUE(await([&] { return hold.out().find('\n') != std::string::npos; }));
    gate.refuse();  // an interruption that is over before zklock looks is none
    gate.reset_all();
    ASSERT_TRUE(await([&] { return !events_named(events, "suspended").empty(); }));
    EXPECT_GT(events_named(events, "suspended")[0]["lease_left_ms"], 0);
    gate.pass();
    EXPECT_TRUE(await([&] { return !events_named(events, "resumed").empty(); }));
    hold.end_input();
    EXPECT_EQ(hold.wait(), 0);
}

TEST_F(ZklockLookTest, BreakTakesTheNodeThatZklockPrints) {
    ZklockProcess::Setup open;
    open.keep_input = true;
    const std::vector<std::string> where = {"--connect", connect_string() + root(), "--prefix", "/p", "/l"};
    const auto with_where = [&](std::vector<std::string> words) {
        words.insert(words.end(), where.begin(), where.end());
        return words;
    };
    testenv::RawClient(connect_string()).create(root());
    ZklockProcess hold(with_where({"hold"}), open);
    ASSERT_TRUE(await([&] { return hold.out().find('\n') != std::string::npos; }));
    const std::string node = hold.out().substr(0, hold.out().find(' '));
    EXPECT_THAT(node, testing::StartsWith(root() + "/p/l/_c_"));
    EXPECT_EQ(zklock(with_where({"break", "--yes", "--node", "/elsewhere" + node})).code, 65);
    const Outcome broken = zklock(with_where({"break", "--yes", "--node", node}));
    EXPECT_EQ(broken.code, 0) << broken.err;
    EXPECT_FALSE(testenv::RawClient(connect_string()).exists(node));
}

TEST_F(ZklockLookTest, BreakWarnsAboutHoldersThatDoNotWatchTheirNode) {
    testenv::RawClient curator(connect_string());
    curator.create(root());
    curator.create(lock());
    curator.create(lock() + "/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", "10.0.0.7",
                   testenv::CreateMode::ephemeral_sequential);
    const Outcome outcome = zklock({"break", "--connect", connect_string(), lock(), "--holder", "--yes"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("10.0.0.7"));
    EXPECT_THAT(outcome.out, HasSubstr("do not watch their own nodes"));
    EXPECT_EQ(queue_length(), 0u);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
