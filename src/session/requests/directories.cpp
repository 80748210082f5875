#include "session/requests/directories.hpp"

#include <algorithm>

namespace zkrecipes::internal {

DirectoryMaker::DirectoryMaker(std::string path) {
    const auto depth = std::count(path.begin(), path.end(), '/');
    // A container that was just made may be reaped before its first child is: begin again, but not for ever.
    steps_left_ = static_cast<int>(8 * depth + 8);
    missing_.push_back(std::move(path));
}

DirectoryMaker::Step DirectoryMaker::start() {
    if (missing_.back() == "/" || missing_.back().empty()) return Rc::ok;
    return Create{missing_.back()};
}

DirectoryMaker::Step DirectoryMaker::made() {
    if (missing_.size() == 1) return Rc::ok;
    missing_.pop_back();
    return Create{missing_.back()};
}

DirectoryMaker::Step DirectoryMaker::go_up() {
    const std::string& path = missing_.back();
    const auto slash = path.rfind('/');
    if (slash == 0 || slash == std::string::npos) return Rc::no_node;  // the root is always there
    missing_.push_back(path.substr(0, slash));
    return Create{missing_.back()};
}

DirectoryMaker::Step DirectoryMaker::on_created(Rc rc) {
    if (--steps_left_ < 0) return rc == Rc::ok || rc == Rc::node_exists ? Rc::no_node : rc;
    switch (rc) {
        case Rc::ok:
        case Rc::node_exists: return made();
        case Rc::no_node: return go_up();
        case Rc::no_auth:
            // The servers look at the permission to create before they look whether the node exists.
            refusal_ = rc;
            return Exists{missing_.back()};
        default: return rc;
    }
}

DirectoryMaker::Step DirectoryMaker::on_exists(Rc rc) {
    if (rc == Rc::ok) return made();
    if (rc == Rc::no_node) return refusal_;
    return rc;
}

}  // namespace zkrecipes::internal
