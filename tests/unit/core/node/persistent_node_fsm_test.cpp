// A node that is kept there: what it asks for, in every order of events, and a fault at every request.
#include "core/node/persistent_node_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>

#include "support/fault_table.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = PersistentNodeState;

/// A server with one path, and a connection that breaks when it is told to.
class PersistentNodeWorld : public PersistentNodePort {
public:
    struct Node {
        std::int64_t owner = 0;
        std::string data;
        std::int32_t version = 0;
    };
    struct Request {
        std::string what;
        std::function<std::function<void()>()> execute;  // answers how it went
        std::function<void(Rc)> fail;
    };

    // ---- the port ----
    bool connected() const override { return up; }
    std::int64_t session_id() const override { return session; }
    std::uint64_t random() override { return 0; }
    bool reserve() override { return room; }
    void create(Ticket t, const std::string& data) override {
        send(
            "create " + data,
            [this, t, data]() -> std::function<void()> {
                if (rc_of_create != Rc::ok) return [this, t] { fsm.on_created(t, rc_of_create, {}); };
                if (!parent) return [this, t] { fsm.on_created(t, Rc::no_node, {}); };
                if (node) return [this, t] { fsm.on_created(t, Rc::node_exists, {}); };
                node = Node{session, data, 0};
                return [this, t, stat = stat()] { fsm.on_created(t, Rc::ok, stat); };
            },
            [this, t](Rc rc) { fsm.on_created(t, rc, {}); });
    }
    void make_parent(Ticket t) override {
        send(
            "parent",
            [this, t]() -> std::function<void()> {
                parent = !parent_vanishes;
                return [this, t] { fsm.on_parent(t, Rc::ok); };
            },
            [this, t](Rc rc) { fsm.on_parent(t, rc); });
    }
    bool watch(Ticket t) override {
        if (!watch_room) return false;
        EXPECT_FALSE(std::exchange(watching, true)) << "the watch before it is nobody's any more";
        const int id = ++watch_id;
        send(
            "read",
            [this, t, id]() -> std::function<void()> {
                if (id != watch_id) return [] {};
                if (!node)
                    return [this, t, id] {
                        if (id != watch_id) return;
                        watching = false;
                        fsm.on_node(t, Rc::no_node, {}, {});
                    };
                watched = t;
                return [this, t, id, stat = stat(), data = node->data] {
                    if (id == watch_id) fsm.on_node(t, Rc::ok, data, stat);
                };
            },
            [this, t, id](Rc rc) {
                if (id != watch_id) return;
                watching = false;
                fsm.on_node(t, rc, {}, {});
            });
        return true;
    }
    void unwatch() override {
        watching = false;
        watched.reset();
        ++watch_id;
    }
    void set(Ticket t, const std::string& data, std::int32_t version) override {
        send(
            "set " + data,
            [this, t, data, version]() -> std::function<void()> {
                if (rc_of_set != Rc::ok) return [this, t] { fsm.on_set(t, rc_of_set, {}); };
                if (!node) return [this, t] { fsm.on_set(t, Rc::no_node, {}); };
                if (node->version != version) return [this, t] { fsm.on_set(t, Rc::bad_version, {}); };
                write(data);
                return [this, t, stat = stat()] { fsm.on_set(t, Rc::ok, stat); };
            },
            [this, t](Rc rc) { fsm.on_set(t, rc, {}); });
    }
    void remove(Ticket t, std::int32_t) override {
        send(
            "delete",
            [this, t]() -> std::function<void()> {
                if (rc_of_remove == Rc::ok) vanish();
                return [this, t, rc = rc_of_remove] { fsm.on_removed(t, rc); };
            },
            [this, t](Rc rc) { fsm.on_removed(t, rc); });
    }
    void give_back(bool surely) override {
        sent.push_back(surely ? "give back" : "give back if ours");
        giving_back = session;
    }
    void start_timer(std::chrono::milliseconds delay) override {
        EXPECT_FALSE(std::exchange(timer, true)) << "the timer before it can no longer be stopped";
        delays.push_back(static_cast<int>(delay.count()));
    }
    void stop_timer() override { timer = false; }
    void note(const char* what) override { notes.emplace_back(what); }
    void refused(const std::string& why, int) override { complaints.push_back(why); }
    void changed() override {
        if (states.empty() || states.back() != to_string(fsm.state())) states.emplace_back(to_string(fsm.state()));
    }
    void finished() override {
        ++finishes;
        EXPECT_FALSE(watching) << "its listener refers to what is finished";
        EXPECT_FALSE(timer);
    }

