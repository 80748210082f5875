#include <signal.h>

#include <filesystem>
#include <fstream>
#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/version.hpp>

#include "options_fixture.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(OptionsTest, TheWordRunMayBeLeftOut) {
    for (const Options& options : {parse({"/l", "echo", "hi"}), parse({"run", "/l", "echo", "hi"})}) {
        EXPECT_EQ(options.command, Command::run);
        EXPECT_EQ(options.lock, "/l");
        EXPECT_THAT(options.argv, ElementsAre("echo", "hi"));
        EXPECT_EQ(options.name, "echo");
        EXPECT_EQ(options.conflict_exit_code, 75);
        EXPECT_EQ(options.lost_exit_code, 79);
        EXPECT_EQ(options.session_timeout, 15s);
        EXPECT_EQ(options.stop_signal, SIGTERM);
        EXPECT_EQ(options.on_suspend, OnSuspend::ride);
    }
}

TEST_F(OptionsTest, EverythingAfterTheLockIsTheCommandUntouched) {
    EXPECT_THAT(parse({"-n", "/l", "cmd", "-n", "--bogus", "--", "-w", "5"}).argv,
                ElementsAre("cmd", "-n", "--bogus", "--", "-w", "5"));
    EXPECT_THAT(parse({"/l", "--", "-odd", "--"}).argv, ElementsAre("-odd", "--"));
    EXPECT_THAT(parse({"/l", "status"}).argv, ElementsAre("status"));
    EXPECT_THAT(parse({"/l", "/bin/cmd", "-c", "x"}).argv, ElementsAre("/bin/cmd", "-c", "x"));
    EXPECT_THAT(parse({"--", "/l", "cmd"}).argv, ElementsAre("cmd"));
}

TEST_F(OptionsTest, AnOptionWithALoneEqualsSignDoesNotTakeTheLockForItsValue) {
    EXPECT_EQ(refusal({"--result=", "/l", "true"}).first, 64);
    EXPECT_THAT(refusal({"-v", "-w", "5", "--name=", "/l", "true"}).second,
                StartsWith("--name= has no value; for an empty value write --name ''"));
    EXPECT_EQ(refusal({"hold", "/l", "--meta", "a=b", "--prefix="}).first, 64);
    EXPECT_EQ(parse({"hold", "/l", "--prefix", ""}).prefix, "");
    EXPECT_THAT(parse({"-w", "5", "/l", "cmd", "--name=", "x"}).argv, ElementsAre("cmd", "--name=", "x"));
    EXPECT_THAT(parse({"--name=n", "-n", "/l", "--", "--name="}).argv, ElementsAre("--name="));
    EXPECT_EQ(parse({"--name", "--name=", "/l", "cmd"}).name, "--name=");
}

TEST_F(OptionsTest, AnUnknownOptionIsAUsageErrorAndNotALock) {
    for (const char* option : {"--bogus", "-u", "--unlock", "-J", "-Z"}) {
        const auto [code, text] = refusal({option, "/l", "cmd"});
        EXPECT_EQ(code, 64) << option;
        EXPECT_THAT(text, HasSubstr(std::string("unknown option ") + option));
    }
    EXPECT_EQ(refusal({"status", "--bogus", "/l"}).first, 64);
}

