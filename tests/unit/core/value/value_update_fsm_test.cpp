// Changes of a value: each request × everything that can go wrong at it, generated, and the cases that say why.
#include "core/value/value_update_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/value/big_endian.hpp"
#include "core/value/value_update_rules.hpp"
#include "unit/core/operation/operation_world.hpp"

namespace zkrecipes::internal {
namespace {

using ChangeHow = ValueUpdateEnd::How;
using WriteHow = ValueWrite::How;
constexpr NumberFormat kEight{8};
constexpr NumberFormat kFour{4};

enum class ChangeEvent {
    none,
    lost,           // the connection breaks, the request is not executed
    lost_after,     // it is executed, and the answer is lost
    not_connected,  // a write that waits for a server until it is stopped or its deadline passes
    overtaken,      // somebody else adds 100 right before
    removed,        // somebody deletes the node right before
    made,           // somebody makes it right before, where it is missing
    parents_gone,   // the directories on the way are missing
    forbidden,      // the access list does not allow it
    stopped,
    timed_out,
    closed
};
constexpr ChangeEvent kChangeEvents[] = {ChangeEvent::lost,         ChangeEvent::lost_after, ChangeEvent::not_connected,
                                         ChangeEvent::overtaken,    ChangeEvent::removed,    ChangeEvent::made,
                                         ChangeEvent::parents_gone, ChangeEvent::forbidden,  ChangeEvent::stopped,
                                         ChangeEvent::timed_out,    ChangeEvent::closed};

/// A server with one node, and commits, a lock and a connection that do what they are told.
class ChangeWorld : public ValueUpdatePort, public OperationWorld {
public:
    explicit ChangeWorld(ValueUpdateRule& rule, bool with_lock = false, bool once = false, bool directories = true)
        : lock_there(with_lock), fsm(*this, rule, {directories, once}) {
        attempts_allowed = 5;
    }

    // ---- the node, as others see it ----
    void put(std::int64_t number) {
        version = data ? version + 1 : 0;
        data = kEight.write(number);
        history.push_back(number);
    }
    std::int64_t number() const { return data ? *kEight.read(*data) : 0; }

    // ---- running ----
    bool pump() {
        if (pending) {
            const auto request = *std::exchange(pending, nullptr);
            const auto plan = plans.find(requests++);
            request(plan == plans.end() ? ChangeEvent::none : plan->second);
            return true;
        }
        if (!is_connected && !is_closed) {
            is_connected = true;
            fsm.on_connected();
            return true;
        }
        if (timer) {
            timer = false;
            fsm.on_timer();
            return true;
        }
        return false;
    }
    void run() {
        fsm.start();
        run_on();
    }
    void run_on() {
        for (int i = 0; i < 300 && pump(); ++i) {
        }
    }

    // ---- ValueUpdatePort ----
    std::optional<std::chrono::milliseconds> conflict_delay(const RetryState& state, bool under_lock) override {
        EXPECT_EQ(under_lock, locked);
        if (!under_lock && state.failures > conflicts_allowed) return std::nullopt;
        return std::chrono::milliseconds(1);
    }
    bool has_lock() const override { return lock_there; }
    bool lacks_marks() const override { return wants_marks; }

