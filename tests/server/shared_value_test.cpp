// Shared values and counts on real servers: what they cost, that nobody is told an earlier value after a later one, and
// what happens when answers are lost, sessions end and nodes are deleted.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>

#include "core/value/big_endian.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using testenv::Record;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Told = std::optional<VersionedValue>;

/// What an observer was told.
class Audience {
public:
    SharedValue::Observer observer() {
        return [this](const Told& value) {
            const std::lock_guard lock(mutex_);
            told_.push_back(value);
        };
    }
    std::vector<Told> all() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    bool await_last(const Told& value) const {
        return await([&] {
            const auto told = all();
            return !told.empty() && told.back() == value;
        });
    }

private:
    mutable std::mutex mutex_;
    std::vector<Told> told_;
};

class SharedValueTest : public ExclusiveMutexServerTest {
protected:
    std::string value_path() const { return path("shared/value"); }
    std::string data() { return observer().get(value_path())->data; }
    std::int32_t version() { return observer().get(value_path())->stat.version; }
    void put(const std::string& data) {
        if (!observer().exists(value_path())) observer().make_path(value_path());
        observer().set(value_path(), data);
    }
    Match write() const { return Match::op(Opcode::multi).path_is(value_path()); }
    /// Nothing is known to come any more: from then on asking for the value costs nothing.
    bool await_followed(SharedValue& value) {
        return await([&] {
            value.get();
            gate().reset_trace();
            value.get();
            return traffic().empty();
        });
    }
    std::vector<Record> traffic() {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            if (record.kind != Record::Kind::request && record.kind != Record::Kind::reply) continue;
            const bool ours = record.path == value_path() || std::ranges::any_of(record.parts, [&](const auto& part) {
                                  return part.path == value_path();
                              });
            if (ours || (record.kind == Record::Kind::reply && record.opcode == Opcode::multi)) out.push_back(record);
        }
        return out;
    }
};

TEST_F(SharedValueTest, TheFirstWhoLooksMakesItWithTheSeed) {
    auto s = session(), t = session();
    SharedValue one(s, value_path(), "seed"), two(t, value_path(), "another");
    EXPECT_FALSE(observer().exists(value_path())) << "the object alone sends nothing";
    EXPECT_EQ(one.get(), (VersionedValue{"seed", 0}));
    EXPECT_EQ(observer().get(value_path())->stat.ephemeral_owner, 0);
    EXPECT_EQ(two.get(), (VersionedValue{"seed", 0}));
    EXPECT_TRUE(two.try_set(0, "second"));
    EXPECT_EQ(two.get(), (VersionedValue{"second", 1})) << "what it has written, it knows";
    EXPECT_FALSE(one.try_set(0, "late"));
    EXPECT_TRUE(await([&] { return one.get() == VersionedValue{"second", 1}; }));
    one.set("third");
    EXPECT_EQ(one.get(), (VersionedValue{"third", 2}));
    EXPECT_EQ(data(), "third");

    // Deleted: a condition fails, a look makes it again, and so does a write.
    ASSERT_TRUE(observer().remove(value_path()));
    EXPECT_FALSE(one.try_set(2, "no"));
    EXPECT_TRUE(await([&] { return one.get() == VersionedValue{"seed", 0}; }));
    ASSERT_TRUE(observer().remove(value_path()));
    two.set("made");
    EXPECT_EQ(version(), 0);
    EXPECT_TRUE(await([&] { return one.get() == VersionedValue{"made", 0}; }));
    EXPECT_EQ(error_of([&] { (void)one.try_set(-1, "whatever it is"); }).errc(), Errc::unsupported);
    EXPECT_EQ(data(), "made");
}

TEST_F(SharedValueTest, WhatItCosts) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    SharedValue value(s, value_path(), "0");
    const auto session_id = s.info().session_id;
    ASSERT_TRUE(await_followed(value)) << "a value that is followed costs no request";
    // Without a follower nothing comes behind a write.
    SharedValue alone(s, path("alone"), "0");
    gate().delay(testenv::Direction::to_client, kReplyDelay);
    const auto of_alone = [&] {
        std::vector<Record> out;
        for (const auto& record : gate().trace()) {
            if (record.opcode == Opcode::multi) out.push_back(record);
        }
        return out;
    };
    observer().create(path("alone"), "x");
    for (const bool conditional : {false, true}) {
        gate().reset_trace();
        if (conditional) {
            EXPECT_TRUE(alone.try_set(1, "y"));
        } else {
            alone.set("y");
        }
        EXPECT_EQ(gate().counts()[Opcode::multi], 1u);
        EXPECT_EQ(testenv::round_trips(of_alone(), session_id), 1);
    }
}