TEST_F(OptionsTest, AWrongCommandLineIsAnsweredWithWhatToWrite) {
    const std::pair<std::vector<const char*>, const char*> wrong[] = {
        {{}, "zklock [run] [OPTIONS] LOCK [--] COMMAND [ARG...]"},
        {{"/l"}, "write: zklock [run] [OPTIONS] LOCK [--] COMMAND"},
        {{"-n"}, "the lock is missing; write: zklock [run] [OPTIONS] LOCK"},
        {{"status"}, "the lock is missing; write: zklock status [--watch] [--json] LOCK"},
        {{"/l", "-n", "true"}, "write zklock -n ... /l COMMAND"},
        {{"/l", "-n", "true"}, "zklock /l -- -n"},
        {{"elect", "/e", "--id", "x", "true"}, "write zklock elect --id ... /e COMMAND"},
        {{"status", "-w", "5", "/l"}, "-w of zklock status (it is an option of zklock run, hold, elect, wait)"},
        {{"status", "-w", "5", "/l"}, "write: zklock status [--watch] [--json] LOCK"},
        {{"ls", "--holder"}, "it is an option of zklock break"},
        {{"/a/", "true"}, "write /a"},
        {{"status", "//a//b/"}, "write /a/b"},
        {{"-L", "/a/", "--", "true"}, "write /a"},
        {{"--timout", "5", "/l", "true"}, "did you mean \"--timeout\"?"},
        {{"hold", "--lock-exit-code", "5", "/l"}, "did you mean \"--lost-exit-code\"?"},
        {{"ping", "--conect", "a:1"}, "did you mean \"--connect\"?"},
        {{"break", "--nod", "x", "/l"}, "did you mean \"--node\"?"},
        {{"leader", "--wacth", "/l"}, "did you mean \"--watch\"?"},
        {{"--bogus", "/l", "true"}, "zklock help run shows the options"},
        {{"staus", "/l"}, "did you mean \"status\"?"},
        {{"run", "status", "/l"}, "zklock status [OPTIONS]"},
        {{"help", "waitt"}, "did you mean \"wait\"?"},
        {{"brake", "/l"}, "did you mean \"break\"?"},
        {{"stat", "/l"}, "did you mean \"status\"?"},
        {{"help", "stat"}, "\"stat\" is not a command of zklock; did you mean \"status\"?"},
        {{"help", "/l"}, "\"/l\" is not a command of zklock\nTry"},
        {{"--conn", "a:1", "/l", "true"}, "did you mean \"--connect\"?"},
        {{"true", "/l"}, "nor an absolute path\nTry"},
        {{"-w", "1e2", "/l", "true"}, "-w: \"1e2\" is not a duration (for example 10, 1.5, 250ms, 2m, 1h, 1d, 1h30m"},
        {{"-k", "1e2", "/l", "true"}, "-k: \"1e2\" is not a duration"},
        {{"hold", "/l", "true"}, "\"true\" is one argument too many for zklock hold; write: zklock hold"},
        {{"ping", "/l"}, "write: zklock ping [--json]"},
        {{"-w"}, "-w needs a value: -w DURATION"},
        {{"-w", "1", "--wait", "2", "/l", "true"}, "--timeout was given twice"},
        {{"break", "/l"}, "write: zklock break LOCK (--holder | --node NODE | --all)"},
    };
    for (const auto& [arguments, what_to_write] : wrong) {
        const auto [code, text] = refusal(arguments);
        EXPECT_EQ(code, 64) << what_to_write;
        EXPECT_THAT(text, HasSubstr(what_to_write));
    }
}

TEST_F(OptionsTest, OptionsMayStandInFrontOfTheCommandsWord) {
    EXPECT_EQ(parse({"--connect", "a:1", "ls"}).command, Command::ls);
    EXPECT_EQ(parse({"--connect", "a:1", "ls"}).connect, "a:1");
    EXPECT_EQ(parse({"-q", "ping"}).command, Command::ping);
    EXPECT_EQ(parse({"-w", "5", "wait", "/l"}).wait_limit, 5s);
    EXPECT_EQ(parse({"-vn", "-w0", "hold", "/l"}).command, Command::hold);
    EXPECT_EQ(parse({"--watch", "leader", "/l"}).command, Command::leader);
    EXPECT_EQ(parse({"--name", "status", "/l", "hold"}).command, Command::run) << "a value is no word";
    EXPECT_THAT(parse({"-L", "/a", "--", "status", "/l"}).argv, ElementsAre("status", "/l"));
}

