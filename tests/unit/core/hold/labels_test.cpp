// Grant::set_labels: other labels in the nodes of a hold.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>

#include <gmock/gmock.h>

#include "core/queue/payload.hpp"
#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

using Labels = std::map<std::string, std::string>;

class LabelsTest : public ServedTest {
protected:
    LabelsTest() {
        connect();
        put("/l");
        of_lock.labels = {{"step", "1"}};
        of_lock.name = "work";
    }
    template <class Lock>
    Grant acquire(Lock& lock) {
        Grant grant;
        EXPECT_EQ(served([&] { grant = lock.acquire(); }), "ok");
        return grant;
    }
    const std::string& data_of(const Grant& grant) { return nodes.at(grant.node()).data; }
    /// What participants() shows of the node.
    Participant shown(const std::string& node) {
        Participant out;
        internal::read_payload(nodes.at(node).data, out);
        return out;
    }
    /// "written", "asked to release", or the name of the error.
    std::string set(Grant& grant, const Labels& labels, Deadline deadline = Deadline::never()) {
        std::string out;
        Errc code{};
        served([&] {
            code = code_of([&] { out = grant.set_labels(labels, deadline) ? "written" : "asked to release"; });
        });
        return code == Errc{} ? out : std::to_string(static_cast<int>(code));
    }
    static std::string name_of(Errc code) { return std::to_string(static_cast<int>(code)); }

    LockOptions of_lock;
};

TEST_F(LabelsTest, AreShownInPlaceOfTheFormerOnesAndAllElseStays) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    const std::string before = data_of(grant);
    asked.clear();
    EXPECT_EQ(set(grant, {{"step", "2"}, {"file", "a"}}), "written");
    EXPECT_THAT(asked, ElementsAre("get " + grant.node(), "multi " + grant.node())) << "two round trips";
    const Participant after = shown(grant.node());
    EXPECT_THAT(after.labels, ElementsAre(Pair("file", "a"), Pair("step", "2")));
    EXPECT_EQ(after.name, "work");
    EXPECT_EQ(after.pid, getpid());
    EXPECT_EQ(before.substr(0, before.find("meta")), data_of(grant).substr(0, before.find("meta")));
    EXPECT_EQ(set(grant, {}), "written");
    EXPECT_THAT(shown(grant.node()).labels, IsEmpty());
    EXPECT_TRUE(grant.held());
    grant.release();
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LabelsTest, SayHowManyWaitedWhenTheNodeWasMade) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    std::string& data = nodes.at(grant.node()).data;
    data.insert(data.find(",\"meta\""), R"(,"waiting":7)");
    EXPECT_EQ(set(grant, {{"a", "b"}}), "written");
    EXPECT_EQ(shown(grant.node()).waiting, 7u);
}

TEST_F(LabelsTest, ARequestToReleaseStaysAndNothingIsWritten) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    write(grant.node(), "__REVOKE__");
    EXPECT_EQ(set(grant, {{"a", "b"}}), "asked to release");
    EXPECT_EQ(data_of(grant), "__REVOKE__");
    EXPECT_TRUE(grant.held());
}

TEST_F(LabelsTest, ARequestToReleaseThatComesBetweenReadAndWriteStays) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    before_answer = [&](const std::string& what) {
        if (what != "multi " + grant.node()) return;
        before_answer = nullptr;
        write(grant.node(), "__REVOKE__");
    };
    EXPECT_EQ(set(grant, {{"a", "b"}}), "asked to release");
    ASSERT_EQ(data_of(grant), "__REVOKE__");
    EXPECT_EQ(served([&] {
                  while (!grant.revocation().stop_requested()) boost::this_fiber::yield();
              }),
              "ok");
}

