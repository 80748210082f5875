// Counters on real servers: what they cost, what happens when answers are lost, and that nothing is lost or done twice
// when many count at once.
#include <zkrecipes/atomic_counter.hpp>

#include <limits>
#include <set>

#include "core/value/big_endian.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using internal::from_big_endian;
using internal::to_big_endian;
using testenv::Match;
using testenv::Opcode;
using testenv::Record;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AtomicCounterTest : public ExclusiveMutexServerTest {
protected:
    std::string counter_path() const { return path("numbers/counter"); }
    std::string marks_path() const { return path("marks"); }
    CounterOptions exactly_once() const {
        CounterOptions options;
        options.idempotent_in = marks_path();
        return options;
    }
    std::int64_t number() { return *from_big_endian<std::int64_t>(observer().get(counter_path())->data); }
    void put(std::int64_t number) {
        if (!observer().exists(counter_path())) {
            observer().make_path(counter_path());
        }
        observer().set(counter_path(), to_big_endian(number));
    }
    Match write() const { return Match::op(Opcode::multi).path_is(counter_path()); }
    Match look() const { return Match::op(Opcode::get_data).path_is(counter_path()); }

    /// What went through the gate for the counter, and the answers.
    std::vector<Record> traffic() {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            if (record.kind != Record::Kind::request && record.kind != Record::Kind::reply) continue;
            const bool ours = record.path == counter_path() || std::ranges::any_of(record.parts, [&](const auto& part) {
                                  return part.path == counter_path();
                              });
            const bool answer = record.kind == Record::Kind::reply &&
                                (record.opcode == Opcode::multi || record.opcode == Opcode::get_data);
            if (ours || answer) out.push_back(record);
        }
        return out;
    }
};

TEST_F(AtomicCounterTest, ItIsWhatCuratorWritesAndBeginsAtZero) {
    auto s = session();
    AtomicCounter counter(s, counter_path());
    EXPECT_EQ(counter.get(), 0);
    EXPECT_FALSE(observer().exists(counter_path())) << "a look makes nothing";
    const auto first = counter.subtract(2);
    EXPECT_EQ(first.before, 0);
    EXPECT_EQ(first.after, -2);
    const auto node = observer().get(counter_path());
    EXPECT_EQ(node->data, "\xff\xff\xff\xff\xff\xff\xff\xfe");
    EXPECT_EQ(node->stat.ephemeral_owner, 0);
    EXPECT_EQ(counter.increment().after, -1);
    EXPECT_EQ(counter.decrement().after, -2);
    EXPECT_EQ(counter.add(std::int64_t{1} << 40).after, (std::int64_t{1} << 40) - 2);
    EXPECT_EQ(counter.get(Fresh::yes, kMaxWait), (std::int64_t{1} << 40) - 2);

    const auto other = counter.compare_and_set(1, 5);
    EXPECT_FALSE(other->changed);
    EXPECT_EQ(other->before, (std::int64_t{1} << 40) - 2);
    EXPECT_TRUE(counter.compare_and_set((std::int64_t{1} << 40) - 2, 5)->changed);
    const auto exchanged = counter.exchange(9);
    EXPECT_EQ(exchanged->before, 5);
    EXPECT_EQ(exchanged->after, 9);
    counter.force_set(-7);
    EXPECT_EQ(number(), -7);
    EXPECT_FALSE(counter.initialize(3));
    EXPECT_EQ(number(), -7);

    ASSERT_TRUE(observer().remove(counter_path()));
    EXPECT_TRUE(counter.initialize(3));
    EXPECT_EQ(number(), 3);
    ASSERT_TRUE(observer().remove(counter_path()));
    counter.force_set(4);
    EXPECT_EQ(number(), 4);
    ASSERT_TRUE(observer().remove(counter_path()));
    EXPECT_TRUE(counter.compare_and_set(0, 6)->changed) << "where there is none it is 0";
    EXPECT_EQ(number(), 6);
    observer().set(counter_path(), "");
    EXPECT_EQ(counter.increment().after, 1);

    CounterOptions four;
    four.size = CounterSize::four_bytes;
    AtomicCounter small(s, path("small"), four);
    EXPECT_EQ(small.subtract(2).after, -2);
    EXPECT_EQ(observer().get(path("small"))->data, "\xff\xff\xff\xfe");
}