    void look(Ticket ticket, bool fresh) override {
        EXPECT_TRUE(is_connected);
        fresh_looks += fresh ? 1 : 0;
        ++looks;
        send([this, ticket](ChangeEvent event) {
            if (!common(event)) return;
            if (event == ChangeEvent::lost || event == ChangeEvent::lost_after || event == ChangeEvent::not_connected) {
                is_connected = false;
                return fsm.on_looked(ticket, Rc::connection_loss, "", {});
            }
            if (event == ChangeEvent::forbidden) return fsm.on_looked(ticket, Rc::no_auth, "", {});
            NodeStat stat;
            stat.version = version;
            fsm.on_looked(ticket, data ? Rc::ok : Rc::no_node, data.value_or(""), stat);
        });
    }
    void write(Ticket ticket, const ValueWrite& write) override {
        ++writes;
        writing = true;
        written = write;
        if (answers_at_once) {
            writing = false;
            return fsm.on_written(ticket, apply(write));
        }
        send([this, ticket, write](ChangeEvent event) {
            if (event == ChangeEvent::closed) {
                is_closed = true;
                fsm.on_closed(Errc::closed, "");  // is told first, and leaves it to the commit
                apply(write);
                return finish_write(ticket, failed(Errc::outcome_unknown));
            }
            if (!common(event)) return;
            switch (event) {
                case ChangeEvent::lost: return finish_write(ticket, failed(Errc::outcome_unknown));
                case ChangeEvent::lost_after: apply(write); return finish_write(ticket, failed(Errc::outcome_unknown));
                case ChangeEvent::not_connected: return finish_write(ticket, {});
                case ChangeEvent::forbidden: return finish_write(ticket, failed(Errc::no_permission));
                default: return finish_write(ticket, apply(write));
            }
        });
        current_write = ticket;
    }
    void make_directory(Ticket ticket, Directory which) override {
        made_directories.push_back(which);
        send([this, ticket](ChangeEvent event) {
            if (!common(event)) return;
            if (event == ChangeEvent::lost || event == ChangeEvent::not_connected) {
                is_connected = false;
                return fsm.on_directory(ticket, Rc::connection_loss);
            }
            if (event == ChangeEvent::forbidden) return fsm.on_directory(ticket, Rc::no_auth);
            has_parents = true;
            if (made_directories.back() == Directory::of_marks) wants_marks = false;
            if (event == ChangeEvent::lost_after) {
                is_connected = false;
                return fsm.on_directory(ticket, Rc::connection_loss);
            }
            fsm.on_directory(ticket, Rc::ok);
        });
    }
    void lock(Ticket ticket) override {
        ++locks;
        locking = true;
        send([this, ticket](ChangeEvent event) {
            if (event == ChangeEvent::closed) {
                is_closed = true;
                fsm.on_closed(Errc::closed, "");
                locking = false;
                return fsm.on_locked(ticket, {false, Error(Errc::closed, "lock", "")});
            }
            if (!common(event)) return;
            locking = false;
            if (event == ChangeEvent::forbidden) {
                return fsm.on_locked(ticket, {false, Error(Errc::no_permission, "lock", "")});
            }
            if (event == ChangeEvent::not_connected) return fsm.on_locked(ticket, {});
            locked = true;
            fsm.on_locked(ticket, {true, {}});
        });
        current_lock = ticket;
    }
    void unlock() override {
        EXPECT_TRUE(std::exchange(locked, false));
        ++unlocks;
    }
    void stop_waiting() override { end_wait(); }
    void answer(ValueUpdateEnd how) override {
        ++answers;
        end = std::move(how);
    }

    std::map<int, ChangeEvent> plans;
    std::optional<std::string> data;
    std::int32_t version = 0;
    bool has_parents = true;
    std::vector<std::int64_t> history{0};  // every number that it ever was
    bool answers_at_once = false, wants_marks = false;
    bool lock_there, locked = false, writing = false, locking = false;
    int conflicts_allowed = 3;
    int requests = 0, looks = 0, fresh_looks = 0, writes = 0, locks = 0, unlocks = 0, applied = 0;
    std::vector<Directory> made_directories;
    std::optional<ValueWrite> written;
    std::optional<ValueUpdateEnd> end;
    ValueUpdateFsm fsm;

private:
    using Execute = std::function<void(ChangeEvent)>;

