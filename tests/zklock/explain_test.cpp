#include "zklock/report/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <spdlog/logger.h>

#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Options asked(Mode mode = Mode::exclusive) {
    Options options;
    options.lock = "/l";
    options.locks = {{"/l", mode}};
    return options;
}

/// Words of the library's programmers, not of somebody who runs zklock.
void expect_plain(const std::string& text) {
    for (const char* word :
         {"::", "Options", "acquire_", "inspect_", "find_locks", "wait_connected", "remove_part", "Lock", "Mutex",
          "Semaphore", "Election", "object", "Session ", "session:", "callable", "Errc"}) {
        EXPECT_THAT(text, Not(HasSubstr(word)));
    }
}

TEST(ExplainTest, EveryErrorIsToldInTheWordsOfWhoRunsZklock) {
    struct Row {
        Error error;
        int code;
        const char* remedy;
    };
    const Row rows[] = {
        {{Errc::bad_path, "ExclusiveMutex", "/a/", "it ends with /; leave the last / out"}, 64, "leave the last / out"},
        {{Errc::bad_path, "session namespace", "/p//q", "it has an empty component (//)"}, 64, "--prefix: \"/p//q\""},
        {{Errc::bad_connect_string, "connect", {}, "put the path into SessionOptions::path_prefix instead"},
         64,
         "put the path into --prefix instead"},
        {{Errc::bad_connect_string, "connect", {}, "\"a:0\": the port must be"},
         64,
         "--connect: \"a:0\": the port must be"},
        {{Errc::bad_option,
          "session",
          {},
          "SessionOptions::acl says 'the authenticated user', but SessionOptions::auth has no credentials; add some"},
         64,
         "--acl: creator needs credentials: use --auth-file"},
        {{Errc::bad_option,
          "session",
          {},
          "SessionOptions::tls::key_file: /k.pem can be read by others; chmod 600 /k.pem"},
         64,
         "--tls-key: /k.pem can be read by others; chmod 600 /k.pem"},
        {{Errc::bad_option, "session", {}, "SessionOptions::tls::ca_file: cannot read ca.pem: Permission denied"},
         64,
         "--tls-ca: cannot read ca.pem: Permission denied"},
        {{Errc::bad_option, "session", {}, "SessionOptions::tls::certificate_file: c.pem holds no certificate in PEM"},
         64,
         "--tls-cert: c.pem holds no certificate in PEM"},
        {{Errc::bad_option, "session", {}, "SessionOptions::sasl::password_file: p is not a regular file"},
         64,
         "--sasl-password-file: p is not a regular file"},
        {{Errc::bad_option,
          "session",
          {},
          "an entry of SessionOptions::acl has the scheme world with the id 'x'; the only id of that scheme is anyone"},
         64,
         "world:anyone:PERMISSIONS"},
        {{Errc::bad_option, "acquire_async", "/l", "create was answered: invalid access list"},
         64,
         "--acl: the servers"},
        {{Errc::bad_option, "acquire_async", "/l",
          "check was answered: the session timeout is too short for the servers' tickTime: ask for a longer one"},
         64,
         "use a longer --session-timeout"},
        {{Errc::bad_option, "ExclusiveMutex", "/l", "id and labels take more than the 512 bytes"}, 64, "--meta"},
        {{Errc::bad_option, "LeaderElection", "/l", "the id takes more than the 512 bytes"}, 64, "--id"},
        {{Errc::bad_option, "MultiLock", "/l", "the set has more than 100 paths; use fewer at a time"}, 64, "fewer -L"},
        {{Errc::unreachable, "inspect_lock", "/l", "the deadline passed before a server answered"},
         69,
         "no ZooKeeper server"},
        {{Errc::connection_lost, "acquire_async", "/l", "3 attempts failed"}, 69, "did not come back"},
        {{Errc::session_lost, "acquire_async", "/l", ""}, 69, "try again"},
        {{Errc::closed, "session", "zk:2181", "make a new Session"}, 70, "the ZooKeeper session was closed"},
        {{Errc::auth_failed, "wait_connected", "zk:2181",
          "the servers refused the credentials; check SessionOptions::auth"},
         77,
         "check --auth-file"},
        {{Errc::auth_failed, "session", "zk:2181",
          "the servers demand credentials, and accept none of this session; set SessionOptions::auth or sasl as the "
          "servers' enforce.auth.schemes or sessionRequireClientSASLAuth asks"},
         77,
         "the servers demand credentials that zklock has not presented: use --auth-file, or use --sasl-user"},
        {{Errc::unsupported, "acquire_async", "/l",
          "create was answered: this session is local and may create no ephemeral node: set "
          "localSessionsUpgradingEnabled=true on all servers, or localSessionsEnabled=false"},
         78,
         "localSessionsUpgradingEnabled=true"},
        {{Errc::no_permission, "acquire_async", "/sec/x",
          "create was refused; the access list of /sec/x does not grant the right 'create' to this session, which is "
          "authenticated as digest:job; change the list, or present other credentials (SessionOptions::auth)"},
         77,
         "/sec/x: the access list of /sec/x does not grant the right 'create' to this session, which is authenticated "
         "as digest:job: use --auth-file"},
        {{Errc::no_permission, "inspect_lock", "/sec/x", "list of /sec/x was refused"},
         77,
         "/sec/x: the access list forbids it: use --auth-file"},
        {{Errc::lock_lost, "acquire", "/l", "the grant is empty"}, 79, "the lock was lost"},
        {{Errc::not_owner, "unlock", "/l", ""}, 70, "please report"},
        {{Errc::would_deadlock, "acquire", "/l", ""}, 70, "please report"},
        {{Errc::budget_exceeded, "acquire_async", "/l", "use another Session for more"}, 70, "fewer -L"},
        {{Errc::too_large, "MultiLock", "/l and 2 more", "the transaction would have 2000000 bytes"}, 65, "fewer -L"},
        {{Errc::quota_exceeded, "acquire_async", "/l", "create was answered: quota exceeded"}, 73, "raise the quota"},
        {{Errc::sequence_exhausted, "acquire_async", "/l", "the next number is 2147483647"}, 73, "delete /l while"},
        {{Errc::bad_data, "acquire_async", "/l", "the node of the leases holds something else than their number"},
         65,
         "/l/leases does not hold the number"},
        {{Errc::bad_data, "remove_participant", "/l/n", "the node's data has changed since it was read"},
         65,
         "try again"},
        {{Errc::bad_data, "acquire_async", "/l", "something else"}, 65, "use another path"},
        {{Errc::no_parent, "acquire_async", "/l", "the lock directory vanishes each time"}, 73, "find that program"},
        {{Errc::unsupported, "acquire_async", "/l", "create was answered: not implemented by the server"},
         78,
         "upgrade the servers"},
        {{Errc::protocol, "acquire_async", "/l", "create was answered: marshalling error"},
         70,
         "(create was answered: "},
        {{Errc::outcome_unknown, "acquire_async", "/l", ""}, 69, "zklock status"},
        {{Errc::node_exists, "create", "/l", ""}, 65, "already exists"},
        {{Errc::no_node, "set", "/l", ""}, 65, "does not exist"},
        {{Errc::bad_version, "set", "/l", ""}, 65, "another program changed"},
        {{Errc::not_empty, "delete", "/l", ""}, 65, "nodes below it"},
        {{Errc::out_of_resources, "connect", {}, "the ZooKeeper C client cannot make a handle (x); look at ulimit -n"},
         71,
         "ulimit -n"},
    };
    std::set<Errc> told;
    for (const Row& row : rows) {
        const Failure failure = failure_of(row.error, asked());
        EXPECT_EQ(failure.code, row.code) << failure.what();
        EXPECT_THAT(failure.what(), HasSubstr(row.remedy));
        expect_plain(failure.what());
        told.insert(row.error.errc());
    }
    const std::string unknown = make_error_code(static_cast<Errc>(0)).message();
    for (int code = 1; make_error_code(static_cast<Errc>(code)).message() != unknown; ++code) {
        EXPECT_TRUE(told.contains(static_cast<Errc>(code))) << make_error_code(static_cast<Errc>(code)).message();
    }
}