TEST_F(AtomicCounterTest, WhatItCosts) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    put(0);
    gate().delay(testenv::Direction::to_client, kReplyDelay);
    const auto session_id = s.info().session_id;
    AtomicCounter plain(s, counter_path()), marked(s, counter_path(), exactly_once());
    const auto costs = [&](const std::string& requests, int round_trips, auto call) {
        SCOPED_TRACE(requests);
        gate().reset_trace();
        call();
        EXPECT_EQ(to_string(count(traffic())), requests);
        EXPECT_EQ(testenv::round_trips(traffic(), session_id), round_trips);
    };
    costs("get_data 1", 1, [&] { EXPECT_EQ(plain.get(), 0); });
    costs("get_data 1, multi 1", 2, [&] { EXPECT_EQ(plain.increment().after, 1); });
    costs("multi 1", 1, [&] { plain.force_set(2); });
    costs("multi 1", 1, [&] { EXPECT_FALSE(plain.initialize(2)); });
    costs("get_data 1", 1, [&] { EXPECT_FALSE(plain.compare_and_set(7, 8)->changed); });
    marked.increment();  // makes the directory of the marks
    costs("get_data 1, multi 1", 2, [&] { EXPECT_EQ(marked.increment().after, 4); });
    EXPECT_TRUE(await([&] { return nodes_of(marks_path()).empty(); }));
}

TEST_F(AtomicCounterTest, ALostAnswerIsUnknownAndNothingIsSentAgain) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    AtomicCounter counter(s, counter_path());
    put(0);
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const auto before = number();
        const auto fault = after ? gate().cut_after(write()) : gate().cut_before(write());
        const Error error = error_of([&] { counter.increment(); });
        EXPECT_EQ(error.errc(), Errc::outcome_unknown) << error.what();
        EXPECT_TRUE(fault.reached());
        EXPECT_EQ(counter.get(Fresh::yes), before + (after ? 1 : 0)) << "nothing comes later";
    }
}

TEST_F(AtomicCounterTest, WithMarksALostAnswerIsFoundOut) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    AtomicCounter counter(s, counter_path(), exactly_once());
    // The first one makes the directory of the marks and the node; the second one finds them there.
    for (const bool after : {true, false}) {
        SCOPED_TRACE(after);
        const auto before = after ? 0 : number();
        const auto fault = after ? gate().cut_after(write()) : gate().cut_before(write());
        const auto change = counter.increment();
        EXPECT_TRUE(fault.reached());
        EXPECT_EQ(change.before, before);
        EXPECT_EQ(change.after, before + 1);
        EXPECT_EQ(number(), before + 1);
        EXPECT_TRUE(await([&] { return nodes_of(marks_path()).empty(); }));
    }
}

TEST_F(AtomicCounterTest, WhenTheSessionEndsTheMarkTellsNothingAnyMore) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    AtomicCounter counter(s, counter_path(), exactly_once());
    counter.increment();
    const auto held_back = gate().hold_reply(write());
    const auto session_id = s.info().session_id;
    std::jthread expire([&] {
        EXPECT_TRUE(held_back.wait_reached());
        gate().expire(session_id);
        held_back.drop();
    });
    EXPECT_EQ(error_of([&] { counter.increment(); }).errc(), Errc::outcome_unknown);
    expire.join();
    EXPECT_EQ(number(), 2) << "this one had happened";
    EXPECT_EQ(counter.increment().after, 3) << "on the next session";
}

TEST_F(AtomicCounterTest, WhoeverIsOvertakenOrLosesTheNodeLooksAgain) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    AtomicCounter counter(s, counter_path());
    put(0);
    const auto meanwhile = [&](auto call, auto others) {
        const auto held_back = gate().hold_reply(look());
        std::jthread other([&] {
            EXPECT_TRUE(held_back.wait_reached());
            others();
            held_back.release();
        });
        return call();
    };
    const auto increment = [&] { return counter.increment(); };
    gate().reset_trace();
    EXPECT_EQ(meanwhile(increment, [&] { put(10); }).after, 11);
    EXPECT_EQ(to_string(count(traffic())), "get_data 2, multi 2") << "what it lost against is seen without a sync";
    EXPECT_EQ(meanwhile(increment, [&] { observer().remove(counter_path()); }).after, 1);
    observer().remove(counter_path());
    EXPECT_EQ(meanwhile(increment, [&] { put(20); }).after, 21) << "made by somebody else";
    const auto compared = meanwhile([&] { return counter.compare_and_set(21, 0); }, [&] { put(5); });
    EXPECT_FALSE(compared->changed);
    EXPECT_EQ(compared->before, 5);
    EXPECT_TRUE(meanwhile([&] { return counter.compare_and_set(5, 6); }, [&] { put(5); })->changed);

    CounterOptions impatient;
    impatient.conflicts = RetryPolicy::never();
    AtomicCounter once(s, counter_path(), impatient);
    EXPECT_EQ(error_of([&] { meanwhile([&] { return once.increment(); }, [&] { put(30); }); }).errc(),
              Errc::bad_version);
    EXPECT_EQ(number(), 30);
    EXPECT_FALSE(meanwhile([&] { return counter.try_add_until(1, Deadline::passed()); }, [&] { put(40); }))
        << "one attempt";
    EXPECT_EQ(number(), 40);
}

