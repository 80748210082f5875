// zklock --once-per on a real server: at most one run in a period, whatever goes wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "zklock/faulty_world.hpp"

namespace zkrecipes::zklock::test {
namespace {

using testing::HasSubstr;

/// Long enough for a test: a period that ends while it runs is as good as never seen.
const std::string kPeriod = "87600h";

class ZklockOnceTest : public FaultyWorld {
protected:
    std::string journal() const { return scratch_ / "journal"; }
    std::size_t runs() const {
        const std::string text = read_file(journal());
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }
    std::string record_path() const { return lock() + ".once"; }
    Json record() {
        if (!observer_) observer_ = std::make_unique<testenv::RawClient>(connect_string());
        const auto node = observer_->get(record_path());
        return Json::parse_or_null(node ? node->data : "null");
    }
    testenv::Match writes_of_the_record() const {
        return testenv::Match::op(testenv::Opcode::multi).path(record_path());
    }
    std::string note() const { return "echo $ZKLOCK_FENCING_TOKEN $ZKLOCK_ONCE_PERIOD >>" + journal(); }
    std::vector<std::string> once(std::vector<std::string> options, const std::string& command) const {
        std::vector<std::string> all = {"--once-per", kPeriod, "-k", "200ms"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(all.end(), {lock(), "-c", command});
        return all;
    }
    Outcome run_once(std::vector<std::string> options = {}) const { return run(once(std::move(options), note())); }
    Outcome status(std::vector<std::string> options = {}) const {
        options.insert(options.begin(), {"status", "--connect", connect_string()});
        options.push_back(lock());
        return zklock(options);
    }
    /// A zklock behind the gate whose command has begun, and goes on until it is stopped.
    std::unique_ptr<ZklockProcess> running_one(std::vector<std::string> options = {}) {
        auto process = std::make_unique<ZklockProcess>(
            with(once(std::move(options), note() + "; exec sleep 300"), gate_->connect_string()));
        EXPECT_TRUE(await([&] { return runs() == 1; })) << process->err();
        return process;
    }
};

TEST_F(ZklockOnceTest, ASecondRunInThePeriodDoesNothingAndSucceeds) {
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 1u);
    EXPECT_EQ(record()["state"], "done");
    EXPECT_EQ(record()["code"], 0);
    const Outcome second = run_once({"-E", "9", "--result", scratch_ / "result", "--events", scratch_ / "events"});
    EXPECT_EQ(second.code, 0);
    EXPECT_EQ(second.err, "") << "cron would mail it";
    EXPECT_EQ(runs(), 1u);
    const auto result = Json::parse(read_file(scratch_ / "result"));
    EXPECT_EQ(result["outcome"], "already_ran");
    EXPECT_EQ(result["once"]["id"], record()["id"]);
    EXPECT_EQ(events_named(scratch_ / "events", "period").at(0)["state"], "done");
    EXPECT_EQ(events_named(scratch_ / "events", "released").size(), 1u);
    EXPECT_THAT(run_once({"-v"}).err, HasSubstr("is done, exit code 0: nothing to do"));
    EXPECT_EQ(queue_length(), 0u);
}

TEST_F(ZklockOnceTest, TheCommandLearnsItsPeriodAndAFailureIsARun) {
    const Outcome outcome = run(
        once({"--result", scratch_ / "result", "--events", scratch_ / "events"}, "echo $ZKLOCK_ONCE_PERIOD; exit 3"));
    EXPECT_EQ(outcome.code, 3);
    const auto result = Json::parse(read_file(scratch_ / "result"));
    EXPECT_EQ(outcome.out, result["once"]["period"].text() + "\n");
    EXPECT_EQ(result["once"]["state"], "done");
    EXPECT_EQ(result["once"]["recorded"], true);
    EXPECT_EQ(record()["code"], 3);
    EXPECT_EQ(events_named(scratch_ / "events", "period").at(0)["state"], "claimed");
    EXPECT_EQ(events_named(scratch_ / "events", "recorded").at(0)["confirmed"], true);
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 0u);
    EXPECT_THAT(status().out, HasSubstr("last run done, exit code 3, by "));
}

TEST_F(ZklockOnceTest, ACommandThatZklockStopsIsARunToo) {
    EXPECT_EQ(run(once({"--max-run", "100ms"}, "exec sleep 300")).code, 124);
    EXPECT_EQ(record()["state"], "done");
    EXPECT_EQ(record()["signal"], SIGTERM);
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 0u);
}

