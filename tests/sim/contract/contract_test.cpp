// The model is held to the truth: the same operations on the simulated ensemble and on a real server must be answered
// alike.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "fake_server/engine.hpp"
#include "fake_server/fake_runtime.hpp"
#include "fake_server/posted_client.hpp"
#include "sim/support.hpp"

namespace zkrecipes::sim {
namespace {

constexpr auto kMaxWait = std::chrono::seconds(30);

struct Step {  // one operation of one session
    Op op = Op::exists;
    std::string path;
    std::string data;
    CreateMode mode{};
    std::int32_t version = -1;
    bool watch = false;
    std::vector<MultiOp> ops;

    std::string text() const {
        std::string out = std::string(to_string(op)) + " " + path + " mode " + std::to_string(static_cast<int>(mode)) +
                          " version " + std::to_string(version) + (watch ? " watch" : "");
        for (const MultiOp& each : ops) {
            out += " [" + std::to_string(static_cast<int>(each.kind)) + " " + each.path + " " +
                   std::to_string(static_cast<int>(each.mode)) + " " + std::to_string(each.version) + "]";
        }
        return out;
    }
};

struct Answer {
    Rc rc = Rc::closed;
    std::string path, data;
    NodeStat stat;
    std::vector<std::string> names;
    std::vector<MultiResult> results;
    bool answered = false;
};

/// Sends one step; `done` gets the answer on whatever thread the client has.
void send(Client& client, const Step& step, std::function<void(Answer)> done) {
    const auto with_stat = [done](Rc rc, const NodeStat& stat) {
        Answer answer;
        answer.rc = rc, answer.stat = stat;
        done(answer);
    };
    const auto plain = [done](Rc rc) {
        Answer answer;
        answer.rc = rc;
        done(answer);
    };
    switch (step.op) {
        case Op::create:
            return client.create(step.path, step.data, open_acl(), step.mode,
                                 [done](Rc rc, std::string path, const NodeStat& stat) {
                                     Answer answer;
                                     answer.rc = rc, answer.path = std::move(path), answer.stat = stat;
                                     done(answer);
                                 });
        case Op::remove: return client.remove(step.path, step.version, plain);
        case Op::exists: return client.exists(step.path, step.watch, with_stat);
        case Op::get:
            return client.get(step.path, step.watch, [done](Rc rc, std::string data, const NodeStat& stat) {
                Answer answer;
                answer.rc = rc, answer.data = std::move(data), answer.stat = stat;
                done(answer);
            });
        case Op::set: return client.set(step.path, step.data, step.version, with_stat);
        case Op::children:
            return client.children(step.path, step.watch,
                                   [done](Rc rc, std::vector<std::string> names, const NodeStat& stat) {
                                       Answer answer;
                                       answer.rc = rc, answer.names = std::move(names), answer.stat = stat;
                                       std::sort(answer.names.begin(), answer.names.end());
                                       done(answer);
                                   });
        case Op::multi:
            return client.multi(step.ops, [done](Rc rc, std::vector<MultiResult> results) {
                Answer answer;
                answer.rc = rc, answer.results = std::move(results);
                done(answer);
            });
        case Op::sync: return client.sync(step.path, plain);
        case Op::remove_watches: return client.remove_watches(step.path, plain);
        default: FAIL() << "not a step";
    }
}

/// Two sessions of one server, real or not.
class Side {
public:
    virtual ~Side() = default;
    virtual std::vector<Answer> run(int session, const std::vector<Step>& steps) = 0;
    virtual std::vector<std::string> take_events(int session) = 0;  // sorted
    virtual std::int64_t session_id(int session) = 0;
};

std::string event_text(WatchEventType type, const std::string& path) {
    return std::to_string(static_cast<int>(type)) + " " + path;
}

class SimSide final : public Side {
public:
    SimSide() : world_(1), ensemble_(world_, options()) {
        for (int i = 0; i < 2; ++i) {
            processes_.push_back(
                std::make_unique<Process>(ensemble_, "p" + std::to_string(i), std::chrono::seconds(20)));
            EXPECT_TRUE(processes_.back()->connect());
        }
    }
    std::vector<Answer> run(int session, const std::vector<Step>& steps) override {
        auto answers = std::make_shared<std::vector<Answer>>(steps.size());
        auto open = std::make_shared<std::size_t>(steps.size());
        for (std::size_t i = 0; i < steps.size(); ++i) {
            send(*at(session).client, steps[i], [answers, open, i](Answer answer) {
                EXPECT_FALSE((*answers)[i].answered);
                answer.answered = true;
                (*answers)[i] = std::move(answer);
                --*open;
            });
        }
        EXPECT_TRUE(at(session).until([open] { return *open == 0; }));
        return *answers;
    }
    std::vector<std::string> take_events(int session) override {
        std::vector<std::string> texts;
        for (const auto& event : std::exchange(at(session).handle->events, {}))
            texts.push_back(event_text(event.type, event.path));
        std::sort(texts.begin(), texts.end());
        return texts;
    }
    std::int64_t session_id(int session) override { return at(session).client->status().session_id; }

private:
    static EnsembleOptions options() {
        EnsembleOptions options;
        options.servers = 1;
        options.container_check_ms = 3'600'000;
        return options;
    }
    Process& at(int session) { return *processes_[static_cast<std::size_t>(session)]; }
    World world_;
    SimEnsemble ensemble_;
    std::vector<std::unique_ptr<Process>> processes_;
};

/// Two handles that answer on threads of their own.
class ThreadedSide : public Side {
public:
    ~ThreadedSide() override {
        for (const int number : {0, 1}) close(number);
        runtime_->stop();
    }
    std::vector<Answer> run(int number, const std::vector<Step>& steps) override {
        struct Open {
            std::mutex mutex;
            std::condition_variable changed;
            std::vector<Answer> answers;
            std::size_t left;
        };
        auto open = std::make_shared<Open>();
        open->answers.resize(steps.size());
        open->left = steps.size();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            send(*sessions_[number].client, steps[i], [open, i](Answer answer) {
                const std::lock_guard lock(open->mutex);
                answer.answered = true;
                open->answers[i] = std::move(answer);
                --open->left;
                open->changed.notify_all();
            });
        }
        std::unique_lock lock(open->mutex);
        EXPECT_TRUE(open->changed.wait_for(lock, kMaxWait, [&] { return open->left == 0; }));
        return open->answers;
    }
    std::vector<std::string> take_events(int number) override {
        auto& events = *sessions_[number].events;
        const std::lock_guard lock(events.mutex);
        auto texts = std::exchange(events.seen, {});
        std::sort(texts.begin(), texts.end());
        return texts;
    }
    std::int64_t session_id(int number) override { return sessions_[number].client->status().session_id; }

protected:
    explicit ThreadedSide(std::shared_ptr<internal::Runtime> runtime) : runtime_(std::move(runtime)) {}
    const std::shared_ptr<internal::Runtime>& runtime() const { return runtime_; }
    void open(int number, ClientFactory& factory, const std::string& host) {
        One& session = sessions_[number];
        session.events = std::make_shared<Events>();
        ClientOptions options;
        options.hosts = {host};
        options.timeout = std::chrono::seconds(20);
        session.client = factory.open(options, session.events);
        EXPECT_TRUE(session.events->wait([&] { return session.events->connected; }));
    }
    void close(int number) {
        const auto client = std::exchange(sessions_[number].client, nullptr);
        if (client == nullptr) return;
        auto closed = std::make_shared<Events>();
        client->close([closed] { closed->set([&] { closed->connected = true; }); });
        EXPECT_TRUE(closed->wait([&] { return closed->connected; }));
    }

private:
    struct Events final : ClientEvents {
        std::mutex mutex;
        std::condition_variable changed;
        bool connected = false;
        std::vector<std::string> seen;
        template <class Change>
        void set(Change change) {
            const std::lock_guard lock(mutex);
            change();
            changed.notify_all();
        }
        template <class Done>
        bool wait(Done done) {
            std::unique_lock lock(mutex);
            return changed.wait_for(lock, kMaxWait, done);
        }
        void on_status(const ClientStatus& status) override {
            set([&] { connected = status.state == ClientState::connected; });
        }
        void on_watch(WatchEventType type, const std::string& path) override {
            set([&] { seen.push_back(event_text(type, path)); });
        }
        void on_auth(Rc) override {}
    };
    struct One {
        std::shared_ptr<Events> events;
        std::shared_ptr<Client> client;
    };
    std::shared_ptr<internal::Runtime> runtime_;
    One sessions_[2];
};

class RealSide final : public ThreadedSide {
public:
    explicit RealSide(const std::string& host) : ThreadedSide(internal::make_thread_runtime()) {
        const auto factory = internal::make_zk_client_factory(runtime());
        for (const int number : {0, 1}) open(number, *factory, host);
    }
};

/// The handles that sessions of a FakeServer have: of a simulated server that follows the real clock, from other
/// threads.
class FakeSide final : public ThreadedSide {
public:
    FakeSide() : FakeSide(fake::Engine::start(false)) {}
    ~FakeSide() override {
        for (const int number : {0, 1}) close(number);
        engine_->leave();
    }

private:
    explicit FakeSide(std::shared_ptr<fake::Engine> engine)
        : ThreadedSide(std::make_shared<fake::FakeRuntime>(engine)), engine_(std::move(engine)) {
        engine_->run([this] { engine_->ensemble().faults().container_check_ms = 3'600'000; });
        for (const int number : {0, 1}) {
            fake::Process* process = nullptr;
            engine_->run([&] { process = &engine_->add_process(); });
            fake::PostedClientFactory factory(engine_, *process, runtime());
            open(number, factory, "ignored:2181");
        }
    }
    const std::shared_ptr<fake::Engine> engine_;
};

/// Two numberings that must be the same up to a translation that keeps the order.
class Translation {
public:
    bool agree(std::int64_t left, std::int64_t right) {
        if (left == 0 || right == 0) return left == right;
        const auto [found, fresh] = known_.try_emplace(left, right);
        if (!fresh) return found->second == right;
        if (found != known_.begin() && std::prev(found)->second >= right) return false;
        return std::next(found) == known_.end() || std::next(found)->second > right;
    }

private:
    std::map<std::int64_t, std::int64_t> known_;
};

class Contract {
public:
    Contract(Side& sim, Side& real) : sim_(sim), real_(real) {
        for (int i = 0; i < 2; ++i) owners_[sim_.session_id(i)] = real_.session_id(i);
    }

