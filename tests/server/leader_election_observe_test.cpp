// Observers: what they are told, in which order, and what it costs.
#include "server/leader_election_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using testenv::Record;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Writes down who leads, "-" for nobody.
class Told {
public:
    LeaderElection::Observer writer() {
        return [this](const std::optional<Participant>& leader) {
            const std::lock_guard lock(mutex_);
            told_.push_back(leader ? leader->id : "-");
            tokens_.push_back(leader ? leader->token : 0);
        };
    }
    std::vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    std::string last() const {
        const std::lock_guard lock(mutex_);
        return told_.empty() ? "" : told_.back();
    }
    std::vector<std::int64_t> tokens() const {
        const std::lock_guard lock(mutex_);
        return tokens_;
    }
    bool await_last(const std::string& id) const {
        return await([&] { return last() == id; });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> told_;
    std::vector<std::int64_t> tokens_;
};

class LeaderObserverTest : public LeaderElectionServerTest {
protected:
    void SetUp() override {
        LeaderElectionServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
};

TEST_F(LeaderObserverTest, AnObserverIsToldEachLeaderAndNobody) {
    auto a = session(), b = session();
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Told told;
    auto subscription = two.observe(told.writer());
    ASSERT_TRUE(told.await_last("-"));  // not even the directory is there
    Grant leadership = one.campaign();
    ASSERT_TRUE(told.await_last("one"));
    Grant next;
    two.campaign_async(kMaxWait, {}, [&](AcquireResult result) { next = std::move(result.value); });
    ASSERT_TRUE(await_nodes(2));
    leadership.release();
    ASSERT_TRUE(told.await_last("two"));
    next.release();
    ASSERT_TRUE(told.await_last("-"));
    observer().remove(lock_path());  // as the servers do with an empty container
    leadership = one.campaign();
    ASSERT_TRUE(told.await_last("one"));
    subscription.reset();
    leadership.release();
    ASSERT_TRUE(await_nodes(0));
    EXPECT_THAT(told.all(), ElementsAre("-", "one", "two", "-", "one"));
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; })) << server().four_letter("wchp");
}

TEST_F(LeaderObserverTest, ObservingIsOneWatchAndTwoReadsForEachChange) {
    auto a = session(60s), watching = gated_session(60s);
    LeaderElection one = election(a, "one"), outside = election(watching);
    std::stop_source stop;
    Grant first = one.campaign();
    std::vector<Grant> next(5);
    std::atomic<std::size_t> granted{0};
    for (std::size_t i = 0; i < next.size(); ++i) {
        one.campaign_async(kMaxWait, {}, [&](AcquireResult result) {
            const std::size_t at = granted;
            next[at] = std::move(result.value);
            ++granted;
        });
    }
    ASSERT_TRUE(await_nodes(6));
    const auto of_election = [&] {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            if (record.path.starts_with(lock_path())) out.push_back(record);
        }
        return out;
    };
    Told told;
    gate().reset_trace();
    const auto subscription = outside.observe(told.writer());
    ASSERT_TRUE(told.await_last("one"));
    EXPECT_EQ(to_string(count(of_election())), "get_data 1, get_children2 1");
    for (std::size_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(await([&] { return granted >= i; }));  // the observer may know it before the candidate does
        gate().reset_trace();
        (i == 0 ? first : next[i - 1]).release();
        ASSERT_TRUE(await([&] { return told.tokens().size() == i + 2; }));
        EXPECT_EQ(to_string(count(of_election())), "get_data 1, get_children2 1") << to_string(of_election());
        std::size_t events = 0;
        for (const auto& record : of_election()) events += record.kind == Record::Kind::event;
        EXPECT_EQ(events, 1u);
    }
    // A short cut costs nothing but the client's setting of its watches.
    gate().reset_trace();
    gate().reset_all();
    ASSERT_TRUE(watching.wait_connected(kMaxWait));
    ASSERT_TRUE(await([&] { return granted >= 4; }));
    next[3].release();
    ASSERT_TRUE(await([&] { return told.tokens().size() == 6u; }));
    EXPECT_EQ(to_string(count(of_election())), "get_data 1, get_children2 1") << to_string(of_election());
    ASSERT_TRUE(await([&] { return granted == next.size(); }));  // and nobody writes into `next` any more
    const auto tokens = told.tokens();
    EXPECT_TRUE(std::ranges::is_sorted(tokens));
}

