#include "fake_server/faults.hpp"

#include <algorithm>
#include <utility>

#include "session/for_testing.hpp"

namespace zkrecipes::testkit {
namespace {

using sim::Op;
using sim::Request;

enum Kind : unsigned { kCreate = 1, kRemove = 2, kSet = 4, kRead = 8, kOther = 16, kAny = 31 };

struct Part {
    unsigned kind;
    const std::string& path;
};

unsigned kind_of(Op op) {
    switch (op) {
        case Op::create: return kCreate;
        case Op::remove: return kRemove;
        case Op::set: return kSet;
        case Op::exists:
        case Op::get:
        case Op::children: return kRead;
        case Op::sync:
        case Op::remove_watches: return kOther;
        default: return 0;  // what the client sends by itself
    }
}

unsigned kind_of(zkrecipes::internal::MultiOp::Kind kind) {
    using MultiKind = zkrecipes::internal::MultiOp::Kind;
    switch (kind) {
        case MultiKind::create: return kCreate;
        case MultiKind::remove: return kRemove;
        case MultiKind::set: return kSet;
        case MultiKind::check: return kOther;
    }
    return 0;
}

std::vector<Part> parts_of(const Request& request) {
    std::vector<Part> parts;
    // A session without holds reads the root from time to time.
    const bool heartbeat = request.own || (request.op == Op::exists && request.path == "/");
    if (heartbeat) return parts;
    if (request.op != Op::multi) return {{kind_of(request.op), request.path}};
    for (const auto& each : request.ops) parts.push_back({kind_of(each.kind), each.path});
    return parts;
}

}  // namespace

bool internal::FaultState::takes(const void* session, const Request& request) {
    if (match.session_ != nullptr && match.session_ != session) return false;
    const auto parts = parts_of(request);
    const bool fits = std::any_of(parts.begin(), parts.end(), [this](const Part& part) {
        return (part.kind & match.kinds_) != 0 && part.path.find(match.part_) != std::string::npos &&
               (match.whole_.empty() || part.path == match.whole_);
    });
    const std::lock_guard lock(mutex);
    if (!fits || cancelled || reached || ++seen < match.nth_) return false;
    reached = true;
    changed.notify_all();
    return true;
}

Match Match::any() {
    Match match;
    match.kinds_ = kAny;
    return match;
}
Match Match::create() {
    Match match;
    match.kinds_ = kCreate;
    return match;
}
Match Match::remove() {
    Match match;
    match.kinds_ = kRemove;
    return match;
}
Match Match::set() {
    Match match;
    match.kinds_ = kSet;
    return match;
}
Match Match::read() {
    Match match;
    match.kinds_ = kRead;
    return match;
}
Match& Match::path(std::string part) {
    part_ = std::move(part);
    return *this;
}
Match& Match::path_is(std::string whole) {
    whole_ = std::move(whole);
    return *this;
}
Match& Match::session(const Session& session) {
    session_ = zkrecipes::internal::ForTesting::id_of(session);
    return *this;
}
Match& Match::nth(int n) {
    nth_ = n;
    return *this;
}

bool Fault::reached() const {
    const std::lock_guard lock(state_->mutex);
    return state_->reached;
}

bool Fault::wait_reached(std::chrono::milliseconds within) const {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, within, [this] { return state_->reached; });
}

void Fault::cancel() const {
    const std::lock_guard lock(state_->mutex);
    state_->cancelled = true;
}

}  // namespace zkrecipes::testkit
