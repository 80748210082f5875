#include "session/requests/requests.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "session/common/backoff.hpp"
#include "session/requests/directories.hpp"

namespace zkrecipes::internal {

/// Wraps `done` for the client: takes the session lock, keeps the books, and makes late words of a former session
/// harmless.
template <class Callback, class What>
auto Requests::answer_to(Callback done, Handling handling, RequestKind kind, What needs) {
    meter_.request(kind);
    const Instant sent_at = lock_.runtime().now();
    last_request_ = sent_at;
    const Sent sent{connection_.fsm().handle(),
                    stalled_reply_probe_.sent(sent_at),
                    sent_at,
                    handling,
                    ++handed_over_,
                    connections_};
    return
        [this, self = lock_.self(), sent, done = std::move(done), needs = std::move(needs)](Rc rc, auto&&... values) {
            self->run_internally([&] {
                const Rc told = on_answer(sent, rc);
                if (told == Rc::no_auth) last_missing_right_ = needs(values...);
                if (done) done(told, std::forward<decltype(values)>(values)..., sent.at);
            });
        };
}

/// Answers that a request was not sent, later, as every answer.
template <class... Values, class Callback>
void Requests::not_sent(Callback done) {
    const Rc rc = connection_.closed_because() != nullptr ? Rc::closed : Rc::not_connected;
    lock_.post_locked([done = std::move(done), rc, now = lock_.runtime().now()] {
        if (done) done(rc, Values{}..., now);
    });
}

Rc Requests::on_answer(const Sent& sent, Rc rc) {
    SessionFsm& fsm = connection_.fsm();
    if (sent.handle != fsm.handle() || !fsm.has_session()) {
        // What a former session did went with it. "ok" would be taken for a node that is there.
        return rc == Rc::closed ? rc : Rc::session_expired;
    }
    stalled_reply_probe_.answered(sent.ticket);
    if (rc == Rc::credentials_demanded) {
        return port_.on_credentials_demanded(sent.handle) ? Rc::session_expired : Rc::connection_loss;
    }
    if (!is_known(rc) && should_log(++unknown_codes_)) {
        lock_.log().warn("session {:#x}: a request was answered with {} ({}); its outcome is unknown ({} times)",
                         connection_.printable_id(), to_string(rc), static_cast<int>(rc), unknown_codes_);
    }
    if (rc == Rc::local_session) local_session_on_ = sent.connection;
    // What the client refused by itself ("too large") went nowhere: taken for a touch of the leader it would make the
    // lease longer than the session.
    if (!said_by_server(rc)) return rc == Rc::session_expired ? as_in_local_session(sent) : rc;
    const Instant now = lock_.runtime().now();
    answered_here_ = answered_here_ || sent.connection == connections_;
    fsm.on_answer(sent.handle, now);
    port_.on_touch(sent.at, now, sent.handling == Handling::urgent);
    before_connect_ = std::max(before_connect_, sent.at);
    const bool of_this_connection = sent.connection == connections_;
    if (of_this_connection && sent.handling == Handling::urgent) catching_up_ = false;
    if (seen_at_ && of_this_connection && !catching_up_ && sent.number > *seen_at_) seen_at_.reset();
    // It went out on this connection all the same, before we knew of it and so in front of catch_up(). Or that request
    // itself was not executed.
    const bool may_be_old = !of_this_connection || catching_up_;
    if (sent.handling == Handling::read && may_be_old && behind_ == connections_) return Rc::connection_loss;
    return rc;
}

/// Servers refuse ephemeral nodes to a local session, but say so only to a single create: a transaction that makes some
/// is told that the session has expired. So one create asks. It makes nothing, as its parent does not exist.
Rc Requests::as_in_local_session(const Sent& sent) {
    if (local_session_on_ == sent.connection) return Rc::local_session;
    if (sent.connection != connections_ || !connection_.connected()) return Rc::session_expired;
    if (std::exchange(asked_if_local_on_, connections_) == connections_) return Rc::session_expired;
    create("/_c_00000000-0000-0000-0000-000000000000-none/none", "", Acl::open(), CreateMode::ephemeral, {});
    return Rc::session_expired;
}

void Requests::catch_up() {
    if (!seen_at_) return;
    behind_ = connections_;
    catching_up_ = true;
    // It is committed also where it is refused. But a busy server may not have executed it.
    heartbeat({"/"}, [this, connection = connections_](Rc, const std::vector<MultiResult>&, Instant) {
        if (catching_up_ && connection == connections_ && connection_.connected()) catch_up();
    });
}

void Requests::create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                      Done<std::string, const NodeStat&> done) {
    if (!connection_.connected()) return not_sent<std::string, NodeStat>(std::move(done));
    auto answer = answer_to(std::move(done), Handling::write, RequestKind::create, Needs::on_parent("create", path));
    connection_.client()->create(std::move(path), std::move(data), acl, mode, std::move(answer));
}