TEST_F(AtomicCounterTest, AfterConflictsItGoesOnUnderTheLock) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s), holder = session();
    CounterOptions options;
    options.conflicts = RetryPolicy::never();
    options.lock_path = lock_path();
    AtomicCounter counter(s, counter_path(), options);
    put(0);
    ExclusiveMutex mutex(holder, lock_path());
    Grant grant = mutex.acquire();
    auto held_back = gate().hold_reply(look());
    auto counting = std::async(std::launch::async, [&] { return counter.increment(); });
    ASSERT_TRUE(held_back.wait_reached());
    put(10);
    held_back.release();
    EXPECT_TRUE(await_nodes(2)) << "it waits for the lock";
    put(20);
    grant.release();
    EXPECT_EQ(counting.get().after, 21);
    EXPECT_TRUE(await_nodes(0)) << "and has given it back";

    grant = mutex.acquire();
    held_back = gate().hold_reply(look());
    std::stop_source stop;
    auto stopped = std::async(std::launch::async, [&] { return counter.try_add_until(1, kMaxWait, stop.get_token()); });
    ASSERT_TRUE(held_back.wait_reached());
    put(30);
    held_back.release();
    EXPECT_TRUE(await_nodes(2));
    stop.request_stop();
    EXPECT_FALSE(stopped.get());
    EXPECT_TRUE(await_nodes(1));
    EXPECT_EQ(number(), 30);
}