TEST_F(OptionsTest, HelpIsACommandAndShowsWhatToWrite) {
    EXPECT_THAT(parse({"help"}).help_text, HasSubstr("zklock status [--watch] [--json] LOCK"));
    EXPECT_EQ(parse({"help", "help"}).help_text, parse({"--help"}).help_text);
    for (const auto& arguments : std::vector<std::vector<const char*>>{{"help", "run"}, {"run", "--help"}}) {
        const Options options = parse(arguments);
        EXPECT_EQ(options.command, Command::help);
        EXPECT_THAT(options.help_text, HasSubstr("LOCK [--] COMMAND [ARG...]"));
        EXPECT_THAT(options.help_text, HasSubstr("--kill-after"));
    }
    EXPECT_THAT(parse({"help", "elect"}).help_text, HasSubstr("ELECTION [--] COMMAND"));
    for (const auto& [command, operand] : {std::pair{"leader", "ELECTION"}, {"ls", "PREFIX"}, {"top", "PREFIX"}}) {
        EXPECT_THAT(parse({"help", command}).help_text, HasSubstr(std::string("\n  ") + operand + " TEXT ")) << command;
    }
    EXPECT_THAT(parse({"help", "wait"}).help_text, HasSubstr("zklock wait [-w DURATION] LOCK"));
}

TEST_F(OptionsTest, ALockIsAnAbsolutePath) {
    EXPECT_EQ(refusal({"lead", "/l"}).first, 64);
    EXPECT_THAT(refusal({"locks/x", "cmd"}).second, HasSubstr("neither a command of zklock nor an absolute path"));
    EXPECT_THAT(refusal({"run", "status", "/l"}).second, HasSubstr("put the command first: zklock status"));
    EXPECT_EQ(refusal({"status", "x"}).first, 64);
    EXPECT_EQ(refusal({"-n"}).first, 64);
    EXPECT_EQ(refusal({"/l"}).first, 64);
    EXPECT_EQ(refusal({}).first, 64);
    EXPECT_EQ(refusal({"/l", ""}).first, 64);
}

TEST_F(OptionsTest, ShellStringsAsInFlock) {
    EXPECT_THAT(parse({"/l", "-c", "a | b"}).argv, ElementsAre("/bin/sh", "-c", "a | b"));
    ::setenv("SHELL", "/bin/dash", 1);
    EXPECT_THAT(parse({"-c", "a | b", "/l"}).argv, ElementsAre("/bin/dash", "-c", "a | b"));
    EXPECT_EQ(parse({"/l", "-c", "a"}).name, "dash");
    EXPECT_EQ(refusal({"/l", "-c", "a", "b"}).first, 64);
    EXPECT_EQ(refusal({"/l", "-c"}).first, 64);
    EXPECT_EQ(refusal({"-c", "a", "/l", "b"}).first, 64);
}

TEST_F(OptionsTest, WaitingIsBoundedOrNot) {
    EXPECT_FALSE(parse({"/l", "c"}).wait_limit);
    EXPECT_EQ(parse({"-w", "1.5", "/l", "c"}).wait_limit, 1500ms);
    EXPECT_EQ(parse({"--wait=2m", "/l", "c"}).wait_limit, 2min);
    EXPECT_TRUE(parse({"-w", "0", "/l", "c"}).nonblock);
    for (const char* flag : {"-n", "--nb", "--nonblock", "--nonblocking"}) {
        EXPECT_TRUE(parse({flag, "/l", "c"}).nonblock) << flag;
    }
    EXPECT_EQ(refusal({"-w", "x", "/l", "c"}).first, 64);
    EXPECT_EQ(refusal({"-w", "-1", "/l", "c"}).first, 64);
    EXPECT_EQ(refusal({"-n", "-w", "3", "/l", "c"}).first, 64);
}

TEST_F(OptionsTest, ALockIsHeldAloneOrShared) {
    const auto taken = [](std::vector<const char*> arguments) { return parse(std::move(arguments)).locks; };
    const auto as = [](Mode mode) { return std::vector<LockSpec>{{"/l", mode}}; };
    EXPECT_EQ(taken({"/l", "true"}), as(Mode::exclusive));
    for (const char* word : {"-x", "-e", "--exclusive"}) EXPECT_EQ(taken({word, "/l", "true"}), as(Mode::exclusive));
    EXPECT_EQ(taken({"-s", "/l", "true"}), as(Mode::shared));
    EXPECT_EQ(taken({"hold", "--shared", "/l"}), as(Mode::shared));
    EXPECT_EQ(taken({"--rw", "/l", "true"}), as(Mode::writer));
    EXPECT_EQ(taken({"-x", "--rw", "/l", "true"}), as(Mode::writer));
    EXPECT_EQ(refusal({"-s", "-x", "/l", "true"}).first, 64);
    EXPECT_EQ(refusal({"-s", "--rw", "/l", "true"}).first, 64);
}