    // ---- the world ----
    void send(std::string what, std::function<std::function<void()>()> execute, std::function<void(Rc)> fail) {
        ASSERT_EQ(finishes, 0);
        sent.push_back(what);
        queue.push_back({std::move(what), std::move(execute), std::move(fail)});
    }
    NodeStat stat() const {
        NodeStat out;
        out.version = node->version;
        out.ephemeral_owner = node->owner;
        return out;
    }
    void fire(WatchEventType type) {
        if (!watched) return;
        const Ticket t = *std::exchange(watched, std::nullopt);
        events.push_back([this, t, type, id = watch_id] {
            if (id != watch_id) return;
            watching = false;  // used up
            fsm.on_fired(t, type);
        });
        deliver();
    }
    void deliver() {
        while (up && !events.empty()) {
            const auto event = std::move(events.front());
            events.pop_front();
            event();
        }
    }
    void write(const std::string& data) {
        node->data = data;
        ++node->version;
        fire(WatchEventType::changed);
    }
    void vanish() {
        if (!node) return;
        node.reset();
        fire(WatchEventType::deleted);
    }
    /// Other people's work, and what the servers do.
    void end_session_of(std::int64_t owner) {
        if (node && node->owner == owner) vanish();
    }
    void fail_all(Rc rc) {
        for (auto& request : std::exchange(queue, {})) request.fail(rc);
    }
    void lose_connection(std::function<void()> answer_lost) {
        up = false;
        if (!state_first) answer_lost(), fail_all(Rc::connection_loss);
        meanwhile();
        if (state_first) answer_lost(), fail_all(Rc::connection_loss);
        up = true;
        fsm.on_connected(true);
        deliver();
    }
    void lose_session(std::function<void()> answer_lost) {
        up = false;
        answer_lost();
        fail_all(Rc::session_expired);
        if (!lingering) end_session_of(session);
        watched.reset();
        ++watch_id;
        events.clear();
        fsm.on_session_lost();
        EXPECT_FALSE(watching);
        EXPECT_FALSE(timer) << "nothing is tried without a session";
        ++session;
        up = true;
        fsm.on_connected(false);
    }
    /// Runs until nothing is left to do.
    void run() {
        for (int steps = 0; steps < 500; ++steps) {
            deliver();
            if (queue.empty()) {
                if (!std::exchange(timer, false)) return;
                fsm.on_timer();
                continue;
            }
            Request request = std::move(queue.front());
            queue.pop_front();
            const auto lost = [&request](Rc rc) { return [&request, rc] { request.fail(rc); }; };
            switch (fault_at(plans, executed++)) {
                case Fault::lost_before: lose_connection(lost(Rc::connection_loss)); break;
                case Fault::lost_after:
                    request.execute();
                    lose_connection(lost(Rc::connection_loss));
                    break;
                case Fault::expired_before: lose_session(lost(Rc::session_expired)); break;
                case Fault::expired_after:
                    request.execute();
                    lose_session(lost(Rc::session_expired));
                    break;
                case Fault::stopped:
                    fsm.close();
                    request.execute()();
                    break;
                case Fault::timed_out:  // closed, and the answer does not come
                    fsm.close();
                    request.execute();
                    request.fail(Rc::connection_loss);
                    break;
                case Fault::closed:
                    request.execute();
                    fsm.on_session_closed();
                    end_session_of(session);
                    fail_all(Rc::closed);
                    return;
                case Fault::none: request.execute()(); break;
            }
        }
        ADD_FAILURE() << "it never comes to rest";
    }
    void start() {
        fsm.start();
        run();
    }