    void send(Execute execute) {
        EXPECT_FALSE(pending);
        pending = std::make_unique<Execute>(std::move(execute));
    }
    /// What others do, and what ends the call. False: nothing is to be answered any more.
    bool common(ChangeEvent event) {
        switch (event) {
            case ChangeEvent::overtaken: put(number() + 100); return true;
            case ChangeEvent::removed:
                data.reset();
                history.push_back(0);
                return true;
            case ChangeEvent::made:
                if (!data) put(7);
                return true;
            case ChangeEvent::parents_gone:
                if (!data) has_parents = false;
                return true;
            case ChangeEvent::stopped: fsm.stop(); return answers == 0;
            case ChangeEvent::timed_out:
                fsm.deadline();
                end_wait();  // what was under way has the same deadline
                return answers == 0;
            case ChangeEvent::closed:
                is_closed = true;
                fsm.on_closed(Errc::closed, "");
                return answers == 0;
            default: return true;
        }
    }
    /// The commit is told to end, with its request on the way: nobody knows, and it is executed.
    void end_wait() {
        if (std::exchange(writing, false)) {
            apply(*written);
            fsm.on_written(current_write, failed(Errc::outcome_unknown));
        } else if (std::exchange(locking, false)) {
            fsm.on_locked(current_lock, {});
        }
    }
    void finish_write(Ticket ticket, WriteEnd how) {
        writing = false;
        fsm.on_written(ticket, std::move(how));
    }
    static WriteEnd failed(Errc errc) {
        WriteEnd how;
        how.how = WriteEnd::How::failed;
        how.error.emplace(errc, "write", "/value");
        return how;
    }
    /// As ZooKeeper does it.
    WriteEnd apply(const ValueWrite& write) {
        if (write.how == WriteHow::create) {
            if (data) return failed(Errc::node_exists);
            if (!has_parents) return failed(Errc::no_parent);
            version = 0;
        } else {
            if (!data) return failed(Errc::no_node);
            if (write.how == WriteHow::set && write.version != -1 && write.version != version) {
                return failed(Errc::bad_version);
            }
            ++version;
        }
        data = write.data;
        history.push_back(number());
        ++applied;
        WriteEnd how;
        how.how = WriteEnd::How::written;
        how.version = version;
        return how;
    }

