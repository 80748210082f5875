// PersistentNode: an ephemeral node that is made again whenever it is gone.
//
// Layout (that of Curator's PersistentNode with mode EPHEMERAL):
//   <parent>   container; made if it is missing, as are its parents
//   <path>     ephemeral; data: set by the user
//
// Steps (src/core/node/persistent_node_fsm.cpp runs them):
//   1. Create <path>, and directly after it read it with a watch. If there is no parent: make it, and 1 again.
//   2. The read shows the owner of the node. Our session: done; if the data is not the wanted one, which happens
//      after a create whose answer was lost, set it. A former session of this object: delete the node, 1. Another
//      session: wait.
//   3. When the watch fires: deleted: 1; changed: read again, 2.
//   A new session: 1. A lost answer: 1 again; the create is answered "exists" if the lost one has happened.
//   4. Close: delete the node. If the answer to a create or to the delete is lost: sync, read the owner, and delete
//      the node if it is ours.
#include <zkrecipes/persistent_node.hpp>

#include <utility>

#include "core/node/persistent_node.hpp"
#include "core/operation/to_result.hpp"
#include "session/usable.hpp"

namespace zkrecipes {

const char* to_string(PersistentNodeState state) noexcept {
    switch (state) {
        case PersistentNodeState::missing: return "missing";
        case PersistentNodeState::present: return "present";
        case PersistentNodeState::taken: return "taken";
        case PersistentNodeState::refused: return "refused";
        case PersistentNodeState::closed: return "closed";
    }
    return "?";
}

namespace internal {

/// Copied by every call that waits, so that the node object may be destroyed meanwhile.
class PersistentNodeImpl {
public:
    PersistentNodeImpl(std::shared_ptr<SessionCore> session, const std::string& path, PersistentNodeOptions options)
        : core(std::move(session)),
          op(std::make_shared<PersistentNodeOp>(core, "PersistentNode", path, checked_path(*core, path),
                                                std::move(options))) {
        op->start();
    }

    static constexpr const char* kName = "PersistentNode";
    const std::string& path() const noexcept { return op->user_path(); }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<PersistentNodeOp> op;

private:
    static std::string checked_path(const SessionCore& core, const std::string& path) {
        constexpr const char* operation = "PersistentNode";
        auto server_path = core.server_path(path, operation);
        if (path == "/")
            throw Error(Errc::bad_path, operation, path, "the root is there already; name a node below it");
        return server_path;
    }
};

}  // namespace internal

using internal::SessionAccess;

PersistentNode::PersistentNode(Session& session, std::string path, PersistentNodeOptions options)
    : impl_(std::make_shared<internal::PersistentNodeImpl>(SessionAccess::core(session), path, std::move(options))) {}
PersistentNode::PersistentNode(PersistentNode&&) noexcept = default;
PersistentNode& PersistentNode::operator=(PersistentNode&& other) noexcept {
    if (this == &other) return *this;
    close();
    impl_ = std::move(other.impl_);
    return *this;
}
PersistentNode::~PersistentNode() { close(); }

bool PersistentNode::wait_present(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "wait_present");
    return impl->op->wait_present(*impl->core, "wait_present", deadline, std::move(stop));
}

void PersistentNode::wait_present_async(Deadline deadline, std::stop_token stop,
                                        std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "wait_present_async");
    impl->op->wait_later(impl->core, "wait_present_async", internal::PersistentNodeOp::Until::present, deadline,
                         std::move(stop), std::move(done));
}

void PersistentNode::set_data(std::string data) {
    const auto impl = internal::usable(impl_, "set_data");
    impl->op->set_data(*impl->core, "set_data", std::move(data));
}

std::string PersistentNode::data() const {
    const auto impl = internal::usable(impl_, "data");
    return impl->op->data(*impl->core);
}

PersistentNodeState PersistentNode::state() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    return impl ? impl->op->state() : PersistentNodeState::closed;
}

Subscription PersistentNode::watch_state(Listener listener) {
    const auto impl = internal::usable(impl_, "watch_state");
    internal::check_callable(listener, "watch_state", path());
    return impl->op->watch_state(impl->core, std::move(listener));
}

void PersistentNode::close() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->op->close(*impl->core);
}

bool PersistentNode::close_and_wait(Deadline deadline) {
    const auto impl = internal::usable(impl_, "close_and_wait");
    return impl->op->close_and_wait(*impl->core, deadline);
}

void PersistentNode::close_and_wait_async(Deadline deadline, std::stop_token stop,
                                          std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "close_and_wait_async");
    impl->op->wait_later(impl->core, "close_and_wait_async", internal::PersistentNodeOp::Until::gone, deadline,
                         std::move(stop), std::move(done));
}

const std::string& PersistentNode::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