TEST_F(ZklockOnceTest, InTheNextPeriodItRunsAgain) {
    EXPECT_EQ(run_once().code, 0);
    ASSERT_EQ(record()["state"], "done");
    std::string text = observer_->get(record_path())->data;  // as if that had been in 1970
    const std::string claimed = "\"claimed_ms\":";
    const std::size_t begin = text.find(claimed) + claimed.size();
    text.replace(begin, text.find_first_of(",}", begin) - begin, "1000");
    observer_->set(record_path(), text);
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 2u);
}

TEST_F(ZklockOnceTest, ACommandThatCannotStartLeavesThePeriodToOthers) {
    EXPECT_EQ(run({"--once-per", kPeriod, "--result", scratch_ / "result", lock(), "/nonexistent/command"}).code, 127);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["once"], nullptr);
    EXPECT_EQ(record(), nullptr) << "nothing was there before";
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 1u);
    observer_->remove(record_path());
    EXPECT_EQ(run({"--once-per", "1s", lock(), "true"}).code, 0);
    const auto before = record();
    ASSERT_TRUE(await([&] { return run({"--once-per", "1s", lock(), "/nonexistent/command"}).code == 127; }));
    EXPECT_EQ(record()["id"], before["id"]) << "the former record is there again";
}

TEST_F(ZklockOnceTest, AfterSigkillTheOutcomeIsUnknownAndOnlyRepeatedWhenAsked) {
    const auto first = running_one();
    EXPECT_THAT(status().out, HasSubstr("last run running, "));
    EXPECT_EQ(Json::parse(status({"--json"}).out)["once"]["state"], "running");
    first->signal(SIGKILL);
    EXPECT_EQ(first->wait(), -SIGKILL);
    const Outcome next = run_once({"--result", scratch_ / "result"});
    EXPECT_EQ(next.code, 80);
    EXPECT_THAT(next.err, HasSubstr("nobody knows whether the run of the period that began at "));
    EXPECT_THAT(next.err, HasSubstr("--retry-unknown"));
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["outcome"], "unknown_run");
    EXPECT_THAT(status().out, HasSubstr("last run unknown, no outcome was recorded, by "));
    EXPECT_EQ(Json::parse(status({"--json"}).out)["once"]["state"], "unknown");
    EXPECT_EQ(runs(), 1u);
    const Outcome again = run_once({"--retry-unknown"});
    EXPECT_EQ(again.code, 0);
    EXPECT_THAT(again.err, HasSubstr("Repeats it"));
    EXPECT_EQ(runs(), 2u);
    EXPECT_EQ(run_once({"--retry-unknown"}).code, 0) << "it is known now";
    EXPECT_EQ(runs(), 2u);
}

TEST_F(ZklockOnceTest, AfterALossTheOutcomeIsUnknown) {
    const auto first = running_one({"--events", scratch_ / "events", "--result", scratch_ / "result"});
    gate_->blackhole();
    const Outcome next = run_once();  // waits until the servers have freed the lock
    EXPECT_EQ(next.code, 80) << next.err;
    EXPECT_EQ(first->wait(), 79);
    EXPECT_EQ(events_named(scratch_ / "events", "recorded").at(0)["confirmed"], false);
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["once"]["state"], "unknown");
    EXPECT_EQ(Json::parse(read_file(scratch_ / "result"))["once"]["recorded"], false);
    EXPECT_EQ(runs(), 1u);
}

