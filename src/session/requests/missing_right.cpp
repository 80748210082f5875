#include "session/requests/missing_right.hpp"

#include <algorithm>

#include "base/paths.hpp"

namespace zkrecipes::internal {
namespace {

Needs needs_of(const MultiOp& op) {
    switch (op.kind) {
        case MultiOp::Kind::create: return Needs::on_parent("create", op.path);
        case MultiOp::Kind::remove: return Needs::on_parent("delete", op.path);
        case MultiOp::Kind::set: return Needs::on("write", op.path);
        case MultiOp::Kind::check: break;
    }
    return Needs::on("read", op.path);
}

}  // namespace

Needs Needs::on_parent(const char* right, const std::string& path) { return {right, std::string(parent_path(path))}; }

NeedsOfEach::NeedsOfEach(const std::vector<MultiOp>& ops) {
    each_.reserve(ops.size());
    for (const MultiOp& op : ops) each_.push_back(needs_of(op));
}

MissingRight NeedsOfEach::operator()(const std::vector<MultiResult>& results) const {
    const auto refused = std::ranges::find(results, Rc::no_auth, &MultiResult::rc) - results.begin();
    return refused < std::ssize(each_) ? each_[static_cast<std::size_t>(refused)]() : MissingRight{};
}

}  // namespace zkrecipes::internal