    /// Runs the steps on both sides and compares everything that a client can see.
    void run(int session, const std::vector<Step>& steps) {
        const auto left = sim_.run(session, steps);
        const auto right = real_.run(session, steps);
        for (std::size_t i = 0; i < steps.size(); ++i) compare(steps[i], left[i], right[i]);
        for (int each = 0; each < 2; ++each) {
            Step barrier;  // what came before its answer has come
            barrier.path = "/";
            sim_.run(each, {barrier});
            real_.run(each, {barrier});
            EXPECT_EQ(sim_.take_events(each), real_.take_events(each))
                << "events of session " << each << " after " << describe(steps);
        }
    }
    std::uint64_t compared() const { return compared_; }

private:
    static std::string describe(const std::vector<Step>& steps) {
        std::string text;
        for (const Step& step : steps) text += step.text() + "; ";
        return text;
    }
    void compare(const Step& step, const Answer& left, const Answer& right) {
        ++compared_;
        SCOPED_TRACE(step.text());
        EXPECT_EQ(static_cast<int>(left.rc), static_cast<int>(right.rc));
        EXPECT_EQ(left.path, right.path);
        EXPECT_EQ(left.data, right.data);
        if (step.path != "/") {
            EXPECT_EQ(left.names, right.names);
        }
        ASSERT_EQ(left.results.size(), right.results.size());
        for (std::size_t i = 0; i < left.results.size(); ++i) {
            EXPECT_EQ(static_cast<int>(left.results[i].rc), static_cast<int>(right.results[i].rc)) << "operation " << i;
            EXPECT_EQ(left.results[i].path, right.results[i].path) << "operation " << i;
            compare(left.results[i].stat, right.results[i].stat);
        }
        if (left.rc != Rc::ok || step.path == "/") return;
        compare(left.stat, right.stat);
    }
    void compare(const NodeStat& a, const NodeStat& b) {
        EXPECT_EQ(a.version, b.version);
        EXPECT_EQ(a.cversion, b.cversion);
        EXPECT_EQ(a.aversion, b.aversion);
        EXPECT_EQ(a.data_length, b.data_length);
        EXPECT_EQ(a.num_children, b.num_children);
        EXPECT_EQ(a.ephemeral_owner == 0 ? 0 : owners_[a.ephemeral_owner], b.ephemeral_owner);
        EXPECT_TRUE(zxids_.agree(a.czxid, b.czxid)) << "czxid";
        EXPECT_TRUE(zxids_.agree(a.mzxid, b.mzxid)) << "mzxid";
        EXPECT_TRUE(zxids_.agree(a.pzxid, b.pzxid)) << "pzxid";
    }