TEST(ExplainTest, ARefusedValueIsToldWithThePlaceWhereItStands) {
    Options options = asked();
    const Error error(Errc::bad_connect_string, "connect", {}, "\"a:0\": the port must be between 1 and 65535");
    EXPECT_EQ(failure_of(error, options).code, 64);
    options.origins["connect"] = "/etc/zklock.conf, line 3: connect";
    const Failure failure = failure_of(error, options);
    EXPECT_EQ(failure.code, 78);
    EXPECT_THAT(failure.what(), StartsWith("/etc/zklock.conf, line 3: connect: \"a:0\""));
}

TEST(ExplainTest, AStatedTickThatIsTooLongIsToldWithThePlaceWhereItStands) {
    Options options = asked();
    options.session_timeout = 5s;
    options.server_tick = 9s;
    const Error refused(Errc::bad_option, "acquire_async", "/l",
                        "check was answered: the session timeout is too short for the servers' tickTime");
    const std::string line =
        "session 0x1: too short for the tickTime of 9000 ms that SessionOptions::server_tick states: Ask for a longer "
        "SessionOptions::timeout, or correct SessionOptions::server_tick";
    EXPECT_THAT(failure_of(refused, options).what(), HasSubstr("the tick that --server-tick states is too long"));
    EXPECT_EQ(in_words(line, origin_of_tick(options)),
              "too short for the tickTime of 9000 ms that --server-tick states: Ask for a longer --session-timeout, or "
              "correct --server-tick");
    options.origins["server-tick"] = "ZKLOCK_SERVER_TICK";
    EXPECT_THAT(failure_of(refused, options).what(), HasSubstr("the tick that ZKLOCK_SERVER_TICK states is too long"));
    EXPECT_THAT(in_words(line, origin_of_tick(options)), HasSubstr("that ZKLOCK_SERVER_TICK states"));
    options.server_tick = 2s;
    EXPECT_THAT(failure_of(refused, options).what(), HasSubstr("the tickTime of the servers is too long"));
}

