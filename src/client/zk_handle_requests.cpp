// The books that ZkHandle keeps of its requests, so that each one is answered exactly once: the C client forgets some
// when a handle is closed, and never answers what slips in while a session expires.

#include <algorithm>
#include <utility>

#include "client/wire_size.hpp"
#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

/// Each request that the C client's I/O thread has not seen yet is a byte in its wake-up pipe, and a full pipe makes it
/// close the connection. A pipe takes 65,536 bytes, but only two pages once the user has a thousand of them.
constexpr std::size_t kMaxInFlight = 4000;

/// How much is sent before an answer must come, so that a heartbeat, which overtakes only what waits, is answered soon.
/// A request counts 1, which keeps a server busy over any distance; one that lists a directory counts 1 more for each
/// kNamesPerWeight names that are expected in its answer.
constexpr std::size_t kWindow = 1000;
constexpr std::size_t kNamesPerWeight = 32;

ZkRequest& make(ZkRequest::List& list, ZkRequest::Kind kind, std::string path, ZkRequest::Done done) {
    ZkRequest& request = list.emplace_back(kind, std::move(path), std::move(done));
    request.self = list.begin();
    return request;
}

}  // namespace

void ZkHandle::create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                      CreateDone done) {
    ZkRequest::List made;
    ZkRequest& request = make(made, ZkRequest::Kind::create, std::move(path), std::move(done));
    request.data = std::move(data);
    request.acl = acl;
    request.mode = mode;
    submit(std::move(made));
}

void ZkHandle::remove(const std::string& path, std::int32_t version, VoidDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::remove, path, std::move(done)).version = version;
    submit(std::move(made));
}

void ZkHandle::exists(const std::string& path, bool watch, StatDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::exists, path, std::move(done)).watch = watch;
    submit(std::move(made));
}

void ZkHandle::get(const std::string& path, bool watch, GetDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::get, path, std::move(done)).watch = watch;
    submit(std::move(made));
}

void ZkHandle::set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) {
    ZkRequest::List made;
    ZkRequest& request = make(made, ZkRequest::Kind::set, path, std::move(done));
    request.data = data;
    request.version = version;
    submit(std::move(made));
}

void ZkHandle::children(const std::string& path, bool watch, ChildrenDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::children, path, std::move(done)).watch = watch;
    submit(std::move(made));
}

void ZkHandle::multi(std::vector<MultiOp> ops, MultiDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::multi, std::string(), std::move(done)).ops = std::move(ops);
    submit(std::move(made));
}

void ZkHandle::sync(const std::string& path, VoidDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::sync, path, std::move(done));
    submit(std::move(made));
}

void ZkHandle::remove_watches(const std::string& path, VoidDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::remove_watches, path, std::move(done));
    submit(std::move(made));
}

void ZkHandle::heartbeat(const std::vector<std::string>& nodes, MultiDone done) {
    ZkRequest::List made;
    ZkRequest& request = make(made, ZkRequest::Kind::multi, std::string(), std::move(done));
    for (const auto& node : nodes) request.ops.emplace_back().path = node;
    request.urgent = true;
    submit(std::move(made));
}

void ZkHandle::nudge(StatDone done) {
    ZkRequest::List made;
    make(made, ZkRequest::Kind::exists, "/", std::move(done)).urgent = true;
    submit(std::move(made));
}

void ZkHandle::submit(ZkRequest::List made) {
    ZkRequest& request = made.front();
    request.handle = this;
    const bool too_large = request.wire_bytes() > kMaxRequestBytes;
    const std::lock_guard lock(mutex_);
    if (life_ != Life::open) {
        refuse_locked(request, made, Rc::closed);
    } else if (final_rc_ != Rc::ok) {
        refuse_locked(request, made, final_rc_);
    } else if (too_large) {
        refuse_locked(request, made, Rc::too_large);
    } else if (status_.state != ClientState::connected) {
        // The C client would keep it, and may say later that the connection was lost although it was never sent.
        refuse_locked(request, made, Rc::not_connected);
    } else {
        const auto in_order = [](const ZkRequest& other) { return !other.urgent; };
        waiting_.splice(request.urgent ? std::ranges::find_if(waiting_, in_order) : waiting_.end(), made);
        send_waiting_locked();
    }
}

bool ZkHandle::has_room_locked(const ZkRequest& request) const {
    if (sent_.size() >= kMaxInFlight) return false;
    return request.urgent || sent_.empty() || sent_weight_ + request.weight <= kWindow;
}

void ZkHandle::send_waiting_locked() {
    while (!waiting_.empty() && (life_ == Life::open || life_ == Life::draining) &&
           status_.state == ClientState::connected) {
        ZkRequest& request = waiting_.front();
        if (request.kind == ZkRequest::Kind::children) request.weight = 1 + usual_children_ / kNamesPerWeight;
        if (!has_room_locked(request)) return;
        sent_.splice(sent_.end(), waiting_, request.self);
        send_locked(request);
    }
}

void ZkHandle::send_locked(ZkRequest& request) {
    sent_weight_ += request.weight;
    const Rc rc = request.send(zh_);
    if (rc == Rc::ok) return;
    // With these it may be in the C client's books all the same (it found no memory for the second step of two).
    request.keep = rc == Rc::marshalling_error || rc == Rc::system_error;
    sent_weight_ -= request.weight;
    refuse_locked(request, sent_, rc);
}

void ZkHandle::refuse_locked(ZkRequest& request, ZkRequest::List& from, Rc rc) {
    request.fate = rc;
    const bool first = refused_.empty();
    refused_.splice(refused_.end(), from, request.self);
    if (first) runtime_->post(Lane::protocol, [self = shared_from_this()] { self->answer_refused(); });
}

void ZkHandle::answer_refused() {
    ZkRequest::List refused;
    {
        const std::lock_guard lock(mutex_);
        refused.splice(refused.end(), refused_);
        for (ZkRequest& request : refused) request.answered = true;
    }
    for (ZkRequest& request : refused) answer([&] { request.fail(request.fate); });
    const std::lock_guard lock(mutex_);
    for (auto next = refused.begin(); next != refused.end();) {
        const auto request = next++;
        if (request->keep) answered_.splice(answered_.end(), refused, request);
    }
}

void ZkHandle::finish(ZkRequest& request, const std::function<void(ZkRequest&)>& give) noexcept {
    ZkRequest::List finished;
    {
        const std::lock_guard lock(mutex_);
        if (request.fate != Rc::ok || request.answered) return;  // refused after all, or answered by ended()
        finished.splice(finished.end(), sent_, request.self);
        sent_weight_ -= request.weight;
        usual_children_ = std::max(request.children, usual_children_ - usual_children_ / 64);
        send_waiting_locked();
        if (life_ == Life::draining && sent_.empty()) drained_.notify_all();
    }
    answer([&] { give(request); });
}

}  // namespace zkrecipes::internal