    bool up = true, parent = true, parent_vanishes = false, room = true, watch_room = true, timer = false;
    bool watching = false;  // a watch was asked for, and has neither fired, failed nor been taken off
    bool state_first = false, lingering = false;
    Rc rc_of_create = Rc::ok, rc_of_set = Rc::ok, rc_of_remove = Rc::ok;
    std::int64_t session = 1;
    std::optional<Node> node;
    std::optional<Ticket> watched;
    int watch_id = 0;
    std::deque<std::function<void()>> events;
    std::deque<Request> queue;
    PlannedFaults plans;
    int executed = 0;
    std::optional<std::int64_t> giving_back;
    std::function<void()> meanwhile = [] {};
    int finishes = 0;
    std::vector<std::string> sent, states, notes, complaints;
    std::vector<int> delays;
    PersistentNodeFsm fsm{*this, "one", true};
};

class PersistentNodeFsmTest : public ::testing::Test {
protected:
    /// Answers requests and fires timers until so many complaints were made.
    void run_until_complaints(std::size_t count) {
        for (int i = 0; i < 12 && w.complaints.size() < count; ++i) {
            while (!w.queue.empty()) {
                const auto request = std::move(w.queue.front());
                w.queue.pop_front();
                request.execute()();
            }
            if (std::exchange(w.timer, false)) w.fsm.on_timer();
        }
    }

    PersistentNodeWorld w;
};

TEST_F(PersistentNodeFsmTest, ACreateAndARead) {
    w.start();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read"));
    EXPECT_THAT(w.states, ElementsAre("present"));
    EXPECT_TRUE(w.fsm.settled());
    w.fsm.close();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "give back"));
    EXPECT_EQ(w.finishes, 1);
    EXPECT_THAT(w.states, ElementsAre("present", "closed"));
}

TEST_F(PersistentNodeFsmTest, WhateverIsGoneIsMadeAgain) {
    w.parent = false;
    w.start();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "parent", "create one", "read"));
    w.sent.clear();
    w.parent = false;
    w.vanish();
    w.run();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "parent", "create one", "read"));
    EXPECT_THAT(w.states, ElementsAre("present", "missing", "present"));
}

TEST_F(PersistentNodeFsmTest, ANewSessionMakesItAgainAndTheNodeOfTheFormerOneIsDeleted) {
    w.start();
    w.sent.clear();
    w.lingering = true;
    w.lose_session([] {});
    w.run();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "delete", "create one", "read"));
    EXPECT_EQ(w.node->owner, 2);
    EXPECT_THAT(w.states, ElementsAre("present", "missing", "present"));
}

TEST_F(PersistentNodeFsmTest, ANodeOfAnotherSessionIsWaitedFor) {
    w.node = {99, "theirs", 5};
    w.start();
    EXPECT_THAT(w.states, ElementsAre("taken"));
    EXPECT_FALSE(w.fsm.settled());
    w.write("theirs too");
    w.fsm.set_data("two");
    w.run();
    EXPECT_EQ(w.node->data, "theirs too");
    w.lose_connection([] {});
    w.run();
    EXPECT_THAT(w.states, ElementsAre("taken"));
    w.end_session_of(99);
    w.run();
    EXPECT_EQ(w.node->owner, 1);
    EXPECT_EQ(w.node->data, "two");
    EXPECT_THAT(w.states, ElementsAre("taken", "missing", "present"));
    EXPECT_EQ(w.notes.size(), 1u);
}

// Found by the simulation: workload nodes, seed 20450.
TEST_F(PersistentNodeFsmTest, WhatAnotherSessionMadeWhileWeWereAwayIsNotWritten) {
    w.start();
    w.meanwhile = [this] {
        w.vanish();
        w.node = {99, "theirs", 0};
        w.fsm.set_data("two");
    };
    w.lose_connection([] {});
    w.run();
    EXPECT_EQ(w.node->data, "theirs");
    EXPECT_THAT(w.states, ElementsAre("present", "taken"));
}

TEST_F(PersistentNodeFsmTest, DataThatMetTheNodeOfAnotherSessionAreNotTakenForOurs) {
    w.start();
    w.fsm.set_data("two");
    w.node = PersistentNodeWorld::Node{99, "theirs", 0};  // of the same version
    ASSERT_THAT(w.queue, SizeIs(1));
    const auto set = std::move(w.queue.front());
    w.queue.pop_front();
    set.execute()();
    EXPECT_FALSE(w.fsm.settled()) << "the watch has not told yet";
    w.run();
    EXPECT_FALSE(w.fsm.settled());
    EXPECT_THAT(w.states, ElementsAre("present", "taken"));
}

