// The books that ZkHandle keeps of its requests, so that each one is answered exactly once: the C client forgets some
// when a handle is closed, and never answers what slips in while a session expires.

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "client/wire_size.hpp"
#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

/// How much is sent before an answer must come, so that a heartbeat, which overtakes only what waits, is answered soon.
/// A request counts 1, which keeps a server busy over any distance; one that lists a directory counts 1 more for each
/// kNamesPerWeight names that are expected in its answer.
constexpr std::size_t kWindow = 1000;
constexpr std::size_t kNamesPerWeight = 32;

/// A request of so many bytes is taken by a socket whose other requests are all answered, or on their way to a server.
constexpr std::size_t kSurelyTaken = 4096;

bool in_order(const ZkRequest& request) { return !request.urgent; }

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
    std::unique_lock lock(mutex_);
    if (!request.urgent) request.number = ++requests_;
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
        waiting_.splice(request.urgent ? std::ranges::find_if(waiting_, in_order) : waiting_.end(), made);
    }
    lock.unlock();
    send_waiting();
}

bool ZkHandle::has_room_locked(const ZkRequest& request) const {
    return request.urgent || sent_.empty() || sent_weight_ + request.weight <= kWindow;
}

/// Credentials go first.
bool ZkHandle::may_send_locked() const {
    return (life_ == Life::open || life_ == Life::draining) && status_.state == ClientState::connected &&
           !auth_waits_locked();
}

/// Takes the next one that may be sent now; false: there is none.
bool ZkHandle::next_to_send(ZkRequest*& request) {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty() || !may_send_locked()) return false;
    request = &waiting_.front();
    if (request->kind == ZkRequest::Kind::children) request->weight = 1 + usual_children_ / kNamesPerWeight;
    if (!has_room_locked(*request)) return false;
    sent_.splice(sent_.end(), waiting_, request->self);
    sent_weight_ += request->weight;
    return true;
}

/// As many as may be sent now.
void ZkHandle::send_waiting() {
    for (;;) {
        {
            const std::unique_lock client(client_mutex_, std::try_to_lock);
            if (!client) return;  // whoever has it comes by here afterwards
            ZkRequest* request = nullptr;
            while (is_connected() && next_to_send(request)) send(*request);
            if (!is_connected()) return;  // the driver will tell of it, and then what waits is refused
        }
        const std::lock_guard lock(mutex_);
        if (waiting_.empty() || !may_send_locked() || !has_room_locked(waiting_.front())) return;
    }
}

/// client_mutex_ is held.
void ZkHandle::send(ZkRequest& request) {
    ++in_books_;
    // What the socket does not take at once, the C client keeps, and the driver has to wait for the socket.
    const bool large = request.wire_bytes() > kSurelyTaken;
    const Rc rc = request.send(zh_);
    if (large || !is_connected()) driver_->look();
    if (rc == Rc::ok) return;
    --in_books_;
    const std::lock_guard lock(mutex_);
    // With these it may be in the C client's books all the same (it found no memory for the second step of two).
    request.keep = rc == Rc::marshalling_error || rc == Rc::system_error;
    sent_weight_ -= request.weight;
    refuse_locked(request, sent_, rc);
}

void ZkHandle::refuse_locked(ZkRequest& request, ZkRequest::List& from, Rc rc) {
    request.fate = rc;
    auto behind = refused_.end();
    while (behind != refused_.begin() && std::prev(behind)->number > request.number) --behind;
    refused_.splice(behind, from, request.self);
    post_refused_locked();
}

void ZkHandle::post_refused_locked() {
    if (std::exchange(refused_posted_, true)) return;
    runtime_->post(Lane::protocol, [self = shared_from_this()] { self->answer_refused(); });
}

/// The first one, if its number is less and nothing is in front of it any more. A request that the C client was given
/// between a break and the news of it is sent on the next connection. Those behind it, which were refused, wait for its
/// answer: whoever sends two together counts on the order of the answers.
bool ZkHandle::take_refused_locked(ZkRequest::List& due, std::uint64_t before) {
    if (refused_.empty()) return false;
    for (const ZkRequest::List* list : {&sent_, &waiting_}) {
        const auto next = std::ranges::find_if(*list, in_order);
        if (next != list->end()) before = std::min(before, next->number);
    }
    ZkRequest& first = refused_.front();
    if (first.number >= before) return false;
    due.splice(due.end(), refused_, first.self);
    return true;
}

void ZkHandle::answer_refused() {
    for (;;) {
        ZkRequest::List due;
        const UserCodeLock delivery(delivery_);
        {
            const std::lock_guard lock(mutex_);
            refused_posted_ = take_refused_locked(due, requests_ + 1);
            if (!refused_posted_) return;
        }
        give_refused(due);
    }
}

/// delivery_ is held, since these became due.
void ZkHandle::give_refused(ZkRequest::List& due) {
    for (ZkRequest& request : due) request.fail(request.fate);
    if (std::ranges::none_of(due, &ZkRequest::keep)) return;
    const std::lock_guard lock(mutex_);
    for (auto next = due.begin(); next != due.end();) {
        const auto request = next++;
        if (request->keep) kept_.splice(kept_.end(), due, request);
    }
}

void ZkHandle::finish(ZkRequest& request) {
    ZkRequest::List before, finished;
    const UserCodeLock delivery(delivery_);
    {
        const std::lock_guard lock(mutex_);
        if (request.fate != Rc::ok) return;  // refused after all
        while (take_refused_locked(before, request.number)) {
        }
        finished.splice(finished.end(), sent_, request.self);
        sent_weight_ -= request.weight;
        usual_children_ = std::max(request.children, usual_children_ - usual_children_ / 64);
        if (!refused_.empty()) post_refused_locked();
        if (life_ == Life::draining && sent_.empty()) drained_.notify_all();
    }
    give_refused(before);
    request.give();
}

}  // namespace zkrecipes::internal