void Requests::remove(const std::string& path, std::int32_t version, Done<> done) {
    if (!connection_.connected()) return not_sent(std::move(done));
    connection_.client()->remove(
        path, version,
        answer_to(std::move(done), Handling::write, RequestKind::remove, Needs::on_parent("delete", path)));
}

void Requests::exists(const std::string& path, Done<const NodeStat&> done, bool watch) {
    if (!connection_.connected()) return not_sent<NodeStat>(std::move(done));
    connection_.client()->exists(
        path, watch, answer_to(std::move(done), Handling::read, RequestKind::exists, Needs::on("read", path)));
}

void Requests::get(const std::string& path, Done<std::string, const NodeStat&> done, bool watch) {
    if (!connection_.connected()) return not_sent<std::string, NodeStat>(std::move(done));
    connection_.client()->get(path, watch,
                              answer_to(std::move(done), Handling::read, RequestKind::get, Needs::on("read", path)));
}

void Requests::set(const std::string& path, const std::string& data, std::int32_t version, Done<const NodeStat&> done) {
    if (!connection_.connected()) return not_sent<NodeStat>(std::move(done));
    connection_.client()->set(path, data, version,
                              answer_to(std::move(done), Handling::write, RequestKind::set, Needs::on("write", path)));
}

void Requests::children(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done, bool watch) {
    if (!connection_.connected()) return not_sent<std::vector<std::string>, NodeStat>(std::move(done));
    connection_.client()->children(
        path, watch, answer_to(std::move(done), Handling::read, RequestKind::children, Needs::on("read", path)));
}

void Requests::list(const std::string& path, ListDone done) {
    Lists& lists = lists_[path];
    if (lists.on_the_way >= lists_at_once_) return lists.waiting.push_back(std::move(done));
    send_list(path, {std::move(done)});
}

void Requests::send_list(const std::string& path, std::vector<ListDone> done) {
    children(path, [this, path, done = std::move(done)](Rc rc, const std::vector<std::string>& names,
                                                        const NodeStat& stat, Instant sent_at) {
        const auto lists = lists_.find(path);
        --lists->second.on_the_way;
        auto waiting = std::exchange(lists->second.waiting, {});
        if (!waiting.empty()) {
            send_list(path, std::move(waiting));
        } else if (lists->second.on_the_way == 0) {
            lists_.erase(lists);
        }
        for (const auto& each : done) each(rc, names, stat, sent_at);
    });
    ++lists_[path].on_the_way;  // no answer comes from inside the request
}

void Requests::multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done) {
    if (!connection_.connected()) return not_sent<std::vector<MultiResult>>(std::move(done));
    auto answer = answer_to(std::move(done), Handling::write, RequestKind::multi, NeedsOfEach(ops));
    connection_.client()->multi(std::move(ops), std::move(answer));
}

