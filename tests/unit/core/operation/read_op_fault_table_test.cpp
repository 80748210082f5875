// Every request of what looks at locks from outside (participants, revocation, removal, the number of leases) ×
// everything that can go wrong at it, generated: the call ends once, with the right answer, and leaves nothing behind.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/semaphore.hpp>

#include <set>
#include <sstream>

#include "support/fault_table.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

bool breaks(Fault fault) { return fault >= Fault::lost_before && fault <= Fault::expired_after; }

const std::string kHolder = "/l/_c_00000000-0000-4000-8000-000000000001-lock-0000000001";
const std::string kWaiter = "/l/_c_00000000-0000-4000-8000-000000000002-lock-0000000002";

/// The nodes that the servers have, and what they do with a request.
class Nodes {
public:
    struct Node {
        std::int64_t czxid;
        std::string data;
        std::int32_t version = 0;
    };
    Nodes() {
        std::int64_t zxid = 0;
        for (const std::string path : {"/l", "/s", "/s/locks", "/s/leases"}) all[path] = {++zxid, ""};
        for (const auto& path : {kHolder, kWaiter}) all[path] = {++zxid, "10.0.0.1"};
        all["/s/locks" + kWaiter.substr(2)] = {++zxid, "10.0.0.2"};
        all["/s/leases/peer"] = {++zxid, "10.0.0.3"};
    }

    Reply execute(const Request& request) {
        Reply reply;
        const auto found = all.find(request.path);
        const bool there = found != all.end() || request.path == "/";
        if (request.op == "sync" || request.op == "remove_watches") {
            if (request.op == "remove_watches") watched.erase(request.path);
        } else if (request.op == "multi") {
            change(request, reply);
        } else if (!there) {
            reply.rc = Rc::no_node;
        } else if (request.op == "children") {
            reply.names = children(request.path);
        } else if (request.op == "set") {
            found->second.data = "__REVOKE__";  // nothing else is set outside of a transaction
            ++found->second.version;
        } else if (request.op == "remove") {
            all.erase(found);
        } else if (request.path != "/") {
            reply.text = found->second.data;
            reply.stat.czxid = found->second.czxid;
            reply.stat.version = found->second.version;
            if (request.watch) watched.insert(request.path);
        }
        return reply;
    }

    std::vector<std::string> children(const std::string& directory) const {
        std::vector<std::string> names;
        const std::string prefix = directory == "/" ? directory : directory + "/";
        for (const auto& [path, node] : all) {
            const auto rest = path.starts_with(prefix) ? path.substr(prefix.size()) : "";
            if (!rest.empty() && rest.find('/') == std::string::npos) names.push_back(rest);
        }
        return names;
    }

    std::map<std::string, Node> all;
    std::set<std::string> watched;

private:
    /// That of the number of leases: a set, and a child that comes and goes.
    void change(const Request& request, Reply& reply) {
        reply.results.resize(request.ops.size());
        auto& node = all.at(request.ops.at(0).path);
        if (node.version != request.ops[0].version) {
            reply.rc = Rc::bad_version;
            return;
        }
        node.data = request.ops[0].data;
        ++node.version;
        ++changes;
    }

public:
    int changes = 0;
};

/// How a call ended.
struct Outcome {
    bool ended = false;
    std::optional<Errc> error;
    std::string said;
};

struct Scenario {
    const char* name;
    std::string (*call)(Session&, Deadline, std::stop_token);
    const char* says;  // when all goes well
    bool may_be_stopped = false;
    void (*check)(const Nodes&) = [](const Nodes&) {};  // where it said so
};

std::string listed(const std::vector<Participant>& participants) {
    std::string out;
    for (const auto& one : participants) out += (one.holder ? "*" : "") + one.raw + " ";
    return out;
}
Participant seen_holder() {
    Participant seen;
    seen.path = kHolder;
    seen.token = 5;
    return seen;
}
const char* yes_or_no(bool yes) { return yes ? "yes" : "no"; }

