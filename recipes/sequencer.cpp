// Sequencer: a hold as a string, and its use by other processes.
//
// still_held:
//   1. One committed transaction checks every node of the hold. Directly after it send exists of each node, which
//      sees the state of that transaction or a later one. One round trip.
//   2. If the check succeeds, all nodes exist. If their czxid is the token, they are the nodes that were made with
//      it. (The shared hold of a downgrade has the token of its exclusive hold, which is smaller.)
// release_held: 1 and 2, and then one transaction that deletes all nodes. If its answer is lost and the nodes are
// gone, the hold is over, whoever deleted them.
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session.hpp>

#include <algorithm>
#include <utility>

#include "base/paths.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/operation/steps.hpp"
#include "core/value/sequencer.hpp"

namespace zkrecipes {
namespace internal {
namespace {

/// Looks at all nodes of a hold, and deletes them if that is wanted.
class HoldVisitor final : public ReadOp {
public:
    enum class Purpose { look, release };
    HoldVisitor(std::shared_ptr<SessionCore> core, const char* operation, const Sequencer& sequencer, Purpose purpose)
        : ReadOp(std::move(core), operation, sequencer.nodes().front().path),
          sequencer_(sequencer),
          purpose_(purpose) {}

    bool answer = false;

private:
    void begin() override {
        to_see_ = sequencer_.nodes().size();
        all_ours_ = true;
        core().multi(ops(MultiOp::Kind::check), guard([this](Rc rc, const std::vector<MultiResult>&, Instant) {
                         if (!usable(rc, "check", user_path_)) return;
                         if (rc == Rc::ok) return;
                         answer = deleted_;  // our own delete, of which the answer was lost; or it was over before
                         done();
                     }));
        for (const auto& node : sequencer_.nodes()) {
            core().exists(node.path, guard([this, &node](Rc rc, const NodeStat& stat, Instant) {
                              if (!usable(rc, "exists", node.path)) return;
                              all_ours_ = all_ours_ && rc == Rc::ok && is_that_of_the_token(node, stat);
                              if (--to_see_ == 0) all_seen();
                          }));
        }
    }

    bool is_that_of_the_token(const Sequencer::Node& node, const NodeStat& stat) const {
        return node.mode == HoldMode::shared ? stat.czxid >= sequencer_.token() : stat.czxid == sequencer_.token();
    }

    void all_seen() {
        if (purpose_ == Purpose::release && all_ours_) return release();
        answer = all_ours_;
        done();
    }

    void release() {
        deleted_ = true;
        core().multi(ops(MultiOp::Kind::remove), guard([this](Rc rc, const std::vector<MultiResult>&, Instant) {
                         if (!usable(rc, "delete", user_path_)) return;
                         answer = rc == Rc::ok;
                         done();
                     }));
    }

    std::vector<MultiOp> ops(MultiOp::Kind kind) const {
        std::vector<MultiOp> out;
        for (const auto& node : sequencer_.nodes()) {
            MultiOp& op = out.emplace_back();
            op.kind = kind;
            op.path = node.path;
        }
        return out;
    }