TEST_F(LabelsTest, TheOwnWatchTakesThemForNoRequest) {
    of_lock.keep_for = 60s;
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    const std::string node = grant.node();
    std::stop_token revocation;
    EXPECT_EQ(served([&] { revocation = grant.revocation(); }), "ok");
    EXPECT_EQ(set(grant, {{"a", "b"}}), "written");
    EXPECT_FALSE(revocation.stop_requested());
    EXPECT_TRUE(watched.contains("node " + node)) << "and looks on";
    write(node, "__REVOKE__");
    serve();
    EXPECT_TRUE(revocation.stop_requested());
    grant.release();
    serve();
    EXPECT_FALSE(nodes.contains(node));

    grant = acquire(mutex);
    EXPECT_EQ(set(grant, {{"c", "d"}}), "written");
    const std::string next = grant.node();
    grant.release();
    serve();
    EXPECT_TRUE(nodes.contains(next)) << "kept as ever";
    grant = acquire(mutex);
    EXPECT_EQ(grant.node(), next);
    EXPECT_THAT(shown(next).labels, ElementsAre(Pair("c", "d"))) << "they are the node's";
    EXPECT_EQ(set(grant, {}), "written");
    EXPECT_THAT(shown(next).labels, IsEmpty());
    EXPECT_EQ(served([&] { mutex = ExclusiveMutex(*session, "/other"); }), "ok");
}

TEST_F(LabelsTest, AreRefusedWhereTheHoldHasEnded) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant;
    EXPECT_EQ(code_of([&] { grant.set_labels({}); }), Errc::lock_lost);
    grant = acquire(mutex);
    erase(grant.node());
    EXPECT_EQ(set(grant, {{"a", "b"}}), name_of(Errc::lock_lost));
    grant.release();

    grant = acquire(mutex);
    ++nodes.at(grant.node()).czxid;  // another node of this name
    EXPECT_EQ(set(grant, {{"a", "b"}}), name_of(Errc::lock_lost));
    --nodes.at(grant.node()).czxid;
    grant.release();

    grant = acquire(mutex);
    before_answer = [&](const std::string& what) {
        if (what == "multi " + grant.node()) erase(grant.node());
    };
    EXPECT_EQ(set(grant, {{"a", "b"}}), name_of(Errc::lock_lost));
    before_answer = nullptr;
    grant.release();
    serve();

    grant = acquire(mutex);
    client().disconnect();
    runtime->advance(5s);  // the lease passes, and the session lives
    client().connect(owner);
    ASSERT_TRUE(nodes.contains(grant.node()));
    EXPECT_EQ(set(grant, {{"a", "b"}}), name_of(Errc::lock_lost));
    EXPECT_EQ(nodes.at(grant.node()).version, 0);
}

TEST_F(LabelsTest, AfterACloseTheCallIsRefusedAndNothingIsCalledBack) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    runtime->while_running([&] { session->close(); });
    EXPECT_EQ(code_of([&] { grant.set_labels_async({}, Deadline::never(), {}, [](const auto&) { FAIL(); }); }),
              Errc::closed);
    settle();
}

TEST_F(LabelsTest, WhileNoServerAnswersTheCallEndsWithTheHold) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    client().disconnect();
    runtime->run();
    EXPECT_EQ(code_unserved(10s, [&] { grant.set_labels({{"a", "b"}}); }), Errc::lock_lost);
    std::vector<Errc> told;
    client().connect(owner);
    grant.release();
    grant = acquire(mutex);
    client().disconnect();
    grant.set_labels_async({{"a", "b"}}, Deadline::never(), {}, [&](Result<bool> result) {
        told.push_back(code_of([&] {
            if (result.error) std::rethrow_exception(result.error);
        }));
    });
    runtime->advance(10s);
    EXPECT_THAT(told, ElementsAre(Errc::lock_lost));
    client().connect(owner);
}

TEST_F(LabelsTest, ADeadlineThatPassesIsAnError) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    EXPECT_EQ(code_unserved(2s, [&] { grant.set_labels({{"a", "b"}}, in(1s)); }), Errc::unreachable);
    EXPECT_TRUE(grant.held());
}

TEST_F(LabelsTest, EveryLostAnswerIsMadeUpFor) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    for (const bool after : {false, true}) {
        for (int request = 1; request <= 2; ++request) {
            Grant grant = acquire(mutex);
            asked.clear();
            lost_after = after;
            lose_answer = request;
            EXPECT_EQ(set(grant, {{"a", "b"}}), "written") << request << after;
            lose_answer = 0;
            EXPECT_THAT(shown(grant.node()).labels, ElementsAre(Pair("a", "b")));
            EXPECT_EQ(nodes.at(grant.node()).version, 1) << "written once";
            grant.release();
            EXPECT_EQ(leftovers(), "");
        }
    }
}