TEST_F(ZklockOnceTest, ALossIsRecordedIfTheServersStillHaveTheLockNode) {
    session_timeout_ = "20s";  // between the loss and the record, the machine may stall
    const auto first = running_one();
    // The connection seems to work, and no check of the lock is answered any more.
    const testenv::Fault fault = gate_->hold_reply(testenv::Match::any().path(lock()));
    EXPECT_EQ(first->wait(), 79) << first->err();
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(await([&] { return record()["state"] == "unknown"; })) << record();
    EXPECT_EQ(record()["reason"], "no server confirmed the lock in time");
    fault.drop();
    const Outcome next = run_once();
    EXPECT_EQ(next.code, 80);
    EXPECT_THAT(next.err, HasSubstr("the lock was lost while the command ran: no server confirmed"));
}

TEST_F(ZklockOnceTest, ALostRequestOrAnswerIsSettledByReading) {
    session_timeout_ = "20s";
    for (const int nth : {1, 2}) {  // the claim, and the record of the end
        for (const bool executed : {false, true}) {
            testenv::Match write = writes_of_the_record();
            write.nth(nth);
            const testenv::Fault fault = executed ? gate_->cut_after(write) : gate_->cut_before(write);
            ::unlink(journal().c_str());
            const Outcome outcome = zklock(with(once({}, note()), gate_->connect_string()));
            EXPECT_EQ(outcome.code, 0) << outcome.err;
            EXPECT_TRUE(fault.reached());
            EXPECT_EQ(runs(), 1u) << "write " << nth << (executed ? ", executed" : "");
            EXPECT_EQ(record()["state"], "done");
            observer_->remove(record_path());
        }
    }
}

TEST_F(ZklockOnceTest, ATermBetweenTheClaimAndTheCommandGivesThePeriodBack) {
    session_timeout_ = "20s";
    const auto held = gate_->hold_reply(writes_of_the_record());
    ZklockProcess process(with(once({}, note()), gate_->connect_string()));
    ASSERT_TRUE(held.wait_reached());
    ASSERT_TRUE(await([&] { return record()["state"] == "running"; }));
    process.signal(SIGTERM);
    held.release();
    EXPECT_EQ(process.wait(), -SIGTERM);
    EXPECT_EQ(runs(), 0u);
    EXPECT_EQ(record(), nullptr);
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 1u);
}

TEST_F(ZklockOnceTest, ALossBeforeTheCommandIsSaidAlsoIfItsExitCodeIs0) {
    const auto held = gate_->hold_reply(writes_of_the_record());
    ZklockProcess process(with(once({"--lost-exit-code", "0"}, note()), gate_->connect_string()));
    ASSERT_TRUE(held.wait_reached());
    gate_->blackhole();
    EXPECT_EQ(process.wait(), 0);
    EXPECT_THAT(process.err(), HasSubstr("the lock was lost before the command was started"));
    EXPECT_EQ(runs(), 0u);
}

TEST_F(ZklockOnceTest, AnErrorBetweenTheClaimAndTheCommandGivesThePeriodBack) {
    session_timeout_ = "20s";
    for (const bool with_signal : {false, true}) {
        // The answer to the claim is lost, and the read that settles it finds no record. Then the record is there
        // again.
        const auto claim = gate_->hold_reply(writes_of_the_record());
        ZklockProcess process(with(once({}, note()), gate_->connect_string()));
        ASSERT_TRUE(claim.wait_reached());
        ASSERT_TRUE(await([&] { return record()["state"] == "running"; }));
        const std::string written = observer_->get(record_path())->data;
        observer_->set(record_path(), "10.0.0.1");
        const auto read = gate_->hold_reply(testenv::Match::op(testenv::Opcode::get_data).path(record_path()));
        claim.drop();
        ASSERT_TRUE(read.wait_reached());
        observer_->set(record_path(), written);
        if (with_signal) process.signal(SIGTERM);
        read.release();
        EXPECT_EQ(process.wait(), with_signal ? -SIGTERM : 65) << process.err();
        EXPECT_EQ(runs(), 0u);
        EXPECT_EQ(record(), nullptr);
    }
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 1u);
}