    std::unique_ptr<Execute> pending;
    Ticket current_write = 0, current_lock = 0;
};

std::string describe_change(const ChangeWorld& world) {
    std::ostringstream text;
    for (const auto& [at, event] : world.plans) text << static_cast<int>(event) << " at " << at << "; ";
    text << world.looks << " looks, " << world.writes << " writes, " << world.locks << " locks, applied "
         << world.applied;
    if (world.end) {
        text << ", end " << static_cast<int>(world.end->how) << " "
             << (world.end->ready ? world.end->ready->what() : world.end->detail);
    }
    return text.str();
}

void expect_honest_change(const ChangeWorld& world) {
    ASSERT_EQ(world.answers, 1);
    EXPECT_FALSE(world.timer);
    EXPECT_FALSE(world.locked);
    EXPECT_FALSE(world.locking);
    EXPECT_LE(world.applied, 1) << "done twice";
    switch (world.end->how) {
        case ChangeHow::changed: EXPECT_EQ(world.applied, 1); break;
        case ChangeHow::unchanged:
        case ChangeHow::nothing: EXPECT_EQ(world.applied, 0); break;
        case ChangeHow::failed:
            if (world.end->error != Errc::outcome_unknown) {
                EXPECT_EQ(world.applied, 0);
            }
            break;
    }
}

/// Three events at the first requests, all combinations; `play` makes a world, runs it and looks at it.
template <class Play>
void three_events(Play play) {
    for (const ChangeEvent first : kChangeEvents) {
        for (const ChangeEvent second : kChangeEvents) {
            for (const ChangeEvent third : kChangeEvents) {
                play(std::map<int, ChangeEvent>{{0, first}, {1, second}, {2, third}});
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

TEST(ChangeFaultTable, AnIncrementHappensAtMostOnceOnTopOfWhatItSawAndNeverSaysWhatIsNotSo) {
    for (const bool once : {false, true}) {
        for (const bool with_lock : {false, true}) {
            for (const bool exists : {false, true}) {
                three_events([&](std::map<int, ChangeEvent> plans) {
                    NumberChange rule(NumberChange::Kind::add, kEight, 1);
                    ChangeWorld world(rule, with_lock, once);
                    world.conflicts_allowed = with_lock ? 0 : 3;
                    if (exists) world.put(41);
                    world.plans = std::move(plans);
                    world.run();
                    SCOPED_TRACE(describe_change(world));
                    expect_honest_change(world);
                    if (world.end && world.end->how == ChangeHow::changed) {
                        EXPECT_EQ(rule.after(), rule.before() + 1);
                        const auto& was = world.history;
                        bool seen = false;
                        for (std::size_t i = 1; i < was.size(); ++i) {
                            seen = seen || (was[i] == rule.after() && was[i - 1] == rule.before());
                        }
                        EXPECT_TRUE(seen) << "not on top of what it saw";
                    }
                });
            }
        }
    }
}

TEST(ChangeFaultTable, WritesWithoutALookHappenAtMostOnceAndNeverSayWhatIsNotSo) {
    for (const int kind : {0, 1, 2}) {
        for (const bool exists : {false, true}) {
            three_events([&](std::map<int, ChangeEvent> plans) {
                Overwrite any(kEight.write(5));
                CreateOnly create(kEight.write(5));
                OverwriteVersion of_version(kEight.write(5), 0);
                ValueUpdateRule& rule = kind == 0   ? static_cast<ValueUpdateRule&>(any)
                                        : kind == 1 ? static_cast<ValueUpdateRule&>(create)
                                                    : static_cast<ValueUpdateRule&>(of_version);
                ChangeWorld world(rule);
                if (exists) world.put(41);
                world.plans = std::move(plans);
                world.run();
                SCOPED_TRACE(describe_change(world));
                expect_honest_change(world);
                EXPECT_EQ(world.looks, 0);
            });
        }
    }
}

TEST(ChangeFsmTest, WithoutConflictsItIsOneLookAndOneWrite) {
    NumberChange rule(NumberChange::Kind::add, kEight, 2);
    ChangeWorld world(rule);
    world.put(40);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.looks, 1);
    EXPECT_EQ(world.writes, 1);
    EXPECT_EQ(world.fresh_looks, 0);
    EXPECT_EQ(rule.before(), 40);
    EXPECT_EQ(rule.after(), 42);
    EXPECT_EQ(world.number(), 42);
}

TEST(ChangeFsmTest, WhatIsThereIsFoundAndWhatIsNotIsMade) {
    FindOrCreate found("seed");
    ChangeWorld there(found);
    there.put(3);
    there.run();
    EXPECT_EQ(there.end->how, ChangeHow::unchanged);
    EXPECT_EQ(found.value().data, kEight.write(3));
    EXPECT_EQ(there.fresh_looks, 1);

    FindOrCreate made("seed");
    ChangeWorld missing(made);
    missing.run();
    EXPECT_EQ(missing.end->how, ChangeHow::changed);
    EXPECT_EQ(made.value().data, "seed");

    FindOrCreate late("seed");
    ChangeWorld overtaken(late);
    overtaken.plans = {{1, ChangeEvent::made}};
    overtaken.run();
    EXPECT_EQ(overtaken.end->how, ChangeHow::unchanged);
    EXPECT_EQ(late.value().data, kEight.write(7));
    EXPECT_EQ(overtaken.applied, 0);
}

TEST(ChangeFsmTest, WhatWasMadeWhileTheAnswerWasLostIsNotTakenForTheLatest) {
    const ValueWrite write{ValueWrite::How::create, "seed"};
    FindOrCreate answered("seed");
    answered.on_written(write, 0);
    ASSERT_TRUE(answered.latest());
    EXPECT_EQ(answered.latest()->data, "seed");

    // The mark says that it has happened, some time ago: others may have written since, and a watch may have told of
    // it.
    FindOrCreate recovered("seed");
    recovered.on_written(write, std::nullopt);
    EXPECT_EQ(recovered.value().data, "seed");
    EXPECT_FALSE(recovered.latest());
}

TEST(ChangeFsmTest, AMissingNodeIsZeroAndIsMadeWithTheFirstNumber) {
    NumberChange rule(NumberChange::Kind::subtract, kEight, 3);
    ChangeWorld world(rule);
    world.has_parents = false;
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.written->how, WriteHow::create);
    EXPECT_THAT(world.made_directories, testing::ElementsAre(ValueUpdatePort::Directory::parent));
    EXPECT_EQ(world.number(), -3);
}

TEST(ChangeFsmTest, TheDirectoryOfTheMarksIsMadeBeforeTheFirstWriteAndNotAgain) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.wants_marks = true;
    world.plans = {{2, ChangeEvent::overtaken}};
    world.put(1);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.writes, 2);
    EXPECT_THAT(world.made_directories, testing::ElementsAre(ValueUpdatePort::Directory::of_marks));
}

TEST(ChangeFsmTest, WhereParentsMayNotBeMadeThatIsAnError) {
    CreateOnly rule("x");
    ChangeWorld world(rule, false, false, false);
    world.has_parents = false;
    world.run();
    EXPECT_EQ(world.end->error, Errc::no_parent);
    EXPECT_TRUE(world.made_directories.empty());
}

TEST(ChangeFsmTest, AfterAConflictItLooksAgainAndNeedsNoSync) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.plans = {{1, ChangeEvent::overtaken}};
    world.put(1);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.looks, 2);
    EXPECT_EQ(world.fresh_looks, 0);
    EXPECT_EQ(world.number(), 102);
    EXPECT_EQ(rule.before(), 101);
}