TEST_F(SharedValueTest, ObserversAreToldTheLatestAndNeverAnEarlierOneAfterIt) {
    auto s = session(), t = session();
    SharedValue value(s, value_path(), "0");
    Audience audience, second;
    auto subscription = value.observe(audience.observer());
    ASSERT_TRUE(audience.await_last(VersionedValue{"0", 0})) << "the seed";
    SharedValue writer(t, value_path(), "0");
    for (int i = 1; i <= 200; ++i) writer.set(std::to_string(i));
    ASSERT_TRUE(audience.await_last(VersionedValue{"200", 200}));
    std::int32_t last = -1;
    for (const auto& told : audience.all()) {
        if (!told) continue;  // before the seed
        EXPECT_GT(told->version, last);
        EXPECT_EQ(told->value, std::to_string(told->version));
        last = told->version;
    }
    const auto later = value.observe(second.observer());
    ASSERT_TRUE(second.await_last(VersionedValue{"200", 200}));
    subscription.reset();
    const auto told = audience.all().size();
    ASSERT_TRUE(observer().remove(value_path()));
    ASSERT_TRUE(second.await_last(std::nullopt)) << "deleted";
    EXPECT_EQ(audience.all().size(), told) << "nothing after the subscription";
    EXPECT_EQ(value.get(), (VersionedValue{"0", 0}));
    ASSERT_TRUE(second.await_last(VersionedValue{"0", 0})) << "made again, with a lower version";
    EXPECT_EQ(error_of([&] { (void)value.observe(nullptr); }).errc(), Errc::bad_option);
}