TEST_F(PersistentNodeFsmTest, ACloseLeavesTheNodeOfAnotherSessionAlone) {
    w.node = {99, "theirs", 0};
    w.start();
    w.fsm.close();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read"));
    EXPECT_EQ(w.finishes, 1);
}

TEST_F(PersistentNodeFsmTest, TheLatestDataAreWrittenAndThoseOfOthersStayUntilThen) {
    w.start();
    w.sent.clear();
    w.fsm.set_data("two");
    w.fsm.set_data("three");
    w.fsm.set_data("four");
    EXPECT_FALSE(w.fsm.settled());
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_EQ(w.node->data, "four");
    EXPECT_THAT(w.sent, ElementsAre("set two", "read", "set four", "read"));
    w.write("an operator's");
    w.run();
    EXPECT_EQ(w.node->data, "an operator's");
    w.fsm.set_data("five");
    w.run();
    EXPECT_EQ(w.node->data, "five");
    w.vanish();
    w.run();
    EXPECT_EQ(w.node->data, "five");
}

TEST_F(PersistentNodeFsmTest, ARefusalIsToldAndTriedAgainMoreAndMoreRarely) {
    w.rc_of_create = Rc::no_auth;
    w.fsm.start();
    for (int i = 0; i < 7; ++i) {
        while (!w.queue.empty()) {
            const auto request = std::move(w.queue.front());
            w.queue.pop_front();
            request.execute()();
        }
        EXPECT_EQ(w.fsm.refusal(), Errc::no_permission);
        w.timer = false;
        w.fsm.on_timer();
    }
    EXPECT_THAT(w.delays, ElementsAre(50, 100, 200, 400, 800, 1600, 2500));
    w.rc_of_create = Rc::ok;
    w.run();
    EXPECT_THAT(w.states, ElementsAre("refused", "present"));
}

TEST_F(PersistentNodeFsmTest, ACloseWhileItIsRefusedEndsTheAttempts) {
    w.room = false;
    w.fsm.start();
    ASSERT_TRUE(w.timer);
    w.fsm.close();
    EXPECT_FALSE(w.timer);
    EXPECT_EQ(w.finishes, 1);
}

TEST_F(PersistentNodeFsmTest, AReconnectThatComesBeforeTheAnswersOfTheLastConnectionLeavesOneWatch) {
    w.fsm.start();
    w.fsm.on_connected(true);  // the client has changed servers without a word
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "create one", "read"));
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_TRUE(w.watched.has_value());
}

TEST_F(PersistentNodeFsmTest, DataThatMayNotBeWrittenAreARefusalToo) {
    w.start();
    w.rc_of_set = Rc::no_auth;
    w.fsm.set_data("two");
    run_until_complaints(3);
    EXPECT_THAT(w.states, ElementsAre("present", "refused"));
    w.rc_of_set = Rc::ok;
    w.run();
    EXPECT_THAT(w.states, ElementsAre("present", "refused", "present"));
    EXPECT_EQ(w.node->data, "two");
}

TEST_F(PersistentNodeFsmTest, ANodeOfTheFormerSessionThatMayNotBeDeletedIsARefusalToo) {
    w.start();
    w.rc_of_remove = Rc::no_auth;
    w.lingering = true;
    w.lose_session([] {});
    run_until_complaints(3);
    EXPECT_THAT(w.complaints, SizeIs(3));
    EXPECT_EQ(w.fsm.refusal(), Errc::no_permission);
    w.rc_of_remove = Rc::ok;
    w.run();
    EXPECT_EQ(w.node->owner, 2);
    EXPECT_EQ(w.states.back(), "present");
}

TEST_F(PersistentNodeFsmTest, AParentThatVanishesEachTimeIsARefusal) {
    w.parent = false;
    w.parent_vanishes = true;
    w.fsm.start();
    while (w.complaints.empty()) {
        ASSERT_FALSE(w.queue.empty());
        const auto request = std::move(w.queue.front());
        w.queue.pop_front();
        request.execute()();
    }
    EXPECT_EQ(w.fsm.refusal(), Errc::no_parent);
    w.parent_vanishes = false;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, AParentThatWasThereWhenAnotherHadTheNameHasNotVanishedEachTime) {
    w.start();
    for (int i = 0; i < 20; ++i) {
        w.parent = false;
        w.vanish();  // an operator deletes the directory, and another session is faster
        w.node = PersistentNodeWorld::Node{99, "theirs", 0};
        w.run();
        ASSERT_EQ(w.states.back(), "taken");
    }
    EXPECT_THAT(w.complaints, IsEmpty());
}

