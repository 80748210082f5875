#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>

#include "client/client.hpp"

namespace zkrecipes::testing {

using namespace internal;  // NOLINT: for tests only

/// Their ids are as ZooKeeper makes them (made_by_zookeeper).
inline constexpr std::int64_t kFirstSession = 0x100000000000001, kNextSession = 0x100000000000002;

/// What a request is answered with; which parts count depends on the request.
struct Reply {
    Rc rc = Rc::ok;
    std::string text;  // create: path; get: data
    NodeStat stat;
    std::vector<std::string> names;
    std::vector<MultiResult> results;
};

/// Empty: there is no such request, and to answer it fails the test.
struct RequestAnswer {
    std::function<void(const Reply&)> to{};

    explicit operator bool() const noexcept { return to != nullptr; }
    void operator()(const Reply& reply) const {
        if (!to) FAIL() << "this request was never sent";
        to(reply);
    }
};

/// A request that waits for the test to answer it.
struct Request {
    std::string op;  // create, remove, exists, get, set, children, multi, sync, remove_watches
    std::string path;
    bool watch = false;
    bool heartbeat = false;  // a multi that may overtake others
    std::vector<MultiOp> ops;
    CreateMode mode{};
    std::string data;           // create, set
    std::vector<Acl> acl;       // create
    std::int32_t version = -1;  // set, remove
    RequestAnswer answer;
};

/// A handle that does nothing by itself: the test plays the servers.
class FakeClient final : public Client {
public:
    FakeClient(std::shared_ptr<Runtime> runtime, ClientOptions options, std::shared_ptr<ClientEvents> events)
        : runtime_(std::move(runtime)), options_(std::move(options)), events_(std::move(events)) {}

