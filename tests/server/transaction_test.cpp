// Guarded writes on real servers: with the grants of every recipe, what they cost, and what happens when answers are
// lost.
#include <optional>

#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/transaction.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using testenv::Record;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TransactionTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (IsSkipped()) return;
        observer().make_path(data_path());
        observer().make_path(path("marks"));
    }
    std::string data_path() const { return path("data"); }
    std::string data() { return observer().get(data_path())->data; }
    std::int32_t version() { return observer().get(data_path())->stat.version; }
    std::vector<std::string> marks() { return nodes_of(path("marks")); }

    /// What went through the gate for `data_path`, without what keeps the session and the lock alive.
    std::vector<Record> commits() {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            if (record.kind != Record::Kind::request && record.kind != Record::Kind::reply) continue;
            for (const auto& part : record.parts) {
                if (part.path == data_path()) {
                    out.push_back(record);
                    break;
                }
            }
            if (record.kind == Record::Kind::reply && record.opcode == Opcode::multi) out.push_back(record);
        }
        return out;
    }
    Match commit() const { return Match::op(Opcode::multi).path_is(data_path()); }
};

/// The grant can write; once `victim`, one of its nodes, is deleted it cannot, and nothing of its transaction happens.
#define ZKRECIPES_EXPECT_GUARDED(grant, victim)                                                                     \
    do {                                                                                                            \
        SCOPED_TRACE(victim);                                                                                       \
        const auto before = version();                                                                              \
        ASSERT_TRUE((grant).held());                                                                                \
        EXPECT_EQ(Transaction(grant).set(data_path(), "by its holder").commit().operations[0].version, before + 1); \
        ASSERT_TRUE(observer().remove(victim));                                                                     \
        Transaction late(grant);                                                                                    \
        late.create(path("late"), "").set(data_path(), "too late");                                                 \
        const Error error = error_of([&] { late.commit(); });                                                       \
        EXPECT_EQ(error.errc(), Errc::lock_lost) << error.what();                                                   \
        EXPECT_EQ(data(), "by its holder");                                                                         \
        EXPECT_FALSE(observer().exists(path("late")));                                                              \
    } while (false)

TEST_F(TransactionTest, AMutexAndBothSidesOfAReadWriteLockGuard) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    ZKRECIPES_EXPECT_GUARDED(grant, grant.node());

    ReadWriteLock rw(s, path("rw"));
    Grant alone = rw.acquire();
    const Grant downgraded = rw.downgrade(alone);
    ASSERT_NE(downgraded.node(), alone.node());
    ZKRECIPES_EXPECT_GUARDED(alone, alone.node());
    alone.release();
    ZKRECIPES_EXPECT_GUARDED(downgraded, downgraded.node());

    ReadWriteLock other(s, path("rw2"));
    const Grant shared = other.acquire_shared();
    ZKRECIPES_EXPECT_GUARDED(shared, shared.node());
}

TEST_F(TransactionTest, LeasesAndSetsGuardByEachOfTheirNodes) {
    auto s = session();
    Semaphore semaphore(s, path("leases"), 4);
    const Grant leases = semaphore.acquire(3);
    const auto nodes = nodes_of(path("leases/leases"));
    ASSERT_THAT(nodes, SizeIs(3));
    ZKRECIPES_EXPECT_GUARDED(leases, path("leases/leases/" + nodes[1]));

    MultiLock set(s, {{path("a")}, {path("b")}, {path("c"), MultiLock::As::shared}});
    const Grant members = set.acquire();
    const auto last = nodes_of(path("c"));
    ASSERT_THAT(last, SizeIs(1));
    ZKRECIPES_EXPECT_GUARDED(members, path("c/" + last[0]));
}

TEST_F(TransactionTest, ALeadershipGuardsInEveryLayout) {
    auto s = session();
    for (const auto layout : {ElectionLayout::latch, ElectionLayout::selector, ElectionLayout::kazoo}) {
        LeaderElection election(s, path("leader-" + std::to_string(static_cast<int>(layout))),
                                {.id = "one", .layout = layout});
        const Grant leadership = election.campaign();
        ZKRECIPES_EXPECT_GUARDED(leadership, leadership.node());
        EXPECT_TRUE(await([&] { return leadership.lost().stop_requested(); }));
    }
}

