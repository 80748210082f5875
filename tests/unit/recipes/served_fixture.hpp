#pragma once

#include <boost/fiber/all.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/session.hpp>

#include "base/paths.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {

/// A server with a small tree behind the scripted handle. It answers when it is told to, and as it is told to.
class ServedTest : public SessionTest {
protected:
    struct Node {
        std::string data{};
        std::int64_t owner = 0;
        std::int32_t version = 0;
        std::int64_t czxid = 0, mzxid = 0, pzxid = 0;
        std::int32_t next_number = 0;
        std::vector<Acl> acl{};
        CreateMode mode{};
    };

    ~ServedTest() override {
        const bool may_look = !ends_in_the_middle && !HasFailure() && core && core->state() == SessionState::connected;
        if (may_look) {
            EXPECT_EQ(leftovers(), "");
        }
        if (session) runtime->while_running([this] { session.reset(); });
    }
    void connect() {
        open_connected(owner);
        session.emplace(SessionAccess::make(core));
    }
    void put(const std::string& path, const std::string& data = "", std::int64_t of = 0) {
        Node& node = nodes[path];
        node.data = data;
        node.owner = of;
        node.czxid = node.mzxid = node.pzxid = ++zxid;
        if (const auto parent = nodes.find(std::string(parent_path(path))); parent != nodes.end()) {
            parent->second.pzxid = zxid;
        }
        fire(WatchEventType::created, path);
        fire(WatchEventType::children_changed, std::string(parent_path(path)));
    }
    void write(const std::string& path, const std::string& data) {
        Node& node = nodes.at(path);
        node.data = data;
        ++node.version;
        node.mzxid = ++zxid;
        fire(WatchEventType::changed, path);
    }
    void erase(const std::string& path) {
        if (nodes.erase(path) == 0) return;
        ++zxid;
        fire(WatchEventType::deleted, path);
        fire(WatchEventType::children_changed, std::string(parent_path(path)));
    }
    std::vector<std::string> children(const std::string& directory) const {
        std::vector<std::string> names;
        for (const auto& [path, node] : nodes) {
            if (path != "/" && parent_path(path) == directory) names.emplace_back(base_name(path));
        }
        return names;
    }

    /// Answers what is asked until nothing is.
    void serve() {
        for (int i = 0; i < 10'000; ++i) {
            runtime->run();
            if (client().open.empty() || client().status().state != ClientState::connected) return;
            answer(client().take());
        }
        ADD_FAILURE() << "it asks for ever";
    }
    void answer(const Request& request) {
        const std::string what = request.op + " " + request.path;
        asked.push_back(what);
        if (before_answer) before_answer(what);
        if (static_cast<int>(asked.size()) == lose_answer) return lose(request);
        Reply reply;
        if (const auto refused = refusals.find(what); refused != refusals.end()) {
            reply.rc = refused->second;
            reply.results.resize(request.ops.size());
            for (auto& result : reply.results) result.rc = Rc::runtime_inconsistency;
            if (!reply.results.empty()) reply.results.back().rc = reply.rc;
        } else {
            reply = execute(request);
        }
        request.answer(reply);
    }
    /// Runs a blocking call while the server answers, and says how it ended: "ok", or its error.
    template <class Call>
    std::string served(Call call) {
        std::string ended;
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] { ended = outcome_of(call); });
        for (int i = 0; i < 500 && ended.empty(); ++i) {
            serve();
            boost::this_fiber::yield();
            if (ended.empty() && i > 20) runtime->advance(std::chrono::milliseconds(100));
        }
        EXPECT_NE(ended, "") << "it never ends";
        if (ended.empty()) runtime->while_running([this] { session->close(); });
        runtime->run();
        fiber.join();
        serve();
        return ended;
    }
    template <class Call>
    static std::string outcome_of(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error.what();
        }
        return "ok";
    }
    /// The Errc of a call that asks nothing.
    template <class Call>
    static Errc code_of(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error.errc();
        }
        return Errc{};
    }
    /// As served(), for the Errc.
    template <class Call>
    Errc code_served(Call call) {
        Errc code{};
        served([&] { code = code_of(call); });
        return code;
    }
    /// As code_served(), but so long nobody answers.
    template <class Call>
    Errc code_unserved(std::chrono::seconds silence, Call call) {
        std::optional<Errc> code;
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, [&] { code = code_of(call); });
        runtime->advance(silence);
        boost::this_fiber::yield();
        EXPECT_TRUE(code) << "it goes on";
        serve();
        fiber.join();
        return *code;
    }
    Deadline in(std::chrono::seconds time) { return Deadline(runtime->steady_now() + time); }
    /// Lets the pauses pass after which something is tried again.
    void settle() {
        for (int i = 0; i < 50; ++i) {
            runtime->advance(std::chrono::milliseconds(100));
            serve();
        }
    }
    /// From now on this session watches as many nodes as it may.
    void use_up_watches() {
        const std::string path = "/" + std::string(899'990, 'x');
        put(path);
        inside([&] {
            SessionCore::WatchListener nobody;
            nobody.ready = [](Rc, const std::string&, const NodeStat&) {};
            nobody.fired = [](WatchEventType) {};
            many_ = core->watch_node(path, std::move(nobody));
            EXPECT_NE(many_, 0u);
        });
        serve();
    }
    void allow_watches() {
        inside([this] { core->unwatch(std::exchange(many_, 0)); });
        serve();
    }
    std::string leftovers() {
        serve();
        std::string text;
        inside([&] { text = core->leftovers(); });
        return text;
    }
    /// The connection breaks, and comes back.
    void break_connection() {
        client().disconnect();
        runtime->run();
        client().connect(owner);
        runtime->run();
    }
    void next_session() {
        client().expire();
        runtime->run();
        std::vector<std::string> gone;
        for (const auto& [path, node] : nodes) {
            if (node.owner == owner) gone.push_back(path);
        }
        watched.clear();
        ++owner;
        for (const auto& path : gone) erase(path);
        client().connect(owner);
        runtime->run();
    }
    std::size_t times(const std::string& what) const {
        return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), what));
    }

    bool ends_in_the_middle = false;  // the test leaves something in the session
    std::optional<Session> session;
    std::int64_t owner = kFirstSession;
    std::int64_t zxid = 10;
    std::map<std::string, Node> nodes{{"/", {}}};
    std::map<std::string, Rc> refusals;  // "op path": what it is answered
    std::vector<std::string> asked;      // "op path"
    std::function<void(const std::string&)> before_answer;
    int lose_answer = 0;      // to the request of this number, from 1
    bool lost_after = false;  // the servers have executed it
    std::set<std::string> watched;