const Scenario kScenarios[] = {
    {"Inspect", [](Session& s, Deadline d, std::stop_token) { return listed(inspect_lock(s, "/l", d).participants); },
     "*10.0.0.1 10.0.0.1 "},
    {"Find",
     [](Session& s, Deadline d, std::stop_token) {
         std::string out;
         for (const auto& lock : find_locks(s, "/", d)) out += lock.path + " ";
         return out;
     },
     "/l /s/locks "},
    {"WaitUntilFree",
     [](Session& s, Deadline d, std::stop_token stop) -> std::string {
         return yes_or_no(wait_until_free(s, "/l", d, std::move(stop)));
     },
     "yes", true, [](const Nodes& nodes) { EXPECT_THAT(nodes.children("/l"), ::testing::IsEmpty()); }},
    {"RequestRevocation",
     [](Session& s, Deadline d, std::stop_token) -> std::string {
         return yes_or_no(request_revocation(s, seen_holder(), d));
     },
     "yes", false, [](const Nodes& nodes) { EXPECT_EQ(nodes.all.at(kHolder).data, "__REVOKE__"); }},
    {"RemoveParticipant",
     [](Session& s, Deadline d, std::stop_token) -> std::string {
         return yes_or_no(remove_participant(s, seen_holder(), d));
     },
     "yes", false, [](const Nodes& nodes) { EXPECT_FALSE(nodes.all.contains(kHolder)); }},
    {"RemoveAfterARequest",
     [](Session& s, Deadline d, std::stop_token) -> std::string {
         request_revocation(s, seen_holder(), d);
         return yes_or_no(remove_participant(s, seen_holder(), d));
     },
     "yes", false, [](const Nodes& nodes) { EXPECT_FALSE(nodes.all.contains(kHolder)); }},
    {"LeasesAndWaiters",
     [](Session& s, Deadline d, std::stop_token) { return listed(Semaphore(s, "/s", 2).participants(d)); },
     "*10.0.0.3 10.0.0.2 "},
    {"NumberOfLeases",
     [](Session& s, Deadline d, std::stop_token) { return std::to_string(Semaphore(s, "/s", 2).leases(d)); }, "2"},
    {"ChangeOfTheNumber",
     [](Session& s, Deadline d, std::stop_token) -> std::string {
         Semaphore(s, "/s", 2).set_leases(5, d);
         return "done";
     },
     "done", false,
     [](const Nodes& nodes) {
         EXPECT_EQ(nodes.all.at("/s/leases").data, R"({"v":1,"leases":5})");
         EXPECT_EQ(nodes.changes, 1);
     }},
};

struct BrokenFor {
    bool patient = true;  // the retry policy
    int stay_away = 0;    // so many tenths of a second
    int cuts = 0;         // so often while it waits; the policy allows one failure in each outage
};

/// One session, the servers, and one call.
class World : public SessionTest {
public:
    World(const Scenario& scenario, int at, Fault fault, BrokenFor outage)
        : scenario_(scenario), at_(at), fault_(fault), outage_(outage) {
        options.retry = outage.patient ? RetryPolicy::forever() : RetryPolicy::never();
        if (outage.cuts > 0) options.retry = RetryPolicy::n_times(2, std::chrono::milliseconds(50));
        open_connected();
        session_.emplace(SessionAccess::make(core));
    }
    ~World() override {
        runtime->while_running([this] { session_.reset(); });
    }
    void TestBody() override {}

    Outcome run() {
        Outcome outcome;
        const auto deadline = Deadline::after(runtime->steady_now(), std::chrono::seconds(60));
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] {
            try {
                outcome.said = scenario_.call(*session_, deadline, stop_.get_token());
            } catch (const Error& error) {
                outcome.error = error.errc();
            }
            outcome.ended = true;
        });
        for (int i = 0; i < 2000 && !outcome.ended; ++i) {
            runtime->run();
            step();
            boost::this_fiber::yield();
        }
        EXPECT_TRUE(outcome.ended) << "it never ends";
        if (!outcome.ended) session_->close();
        fiber.join();
        for (int i = 0; i < 100; ++i) {  // what is cleaned up behind it
            runtime->run();
            if (!connected()) {
                come_back();
            } else if (!client().open.empty()) {
                answer();
            }
        }
        if (!closed_) inside([this] { EXPECT_EQ(core->leftovers(), ""); });
        return outcome;
    }

    Nodes nodes;
    int requests = 0;
    bool reached = false;