TEST_F(OptionsTest, ALeaseIsOneOfN) {
    for (const Options& options : {parse({"-j", "4", "/l", "true"}), parse({"hold", "--count=4", "/l"})}) {
        EXPECT_THAT(options.locks, ElementsAre(LockSpec{"/l", Mode::semaphore}));
        EXPECT_EQ(options.leases, 4);
        EXPECT_FALSE(options.together);
    }
    for (const char* number : {"0", "-1", "x", "4x", "", "2147483648"}) {
        const auto [code, text] = refusal({"-j", number, "/l", "true"});
        EXPECT_EQ(code, 64) << number;
        EXPECT_THAT(text, HasSubstr("is not a number of at least 1"));
    }
    for (const char* mode : {"-s", "-x", "--rw"}) {
        EXPECT_THAT(refusal({"-j", "2", mode, "/l", "true"}).second,
                    HasSubstr("cannot be combined with -x, -s or --rw"))
            << mode;
    }
    EXPECT_THAT(refusal({"-j", "2", "--dialect", "kazoo", "/l", "true"}).second,
                HasSubstr("cannot be combined with --dialect kazoo"));
    EXPECT_EQ(refusal({"status", "-j", "2", "/l"}).first, 64);
}

TEST_F(OptionsTest, SeveralLocksAreASetAndTheCommandStandsBehindDashes) {
    const std::vector<LockSpec> all = {
        {"/a", Mode::exclusive}, {"/b", Mode::shared}, {"/c", Mode::writer}, {"/d:e", Mode::exclusive}};
    for (const Options& options :
         {parse({"-L", "/a", "-L", "/b:shared", "--lock=/c:rw", "-L", "/d:e:exclusive", "--", "cmd", "-L"}),
          parse({"hold", "-L", "/a", "-L", "/b:shared", "-L", "/c:rw", "-L", "/d:e:exclusive"})}) {
        EXPECT_EQ(options.locks, all);
        EXPECT_TRUE(options.together);
        EXPECT_EQ(options.lock, "/a, /b:shared, /c:rw, /d:e:exclusive");
    }
    EXPECT_THAT(parse({"-L", "/a", "--", "cmd", "-L"}).argv, ElementsAre("cmd", "-L"));
    EXPECT_THAT(parse({"-L", "/a", "-c", "x | y"}).argv, ElementsAre("/bin/sh", "-c", "x | y"));
}

TEST_F(OptionsTest, WhatIsWrongWithASetIsSaidWithTheRemedy) {
    const std::vector<std::pair<std::vector<const char*>, const char*>> wrong = {
        {{"-L", "/a", "/b", "cmd"}, "-L before every lock"},
        {{"-L", "/a", "/b", "--", "cmd"}, "write -- before the command"},
        {{"hold", "-L", "/a", "/b"}, "also \"-L /b\""},
        {{"-L", "/a"}, "the command is missing"},
        {{"-L", "/a", "--bogus", "--", "cmd"}, "unknown option --bogus"},
        {{"-L", "a", "--", "cmd"}, "not an absolute path"},
        {{"-L", "/a:share", "--", "cmd"}, "write \"/a:share:exclusive\""},
        {{"-L", "/a", "-L", "/a:shared", "--", "cmd"}, "names /a twice"},
        {{"-L", "/a", "-s", "--", "cmd"}, "-L PATH:shared"},
        {{"-L", "/a", "--rw", "--", "cmd"}, "-L PATH:rw"},
        {{"-L", "/a", "-j", "2", "--", "cmd"}, "the command of a zklock -j"},
        {{"-L", "/a", "--dialect", "kazoo", "--", "cmd"}, "kazoo has no sets of locks"},
        {{"--dialect", "zkpython", "/l", "cmd"}, "curator or kazoo"},
    };
    for (const auto& [arguments, remedy] : wrong) {
        const auto [code, text] = refusal(arguments);
        EXPECT_EQ(code, 64) << text;
        EXPECT_THAT(text, HasSubstr(remedy));
    }
    EXPECT_EQ(parse({"--dialect", "kazoo", "/l", "cmd"}).dialect, Dialect::kazoo);
    EXPECT_EQ(parse({"--dialect", "curator", "/l", "cmd"}).dialect, Dialect::curator);
}