TEST(ChangeFsmTest, WhenThePolicyGivesUpItGoesOnUnderTheLockAndGivesItBack) {
    for (const bool with_lock : {false, true}) {
        NumberChange rule(NumberChange::Kind::add, kEight, 1);
        ChangeWorld world(rule, with_lock);
        world.conflicts_allowed = 1;
        world.put(0);
        // Looks and writes take turns: 1 and 3 are writes, 4 the lock, 5 a look, 6 a write that meets somebody again.
        world.plans = {{1, ChangeEvent::overtaken}, {3, ChangeEvent::overtaken}, {6, ChangeEvent::overtaken}};
        world.run();
        if (with_lock) {
            EXPECT_EQ(world.end->how, ChangeHow::changed);
            EXPECT_EQ(world.locks, 1);
            EXPECT_EQ(world.unlocks, 1);
            EXPECT_EQ(world.number(), 301);
        } else {
            EXPECT_EQ(world.end->error, Errc::bad_version);
            EXPECT_EQ(world.applied, 0);
            EXPECT_EQ(world.number(), 200);
        }
    }
}

TEST(ChangeFsmTest, WhatDoesNotFitIsAnErrorAndNothingIsWritten) {
    using Limits = std::numeric_limits<std::int64_t>;
    struct Case {
        std::int64_t number, operand;
        NumberChange::Kind kind;
    };
    for (const auto& each :
         {Case{Limits::max(), 1, NumberChange::Kind::add}, Case{Limits::min(), -1, NumberChange::Kind::add},
          Case{Limits::min(), 1, NumberChange::Kind::subtract}, Case{0, Limits::min(), NumberChange::Kind::subtract}}) {
        NumberChange rule(each.kind, kEight, each.operand);
        ChangeWorld world(rule);
        world.put(each.number);
        world.run();
        EXPECT_EQ(world.end->error, Errc::bad_option);
        EXPECT_EQ(world.writes, 0);
        EXPECT_EQ(world.number(), each.number);
    }
    NumberChange fits(NumberChange::Kind::subtract, kEight, Limits::min());
    ChangeWorld world(fits);
    world.put(-1);
    world.run();
    EXPECT_EQ(world.number(), Limits::max());

    NumberChange four(NumberChange::Kind::add, kFour, 1);
    EXPECT_EQ(four.on_found(FoundValue{kFour.write(0x7fffffff), 3}).error, Errc::bad_option);
    EXPECT_EQ(four.on_found(FoundValue{kFour.write(-1), 3}).write.data, std::string(4, '\0'));
}

TEST(ChangeFsmTest, NumbersAreBigEndianAndNothingElseIsTakenForOne) {
    EXPECT_EQ(kEight.write(258), std::string("\0\0\0\0\0\0\1\2", 8));
    EXPECT_EQ(kEight.write(-2), "\xff\xff\xff\xff\xff\xff\xff\xfe");
    EXPECT_EQ(kFour.write(-2), "\xff\xff\xff\xfe");
    for (const std::int64_t number :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()}) {
        EXPECT_EQ(kEight.read(kEight.write(number)), number);
    }
    EXPECT_EQ(from_big_endian<std::int32_t>(to_big_endian(std::numeric_limits<std::int32_t>::min())),
              std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(kEight.read(""), 0) << "as Curator and kazoo have it";
    EXPECT_FALSE(kEight.read(std::string(4, '\0')));
    EXPECT_FALSE(kFour.read(std::string(8, '\0')));
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.data = "four";
    world.run();
    EXPECT_EQ(world.end->error, Errc::bad_data);
    EXPECT_EQ(world.writes, 0);
}