TEST_F(TransactionTest, WhoHasBeenReplacedAsLeaderWritesNothing) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s), other = session();
    LeaderElection mine(s, path("leader"), {.id = "mine"}), theirs(other, path("leader"), {.id = "theirs"});
    const Grant former = mine.campaign();
    EXPECT_TRUE(Transaction(former).set(data_path(), "by the leader").try_commit_until(kMaxWait));
    gate().blackhole();
    gate().expire(former.session_id());
    const Grant next = theirs.try_campaign_until(kMaxWait);
    ASSERT_TRUE(next);
    EXPECT_TRUE(Transaction(next).set(data_path(), "by the next one").try_commit_until(kMaxWait));

    // Nobody has told the former one, so this is the servers' no, by way of a session that they listen to.
    const Error error = error_of([&] { Transaction(other, former).set(data_path(), "too late").commit(); });
    EXPECT_EQ(error.errc(), Errc::lock_lost) << error.what();
    EXPECT_EQ(error.path(), former.node());
    gate().pass();  // and now it is told
    ASSERT_TRUE(await([&] { return former.lost().stop_requested(); }));
    EXPECT_EQ(error_of([&] { Transaction(former).set(data_path(), "too late").commit(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(data(), "by the next one");
    EXPECT_TRUE(Transaction(next).set(data_path(), "still").try_commit_until(kMaxWait));
}

TEST_F(TransactionTest, EveryRequiredGrantIsChecked) {
    auto one = session(), two = session();
    ExclusiveMutex a(one, path("a")), b(two, path("b"));
    const Grant first = a.acquire(), second = b.acquire();
    Transaction both(first);
    both.require(second).set(data_path(), "both");
    EXPECT_TRUE(both.try_commit_until(kMaxWait));
    ASSERT_TRUE(observer().remove(second.node()));
    EXPECT_EQ(error_of([&] { both.commit(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(version(), 1);
    EXPECT_TRUE(Transaction(first).set(data_path(), "one").try_commit_until(kMaxWait));
}

TEST_F(TransactionTest, ARequestToGiveWayTakesNothingFromTheHolder) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    observer().set(grant.node(), "__REVOKE__");
    observer().set(grant.node(), "__REVOKE__");
    EXPECT_EQ(Transaction(grant).set(data_path(), "still").commit().operations[0].version, 1);
}

TEST_F(TransactionTest, WhoseSessionTheServersHaveEndedWritesNothingAlsoByAnotherSession) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s), other = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    EXPECT_TRUE(Transaction(other, grant).set(data_path(), "in time").try_commit_until(kMaxWait));
    gate().blackhole();
    gate().expire(grant.session_id());
    ASSERT_TRUE(await_nodes(0));
    EXPECT_TRUE(grant.held()) << "nobody has told it";
    const Error error = error_of([&] { Transaction(other, grant).set(data_path(), "too late").commit(); });
    EXPECT_EQ(error.errc(), Errc::lock_lost);
    EXPECT_EQ(error.path(), grant.node());
    EXPECT_EQ(data(), "in time");
    gate().pass();
}

TEST_F(TransactionTest, AnEmptyGrantAndOneThatWasGivenBackGuardNothing) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    Transaction transaction(grant);
    transaction.set(data_path(), "x");
    grant.release();
    EXPECT_EQ(error_of([&] { transaction.commit(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(error_of([&] { Transaction again(grant); }).errc(), Errc::lock_lost);
    EXPECT_EQ(error_of([&] { transaction.require(Grant()); }).errc(), Errc::lock_lost);
    EXPECT_EQ(version(), 0);
}

TEST_F(TransactionTest, AGuardedWriteIsOneRequestAndOneRoundTrip) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    gate().delay(testenv::Direction::to_client, kReplyDelay);
    Transaction transaction(grant);
    transaction.set(data_path(), "1").create(data_path() + "/n-", "", Transaction::Create::sequential);
    const auto session_id = s.info().session_id;
    gate().reset_trace();
    ASSERT_TRUE(transaction.try_commit_until(kMaxWait));
    EXPECT_EQ(to_string(count(commits())), "multi 1") << to_string(gate().trace());
    EXPECT_EQ(testenv::round_trips(commits(), session_id), 1);
    transaction.idempotent_in(path("marks"));
    gate().reset_trace();
    ASSERT_TRUE(transaction.try_commit_until(kMaxWait));
    EXPECT_EQ(testenv::round_trips(commits(), session_id), 1);
    EXPECT_TRUE(await([&] { return marks().empty(); }));
    EXPECT_EQ(gate().counts()[Opcode::remove], 1u) << "the mark, behind it";
}

TEST_F(TransactionTest, TheResultTellsVersionsAndNumbers) {
    auto options = session_options(connect_string());
    options.path_prefix = root();
    Session s(options);
    ASSERT_TRUE(s.wait_connected(kMaxWait));
    ExclusiveMutex mutex(s, "/lock");
    const Grant grant = mutex.acquire();
    Transaction transaction(grant);
    transaction.create("/made", "m")
        .create("/made/n-", "", Transaction::Create::sequential)
        .create("/made/n-", "", Transaction::Create::sequential)
        .set("/data", "1")
        .set("/data", "2", 1)
        .check("/made")
        .create("/gone", "")
        .remove("/gone", 0);
    EXPECT_EQ(transaction.size(), 8u);
    const auto result = transaction.commit();
    EXPECT_FALSE(result.answer_lost);
    const auto& done = result.operations;
    ASSERT_THAT(done, SizeIs(8));
    EXPECT_EQ(done[0].path, "/made");
    EXPECT_EQ(done[0].version, 0);
    EXPECT_EQ(done[1].path, "/made/n-0000000000");
    EXPECT_EQ(done[2].path, "/made/n-0000000001");
    EXPECT_EQ(done[3].version, 1);
    EXPECT_EQ(done[4].version, 2);
    EXPECT_EQ(done[5].version, -1);
    EXPECT_EQ(done[7].version, -1);
    EXPECT_EQ(data(), "2");
    EXPECT_EQ(observer().get(path("made"))->data, "m");
}

TEST_F(TransactionTest, WhatIsRefusedSaysWhichOperationAndWhatToDoAndWritesNothing) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    observer().create(data_path() + "/child");
    const auto refused = [&](Errc errc, const std::string& where, auto add) {
        Transaction transaction(grant);
        transaction.set(data_path(), "no");
        add(transaction);
        const Error error = error_of([&] { transaction.commit(); });
        EXPECT_EQ(error.errc(), errc) << error.what();
        EXPECT_EQ(error.path(), where);
        EXPECT_THAT(error.what(), HasSubstr("operation 1 of 2"));
        EXPECT_THAT(error.what(), HasSubstr("nothing was written"));
        EXPECT_EQ(version(), 0);
    };
    const auto missing = path("missing");
    refused(Errc::node_exists, data_path(), [&](Transaction& t) { t.create(data_path(), ""); });
    refused(Errc::no_parent, missing + "/x", [&](Transaction& t) { t.create(missing + "/x", ""); });
    refused(Errc::no_node, missing, [&](Transaction& t) { t.set(missing, ""); });
    refused(Errc::no_node, missing, [&](Transaction& t) { t.remove(missing); });
    refused(Errc::no_node, missing, [&](Transaction& t) { t.check(missing); });
    refused(Errc::bad_version, data_path(), [&](Transaction& t) { t.set(data_path(), "", 7); });
    refused(Errc::bad_version, data_path(), [&](Transaction& t) { t.check(data_path(), 7); });
    refused(Errc::not_empty, data_path(), [&](Transaction& t) { t.remove(data_path()); });
    refused(Errc::no_parent, grant.node() + "/x", [&](Transaction& t) { t.create(grant.node() + "/x", ""); });

    Transaction transaction(grant);
    EXPECT_EQ(error_of([&] { transaction.set("no/path", ""); }).errc(), Errc::bad_path);
    EXPECT_EQ(error_of([&] { transaction.set(data_path(), "", -2); }).errc(), Errc::bad_option);
    EXPECT_EQ(
        error_of([&] { transaction.create(missing, "", Transaction::Create::persistent, std::vector<Acl>()); }).errc(),
        Errc::bad_option);
    EXPECT_EQ(error_of([&] { transaction.idempotent_in("marks"); }).errc(), Errc::bad_path);
    EXPECT_EQ(transaction.size(), 0u);
    EXPECT_THAT(transaction.commit().operations, IsEmpty()) << "a check of the hold alone";
    transaction.idempotent_in(missing);
    const Error no_directory = error_of([&] { transaction.commit(); });
    EXPECT_EQ(no_directory.errc(), Errc::no_parent);
    EXPECT_EQ(no_directory.path(), missing);
}

TEST_F(TransactionTest, WhatTheServersWouldCutTheConnectionForIsNotSent) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    Transaction transaction(grant);
    transaction.set(data_path(), std::string(500'000, 'x')).create(path("more"), std::string(500'000, 'y'));
    gate().reset_trace();
    const Error error = error_of([&] { transaction.commit(); });
    EXPECT_EQ(error.errc(), Errc::too_large);
    EXPECT_THAT(error.what(), HasSubstr("nothing was sent"));
    EXPECT_EQ(error_of([&] { transaction.commit_async({}, {}, [](CommitResult) {}); }).errc(), Errc::too_large);
    EXPECT_THAT(commits(), IsEmpty());
    EXPECT_TRUE(Transaction(grant).set(data_path(), std::string(800'000, 'x')).try_commit_until(kMaxWait));
    EXPECT_TRUE(grant.held());
}

TEST_F(TransactionTest, ALostAnswerIsUnknownAndTheTransactionIsNotSentAgain) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const auto before = version();
        const auto fault = after ? gate().cut_after(commit()) : gate().cut_before(commit());
        const Error error = error_of([&] { Transaction(grant).set(data_path(), "x").commit(); });
        EXPECT_EQ(error.errc(), Errc::outcome_unknown) << error.what();
        EXPECT_TRUE(fault.reached());
        // What was sent before this transaction is executed before it, so nothing can come later.
        EXPECT_EQ(Transaction(grant).check(data_path()).commit().operations.size(), 1u);
        EXPECT_EQ(version(), before + (after ? 1 : 0));
    }
}

TEST_F(TransactionTest, ARepeatableOneHappensExactlyOnceThroughLostAnswers) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const auto before = version();
        const auto fault = after ? gate().cut_after(commit()) : gate().cut_before(commit());
        Transaction transaction(grant);
        transaction.idempotent_in(path("marks")).set(data_path(), "x");
        const auto result = transaction.commit();
        EXPECT_TRUE(fault.reached());
        EXPECT_EQ(result.answer_lost, after);
        EXPECT_EQ(result.operations.size(), after ? 0u : 1u);
        EXPECT_EQ(version(), before + 1);
        EXPECT_TRUE(await([&] { return marks().empty(); }));
    }
}

TEST_F(TransactionTest, AMarkThatWasSentAloneAndWhoseAnswerWasLostIsNoCommit) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = session(), cut_off = gated_session(60s);
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    Transaction transaction(cut_off, grant);
    transaction.idempotent_in(path("marks")).set(data_path(), "x");
    const auto before = version();
    const auto attempt = gate().cut_before(commit());
    gate().refuse();  // until the hold is over, so that only the mark may be sent then
    std::optional<decltype(gate().cut_after(commit()))> alone;
    std::jthread holder([&] {
        EXPECT_TRUE(attempt.wait_reached());
        grant.release();
        alone = gate().cut_after(Match::op(Opcode::multi));
        gate().pass();
    });
    const Error error = error_of([&] { (void)transaction.try_commit_until(kMaxWait); });
    holder.join();
    EXPECT_EQ(error.errc(), Errc::lock_lost) << error.what();
    EXPECT_TRUE(alone->reached());
    EXPECT_EQ(version(), before);
    EXPECT_TRUE(await([&] { return marks().empty(); }));
}

TEST_F(TransactionTest, ADeadlineOrStopBeforeAnythingWasSentIsEmptyAndLaterUnknown) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = session(), cut_off = gated_session(60s);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    Transaction transaction(cut_off, grant);
    transaction.idempotent_in(path("marks")).set(data_path(), "x");

    auto held_back = gate().hold_reply(commit());
    // Long enough for a busy machine to send it, or nothing would have been sent.
    EXPECT_EQ(error_of([&] { (void)transaction.try_commit_for(500ms); }).errc(), Errc::outcome_unknown);
    EXPECT_TRUE(held_back.wait_reached());
    EXPECT_EQ(version(), 1);
    held_back.release();
    EXPECT_TRUE(await([&] { return marks().empty(); })) << "the mark is deleted when the answer has come";

    held_back = gate().hold_reply(commit());
    std::stop_source stop;
    std::jthread stopper([&] {
        EXPECT_TRUE(held_back.wait_reached());
        stop.request_stop();
    });
    EXPECT_EQ(error_of([&] { (void)transaction.try_commit_until(kMaxWait, stop.get_token()); }).errc(),
              Errc::outcome_unknown);
    stopper.join();
    held_back.release();
    EXPECT_FALSE(transaction.try_commit_until(kMaxWait, stop.get_token())) << "stopped before it began";

    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return cut_off.state() == SessionState::suspended; }));
    EXPECT_FALSE(transaction.try_commit_for(50ms));
    EXPECT_FALSE(transaction.try_commit_until(Deadline::passed()));
    EXPECT_EQ(version(), 2);
    gate().pass();
    EXPECT_TRUE(transaction.try_commit_until(kMaxWait));
    EXPECT_EQ(version(), 3);
}