TEST_F(OptionsTest, ACandidateRunsItsCommandAsLeader) {
    const Options options = parse({"elect", "--id", "a", "--layout", "selector", "-k", "1", "/e", "--", "cmd", "-n"});
    EXPECT_EQ(options.command, Command::elect);
    EXPECT_THAT(options.locks, ElementsAre(LockSpec{"/e", Mode::leader}));
    EXPECT_EQ(options.layout, ElectionLayout::selector);
    EXPECT_EQ(options.id, "a");
    EXPECT_EQ(options.kill_after, 1s);
    EXPECT_THAT(options.argv, ElementsAre("cmd", "-n"));
    EXPECT_EQ(parse({"elect", "/e", "cmd"}).layout, ElectionLayout::latch);
    EXPECT_EQ(refusal({"elect", "--layout", "zkpython", "/e", "cmd"}).first, 64);
    for (const char* option : {"-s", "-x", "-L", "--dialect"}) {
        EXPECT_EQ(refusal({"elect", option, "/e", "cmd"}).first, 64) << option;
    }
    EXPECT_TRUE(parse({"leader", "--watch", "/e"}).watch);
    EXPECT_EQ(refusal({"leader"}).first, 64);
}

TEST_F(OptionsTest, ExitCodesAreFrom0To255) {
    EXPECT_EQ(parse({"-E", "0", "/l", "c"}).conflict_exit_code, 0);
    EXPECT_EQ(parse({"-E", "255", "/l", "c"}).conflict_exit_code, 255);
    EXPECT_EQ(parse({"--lost-exit-code", "99", "/l", "c"}).lost_exit_code, 99);
    for (const char* number : {"256", "-1", "x", "1x", ""}) EXPECT_EQ(refusal({"-E", number, "/l", "c"}).first, 64);
}

TEST_F(OptionsTest, TheCommandMustBeDeadBeforeTheLockIsFree) {
    EXPECT_EQ(refusal({"--session-timeout", "10", "-k", "5", "/l", "c"}).first, 64);
    EXPECT_EQ(parse({"--session-timeout", "10", "-k", "4.9", "/l", "c"}).kill_after, 4900ms);
    EXPECT_EQ(refusal({"--session-timeout", "10ms", "/l", "c"}).first, 64);
    EXPECT_EQ(refusal({"--session-timeout", "25h", "/l", "c"}).first, 64);
}

TEST_F(OptionsTest, SignalsByNameOrNumber) {
    EXPECT_EQ(parse_signal("TERM"), SIGTERM);
    EXPECT_EQ(parse_signal("SIGUSR1"), SIGUSR1);
    EXPECT_EQ(parse_signal("9"), SIGKILL);
    for (const char* text : {"", "0", "99", "term", "NOPE", "SIG"}) EXPECT_THROW(parse_signal(text), Failure) << text;
}

TEST_F(OptionsTest, PoliciesAndLimits) {
    EXPECT_EQ(parse({"--on-suspend", "pause", "/l", "c"}).on_suspend, OnSuspend::pause);
    EXPECT_EQ(parse({"--on-suspend=stop", "/l", "c"}).on_suspend, OnSuspend::stop);
    EXPECT_EQ(refusal({"--on-suspend", "hope", "/l", "c"}).first, 64);
    EXPECT_EQ(parse({"--max-run", "2h", "--min-hold", "1m", "/l", "c"}).max_run, 2h);
    EXPECT_FALSE(parse({"--max-run", "0", "/l", "c"}).max_run);
    EXPECT_EQ(parse({"--min-hold", "1m", "/l", "c"}).min_hold, 1min);
    EXPECT_EQ(parse({"--connect-timeout", "3", "/l", "c"}).connect_timeout, 3s);
    EXPECT_FALSE(parse({"--connect-timeout", "0", "/l", "c"}).connect_timeout);
}