TEST(ChangeFsmTest, AComparisonThatFailsWritesNothingAndOneThatHoldsIsTriedUntilItIsDone) {
    NumberChange other(NumberChange::Kind::compare, kEight, 9, 1);
    ChangeWorld unchanged(other);
    unchanged.put(2);
    unchanged.run();
    EXPECT_EQ(unchanged.end->how, ChangeHow::unchanged);
    EXPECT_EQ(other.before(), 2);
    EXPECT_EQ(unchanged.writes, 0);

    NumberChange same(NumberChange::Kind::compare, kEight, 9, 0);
    ChangeWorld changed(same);
    changed.plans = {{1, ChangeEvent::made}, {3, ChangeEvent::removed}};
    changed.run();
    EXPECT_EQ(changed.end->how, ChangeHow::unchanged) << "it was made with another number in between";
    EXPECT_EQ(same.before(), 7);
}

// CURATOR-688: -1 means "whatever it is" to the servers, also where it is the version that was read.
TEST(ChangeFsmTest, AVersionThatHasComeRoundToMinusOneIsNoLicenceToOverwrite) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    OverwriteVersion of_version("x", -1);
    for (ValueUpdateRule* each : std::initializer_list<ValueUpdateRule*>{&rule, &of_version}) {
        ChangeWorld world(*each);
        world.put(5);
        world.version = -1;
        world.run();
        EXPECT_EQ(world.end->error, Errc::unsupported);
        EXPECT_EQ(world.writes, 0);
        EXPECT_EQ(world.number(), 5);
    }
    // Other versions below zero are as good as any.
    NumberChange negative(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(negative);
    world.put(5);
    world.version = std::numeric_limits<std::int32_t>::min();
    world.run();
    EXPECT_EQ(world.number(), 6);
    // Without a condition it is written, and the next version is 0.
    Overwrite any(kEight.write(7));
    ChangeWorld overwritten(any);
    overwritten.put(5);
    overwritten.version = -1;
    overwritten.run();
    EXPECT_EQ(any.version(), 0);
}

TEST(ChangeFsmTest, AfterADeadlineThatPassesDuringAWriteNothingIsSentAnyMore) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.put(5);
    world.fsm.start();
    while (world.writes == 0) ASSERT_TRUE(world.pump());
    world.fsm.deadline();
    EXPECT_EQ(world.answers, 0) << "the write has the same deadline";
    world.put(6);  // and so the write is refused
    world.run_on();
    ASSERT_EQ(world.answers, 1);
    EXPECT_EQ(world.end->how, ChangeHow::nothing);
    EXPECT_EQ(world.looks, 1);
    EXPECT_EQ(world.finishes, 1);
}

TEST(ChangeFsmTest, AWriteMayBeAnsweredBeforeItReturns) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.answers_at_once = true;
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.answers, 1);
}

TEST(ChangeFsmTest, BeforeTheFirstConnectNoPolicyGivesUpAndAPassedDeadlineWaitsForNobody) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.session = 0;
    world.is_connected = false;
    world.attempts_allowed = 0;
    world.fsm.start();
    EXPECT_EQ(world.answers, 0);
    world.session = 1;
    for (int i = 0; i < 20 && world.pump(); ++i) {
    }
    EXPECT_EQ(world.end->how, ChangeHow::changed);

    NumberChange other(NumberChange::Kind::add, kEight, 1);
    ChangeWorld once(other, false, true);
    once.is_connected = false;
    once.fsm.start();
    EXPECT_EQ(once.end->how, ChangeHow::nothing);
}

TEST(ChangeFsmTest, ThePolicyCountsTheFailuresOfOneOutage) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.attempts_allowed = 1;
    world.plans = {{0, ChangeEvent::lost}, {2, ChangeEvent::parents_gone}, {3, ChangeEvent::lost}};  // a look, a create
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.made_directories.size(), 2u);
}

TEST(ChangeFsmTest, WhenThePolicyForConnectionsGivesUpNothingWasWritten) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ChangeWorld world(rule);
    world.attempts_allowed = 0;
    world.plans = {{0, ChangeEvent::lost}};
    world.run();
    EXPECT_EQ(world.end->error, Errc::connection_lost);
    EXPECT_EQ(world.applied, 0);
}

}  // namespace
}  // namespace zkrecipes::internal
