// The books that ZkHandle keeps of its requests, so that each one is answered exactly once: the C client forgets some
// when a handle is closed, and never answers what slips in while a session expires.

#include <utility>

#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

/// Each request that the C client's I/O thread has not seen yet is a byte in its wake-up pipe, and a full pipe makes it
/// close the connection. A pipe takes 65,536 bytes, but only two pages once the user has a thousand of them.
constexpr std::size_t kMaxInFlight = 4000;

ZkRequest& make(ZkRequest::List& list, ZkRequest::Kind kind, const std::string& path, ZkRequest::Done done) {
    ZkRequest& request = list.emplace_back(kind, path, std::move(done));
    request.self = list.begin();
    return request;
}

}  // namespace

void ZkHandle::create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                      CreateDone done) {
    ZkRequest::List made;
    ZkRequest& request = make(made, ZkRequest::Kind::create, path, std::move(done));
    request.data = data;
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
        waiting_.splice(waiting_.end(), made);
        send_waiting_locked();
    }
}

void ZkHandle::send_waiting_locked() {
    while (!waiting_.empty() && sent_.size() < kMaxInFlight && (life_ == Life::open || life_ == Life::draining) &&
           status_.state == ClientState::connected) {
        ZkRequest& request = waiting_.front();
        sent_.splice(sent_.end(), waiting_, request.self);
        send_locked(request);
    }
}

void ZkHandle::send_locked(ZkRequest& request) {
    const Rc rc = request.send(zh_);
    if (rc == Rc::ok) return;
    // With these it may be in the C client's books all the same (it found no memory for the second step of two).
    request.keep = rc == Rc::marshalling_error || rc == Rc::system_error;
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
        if (request.fate != Rc::ok) return;  // refused after all
        if (request.answered) {
            finished.splice(finished.end(), answered_, request.self);
            return;
        }
        finished.splice(finished.end(), sent_, request.self);
        send_waiting_locked();
        if (life_ == Life::draining && sent_.empty()) drained_.notify_all();
    }
    answer([&] { give(request); });
}

}  // namespace zkrecipes::internal