TEST_F(OptionsTest, ArgumentsOfTheCommandAreNeverShownToOthers) {
    const Options options = parse({"/l", "/opt/bin/deploy.sh", "--password=secret"});
    EXPECT_EQ(options.name, "deploy.sh");
    EXPECT_EQ(parse({"--name", "release", "/l", "c"}).name, "release");
}

TEST_F(OptionsTest, MetaMayBeRepeatedAndDoesNotSwallowTheLock) {
    const Options options = parse({"--meta", "a=1", "--meta", "b=x=y", "/l", "c"});
    EXPECT_THAT(options.meta, ElementsAre(testing::Pair("a", "1"), testing::Pair("b", "x=y")));
    EXPECT_EQ(options.lock, "/l");
    EXPECT_EQ(refusal({"--meta", "novalue", "/l", "c"}).first, 64);
    EXPECT_EQ(refusal({"--meta", "=x", "/l", "c"}).first, 64);
}

TEST_F(OptionsTest, NoServersAnywhereIsAConfigurationError) {
    ::unsetenv("ZKLOCK_CONNECT");
    const auto [code, text] = refusal({"/l", "c"});
    EXPECT_EQ(code, 78);
    EXPECT_THAT(text, HasSubstr("ZKLOCK_CONNECT"));
    EXPECT_EQ(refusal({"ping"}).first, 78);
}

TEST_F(OptionsTest, TlsThatTheClientLacksIsRefusedWithTheRemedy) {
    const auto available = features();
    if (std::find(available.begin(), available.end(), "tls") != available.end()) GTEST_SKIP() << "it has TLS";
    const auto [code, text] = refusal({"--tls-ca", "/etc/ca.pem", "--tls-cert", "/c", "--tls-key", "/k", "/l", "c"});
    EXPECT_EQ(code, 78);
    EXPECT_THAT(text, HasSubstr("--tls-ca: the ZooKeeper client of this zklock ("));
    EXPECT_THAT(text, HasSubstr("has no TLS"));
    EXPECT_THAT(text, HasSubstr("stunnel"));
    const auto [sasl_code, sasl_text] = refusal({"--sasl-user", "u", "--sasl-password-file", "/p", "/l", "c"});
    EXPECT_EQ(sasl_code, 78);
    EXPECT_THAT(sasl_text, HasSubstr("has no SASL"));
}

TEST_F(OptionsTest, OneSettingOfTlsMeansTlsOrAnError) {
    const auto [code, text] = refusal({"--tls-ca", "/etc/ca.pem", "/l", "c"});
    EXPECT_EQ(code, 64);
    EXPECT_THAT(text, HasSubstr("--tls-ca: TLS also needs --tls-cert and --tls-key"));
    EXPECT_EQ(refusal({"ping", "--sasl-user", "u"}).first, 64);
    EXPECT_EQ(refusal({"ping", "--tls-server-name", "zk"}).first, 64);
    ::setenv("ZKLOCK_TLS_KEY", "x", 1);
    const auto [other_code, other_text] = refusal({"status", "/l"});
    ::unsetenv("ZKLOCK_TLS_KEY");
    EXPECT_EQ(other_code, 78);
    EXPECT_THAT(other_text, HasSubstr("ZKLOCK_TLS_KEY: TLS also needs --tls-ca and --tls-cert"));
}

TEST_F(OptionsTest, WhatTheServersSeeBeforeAPathIsKnown) {
    EXPECT_EQ(server_prefix(parse({"break", "/l", "--holder"})), "");
    EXPECT_EQ(server_prefix(parse({"break", "--prefix", "/p/q", "/l", "--holder"})), "/p/q");
    EXPECT_EQ(server_prefix(parse({"break", "--connect", "a:1,b:1/", "/l", "--holder"})), "");
    EXPECT_EQ(server_prefix(parse({"break", "--connect", "a:1/r/s", "--prefix", "/p", "/l", "--holder"})), "/r/s/p");
}