TEST_F(LeaderObserverTest, ASlowOneIsToldTheLatestAndOneThatThrowsGoesOn) {  // H60
    auto a = session(), watching = session();
    LeaderElection one = election(a, "one"), outside = election(watching);
    Told told;
    std::promise<void> busy;
    std::atomic<bool> entered{false};
    const auto write = told.writer();
    const auto subscription = outside.observe([&](const std::optional<Participant>& leader) {
        write(leader);
        if (!entered.exchange(true)) busy.get_future().wait();
        if (leader) throw std::runtime_error("an observer that fails");
    });
    ASSERT_TRUE(await([&] { return entered.load(); }));
    FencingToken last = 0;
    for (int i = 0; i < 100; ++i) {
        Grant leadership = one.campaign();
        last = leadership.token();
        if (i < 99) leadership.release_and_wait(kMaxWait);
        if (i == 99) {
            // Another observer of the same session has not been told either; the servers' word has arrived, though.
            EXPECT_EQ(outside.leader()->token, last);
            busy.set_value();
            EXPECT_TRUE(told.await_last("one"));
            EXPECT_TRUE(await([&] { return told.tokens().back() == last; }));
            EXPECT_LT(told.all().size(), 100u);
            EXPECT_TRUE(std::ranges::is_sorted(told.tokens()));
        }
    }
    EXPECT_TRUE(told.await_last("-"));
}

TEST_F(LeaderObserverTest, AnEndedSessionIsFollowedByTheNextWithoutAStaleWord) {  // H56, H61
    auto a = session(), watching = gated_session();
    LeaderElection one = election(a, "one"), outside = election(watching);
    Told told;
    const auto subscription = outside.observe(told.writer());
    ASSERT_TRUE(told.await_last("-"));
    for (int round = 0; round < 2; ++round) {
        Grant leadership = one.campaign();
        ASSERT_TRUE(await([&] { return told.tokens().size() > 0 && told.tokens().back() == leadership.token(); }));
        const auto former = watching.info().session_id;
        gate().expire(former);
        leadership.release_and_wait(kMaxWait);
        ASSERT_TRUE(await([&] { return watching.info().session_id != former; }));
        ASSERT_TRUE(told.await_last("-"));
    }
    EXPECT_THAT(told.all(), ElementsAre("-", "one", "-", "one", "-"));
}

TEST_F(LeaderObserverTest, AnObserverMayEndItsSubscriptionAndCallTheElection) {  // H62, H65
    auto s = session();
    LeaderElection one = election(s, "one");
    std::atomic<int> told{0};
    std::atomic<bool> led{false};
    Subscription subscription;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    subscription = one.observe([&](const std::optional<Participant>&) {
        const std::lock_guard inside(mutex);
        ++told;
        EXPECT_FALSE(one.resign());
        one.campaign_async(kMaxWait, {}, [&](AcquireResult result) { led = result.value.held(); });
        subscription.reset();
    });
    lock.unlock();
    EXPECT_TRUE(await([&] { return led.load(); }));
    EXPECT_TRUE(await_nodes(0));
    EXPECT_EQ(told, 1);
}

TEST_F(LeaderObserverTest, AfterTheEndOfTheSessionNothingIsToldAndNothingIsLeft) {  // H64
    auto a = session();
    Told told;
    Subscription subscription;
    {
        auto watching = session();
        LeaderElection outside = election(watching);
        subscription = outside.observe(told.writer());
        ASSERT_TRUE(told.await_last("-"));
        watching.close();
        EXPECT_EQ(error_of([&] { (void)outside.observe(told.writer()); }).errc(), Errc::closed);
        EXPECT_EQ(error_of([&] { (void)outside.observe({}); }).errc(), Errc::bad_option);
    }
    LeaderElection one = election(a, "one");
    const Grant leadership = one.campaign();
    EXPECT_THAT(told.all(), ElementsAre("-"));
    subscription.reset();
}

}  // namespace
}  // namespace zkrecipes::test