private:
    SessionCore::WatchId many_ = 0;

    void lose(const Request& request) {
        const auto before = watched;
        if (lost_after) (void)execute(request);
        watched = before;
        client().open.push_front(request);
        break_connection();
    }
    void fire(WatchEventType type, const std::string& path) {
        const std::string key = (type == WatchEventType::children_changed ? "children " : "node ") + path;
        const bool children_too = type == WatchEventType::deleted && watched.erase("children " + path) != 0;
        if (watched.erase(key) != 0 || children_too) client().fire(type, path);
    }
    NodeStat stat_of(const std::string& path) const {
        const Node& node = nodes.at(path);
        NodeStat stat;
        stat.czxid = node.czxid;
        stat.mzxid = node.mzxid;
        stat.pzxid = node.pzxid;
        stat.version = node.version;
        stat.ephemeral_owner = node.owner;
        stat.data_length = static_cast<std::int32_t>(node.data.size());
        stat.num_children = static_cast<std::int32_t>(children(path).size());
        return stat;
    }
    Rc create(std::string& path, const std::string& data, CreateMode mode, const std::vector<Acl>& acl) {
        const auto parent = nodes.find(std::string(parent_path(path)));
        if (parent == nodes.end()) return Rc::no_node;
        const bool sequential = mode == CreateMode::ephemeral_sequential || mode == CreateMode::persistent_sequential;
        if (sequential) {
            std::string number = std::to_string(parent->second.next_number++);
            path += std::string(10 - number.size(), '0') + number;
        }
        if (nodes.contains(path)) return Rc::node_exists;
        const bool ephemeral = mode == CreateMode::ephemeral || mode == CreateMode::ephemeral_sequential;
        put(path, data, ephemeral ? owner : 0);
        nodes[path].acl = acl;
        nodes[path].mode = mode;
        return Rc::ok;
    }
    Rc check(const std::string& path, std::int32_t version) const {
        const auto found = nodes.find(path);
        if (found == nodes.end()) return Rc::no_node;
        return version == -1 || version == found->second.version ? Rc::ok : Rc::bad_version;
    }
    Rc change(MultiOp& op) {
        if (op.kind == MultiOp::Kind::create) return create(op.path, op.data, op.mode, op.acl);
        const Rc rc = check(op.path, op.version);
        if (rc != Rc::ok || op.kind == MultiOp::Kind::check) return rc;
        if (op.kind == MultiOp::Kind::set) {
            write(op.path, op.data);
            return rc;
        }
        if (!children(op.path).empty()) return Rc::not_empty;
        erase(op.path);
        return rc;
    }
    Reply transaction(std::vector<MultiOp> ops) {
        Reply reply;
        const auto before = nodes;
        const auto before_all = zxid;
        for (auto& op : ops) {
            zxid = before_all;  // all of it has one
            MultiResult& result = reply.results.emplace_back();
            result.rc = reply.rc == Rc::ok ? change(op) : Rc::runtime_inconsistency;
            if (reply.rc == Rc::ok) reply.rc = result.rc;
            result.path = op.path;
            if (op.kind == MultiOp::Kind::set && result.rc == Rc::ok) result.stat = stat_of(op.path);
        }
        if (reply.rc != Rc::ok) nodes = before;
        for (auto& result : reply.results) {
            if (reply.rc != Rc::ok && result.rc == Rc::ok) result.stat = {};
        }
        return reply;
    }
    Reply execute(const Request& request) {
        Reply reply;
        if (request.op == "multi") return transaction(request.ops);
        if (request.op == "sync") return reply;
        if (request.op == "remove_watches") {
            watched.erase("node " + request.path);
            watched.erase("children " + request.path);
            return reply;
        }
        if (request.op == "create" || request.op == "set" || request.op == "remove") {
            MultiOp op;
            op.kind = request.op == "create" ? MultiOp::Kind::create
                      : request.op == "set"  ? MultiOp::Kind::set
                                             : MultiOp::Kind::remove;
            op.path = request.path;
            op.data = request.data;
            op.mode = request.mode;
            op.acl = request.acl;
            op.version = request.version;
            reply.rc = change(op);
            reply.text = op.path;
            if (reply.rc == Rc::ok && request.op != "remove") reply.stat = stat_of(op.path);
            return reply;
        }
        const bool there = nodes.contains(request.path);
        if (request.watch && (there || request.op == "exists")) {
            watched.insert((request.op == "children" ? "children " : "node ") + request.path);
        }
        if (!there) {
            reply.rc = Rc::no_node;
            return reply;
        }
        reply.stat = stat_of(request.path);
        reply.text = nodes.at(request.path).data;
        if (request.op == "children") reply.names = children(request.path);
        return reply;
    }
};

}  // namespace zkrecipes::testing