TEST_F(OptionsTest, WhereTheResultGoesIsKnownAlsoOfACallThatIsRefused) {
    const testenv::Scratch scratch;
    const std::string file = scratch / "result";
    const char* const r = file.c_str();
    const std::vector<const char*> refused[] = {
        {"zklock", "--result", r, "-s", "-x", "/l", "c"},
        {"zklock", "--result", r, "--bogus", "/l", "c"},
        {"zklock", "hold", "--result", r, "--bogus", "/l"},
        {"zklock", "--result", r, "--config", "/nonexistent", "/l", "c"},
        {"zklock", "run", "--result", r, "-w", "10", "-w", "20", "/l", "--", "true"},
        {"zklock", "run", "-w", "10", "-w", "20", "--result", r, "/l", "--", "true"},
        {"zklock", "run", "--result", r, "-w"},
        {"zklock", "hold", "--result", r, "/l", "-j"},
        {"zklock", "hold", "/l", "--bogus", "--result", r},
        {"zklock", "elect", "--result", r, "--result", "/nonexistent", "/l", "c"},
    };
    for (const auto& arguments : refused) {
        Options options;
        EXPECT_THROW(parse_options(static_cast<int>(arguments.size()), arguments.data(), options), Failure);
        EXPECT_EQ(options.result, file);
    }
}

TEST_F(OptionsTest, AFormerResultIsForgottenBeforeAnythingElseIsReadAndNoOtherFileIs) {
    const testenv::Scratch scratch;
    const std::string file = scratch / "result";
    const char* const r = file.c_str();
    std::ofstream(file) << "old";
    const std::vector<const char*> others[] = {{"/l", "c", "--result", r},
                                               {"--name", "--result", "/l", r},
                                               {"--result", r, "--help"},
                                               {"--result", r, "--version"}};
    for (const auto& arguments : others) {
        parse(arguments);
        EXPECT_TRUE(std::filesystem::exists(file));
    }
    EXPECT_EQ(refusal({"--result", r, "--config", "/nonexistent", "/l", "c"}).first, 78);
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(OptionsTest, BreakNeedsToKnowWhom) {
    EXPECT_TRUE(parse({"break", "/l", "--holder", "--yes"}).break_holder);
    EXPECT_EQ(parse({"break", "--node", "n-1", "/l"}).break_node, "n-1");
    EXPECT_TRUE(parse({"break", "--all", "/l"}).break_all);
    EXPECT_EQ(refusal({"break", "/l"}).first, 64);
    EXPECT_EQ(refusal({"break", "/l", "--holder", "--all"}).first, 64);
}

TEST_F(OptionsTest, LsLooksFromTheRootUnlessTold) {
    EXPECT_EQ(parse({"ls"}).lock, "/");
    EXPECT_EQ(parse({"ls", "/locks"}).lock, "/locks");
    EXPECT_TRUE(parse({"ls", "--complete"}).names_only);
}

TEST_F(OptionsTest, AccessLists) {
    EXPECT_EQ(parse_acl({"open", "--acl"}), Acl::open());
    EXPECT_EQ(parse_acl({"creator", "--acl"}), Acl::creator_all());
    const std::vector<Acl> acl = parse_acl({"digest:ops:HASHHASHHASHHASHHASHHASHHAS=:rwcda,ip:10.0.0.0/8:r", "--acl"});
    ASSERT_EQ(acl.size(), 2u);
    EXPECT_EQ(acl[0], (Acl{Acl::all, "digest", "ops:HASHHASHHASHHASHHASHHASHHAS="}));
    EXPECT_EQ(acl[1], (Acl{Acl::read, "ip", "10.0.0.0/8"}));
    for (const char* text : {"", "world", "world:anyone", "world:anyone:", "world:anyone:x", "open,open",
                             "sasl:a:r;sasl:b:r", "sasl:a:r sasl:b:r"}) {
        EXPECT_THROW(parse_acl({text, "--acl"}), Failure) << text;
    }
}

TEST_F(OptionsTest, AValueOfAFileIsRefusedWithItsLine) {
    ::unsetenv("ZKLOCK_CONNECT");
    const testenv::Scratch scratch;
    const std::string file = scratch / "c.conf";
    const std::pair<const char*, const char*> wrong[] = {
        {"acl = bogus", "acl: \"bogus\" is not open, creator or"},
        {"acl = ip:x:q", "acl: \"ip:x:q\": permissions are"},
        {"prefix = app", "prefix: \"app\" is not an absolute path"},
        {"auth-file = /nonexistent", "auth-file: cannot read the auth file /nonexistent"},
        {"tls-key = /k.pem", "tls-key: TLS also needs --tls-ca and --tls-cert"},
        {"sasl-password-file = /p", "sasl-password-file: SASL also needs --sasl-user"},
        {"auth-file = fd:x", "auth-file: the auth file fd:x"},
        {"session-timeout = x", "session-timeout: \"x\" is not a duration"},
        {"connect-timeout = x", "connect-timeout: \"x\" is not a duration"},
    };
    for (const auto& [line, problem] : wrong) {
        std::ofstream(file) << "connect = a:1\n" << line << "\n";
        const auto [code, text] = refusal({"--config", file.c_str(), "/l", "c"});
        EXPECT_EQ(code, 78);
        EXPECT_THAT(text, HasSubstr(file + ", line 2: " + problem));
    }
    ::setenv("ZKLOCK_CONNECT", "zk:2181", 1);
    for (const char* text : {"bogus", ""}) {
        EXPECT_EQ(refusal({"--acl", text, "/l", "c"}).first, 64);
        EXPECT_THAT(refusal({"--acl", text, "/l", "c"}).second, HasSubstr("--acl: \""));
    }
    EXPECT_EQ(refusal({"--prefix", "app", "/l", "c"}).first, 64);
    EXPECT_EQ(parse({"--prefix", "", "/l", "c"}).prefix, "");
}

TEST_F(OptionsTest, WhatASessionRefusesIsToldWithThePlaceWhereItStands) {
    ::unsetenv("ZKLOCK_CONNECT");
    const testenv::Scratch scratch;
    const std::string file = scratch / "c.conf";
    const std::pair<const char*, const char*> wrong[] = {
        {"connect = a:1:2", "line 1: connect: "},
        {"connect = a:1/p//q", "line 1: connect: "},
        {"connect = a:1\nprefix = /p//q", "line 2: prefix: "},
        {"connect = a:1\nacl = creator", "line 2: acl: "},
    };
    for (const auto& [text, place] : wrong) {
        std::ofstream(file) << text << "\n";
        const Options options = parse({"--config", file.c_str(), "/l", "c"});
        Console console(options);
        try {
            open_session(options, console);
            ADD_FAILURE() << text;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.code, 78);
            EXPECT_THAT(failure.what(), StartsWith(file + ", " + place));
        }
    }
}

