// Holds that are shown to others, and given back by them; and reads that are new enough.
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::SizeIs;

class SequencerServerTest : public ExclusiveMutexServerTest {
protected:
    static Sequencer handed_over(const Grant& grant) { return Sequencer::parse(Sequencer(grant).text()); }
};

TEST_F(SequencerServerTest, ExactlyThisHoldStandsUntilItIsOver) {
    auto s = session(), server = session();
    const auto expect_checked = [&](Grant grant, HoldMode mode, std::size_t nodes) {
        SCOPED_TRACE(grant.node());
        const auto sequencer = handed_over(grant);
        EXPECT_EQ(sequencer.mode(), mode);
        EXPECT_EQ(sequencer.token(), grant.token());
        EXPECT_EQ(sequencer.nodes().size(), nodes);
        EXPECT_TRUE(still_held(server, sequencer, kMaxWait));
        auto text = sequencer.text();
        const auto token = text.find(':') + 1;
        text[token] = text[token] == '1' ? '2' : '1';
        EXPECT_FALSE(still_held(server, Sequencer::parse(text), kMaxWait)) << "another token";
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_FALSE(still_held(server, sequencer, kMaxWait));
        EXPECT_EQ(error_of([&] { Sequencer none(grant); }).errc(), Errc::lock_lost);
    };
    ExclusiveMutex mutex(s, lock_path());
    expect_checked(mutex.acquire(), HoldMode::exclusive, 1);
    Semaphore semaphore(s, path("leases"), 3);
    expect_checked(semaphore.acquire(2), HoldMode::lease, 2);
    MultiLock set(s, {{path("a")}, {path("b"), MultiLock::As::shared}});
    expect_checked(set.acquire(), HoldMode::exclusive, 2);
    ReadWriteLock rw(s, path("rw"));
    Grant alone = rw.acquire(), shared = rw.downgrade(alone);
    EXPECT_EQ(handed_over(shared).mode(), HoldMode::shared);
    EXPECT_TRUE(still_held(server, handed_over(shared), kMaxWait));
    alone.release();
    EXPECT_TRUE(still_held(server, handed_over(shared), kMaxWait));
}

TEST_F(SequencerServerTest, AskingCostsOneRoundTrip) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = session(), server = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    const Grant grant = mutex.acquire();
    const Sequencer sequencer(grant);
    gate().delay(testenv::Direction::to_client, kReplyDelay);
    gate().reset_trace();
    EXPECT_TRUE(still_held(server, sequencer, kMaxWait));
    EXPECT_EQ(testenv::round_trips(gate().trace(), server.info().session_id), 1) << to_string(gate().trace());
    EXPECT_EQ(gate().counts().writes(), 1u);
}

TEST_F(SequencerServerTest, WhoeverWasGivenASequencerMayWriteWhileTheHoldStands) {
    auto s = session();
    auto options = session_options(connect_string());
    options.path_prefix = path("theirs");  // the sequencer names nodes as the servers see them
    Session theirs(options);
    ASSERT_TRUE(theirs.wait_connected(kMaxWait));
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    const auto sequencer = handed_over(grant);
    Transaction transaction(theirs, sequencer);
    observer().make_path(path("theirs/x"));
    EXPECT_EQ(transaction.set("/x", "1").commit().operations[0].version, 1);
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(error_of([&] { transaction.commit(); }).errc(), Errc::lock_lost);
    EXPECT_EQ(observer().get(path("theirs/x"))->stat.version, 1);
}