    void create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                CreateDone done) override {
        Request& request = add("create", std::move(path), [done](const Reply& r) { done(r.rc, r.text, r.stat); });
        request.mode = mode;
        request.data = std::move(data);
        request.acl = acl;
    }
    void remove(const std::string& path, std::int32_t version, VoidDone done) override {
        add("remove", path, [done](const Reply& r) { done(r.rc); }).version = version;
    }
    void exists(const std::string& path, bool watch, StatDone done) override {
        if (path == "/" && answers_touches) {
            // What the session sends to be heard, to wake a server or to be touched, is answered by itself.
            ++touches;
            runtime_->post(Lane::protocol, [done] { done(Rc::ok, NodeStat{}); });
            return;
        }
        add("exists", path, [done](const Reply& r) { done(r.rc, r.stat); }).watch = watch;
    }
    void get(const std::string& path, bool watch, GetDone done) override {
        add("get", path, [done](const Reply& r) { done(r.rc, r.text, r.stat); }).watch = watch;
    }
    void set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) override {
        Request& request = add("set", path, [done](const Reply& r) { done(r.rc, r.stat); });
        request.data = data;
        request.version = version;
    }
    void children(const std::string& path, bool watch, ChildrenDone done) override {
        add("children", path, [done](const Reply& r) { done(r.rc, r.names, r.stat); }).watch = watch;
    }
    void multi(std::vector<MultiOp> ops, MultiDone done) override {
        Request& request =
            add("multi", ops.empty() ? "" : ops.front().path, [done](const Reply& r) { done(r.rc, r.results); });
        request.ops = std::move(ops);
    }
    void heartbeat(const std::vector<std::string>& nodes, MultiDone done) override {
        std::vector<MultiOp> ops(nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) ops[i].path = nodes[i];
        multi(std::move(ops), std::move(done));
        open.back().heartbeat = true;
    }
    void nudge(StatDone done) override { exists("/", false, std::move(done)); }
    void sync(const std::string& path, VoidDone done) override {
        add("sync", path, [done](const Reply& r) { done(r.rc); });
    }
    void remove_watches(const std::string& path, VoidDone done) override {
        add("remove_watches", path, [done](const Reply& r) { done(r.rc); });
    }
    void add_auth(const Auth& auth) override { auths.push_back(auth); }
    void set_servers(const std::vector<std::string>& hosts) override { servers.push_back(hosts); }
    void close(std::function<void()> done) override {
        closed = true;
        if (frozen) {
            close_done_ = std::move(done);
            return;
        }
        runtime_->post(Lane::blocking, [this, done = std::move(done)] {
            fail_all(Rc::closed);
            events_.reset();
            done();
        });
    }
    ClientStatus status() const override { return status_; }

    // ---- the servers' side
    void say(ClientState state, std::int64_t session_id = 0, std::chrono::milliseconds timeout = {}) {
        status_ = {state, session_id, timeout, state == ClientState::connected ? "127.0.0.1:2181" : "", by_zookeeper};
        if (events_) events_->on_status(status_);
    }
    void connect(std::int64_t session_id, std::chrono::milliseconds timeout = std::chrono::milliseconds(6000)) {
        say(ClientState::connected, session_id, timeout);
    }
    /// The connection breaks: what is open is answered as unknown, then the handle says so.
    void disconnect() {
        fail_all(Rc::connection_loss);
        say(ClientState::connecting);
        fail_all(Rc::connection_loss);  // what was asked before it was said
    }
    void expire() {
        fail_all(Rc::session_expired);
        say(ClientState::expired);
        fail_all(Rc::session_expired);
    }
    void answer_auth(Rc rc) { events_->on_auth(rc); }
    void fire(WatchEventType type, const std::string& path) { events_->on_watch(type, path); }
    void thaw() {
        frozen = false;
        close(std::exchange(close_done_, nullptr));
    }
    /// Drops what it would still answer: a request keeps the session, which keeps this object.
    void forget() {
        open.clear();
        events_.reset();
        close_done_ = nullptr;
    }

    /// Takes the oldest open request.
    Request take() {
        if (open.empty()) return {};
        Request out = std::move(open.front());
        open.pop_front();
        return out;
    }
    /// Takes the oldest one of this kind.
    Request take(const std::string& op) {
        const auto found = std::find_if(open.begin(), open.end(), [&](const Request& r) { return r.op == op; });
        if (found == open.end()) return {};
        Request out = std::move(*found);
        open.erase(found);
        return out;
    }
    std::size_t count(const std::string& op) const {
        return static_cast<std::size_t>(std::count(sent.begin(), sent.end(), op));
    }

    std::deque<Request> open;
    std::vector<std::string> sent;  // kinds of all requests so far
    std::vector<Auth> auths;
    std::vector<std::vector<std::string>> servers;
    int touches = 0;  // reads of "/"
    bool answers_touches = true;
    bool closed = false;
    bool frozen = false;       // close() does not end
    bool by_zookeeper = true;  // what say() says of the servers
    const ClientOptions& options() const { return options_; }

private:
    Request& add(std::string op, std::string path, std::function<void(const Reply&)> answer) {
        sent.push_back(op);
        Request request;
        request.op = std::move(op);
        request.path = std::move(path);
        request.answer.to = std::move(answer);
        open.push_back(std::move(request));
        return open.back();
    }
    void fail_all(Rc rc) {
        Reply reply;
        reply.rc = rc;
        for (const Request& request : std::exchange(open, {})) request.answer(reply);
    }

    const std::shared_ptr<Runtime> runtime_;
    const ClientOptions options_;
    std::shared_ptr<ClientEvents> events_;
    ClientStatus status_;
    std::function<void()> close_done_;
};

class FakeClientFactory final : public ClientFactory {
public:
    explicit FakeClientFactory(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

    std::shared_ptr<Client> open(const ClientOptions& options, std::shared_ptr<ClientEvents> events) override {
        if (refuse) throw Error(Errc::protocol, "open", {}, "no descriptors left");
        clients.push_back(std::make_shared<FakeClient>(runtime_, options, std::move(events)));
        return clients.back();
    }
    FakeClient& last() { return *clients.back(); }

    std::vector<std::shared_ptr<FakeClient>> clients;
    bool refuse = false;

private:
    const std::shared_ptr<Runtime> runtime_;
};

}  // namespace zkrecipes::testing