TEST_F(AtomicCounterTest, WhatCannotBeCountedIsAnErrorAndLeavesItAsItIs) {
    auto s = session();
    AtomicCounter counter(s, counter_path());
    put(std::numeric_limits<std::int64_t>::max());
    const Error overflow = error_of([&] { counter.increment(); });
    EXPECT_EQ(overflow.errc(), Errc::bad_option);
    EXPECT_THAT(overflow.what(), HasSubstr("nothing was written"));
    EXPECT_EQ(number(), std::numeric_limits<std::int64_t>::max());
    CounterOptions four;
    four.size = CounterSize::four_bytes;
    AtomicCounter small(s, counter_path(), four);
    EXPECT_EQ(error_of([&] { small.increment(); }).errc(), Errc::bad_data);
    EXPECT_EQ(error_of([&] { small.get(); }).errc(), Errc::bad_data);
    EXPECT_EQ(error_of([&] { small.force_set(std::int64_t{1} << 31); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { small.initialize(-(std::int64_t{1} << 31) - 1); }).errc(), Errc::bad_option);
    EXPECT_EQ(number(), std::numeric_limits<std::int64_t>::max());

    const auto wrong = [&](Errc errc, const std::string& where, CounterOptions options) {
        EXPECT_EQ(error_of([&] { AtomicCounter made(s, where, options); }).errc(), errc);
    };
    CounterOptions below;
    wrong(Errc::bad_path, "relative", below);
    wrong(Errc::bad_path, "/", below);
    below.idempotent_in = counter_path() + "/marks";
    wrong(Errc::bad_option, counter_path(), below);
    below.idempotent_in.clear();
    below.lock_path = counter_path();
    wrong(Errc::bad_option, counter_path(), below);
    below.lock_path.clear();
    below.acl = std::vector<Acl>();
    wrong(Errc::bad_option, counter_path(), below);

    CounterOptions no_parents;
    no_parents.create_parents = false;
    AtomicCounter orphan(s, path("missing/counter"), no_parents);
    EXPECT_EQ(error_of([&] { orphan.increment(); }).errc(), Errc::no_parent);
    EXPECT_FALSE(observer().exists(path("missing")));
}

TEST_F(AtomicCounterTest, DeadlinesStopsAndTheEndOfTheSession) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    AtomicCounter counter(s, counter_path());
    put(0);
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_FALSE(counter.try_add_until(1, kMaxWait, stopped.get_token()));
    EXPECT_TRUE(counter.try_add_until(1, Deadline::passed())) << "one attempt is enough";
    EXPECT_EQ(number(), 1);

    auto held_back = gate().hold_reply(write());
    std::stop_source stop;
    std::jthread stopper([&] {
        EXPECT_TRUE(held_back.wait_reached());
        stop.request_stop();
    });
    EXPECT_EQ(error_of([&] { (void)counter.try_add_until(1, kMaxWait, stop.get_token()); }).errc(),
              Errc::outcome_unknown);
    stopper.join();
    held_back.release();
    EXPECT_EQ(number(), 2);

    held_back = gate().hold_reply(look());
    EXPECT_FALSE(counter.try_add_for(1, 2s)) << "nothing was sent";
    EXPECT_TRUE(held_back.wait_reached());
    held_back.release();
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    EXPECT_FALSE(counter.try_add_until(1, Deadline::passed()));
    EXPECT_EQ(error_of([&] { counter.force_set(1, 50ms); }).errc(), Errc::unreachable);
    EXPECT_EQ(error_of([&] { counter.get(Fresh::no, 50ms); }).errc(), Errc::unreachable);
    EXPECT_EQ(number(), 2);
    std::promise<CounterResult> closed;
    counter.add_async(1, Deadline::never(), {}, [&](CounterResult result) { closed.set_value(std::move(result)); });
    s.close();
    auto answer = closed.get_future();
    ASSERT_EQ(answer.wait_for(kMaxWait), std::future_status::ready);
    EXPECT_EQ(error_of([error = answer.get().error] { std::rethrow_exception(error); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { counter.increment(); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { counter.add_async(1, {}, {}, [](CounterResult) {}); }).errc(), Errc::closed);
    gate().pass();
}

TEST_F(AtomicCounterTest, AsCallbackInANamespaceAndWithAnAccessList) {
    auto options = session_options(connect_string());
    options.path_prefix = root();
    Session s(options);
    ASSERT_TRUE(s.wait_connected(kMaxWait));
    observer().make_path(path("numbers"));
    CounterOptions readable = exactly_once();
    readable.idempotent_in = "/marks";
    readable.acl = {Acl{Acl::read | Acl::write, "world", "anyone"}};
    AtomicCounter counter(s, "/numbers/counter", readable);
    std::promise<CounterResult> done;
    counter.add_async(4, kMaxWait, {}, [&](CounterResult result) { done.set_value(std::move(result)); });
    auto answer = done.get_future();
    ASSERT_EQ(answer.wait_for(kMaxWait), std::future_status::ready);
    const auto result = answer.get();
    ASSERT_TRUE(result.value);
    EXPECT_EQ(result.value->after, 4);
    EXPECT_EQ(number(), 4);
    EXPECT_THROW((void)observer().create(counter_path() + "/child"), testenv::RawError)
        << "the access list is the counter's";
    EXPECT_EQ(error_of([&] { counter.add_async(1, {}, {}, {}); }).errc(), Errc::bad_option);
}

/// What many have counted at once, on threads and fibers, while answers are lost.
struct Counted {
    int done = 0;
    int unknown = 0;
    std::set<std::int64_t> results;
};

Counted count_together(std::vector<Session>& sessions, const std::string& path, const CounterOptions& options,
                       int fibers, int rounds) {
    Counted all;
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (auto& s : sessions) {
        threads.emplace_back([&] {
            AtomicCounter counter(s, path, options);
            std::vector<boost::fibers::fiber> crowd;
            for (int i = 0; i < fibers; ++i) {
                crowd.emplace_back([&] {
                    for (int round = 0; round < rounds; ++round) {
                        std::optional<std::int64_t> result;
                        try {
                            result = counter.increment().after;
                        } catch (const Error& error) {
                            EXPECT_EQ(error.errc(), Errc::outcome_unknown) << error.what();
                        }
                        const std::lock_guard lock(mutex);
                        result ? ++all.done : ++all.unknown;
                        EXPECT_TRUE(!result || all.results.insert(*result).second) << *result << " twice";
                    }
                });
            }
            for (auto& fiber : crowd) fiber.join();
        });
    }
    threads.clear();
    return all;
}

TEST_F(AtomicCounterTest, ManyAtOnceThroughLostAnswersLoseNothingAndDoNothingTwice) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    constexpr int kSessions = 3, kFibers = 3, kRounds = 8, kAll = kSessions * kFibers * kRounds;
    for (const bool marks : {true, false}) {
        SCOPED_TRACE(marks);
        std::vector<Session> sessions;
        for (int i = 0; i < kSessions; ++i) sessions.push_back(gated_session(60s));
        gate().cut_after(write().nth(2));
        gate().cut_before(write().nth(14));
        gate().cut_after(write().nth(26));
        CounterOptions options = marks ? exactly_once() : CounterOptions();
        options.lock_path = lock_path();
        const Counted counted = count_together(sessions, counter_path(), options, kFibers, kRounds);
        const auto sum = number();
        if (marks) {
            EXPECT_EQ(counted.done, kAll);
            EXPECT_EQ(sum, kAll);
            EXPECT_EQ(*counted.results.rbegin(), kAll);
            EXPECT_TRUE(await([&] { return nodes_of(marks_path()).empty(); }));
        } else {
            EXPECT_GT(counted.unknown, 0);
            EXPECT_EQ(counted.done + counted.unknown, kAll);
            EXPECT_GE(sum, counted.done);
            EXPECT_LE(sum, kAll);
        }
        EXPECT_TRUE(await_nodes(0));
        observer().remove(counter_path());
    }
}

}  // namespace
}  // namespace zkrecipes::test