TEST(ExplainTest, APasswordThatNoServerChecksIsNamed) {
    Options options = asked();
    options.auth = {{"digest", "ops:secret"}};
    const Failure failure = failure_of({Errc::no_permission, "acquire_async", "/l", "create was refused"}, options);
    EXPECT_EQ(failure.code, 77);
    EXPECT_THAT(failure.what(), HasSubstr("check the password in the auth file, which no server checks"));
    EXPECT_THAT(failure.what(), Not(HasSubstr("secret")));
}

TEST(ExplainTest, CredentialsThatWereGivenAreToBeChecked) {
    Options options = asked();
    options.auth = {{"digestops", "ops:secret"}};
    const Error forbidden(Errc::no_permission, "acquire_async", "/l", "create was refused");
    EXPECT_THAT(in_words(forbidden, options), HasSubstr("check --auth-file, or ask the owner"));
    EXPECT_THAT(forbids_reading({"/a"}, options, 3), HasSubstr("forbids reading /a: check --auth-file, or ask"));
    const Error demand(Errc::auth_failed, "session", "zk:2181", "the servers demand credentials, and accept none");
    EXPECT_THAT(in_words(demand, options), HasSubstr("check --auth-file, or use --sasl-user"));
    const Error refused(Errc::auth_failed, "session", "zk:2181", "the servers refused the credentials");
    EXPECT_THAT(in_words(refused, options), HasSubstr("may not know the scheme digestops"));
    options.auth = {{"digest", "ops:secret"}};
    EXPECT_THAT(in_words(refused, options), Not(HasSubstr("scheme")));
}