TEST_F(PersistentNodeFsmTest, OverTheBudgetItIsRefusedAndTriedAgain) {
    w.room = false;
    w.fsm.start();
    EXPECT_EQ(w.fsm.refusal(), Errc::budget_exceeded);
    w.room = true;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, WithoutRoomForAWatchItIsRefusedAndTriedAgain) {
    w.watch_room = false;
    w.fsm.start();
    const auto create = std::move(w.queue.front());
    w.queue.pop_front();
    create.execute()();
    EXPECT_EQ(w.fsm.refusal(), Errc::budget_exceeded);
    EXPECT_FALSE(w.fsm.settled());
    w.watch_room = true;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_TRUE(w.watched.has_value());
}

TEST_F(PersistentNodeFsmTest, ADeletionWhileNobodyIsConnectedIsSeenAfterwards) {
    w.start();
    w.meanwhile = [this] { w.vanish(); };
    w.lose_connection([] {});
    w.run();
    EXPECT_TRUE(w.node);
    EXPECT_TRUE(w.fsm.settled());
}

// ---- the fault table ----------------------------------------------------------------------------------------------

struct Scenario {
    const char* name;
    void (*prepare)(PersistentNodeWorld&);
    void (*then)(PersistentNodeWorld&);  // when it has come to rest
};

constexpr Scenario kScenarios[] = {
    {"Made", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld&) {}},
    {"ParentMissing", [](PersistentNodeWorld& w) { w.parent = false; }, [](PersistentNodeWorld&) {}},
    {"DataSet", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld& w) { w.fsm.set_data("two"); }},
    {"Deleted", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld& w) { w.vanish(); }},
    {"ParentDeleted", [](PersistentNodeWorld&) {},
     [](PersistentNodeWorld& w) {
         w.parent = false;
         w.vanish();
     }},
    {"TakenFirst",
     [](PersistentNodeWorld& w) {
         w.node = {99, "theirs", 0};
     },
     [](PersistentNodeWorld& w) { w.end_session_of(99); }},
};

class PersistentNodeFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    int play(const PlannedFaults& plans, const Variant& variant) {
        PersistentNodeWorld w;
        w.state_first = variant.suspended_first;
        w.lingering = variant.lingering;
        GetParam().scenario->prepare(w);
        w.plans = plans;
        w.start();
        if (w.fsm.state() != State::closed) GetParam().scenario->then(w);
        w.run();
        check(w, plans);
        return w.executed;
    }
    static void check(PersistentNodeWorld& w, const PlannedFaults& plans) {
        std::string cell;
        for (const auto& plan : plans) cell += std::to_string(plan.at) + ":" + name_of(plan.fault) + " ";
        for (const auto& step : w.sent) cell += "[" + step + "]";
        SCOPED_TRACE(cell);
        const bool ours = w.node && w.node->owner == w.session;
        if (w.fsm.state() == State::closed) {
            EXPECT_EQ(w.finishes, 1);
            // Nothing of this session is left that nobody deletes.
            EXPECT_TRUE(!ours || w.giving_back == w.session);
            EXPECT_FALSE(w.timer);
            return;
        }
        EXPECT_EQ(w.finishes, 0);
        EXPECT_TRUE(ours);
        EXPECT_TRUE(w.fsm.settled());
        EXPECT_TRUE(w.watched.has_value());
        if (ours) {
            EXPECT_EQ(w.node->data, w.fsm.data());
        }
    }
};

TEST_P(PersistentNodeFaultTable, OneFaultAtEveryStep) {
    one_fault_at_every_step(GetParam().fault, [this](const auto& plans, const auto& v) { return play(plans, v); });
}
TEST_P(PersistentNodeFaultTable, TwoFaults) {
    two_faults_at_any_steps(GetParam().fault, [this](const auto& plans, const auto& v) { return play(plans, v); });
}
INSTANTIATE_TEST_SUITE_P(Node, PersistentNodeFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