TEST_F(OptionsTest, WhatASessionRefusesOfTheCommandLineIsWrongUsage) {
    const std::pair<std::vector<const char*>, const char*> wrong[] = {
        {{"--connect", "a:1:2", "/l", "c"}, "--connect: \"a:1:2\": there is more than one colon"},
        {{"--connect", "a:99999", "/l", "c"}, "--connect: \"a:99999\": the port must be between 1 and 65535"},
        {{"--connect", "zk://a", "/l", "c"}, "--connect: \"zk://a\": leave out \"zk://\""},
        {{"--prefix", "/p/", "/l", "c"}, "--prefix: \"/p/\" cannot be used as a path: it ends with /"},
        {{"--acl", "creator", "/l", "c"}, "--acl: creator needs credentials: use --auth-file"},
        {{"--acl", "world:x:r", "/l", "c"}, "--acl: the scheme world has only one id: write world:anyone:PERMISSIONS"},
    };
    for (const auto& [arguments, answer] : wrong) {
        const Options options = parse(arguments);
        Console console(options);
        try {
            open_session(options, console);
            ADD_FAILURE() << answer;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.code, 64);
            EXPECT_THAT(failure.what(), StartsWith(answer));
        }
    }
}

TEST_F(OptionsTest, HelpAndVersionNeedNoServers) {
    ::unsetenv("ZKLOCK_CONNECT");
    EXPECT_EQ(parse({"--help"}).command, Command::help);
    EXPECT_THAT(parse({"run", "--help"}).help_text, HasSubstr("--kill-after"));
    EXPECT_THAT(parse({"status", "-h"}).help_text, HasSubstr("--json"));
    EXPECT_EQ(parse({"--version"}).command, Command::version);
    EXPECT_TRUE(parse({"--version", "--json"}).json);
}

}  // namespace
}  // namespace zkrecipes::zklock