TEST_F(SequencerServerTest, AnotherProcessGivesBackWhatItWasAskedTo) {
    auto s = session(), theirs = session(), third = session();
    ExclusiveMutex mutex(s, lock_path()), next(third, lock_path());
    const Grant grant = mutex.acquire();
    EXPECT_EQ(error_of([&] { release_held(theirs, handed_over(grant), kMaxWait); }).errc(), Errc::not_owner);
    EXPECT_TRUE(grant.held());
    const auto sequencer = Sequencer::parse(Sequencer(grant, Sequencer::Bearer::may_release).text());
    EXPECT_TRUE(release_held(theirs, sequencer, kMaxWait));
    EXPECT_TRUE(await([&] { return grant.lost().stop_requested() && !grant.held(); }));
    EXPECT_FALSE(release_held(theirs, sequencer, kMaxWait)) << "it is over already";
    const Grant after = next.acquire();
    EXPECT_FALSE(release_held(theirs, sequencer, kMaxWait));
    EXPECT_TRUE(after.held());

    MultiLock set(s, {{path("a")}, {path("b")}});
    const Grant members = set.try_acquire_while_holding(kMaxWait);
    EXPECT_TRUE(release_held(theirs, Sequencer(members, Sequencer::Bearer::may_release), kMaxWait));
    EXPECT_THAT(nodes_of(path("a")), SizeIs(0));
    EXPECT_THAT(nodes_of(path("b")), SizeIs(0));
}

TEST_F(SequencerServerTest, AReleaseWhoseAnswerWasLostIsFinished) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = session(), theirs = gated_session();
    ExclusiveMutex mutex(s, lock_path());
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const Grant grant = mutex.acquire();
        const auto match = Match::op(Opcode::multi).nth(2);  // the first one is the check
        const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
        EXPECT_TRUE(release_held(theirs, Sequencer(grant, Sequencer::Bearer::may_release), kMaxWait));
        EXPECT_TRUE(fault.reached());
        EXPECT_TRUE(nodes().empty());
    }
}

TEST_F(SequencerServerTest, AReadWithinAGrantSeesWhatEarlierHoldersWroteForOneRoundTrip) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = session(), reader = gated_session(kNoHeartbeat);
    observer().make_path(path("data"));
    ExclusiveMutex mutex(s, lock_path());
    Grant grant = mutex.acquire();
    ASSERT_TRUE(Transaction(grant).set(path("data"), "new").try_commit_until(kMaxWait));
    const auto id = reader.info().session_id;
    const auto costs_one_round_trip = [&](std::uint64_t requests, auto read) {
        gate().reset_trace();
        const auto content = in_round_trips({requests}, read);
        ASSERT_TRUE(content);
        EXPECT_EQ(content->data, "new");
        EXPECT_EQ(content->version, 1);
        EXPECT_EQ(content->path, path("data"));
        EXPECT_GE(content->changed, content->created);
        EXPECT_EQ(testenv::round_trips(gate().trace(), id), 1) << to_string(gate().trace());
    };
    costs_one_round_trip(2, [&] { return read_node(reader, path("data"), grant, kMaxWait); });
    EXPECT_EQ(gate().counts()[Opcode::multi], 1u);
    costs_one_round_trip(2, [&] { return read_node(reader, path("data"), Fresh::yes, kMaxWait); });
    EXPECT_EQ(gate().counts()[Opcode::sync], 1u);
    costs_one_round_trip(1, [&] { return read_node(reader, path("data"), Fresh::no, kMaxWait); });
    const auto trace = gate().trace();
    EXPECT_EQ(std::ranges::count_if(trace,
                                    [&](const testenv::Record& record) {
                                        return record.kind == testenv::Record::Kind::request &&
                                               record.path == path("data");
                                    }),
              1);
    EXPECT_FALSE(read_node(reader, path("none"), grant, kMaxWait));
    EXPECT_FALSE(read_node(reader, path("none"), Fresh::yes, kMaxWait));

    const auto fault = gate().cut_after(Match::op(Opcode::sync));
    EXPECT_TRUE(read_node(reader, path("data"), Fresh::yes, kMaxWait));
    EXPECT_TRUE(fault.reached());
    ASSERT_TRUE(observer().remove(grant.node()));
    EXPECT_EQ(error_of([&] { (void)read_node(reader, path("data"), grant, kMaxWait); }).errc(), Errc::lock_lost);
    grant.release();
    EXPECT_EQ(error_of([&] { (void)read_node(reader, path("data"), grant, kMaxWait); }).errc(), Errc::lock_lost);
    gate().refuse();
    gate().reset_all();
    EXPECT_EQ(error_of([&] { (void)read_node(reader, path("data"), Fresh::yes, 50ms); }).errc(), Errc::unreachable);
}

}  // namespace
}  // namespace zkrecipes::test