    const Sequencer sequencer_;
    const Purpose purpose_;
    std::size_t to_see_ = 0;
    bool all_ours_ = true;
    bool deleted_ = false;
};

Steps<bool> visit(Session& session, const char* operation, const Sequencer& sequencer, HoldVisitor::Purpose purpose) {
    return found_by(std::make_shared<HoldVisitor>(SessionAccess::core(session), operation, sequencer, purpose),
                    &HoldVisitor::answer);
}

Steps<bool> look(Session& session, const char* operation, const Sequencer& sequencer) {
    check_names_a_hold(sequencer, operation);
    return visit(session, operation, sequencer, HoldVisitor::Purpose::look);
}

Steps<bool> release(Session& session, const char* operation, const Sequencer& sequencer) {
    check_names_a_hold(sequencer, operation);
    if (sequencer.bearer() != Sequencer::Bearer::may_release) {
        throw Error(Errc::not_owner, operation, sequencer.nodes().front().path,
                    "its holder did not ask for that; let it make the sequencer with Bearer::may_release");
    }
    return visit(session, operation, sequencer, HoldVisitor::Purpose::release);
}

}  // namespace
}  // namespace internal

using internal::GrantAccess;
using internal::SessionAccess;

const char* to_string(HoldMode mode) noexcept {
    switch (mode) {
        case HoldMode::exclusive: return "exclusive";
        case HoldMode::shared: return "shared";
        case HoldMode::lease: return "lease";
    }
    return "?";
}

Sequencer::Sequencer(const Grant& grant, Bearer bearer)
    : token_(grant.token()), handovers_(grant.handovers()), bearer_(bearer) {
    constexpr const char* operation = "Sequencer";
    const auto& share = GrantAccess::share(grant);
    if (!share) {
        throw Error(Errc::lock_lost, operation, "", "the grant is empty: nothing was acquired, or it was given back");
    }
    share->hold().bind_to_owner();  // whoever has the text may write under its name
    for (const auto& node : share->hold().nodes()) {
        nodes_.push_back({node, internal::mode_of_node(internal::base_name(node))});
    }
    if (const std::size_t bytes = text().size(); bytes > max_bytes || nodes_.size() > max_nodes) {
        throw Error(Errc::too_large, operation, nodes_.front().path,
                    std::to_string(nodes_.size()) + " nodes with " + std::to_string(bytes) +
                        " bytes; use shorter paths, or fewer locks in one set");
    }
}

Sequencer Sequencer::parse(std::string_view text) {
    auto parsed = internal::parse_sequencer(text);
    if (const auto* problem = std::get_if<internal::SequencerProblem>(&parsed)) {
        throw Error(Errc::bad_data, "Sequencer::parse", "",
                    "byte " + std::to_string(problem->at) + ": " + problem->what);
    }
    auto& what = std::get<internal::SequencerText>(parsed);
    Sequencer out;
    out.token_ = what.token;
    out.handovers_ = what.handovers;
    out.bearer_ = what.may_release ? Bearer::may_release : Bearer::may_check;
    out.nodes_ = std::move(what.nodes);
    return out;
}

std::string Sequencer::text() const {
    return internal::write_sequencer({token_, handovers_, bearer_ == Bearer::may_release, nodes_});
}

HoldMode Sequencer::mode() const noexcept {
    const auto all = [this](HoldMode mode) {
        return std::ranges::all_of(nodes_, [mode](const Node& node) { return node.mode == mode; });
    };
    if (all(HoldMode::lease)) return HoldMode::lease;
    return all(HoldMode::shared) ? HoldMode::shared : HoldMode::exclusive;
}

std::string Sequencer::directory() const {
    internal::check_names_a_hold(*this, "directory");
    return std::string(internal::parent_path(nodes_.front().path));
}

bool still_held(Session& session, const Sequencer& sequencer, Deadline deadline) {
    return internal::look(session, "still_held", sequencer).get(deadline);
}

void still_held_async(Session& session, const Sequencer& sequencer, Deadline deadline, std::stop_token stop,
                      std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "still_held_async";
    auto call = internal::look(session, operation, sequencer);
    run_later(SessionAccess::core(session), operation, sequencer.nodes().front().path, std::move(call), deadline,
              std::move(stop), std::move(done));
}

bool release_held(Session& session, const Sequencer& sequencer, Deadline deadline) {
    return internal::release(session, "release_held", sequencer).get(deadline);
}

void release_held_async(Session& session, const Sequencer& sequencer, Deadline deadline, std::stop_token stop,
                        std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "release_held_async";
    auto call = internal::release(session, operation, sequencer);
    run_later(SessionAccess::core(session), operation, sequencer.nodes().front().path, std::move(call), deadline,
              std::move(stop), std::move(done));
}

}  // namespace zkrecipes
