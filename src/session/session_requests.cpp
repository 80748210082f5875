#include <algorithm>
#include <utility>

#include "session/requests/directories.hpp"
#include "session/session_impl.hpp"

namespace zkrecipes::internal {

/// Wraps `done` for the client: takes the session lock, keeps the books, and makes late words of a former session
/// harmless.
template <class Callback>
auto SessionImpl::answer_to(Callback done, Instant sent_at, bool overtakes) {
    last_request_ = sent_at;
    return [self = shared_from_this(), handle = fsm_.handle(), ticket = stalled_reply_probe_.sent(sent_at),
            done = std::move(done), sent_at, overtakes](Rc rc, auto&&... values) {
        self->internally([&] {
            const Rc told = self->on_answer(handle, ticket, sent_at, rc, overtakes);
            if (done) done(told, std::forward<decltype(values)>(values)..., sent_at);
        });
    };
}

/// Answers that a request was not sent, later, as every answer.
template <class... Values, class Callback>
void SessionImpl::not_sent(Callback done) {
    const Rc rc = closed_because_ ? Rc::closed : Rc::not_connected;
    post_inside([done = std::move(done), rc, now = runtime_->now()] {
        if (done) done(rc, Values{}..., now);
    });
}

Rc SessionImpl::on_answer(std::uint64_t handle, StalledReplyProbe::Ticket ticket, Instant sent_at, Rc rc,
                          bool overtook) {
    if (handle != fsm_.handle() || !fsm_.has_session()) {
        // What a former session did went with it. "ok" would be taken for a node that is there.
        return rc == Rc::closed ? rc : Rc::session_expired;
    }
    stalled_reply_probe_.answered(ticket);
    // What the client refused by itself ("too large") went nowhere: taken for a touch of the leader it would make the
    // lease longer than the session.
    if (said_by_server(rc)) {
        const Instant now = runtime_->now();
        fsm_.on_answer(handle, now);
        lease_.answered(sent_at, now, overtook);
        before_connect_ = std::max(before_connect_, sent_at);
    }
    return rc;
}

void SessionImpl::create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                         Done<std::string, const NodeStat&> done) {
    if (!connected()) return not_sent<std::string, NodeStat>(std::move(done));
    client_->create(path, data, acl, mode, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::remove(const std::string& path, std::int32_t version, Done<> done) {
    if (!connected()) return not_sent(std::move(done));
    client_->remove(path, version, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::exists(const std::string& path, Done<const NodeStat&> done, bool watch) {
    if (!connected()) return not_sent<NodeStat>(std::move(done));
    client_->exists(path, watch, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::get(const std::string& path, bool watch, Done<std::string, const NodeStat&> done) {
    if (!connected()) return not_sent<std::string, NodeStat>(std::move(done));
    client_->get(path, watch, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::set(const std::string& path, const std::string& data, std::int32_t version,
                      Done<const NodeStat&> done) {
    if (!connected()) return not_sent<NodeStat>(std::move(done));
    client_->set(path, data, version, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::children(const std::string& path, bool watch, Done<std::vector<std::string>, const NodeStat&> done) {
    if (!connected()) return not_sent<std::vector<std::string>, NodeStat>(std::move(done));
    client_->children(path, watch, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done) {
    if (!connected()) return not_sent<std::vector<MultiResult>>(std::move(done));
    client_->multi(std::move(ops), answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::sync(const std::string& path, Done<> done) {
    if (!connected()) return not_sent(std::move(done));
    client_->sync(path, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::heartbeat(const std::vector<std::string>& nodes, Done<std::vector<MultiResult>> done) {
    if (!connected()) return not_sent<std::vector<MultiResult>>(std::move(done));
    client_->heartbeat(nodes, answer_to(std::move(done), runtime_->now(), true));
}

void SessionImpl::remove_watches(const std::string& path, Done<> done) {
    if (!connected()) return not_sent(std::move(done));
    client_->remove_watches(path, answer_to(std::move(done), runtime_->now()));
}

void SessionImpl::send_nudge() {
    last_request_ = runtime_->now();
    // Not counted among those that are waited for: it is only there to be heard.
    client_->nudge([self = shared_from_this(), handle = fsm_.handle(), sent_at = last_request_](
                       Rc rc, const NodeStat&) { self->internally([&] { self->on_answer(handle, 0, sent_at, rc); }); });
}

/// An idle session is kept well touched, so that a lock node made on it starts with a good lease. See LeaseClock.
Instant SessionImpl::touch_due_at() const {
    return connected() ? last_request_ + lease_.idle_interval() : Instant::max();
}

// ---- watches -------------------------------------------------------------------------------------------------------

void SessionImpl::send_get_watch(const std::string& path, std::uint64_t ticket) {
    get(path, true, [this, ticket](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
        watches_.on_read(ticket, rc, data, stat);
    });
}

void SessionImpl::send_children_watch(const std::string& path, std::uint64_t ticket) {
    children(path, true, [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat& stat, Instant) {
        watches_.on_read(ticket, rc, {}, stat, names);
    });
}

void SessionImpl::send_exists_watch(const std::string& path, std::uint64_t ticket) {
    exists(
        path, [this, ticket](Rc rc, const NodeStat& stat, Instant) { watches_.on_read(ticket, rc, {}, stat); }, true);
}

void SessionImpl::send_remove_watches(const std::string& path, std::uint64_t ticket) {
    remove_watches(path, [this, ticket](Rc rc, Instant) { watches_.on_removed(ticket, rc); });
}

// ---- reaper --------------------------------------------------------------------------------------------------------

void SessionImpl::delete_node(std::string node, std::function<void(bool)> done) {
    if (fsm_.has_session()) return node_cleaner_.add_node(std::move(node), std::move(done));
    if (done) post_inside([done = std::move(done)] { done(false); });
}

void SessionImpl::delete_nodes(std::vector<std::string> nodes, std::function<void(bool)> done) {
    if (fsm_.has_session()) return node_cleaner_.add_nodes(std::move(nodes), std::move(done));
    if (done) post_inside([done = std::move(done)] { done(false); });
}

void SessionImpl::delete_if_owned(std::string node, std::function<void(bool)> done) {
    if (fsm_.has_session())
        return node_cleaner_.add_owned(std::move(node), fsm_.incarnation().session_id, std::move(done));
    if (done) post_inside([done = std::move(done)] { done(false); });
}

void SessionImpl::delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool)> done) {
    if (fsm_.has_session()) {
        const std::int64_t owner = fsm_.incarnation().session_id;
        return node_cleaner_.add_identity(std::move(directory), std::move(name_prefix), owner, std::move(done));
    }
    if (done) post_inside([done = std::move(done)] { done(false); });
}

void SessionImpl::cleaner_remove(const std::string& path, NodeCleaner::Ticket ticket) {
    remove(path, -1, [this, ticket](Rc rc, Instant) { node_cleaner_.on_removed(ticket, rc); });
}

void SessionImpl::cleaner_remove_all(const std::vector<std::string>& paths, NodeCleaner::Ticket ticket) {
    std::vector<MultiOp> ops(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
        ops[i].kind = MultiOp::Kind::remove;
        ops[i].path = paths[i];
    }
    multi(std::move(ops), [this, ticket](Rc rc, const std::vector<MultiResult>&, Instant) {
        node_cleaner_.on_removed_all(ticket, rc);
    });
}

void SessionImpl::cleaner_sync(const std::string& path, NodeCleaner::Ticket ticket) {
    sync(path, [this, ticket](Rc rc, Instant) { node_cleaner_.on_synced(ticket, rc); });
}

void SessionImpl::cleaner_children(const std::string& path, NodeCleaner::Ticket ticket) {
    children(path, false, [this, ticket](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
        node_cleaner_.on_children(ticket, rc, names);
    });
}

void SessionImpl::cleaner_exists(const std::string& path, NodeCleaner::Ticket ticket) {
    exists(path, [this, ticket](Rc rc, const NodeStat& stat, Instant) {
        node_cleaner_.on_exists(ticket, rc, stat.ephemeral_owner);
    });
}

void SessionImpl::cleaner_refused(const std::string& path, const char* operation, Rc rc, std::uint64_t n) {
    if (!should_log(n)) return;
    logger_->error(
        "session {:#x}: cannot clean up {}: {} was answered '{}' ({} times). It stays until it is permitted or the "
        "session "
        "ends; give this session the permissions READ on the directory and DELETE in it",
        static_cast<std::uint64_t>(fsm_.incarnation().session_id), path, operation, to_string(rc), n);
}

// ---- directories ---------------------------------------------------------------------------------------------------

void SessionImpl::make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done, CreateMode mode) {
    struct Making : std::enable_shared_from_this<Making> {
        Making(SessionImpl& owner, const std::string& directory, std::vector<Acl> access, CreateMode how,
               Done<> finished)
            : session(owner), maker(directory), acl(std::move(access)), mode(how), done(std::move(finished)) {}

        void go(const DirectoryMaker::Step& step, Instant sent_at) {
            if (const auto* create = std::get_if<DirectoryMaker::Create>(&step)) {
                session.create(create->path, "", acl, mode,
                               [self = shared_from_this()](Rc rc, const std::string&, const NodeStat&, Instant sent) {
                                   self->go(self->maker.on_created(rc), sent);
                               });
            } else if (const auto* exists = std::get_if<DirectoryMaker::Exists>(&step)) {
                session.exists(exists->path, [self = shared_from_this()](Rc rc, const NodeStat&, Instant sent) {
                    self->go(self->maker.on_exists(rc), sent);
                });
            } else if (done) {
                done(std::get<Rc>(step), sent_at);
            }
        }
        SessionImpl& session;  // outlives its answers
        DirectoryMaker maker;
        const std::vector<Acl> acl;
        const CreateMode mode;
        const Done<> done;
    };
    auto making = std::make_shared<Making>(*this, path, acl, mode, std::move(done));
    const DirectoryMaker::Step first = making->maker.start();
    if (std::holds_alternative<Rc>(first)) {
        post_inside([making, first, now = runtime_->now()] { making->go(first, now); });
    } else {
        making->go(first, runtime_->now());
    }
}

}  // namespace zkrecipes::internal