TEST_F(TransactionTest, OnFibersAndAsCallbackItIsTheSame) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    std::vector<boost::fibers::fiber> fibers;
    for (int i = 0; i < 20; ++i) {
        fibers.emplace_back([&] { EXPECT_TRUE(Transaction(grant).set(data_path(), "x").try_commit_until(kMaxWait)); });
    }
    for (auto& fiber : fibers) fiber.join();
    EXPECT_EQ(version(), 20);

    std::promise<CommitResult> done, failed;
    {
        Transaction transaction(grant);
        transaction.set(data_path(), "x");
        transaction.commit_async(kMaxWait, {}, [&](CommitResult result) { done.set_value(std::move(result)); });
        transaction.set(path("missing"), "");
        transaction.commit_async(kMaxWait, {}, [&](CommitResult result) { failed.set_value(std::move(result)); });
        EXPECT_EQ(error_of([&] { transaction.commit_async({}, {}, {}); }).errc(), Errc::bad_option);
    }
    auto good = done.get_future(), bad = failed.get_future();
    ASSERT_EQ(good.wait_for(kMaxWait), std::future_status::ready);
    const auto result = good.get();
    ASSERT_TRUE(result.value);
    EXPECT_EQ(result.value->operations[0].version, 21);
    ASSERT_EQ(bad.wait_for(kMaxWait), std::future_status::ready);
    const auto error = bad.get().error;
    ASSERT_TRUE(error);
    EXPECT_EQ(error_of([&] { std::rethrow_exception(error); }).errc(), Errc::no_node);

    s.close();
    Transaction late(grant);
    late.set(data_path(), "x");
    EXPECT_EQ(error_of([&] { late.commit_async({}, {}, [](CommitResult) {}); }).errc(), Errc::closed);
    const Errc closed = error_of([&] { late.commit(); }).errc();
    EXPECT_TRUE(closed == Errc::closed || closed == Errc::lock_lost);
    EXPECT_EQ(version(), 21);
}

}  // namespace
}  // namespace zkrecipes::test