TEST(ExplainTest, OfManyUnreadablePathsAFewAreNamed) {
    const std::vector<std::string> paths = {"/a", "/b", "/c", "/d", "/e"};
    EXPECT_THAT(forbids_reading(paths, asked(), 3),
                StartsWith("an access list forbids reading /a, /b, /c and 2 more: "));
    EXPECT_THAT(forbids_reading(paths, asked(), 1), HasSubstr(" /a and 4 more: use --auth-file, or ask"));
    EXPECT_THAT(forbids_reading({"/a"}, asked(), 1), HasSubstr(" /a: use --auth-file"));
}

TEST(ExplainTest, ASemaphoreOfAnotherSizeIsDataAndNotUsage) {
    Options options = asked(Mode::semaphore);
    options.leases = 1;
    const Failure failure = failure_of(
        {Errc::bad_option, "acquire_async", "/l", "here are 3 leases, but this object was made for 1"}, options);
    EXPECT_EQ(failure.code, 65);
    EXPECT_THAT(failure.what(), HasSubstr("-j 1"));
    expect_plain(failure.what());
}

TEST(ExplainTest, WhatOthersWroteDoesNotReachTheTerminal) {
    const Error error(Errc::protocol, "acquire_async", "/l", "the server named the new node \x1b[2J");
    EXPECT_THAT(in_words(error, asked()), Not(HasSubstr("\x1b")));
}

TEST(ExplainTest, ANodeToLookAtIsNamedByItsPathOnTheServers) {
    Options options = asked();
    options.connect = "zk1:2181,zk2:2181/chroot";
    options.prefix = "/prefix";
    for (const Error& error : {Error(Errc::bad_data, "acquire_async", "/l", "something else"),
                               Error(Errc::no_parent, "acquire_async", "/l", "the directory vanishes each time"),
                               Error(Errc::sequence_exhausted, "acquire_async", "/l", ""),
                               Error(Errc::quota_exceeded, "acquire_async", "/l", ""),
                               Error(Errc::no_node, "set", "/l", ""), Error(Errc::not_empty, "delete", "/l", "")}) {
        EXPECT_THAT(in_words(error, options), HasSubstr("/chroot/prefix/l")) << error.what();
    }
    EXPECT_THAT(in_words({Errc::unreachable, "acquire_async", "/l", ""}, options), StartsWith("/l: "));
}

TEST(ExplainTest, NoCreateIsNamedWhereItForbids) {
    Options options = asked();
    options.create_parents = false;
    EXPECT_THAT(in_words({Errc::no_parent, "acquire_async", "/l", "the options forbid to make it"}, options),
                HasSubstr("--no-create"));
}

TEST(ExplainTest, WarningsAboutTheAssumptionsAreShownWithoutVerboseInTheWordsOfTheOptions) {
    Options options;
    options.verbose = 0;
    Console console(options);
    testing::internal::CaptureStderr();
    console.logger()->warn(
        "session 0x1: zk1:2181 has a tickTime of 10000 ms: a session timeout of 3000 ms is less than two ticks. Set "
        "SessionOptions::server_tick to 10000 ms, or SessionOptions::timeout to 20000 ms or more");
    console.logger()->warn("session 0x1: the servers seem not to be ZooKeeper");
    console.logger()->warn("session 0x1: the servers changed the session timeout from 9 ms to 8 ms");
    console.logger()->warn("session 0x1: connection lost");
    options.command = Command::top;
    Console looking(options);
    looking.logger()->warn("session 0x1: zk1:2181 has a tickTime of 10000 ms");  // it holds no lock
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "zklock: warning: zk1:2181 has a tickTime of 10000 ms: a session timeout of 3000 ms is less than two "
              "ticks. Set --server-tick to 10000 ms, or --session-timeout to 20000 ms or more\n"
              "zklock: warning: the servers seem not to be ZooKeeper\n"
              "zklock: warning: the servers changed the session timeout from 9 ms to 8 ms\n");
}

}  // namespace
}  // namespace zkrecipes::zklock