private:
    bool connected() { return client().status().state == ClientState::connected; }

    void step() {
        if (!connected()) return come_back();
        if (client().open.empty()) {
            runtime->advance(std::chrono::milliseconds(100));
            if (!client().open.empty() || !scenario_.may_be_stopped) return;
            return outage_.cuts-- > 0 ? cut_off() : everybody_leaves();
        }
        if (requests++ != at_) return answer();
        reached = true;
        play();
    }

    void answer() {
        const Request request = client().take();
        request.answer(nodes.execute(request));
    }
    void cut_off() {
        nodes.watched.clear();
        client().disconnect();
    }

    void come_back() {
        if (closed_ || client().closed) return runtime->advance(std::chrono::milliseconds(100));
        if (outage_.stay_away-- > 0) return runtime->advance(std::chrono::milliseconds(100));
        client().connect(kFirstSession + static_cast<std::int64_t>(clients->clients.size()));
    }

    /// While the call waits for the lock to become free.
    void everybody_leaves() {
        for (const auto& path : {kHolder, kWaiter}) {
            if (nodes.all.erase(path) != 0 && nodes.watched.erase(path) != 0) {
                client().fire(WatchEventType::deleted, path);
            }
        }
    }

    void play() {
        const bool executed = fault_ == Fault::lost_after || fault_ == Fault::expired_after;
        const auto watched = nodes.watched;
        if (executed) (void)nodes.execute(client().open.front());
        nodes.watched = watched;  // of one whose answer is lost the servers know nothing after the reconnect
        switch (fault_) {
            case Fault::none: break;
            case Fault::lost_before:
            case Fault::lost_after: client().disconnect(); break;
            case Fault::expired_before:
            case Fault::expired_after:
                nodes.watched.clear();
                client().expire();
                break;
            case Fault::stopped: stop_.request_stop(); break;
            case Fault::timed_out: runtime->advance(std::chrono::seconds(61)); break;
            case Fault::closed:
                closed_ = true;
                nodes.watched.clear();
                runtime->while_running([this] { session_->close(); });
                break;
        }
    }

    const Scenario& scenario_;
    const int at_;
    const Fault fault_;
    BrokenFor outage_;
    std::stop_source stop_;
    bool closed_ = false;
    std::optional<Session> session_;
};

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, int at, Fault fault, BrokenFor outage) {
    std::ostringstream cell;
    cell << scenario.name << " " << at << ":" << name_of(fault) << (outage.patient ? "" : " impatient");
    SCOPED_TRACE(cell.str());
    World w(scenario, at, fault, outage);
    const Outcome outcome = w.run();
    EXPECT_EQ(w.reached, fault != Fault::none);
    EXPECT_THAT(w.nodes.watched, ::testing::IsEmpty());
    if (fault == Fault::closed) {
        EXPECT_EQ(outcome.error, Errc::closed);
    } else if (fault == Fault::timed_out && !scenario.may_be_stopped) {
        EXPECT_EQ(outcome.error, Errc::unreachable);
    } else if (breaks(fault) && !outage.patient) {
        EXPECT_EQ(outcome.error, Errc::connection_lost);
    } else if (fault == Fault::stopped || fault == Fault::timed_out) {
        EXPECT_FALSE(outcome.error);
        EXPECT_EQ(outcome.said, "no");
    } else {
        EXPECT_FALSE(outcome.error) << static_cast<int>(*outcome.error);
        EXPECT_EQ(outcome.said, scenario.says);
        scenario.check(w.nodes);
    }
    return w.requests;
}

class ReadOpFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {};

TEST_P(ReadOpFaultTable, EndsWithTheRightAnswerAndLeavesNothing) {
    const auto& [scenario, fault] = GetParam();
    const int steps = play(*scenario, -1, Fault::none, {});
    ASSERT_GT(steps, 0);
    for (int at = 0; at < steps; ++at) {
        play(*scenario, at, fault, {});
        if (!breaks(fault)) continue;
        play(*scenario, at, fault, {true, 30});
        play(*scenario, at, fault, {false, 0});
    }
}

TEST(ReadOpTest, ThePolicyCountsTheFailuresOfOneOutage) {
    int scenarios = 0;
    for (const auto& scenario : kScenarios) {
        if (!scenario.may_be_stopped) continue;
        ++scenarios;
        World w(scenario, -1, Fault::none, {true, 0, 5});
        const Outcome outcome = w.run();
        EXPECT_FALSE(outcome.error) << scenario.name;
        EXPECT_EQ(outcome.said, scenario.says) << scenario.name;
    }
    EXPECT_GT(scenarios, 0);
}

class ReadOpSessionTest : public SessionTest {};

TEST_F(ReadOpSessionTest, OneAttemptBeforeTheFirstConnectEndsAtOnce) {
    open();
    std::optional<Session> session = SessionAccess::make(core);
    std::optional<Errc> error;
    boost::fibers::fiber asking(boost::fibers::launch::dispatch, [&] {
        try {
            (void)ExclusiveMutex(*session, "/l").participants(Deadline::passed());
        } catch (const Error& thrown) {
            error = thrown.errc();
        }
    });
    runtime->run();
    boost::this_fiber::yield();
    EXPECT_EQ(error, Errc::unreachable);
    if (!error) runtime->while_running([&] { session->close(); });
    asking.join();
    runtime->while_running([&] { session.reset(); });
}

std::vector<Cell<Scenario>> possible_cells() {
    std::vector<Cell<Scenario>> all;
    for (const auto& scenario : kScenarios) {
        for (const Fault fault : kFaults) {
            if (fault == Fault::stopped && !scenario.may_be_stopped) continue;
            all.push_back({&scenario, fault});
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(EveryStep, ReadOpFaultTable, ::testing::ValuesIn(possible_cells()), NameOfCell());

}  // namespace
}  // namespace zkrecipes::testing