void Requests::sync(const std::string& path, Done<> done) {
    if (!connection_.connected()) return not_sent(std::move(done));
    connection_.client()->sync(path, answer_to(std::move(done), Handling::write, RequestKind::sync, Needs::nothing()));
}

void Requests::heartbeat(const std::vector<std::string>& nodes, Done<std::vector<MultiResult>> done) {
    if (!connection_.connected()) return not_sent<std::vector<MultiResult>>(std::move(done));
    connection_.client()->heartbeat(
        nodes, answer_to(std::move(done), Handling::urgent, RequestKind::heartbeat, Needs::nothing()));
}

void Requests::remove_watches(const std::string& path, Done<> done) {
    if (!connection_.connected()) return not_sent(std::move(done));
    connection_.client()->remove_watches(
        path, answer_to(std::move(done), Handling::write, RequestKind::other, Needs::nothing()));
}

void Requests::handle_opens() {
    expect_nothing();
    before_connect_ = lock_.runtime().now();
}

Instant Requests::wake_at() const { return connection_.connected() ? stalled_reply_probe_.look_at() : Instant::max(); }

void Requests::on_connected(Instant now) {
    last_request_ = now;
    ++connections_;
    catching_up_ = false;
    // Servers that demand credentials take any connection and cut it at the first request or ping. Only the answer to
    // a request says why.
    if (!std::exchange(answered_here_, false)) nudge();
}

void Requests::on_time(Instant now) {
    if (!connection_.connected() || !stalled_reply_probe_.due(now)) return;
    meter_.stalled_replies.add();
    nudge();
}

void Requests::nudge() {
    last_request_ = lock_.runtime().now();
    // Not counted among those that are waited for: it is only there to be heard.
    connection_.client()->nudge(
        [this, self = lock_.self(),
         sent = Sent{connection_.fsm().handle(), 0, last_request_, Handling::read, ++handed_over_, connections_}](
            Rc rc, const NodeStat&) { self->run_internally([&] { on_answer(sent, rc); }); });
}

void Requests::make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done, CreateMode mode) {
    struct Making : std::enable_shared_from_this<Making> {
        Making(Requests& owner, const std::string& directory, std::vector<Acl> access, CreateMode how, Done<> finished)
            : requests(owner), maker(directory), acl(std::move(access)), mode(how), done(std::move(finished)) {}

        void go(const DirectoryMaker::Step& step, Instant sent_at) {
            if (const auto* create = std::get_if<DirectoryMaker::Create>(&step)) {
                requests.create(create->path, "", acl, mode,
                                [self = shared_from_this()](Rc rc, const std::string&, const NodeStat&, Instant sent) {
                                    if (rc == Rc::no_auth) self->missing_right = self->requests.last_missing_right_;
                                    self->go(self->maker.on_created(rc), sent);
                                });
            } else if (const auto* exists = std::get_if<DirectoryMaker::Exists>(&step)) {
                requests.exists(exists->path, [self = shared_from_this()](Rc rc, const NodeStat&, Instant sent) {
                    self->go(self->maker.on_exists(rc), sent);
                });
            } else if (done) {
                // Others may have been refused since, while it looked whether the node is there all the same.
                if (std::get<Rc>(step) == Rc::no_auth) requests.last_missing_right_ = missing_right;
                done(std::get<Rc>(step), sent_at);
            }
        }
        Requests& requests;  // outlives its answers
        DirectoryMaker maker;
        const std::vector<Acl> acl;
        const CreateMode mode;
        const Done<> done;
        MissingRight missing_right;
    };
    auto making = std::make_shared<Making>(*this, path, acl, mode, std::move(done));
    const DirectoryMaker::Step first = making->maker.start();
    if (std::holds_alternative<Rc>(first)) {
        lock_.post_locked([making, first, now = lock_.runtime().now()] { making->go(first, now); });
    } else {
        making->go(first, lock_.runtime().now());
    }
}

}  // namespace zkrecipes::internal