TEST_F(ZklockOnceTest, MinHoldDoesNotDelayTheRecord) {
    auto holder = start(once({"--min-hold", "60"}, note()));
    EXPECT_TRUE(await([&] { return record()["state"] == "done"; }));
    EXPECT_EQ(queue_length(), 1u);
    holder->signal(SIGTERM);
    EXPECT_EQ(holder->wait(), 0);
}

TEST_F(ZklockOnceTest, WhatIsNoRecordIsRefused) {
    testenv::RawClient client(connect_string());
    client.make_path(root());
    client.create(record_path(), "10.0.0.1");
    const Outcome outcome = run_once();
    EXPECT_EQ(outcome.code, 65);
    EXPECT_THAT(outcome.err, HasSubstr(record_path() + " does not contain a record"));
    EXPECT_EQ(runs(), 0u);
    EXPECT_EQ(queue_length(), 0u);
    EXPECT_THAT(status().out, HasSubstr("last run cannot be read: see " + record_path()));
    EXPECT_EQ(Json::parse(status({"--json"}).out)["once"]["state"], "unreadable");
}

TEST_F(ZklockOnceTest, TheRecordIsNoLockAndAForbiddenOneIs77) {
    std::ofstream(scratch_ / "auth") << "digest:ops:secret\n";
    ::chmod((scratch_ / "auth").c_str(), 0600);
    EXPECT_EQ(run_once({"--auth-file", scratch_ / "auth", "--acl", "world:anyone:cdr,auth::rwcda"}).code, 0);
    const auto holder = hold_with_command();
    const Outcome list = zklock({"ls", "--connect", connect_string(), root()});
    EXPECT_THAT(list.out, testing::Not(HasSubstr(".once")));
    EXPECT_THAT(list.out, HasSubstr(lock() + "\theld"));
    EXPECT_EQ(status().code, 75);
    EXPECT_EQ(Json::parse(zklock({"ls", "--json", "--connect", connect_string(), root()}).out)["locks"].size(), 1u);
    ASSERT_TRUE(await([&] {  // in the next period it has to write
        holder->signal(SIGTERM);
        return run({"--once-per", "1s", lock(), "touch", scratch_ / "ran"}).code == 77;
    }));
    EXPECT_FALSE(exists(scratch_ / "ran"));
}

TEST_F(ZklockOnceTest, ARecordThatIsDeletedDuringTheRunLetsTheNextOneRun) {
    const std::string go_on = scratch_ / "go-on";
    const auto holder = start(once({}, note() + "; while [ ! -e " + go_on + " ]; do sleep 0.02; done"));
    ASSERT_TRUE(await([&] { return runs() == 1; })) << holder->err();
    ASSERT_TRUE(record().is_object());
    ASSERT_TRUE(observer_->remove(record_path()));
    std::ofstream(go_on).flush();
    EXPECT_EQ(holder->wait(), 0);
    EXPECT_THAT(holder->err(), HasSubstr(record_path() + ", the record of this run, was deleted"));
    EXPECT_THAT(holder->err(), testing::Not(HasSubstr("unknown")));
    EXPECT_EQ(run_once().code, 0);
    EXPECT_EQ(runs(), 2u);
    EXPECT_EQ(record()["state"], "done");
}

TEST_F(ZklockOnceTest, AStatusWithoutRunsSaysNothingOfThem) {
    EXPECT_EQ(run({lock(), "true"}).code, 0);
    EXPECT_THAT(status().out, testing::Not(HasSubstr("last run")));
    EXPECT_EQ(Json::parse(status({"--json"}).out)["once"], nullptr);
}

}  // namespace
}  // namespace zkrecipes::zklock::test