    Side& sim_;
    Side& real_;
    std::map<std::int64_t, std::int64_t> owners_{{0, 0}};
    Translation zxids_;
    std::uint64_t compared_ = 0;
};

/// Draws operations on a small tree, so that they meet each other.
class Script {
public:
    explicit Script(std::uint64_t seed) : rng_(seed) {}

    std::vector<Step> batch() {
        std::vector<Step> steps;
        for (std::int64_t i = rng_.between(1, 4); i > 0; --i) steps.push_back(step());
        return steps;
    }
    int session() { return static_cast<int>(rng_.below(2)); }

private:
    std::string path() {
        std::string path = "/c/n" + std::to_string(rng_.below(4));
        if (rng_.one_in(2)) path += "/m" + std::to_string(rng_.below(3));
        return path;
    }
    std::int32_t version() { return rng_.one_in(2) ? -1 : static_cast<std::int32_t>(rng_.below(3)); }
    CreateMode mode(bool container) {
        static constexpr CreateMode kModes[] = {CreateMode::persistent, CreateMode::ephemeral,
                                                CreateMode::persistent_sequential, CreateMode::ephemeral_sequential,
                                                CreateMode::container};
        return kModes[rng_.below(container ? 5 : 4)];
    }
    Step step() {
        static constexpr Op kOps[] = {Op::create, Op::create, Op::create, Op::remove,        Op::remove,
                                      Op::exists, Op::get,    Op::set,    Op::children,      Op::children,
                                      Op::multi,  Op::multi,  Op::sync,   Op::remove_watches};
        Step step;
        step.op = kOps[rng_.below(std::size(kOps))];
        step.path = path();
        step.data = std::string(rng_.below(5), 'x');
        step.mode = mode(true);
        step.version = version();
        step.watch = rng_.one_in(2);
        if (step.op == Op::children && rng_.one_in(3)) step.path = "/c";
        if (step.op == Op::multi && rng_.one_in(3)) {
            step.ops = set_of_locks();
        } else if (step.op == Op::multi) {
            for (std::int64_t i = rng_.between(1, 4); i > 0; --i) {
                MultiOp op;
                op.kind = static_cast<MultiOp::Kind>(rng_.below(4));
                op.path = path();
                op.data = step.data;
                op.acl = open_acl();
                op.mode = mode(false);
                op.version = version();
                step.ops.push_back(std::move(op));
            }
        }
        return step;
    }
    /// A node, and another that is created, set and deleted.
    std::vector<MultiOp> set_of_locks() {
        using Kind = MultiOp::Kind;
        const std::string node = path();
        std::vector<MultiOp> ops;
        for (const Kind kind : {Kind::create, Kind::create, Kind::set, Kind::remove}) {
            MultiOp& op = ops.emplace_back();
            op.kind = kind;
            op.path = ops.size() == 1 ? node : parent_of(node) + "/marker";
            op.acl = open_acl();
            op.mode = ops.size() == 1 ? CreateMode::ephemeral_sequential : CreateMode::ephemeral;
        }
        return ops;
    }
    Rng rng_;
};

std::uint64_t wanted_operations() {
    const char* const text = std::getenv("ZKRECIPES_CONTRACT_OPS");
    return text == nullptr ? 1500 : std::strtoull(text, nullptr, 10);
}

/// Draws operations, and runs them on a side that is made for it, and on a real server.
template <class Model>
void compare_with_a_real_server() {
    testenv::ServerOptions options;
    options.java_properties["znode.container.checkIntervalMs"] = "3600000";
    const testenv::ZkServer server(options);
    const std::uint64_t wanted = wanted_operations();
    std::uint64_t compared = 0;
    for (std::uint64_t seed = 1; compared < wanted && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Model sim;
        RealSide real(server.connect_string());
        Contract contract(sim, real);
        Script script(seed);
        Step root;
        root.op = Op::create;
        root.path = "/c";
        contract.run(0, {root});
        for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) contract.run(script.session(), script.batch());
        compared += contract.compared();
        // The next one starts on an empty tree again.
        std::vector<std::string> left{"/c"};
        for (std::size_t i = 0; i < left.size(); ++i) {
            Step list;
            list.op = Op::children;
            list.path = left[i];
            const auto listed = real.run(0, {list});
            const std::string directory = left[i];
            for (const std::string& name : listed[0].names) left.push_back(directory + "/" + name);
        }
        for (auto path = left.rbegin(); path != left.rend(); ++path) {
            Step remove;
            remove.op = Op::remove;
            remove.path = *path;
            real.run(0, {remove});
        }
    }
    std::printf("%llu operations compared\n", static_cast<unsigned long long>(compared));
}

TEST(SimContractTest, TheSimulatedServerAndARealOneAgreeOnRandomOperations) {
    if (const std::string why = testenv::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
    compare_with_a_real_server<SimSide>();
}

TEST(SimContractTest, TheServerOfZkrecipesTestingAndARealOneAgreeOnRandomOperations) {
    if (const std::string why = testenv::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
    compare_with_a_real_server<FakeSide>();
}

}  // namespace
}  // namespace zkrecipes::sim