TEST_F(LabelsTest, AReleaseDoesNotWaitForThem) {
    ExclusiveMutex mutex(*session, "/l", of_lock);
    for (int answered = 0; answered < 2; ++answered) {
        Grant grant = acquire(mutex);
        std::vector<std::string> told;
        grant.set_labels_async({{"a", "b"}}, Deadline::never(), {}, [&](Result<bool> result) {
            told.push_back(result.error ? "error" : result.value ? "written" : "asked to release");
        });
        runtime->run();
        if (answered == 1) answer(client().take());  // the read
        runtime->run();
        const std::string node = grant.node();
        grant = Grant();
        serve();
        EXPECT_FALSE(nodes.contains(node));
        // What was sent before the delete was executed before it.
        EXPECT_THAT(told, ElementsAre(answered == 1 ? "written" : "error"));
        EXPECT_EQ(leftovers(), "");
    }
}

TEST_F(LabelsTest, AllNodesOfAHoldSayTheSameOrNoneDoes) {
    put("/m");
    MultiLock both(*session, {{"/l"}, {"/m"}}, of_lock);
    Grant grant = acquire(both);
    EXPECT_EQ(set(grant, {{"a", "b"}}), "written");
    for (const auto& node : grant.nodes()) EXPECT_THAT(shown(node).labels, ElementsAre(Pair("a", "b")));
    write(grant.nodes().at(1), "__REVOKE__");
    EXPECT_EQ(set(grant, {{"c", "d"}}), "asked to release");
    EXPECT_THAT(shown(grant.nodes().at(0)).labels, ElementsAre(Pair("a", "b")));
    grant.release();
    serve();
    Semaphore semaphore(*session, "/s", 3, of_lock);
    EXPECT_EQ(served([&] { grant = semaphore.try_acquire_for(2, 10s); }), "ok");
    ASSERT_THAT(grant.nodes(), SizeIs(2));
    EXPECT_EQ(set(grant, {{"a", "b"}}), "written");
    for (const auto& node : grant.nodes()) EXPECT_THAT(shown(node).labels, ElementsAre(Pair("a", "b")));
}

TEST_F(LabelsTest, OfAShareThatAWriterTookAreItsOwn) {
    ReadWriteLock lock(*session, "/l", of_lock);
    EXPECT_EQ(served([&] {
                  const Grant writer = lock.acquire();
                  Grant reader = lock.downgrade(writer);
                  EXPECT_TRUE(reader.set_labels({{"a", "b"}}));
                  EXPECT_THAT(shown(reader.node()).labels, ElementsAre(Pair("a", "b")));
                  EXPECT_THAT(shown(writer.node()).labels, ElementsAre(Pair("step", "1")));
              }),
              "ok");
}

TEST_F(LabelsTest, BoundsAndRightsAreThoseOfTheConstructor) {
    of_lock.name = std::string(300, 'n');
    ExclusiveMutex mutex(*session, "/l", of_lock);
    Grant grant = acquire(mutex);
    asked.clear();
    EXPECT_EQ(set(grant, {{"a", std::string(512, 'b')}}), name_of(Errc::bad_option));
    EXPECT_EQ(code_of([&] { grant.set_labels_async({}, {}, {}, nullptr); }), Errc::bad_option);
    EXPECT_THAT(asked, IsEmpty());
    EXPECT_EQ(set(grant, {{"a", std::string(200, 'b')}}), "written") << "the name is cut";
    EXPECT_LE(data_of(grant).size(), 512u);
    EXPECT_THAT(shown(grant.node()).labels, SizeIs(1));
    refusals = {{"multi " + grant.node(), Rc::no_auth}};
    EXPECT_EQ(set(grant, {}), name_of(Errc::no_permission));
    refusals.clear();
    EXPECT_TRUE(grant.held());
}

TEST_F(LabelsTest, ALeadershipHasNone) {
    put("/e");
    LeaderElection election(*session, "/e");
    Grant grant;
    EXPECT_EQ(served([&] { grant = election.campaign(); }), "ok");
    const std::string before = data_of(grant);
    asked.clear();
    EXPECT_EQ(set(grant, {{"a", "b"}}), name_of(Errc::unsupported));
    EXPECT_THAT(asked, IsEmpty());
    EXPECT_EQ(data_of(grant), before);
}

}  // namespace
}  // namespace zkrecipes::testing