TEST_F(SharedValueTest, ItGoesOnAcrossBrokenConnectionsAndSessions) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    SharedValue value(s, value_path(), "0");
    Audience audience;
    const auto subscription = value.observe(audience.observer());
    ASSERT_TRUE(audience.await_last(VersionedValue{"0", 0}));
    EXPECT_EQ(value.get().value, "0");
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    put("1");
    EXPECT_EQ(value.get(), (VersionedValue{"0", 0})) << "what was known last";
    gate().pass();
    ASSERT_TRUE(audience.await_last(VersionedValue{"1", 1}));
    EXPECT_TRUE(await([&] { return value.get().value == "1"; }));

    const auto former = s.info().session_id;
    gate().expire(former);
    put("2");
    ASSERT_TRUE(audience.await_last(VersionedValue{"2", 2}));
    EXPECT_TRUE(await([&] { return value.get().value == "2"; }));
    EXPECT_NE(s.info().session_id, former);
    s.close();
    EXPECT_EQ(error_of([&] { value.get(); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { value.set("3"); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { value.set_async("3", {}, {}, [](SetResult) {}); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { (void)value.observe(audience.observer()); }).errc(), Errc::closed);
}

TEST_F(SharedValueTest, ALostAnswerOfAWriteIsUnknownAndWithAMarkItIsFoundOut) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    SharedValueOptions with_marks;
    with_marks.idempotent_in = path("marks");
    SharedValue plain(s, value_path(), "0"), marked(s, value_path(), "0", with_marks);
    plain.get();
    auto fault = gate().cut_after(write());
    EXPECT_EQ(error_of([&] { plain.set("1"); }).errc(), Errc::outcome_unknown);
    EXPECT_TRUE(fault.reached());
    EXPECT_EQ(read_node(s, value_path(), Fresh::yes, kMaxWait)->version, 1);
    EXPECT_TRUE(await([&] { return plain.get() == VersionedValue{"1", 1}; })) << "it is followed";

    fault = gate().cut_after(write());
    marked.set("2");
    EXPECT_TRUE(fault.reached());
    EXPECT_EQ(marked.get(), (VersionedValue{"2", 2}));
    fault = gate().cut_before(write());
    EXPECT_TRUE(marked.try_set(2, "3"));
    EXPECT_TRUE(fault.reached());
    EXPECT_EQ(marked.get(), (VersionedValue{"3", 3}));
    EXPECT_TRUE(await([&] { return nodes_of(path("marks")).empty(); }));

    // A look, and the making of the node, are done again.
    SharedValue fresh(s, path("fresh"), "seed");
    fault = gate().cut_after(Match::op(Opcode::multi).path_is(path("fresh")));
    EXPECT_EQ(fresh.get(), (VersionedValue{"seed", 0}));
    EXPECT_TRUE(fault.reached());
}

TEST_F(SharedValueTest, DeadlinesStopsCallbacksAndSizes) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(60s);
    SharedValue value(s, value_path(), "0");
    std::promise<SetResult> written, refused;
    value.set_async("1", kMaxWait, {}, [&](SetResult result) { written.set_value(std::move(result)); });
    auto good = written.get_future();
    ASSERT_EQ(good.wait_for(kMaxWait), std::future_status::ready);
    EXPECT_EQ(good.get().value, true);
    EXPECT_EQ(version(), 0) << "made";
    value.try_set_async(7, "2", kMaxWait, {}, [&](SetResult result) { refused.set_value(std::move(result)); });
    auto bad = refused.get_future();
    ASSERT_EQ(bad.wait_for(kMaxWait), std::future_status::ready);
    EXPECT_EQ(bad.get().value, false);
    EXPECT_EQ(error_of([&] { value.set_async("1", {}, {}, nullptr); }).errc(), Errc::bad_option);

    const std::string large(1'000'000, 'x');
    EXPECT_EQ(error_of([&] { value.set(large); }).errc(), Errc::too_large);
    EXPECT_EQ(error_of([&] { value.try_set_async(0, large, {}, {}, [](SetResult) {}); }).errc(), Errc::too_large);
    EXPECT_EQ(error_of([&] { SharedValue made(s, value_path(), large); }).errc(), Errc::too_large);
    value.set(std::string(800'000, 'x'));
    EXPECT_EQ(value.get().value.size(), 800'000u);

    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(error_of([&] { value.set("3", kMaxWait, stopped.get_token()); }).errc(), Errc::unreachable);
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    EXPECT_EQ(error_of([&] { value.set("3", 50ms); }).errc(), Errc::unreachable);
    SharedValue other(s, path("other"), "0");
    EXPECT_EQ(error_of([&] { other.get(50ms); }).errc(), Errc::unreachable);
    EXPECT_EQ(error_of([&] { other.get(kMaxWait, stopped.get_token()); }).errc(), Errc::unreachable);
    gate().pass();
}

TEST_F(SharedValueTest, ManyWritersOnFibersLoseNothingWithConditions) {
    auto s = session(), t = session();
    constexpr int kFibers = 6, kRounds = 8;
    for (auto* each : {&s, &t}) {
        SharedCount count(*each, value_path(), 0);
        std::vector<boost::fibers::fiber> fibers;
        for (int i = 0; i < kFibers; ++i) {
            fibers.emplace_back([&] {
                for (int done = 0; done < kRounds;) {
                    const auto now = count.get();
                    if (count.try_set(now.version, now.count + 1)) ++done;
                }
            });
        }
        for (auto& fiber : fibers) fiber.join();
    }
    EXPECT_EQ(SharedCount(s, value_path(), 0).get().count, 2 * kFibers * kRounds);
}

TEST_F(SharedValueTest, ACountIsFourBytesAndNothingElseIsOne) {
    auto s = session();
    SharedCount count(s, value_path(), -2);
    EXPECT_EQ(count.get(), (VersionedCount{-2, 0}));
    EXPECT_EQ(data(), "\xff\xff\xff\xfe");
    EXPECT_TRUE(count.try_set(0, 258));
    EXPECT_EQ(data(), std::string("\0\0\1\2", 4));
    count.set(5);
    CounterOptions four;
    four.size = CounterSize::four_bytes;
    EXPECT_EQ(AtomicCounter(s, value_path(), four).increment().after, 6);
    EXPECT_TRUE(await([&] { return count.get().count == 6; }));
    std::atomic<int> told = 0;
    const auto subscription = count.observe([&](const std::optional<VersionedCount>& seen) {
        if (seen) told = seen->count;
    });
    EXPECT_TRUE(await([&] { return told == 6; }));
    put("");  // as kazoo makes it, before it counts
    EXPECT_TRUE(await([&] { return told == -2; }));
    EXPECT_TRUE(await([&] { return count.get().count == -2; }));
    put("text");
    EXPECT_TRUE(await([&] { return told == 0x74657874; }));
    put("not a count");
    EXPECT_TRUE(await([&] {
        try {
            count.get();
            return false;
        } catch (const Error& error) {
            return error.errc() == Errc::bad_data;
        }
    }));
}

}  // namespace
}  // namespace zkrecipes::test
