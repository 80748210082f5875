#include "core/value/commit.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/identity.hpp"
#include "base/paths.hpp"
#include "client/wire_size.hpp"
#include "core/operation/wait.hpp"
#include "core/queue/node_name.hpp"
#include "core/value/commit_fsm.hpp"

namespace zkrecipes::internal {
namespace {

constexpr const char* kMarkName = "commit";  // behind the identity

const char* name_of(MultiOp::Kind kind) {
    switch (kind) {
        case MultiOp::Kind::create: return "create";
        case MultiOp::Kind::remove: return "remove";
        case MultiOp::Kind::set: return "set";
        case MultiOp::Kind::check: return "check";
    }
    return "?";
}

struct Refusal {
    Errc error{};
    std::string remedy;
};

/// What it means that the servers refused this operation, and what to do about it.
Refusal refusal_of(const MultiOp& op, Rc rc) {
    const bool creates = op.kind == MultiOp::Kind::create;
    switch (rc) {
        case Rc::no_node:
            if (creates) return {Errc::no_parent, "make the parent first, in this transaction or before"};
            return {Errc::no_node, "it was deleted, or never made; read what is there and decide anew"};
        case Rc::node_exists: return {Errc::node_exists, "set it instead, or choose another path"};
        case Rc::bad_version:
            return {Errc::bad_version, "its data are not of version " + std::to_string(op.version) +
                                           "; somebody has written them; read again and decide anew"};
        case Rc::not_empty: return {Errc::not_empty, "remove its children first, in this transaction or before"};
        case Rc::no_children_for_ephemerals:
            return {Errc::no_parent, "the parent is ephemeral and takes no children; choose another path"};
        case Rc::no_auth: return {Errc::no_permission, {}};  // see SessionCore::explained
        case Rc::quota_exceeded: return {Errc::quota_exceeded, "raise the quota, or write less"};
        default: return {error_of(rc), std::string("the servers answered: ") + to_string(rc)};
    }
}

}  // namespace

// ---- plan ---------------------------------------------------------------------------------------------------------

void TransactionPlan::require(const Grant& grant, const char* operation) {
    const auto& share = GrantAccess::share(grant);
    if (!share) {
        throw Error(Errc::lock_lost, operation, "",
                    "the grant is empty: nothing was acquired, or it was given back; stop the guarded work");
    }
    holds.push_back(share->shared_hold());
    for (const auto& node : share->hold().nodes()) require_node(node);
}

void TransactionPlan::require_node(const std::string& node) {
    // Any version: the name, with an identity that is used once, stands for the hold. The version of its data does not:
    // a client that asks the holder to give way writes into the node (Grant::revocation), and the hold remains.
    checks.emplace_back().path = node;
}

namespace {

/// `mark`: name of its node; empty: there is none.
std::vector<MultiOp> request_of(const SessionCore& core, const TransactionPlan& plan, const std::string& mark,
                                CommitPort::What what) {
    std::vector<MultiOp> ops;
    if (what == CommitPort::What::which_mark) {
        MultiOp& check = ops.emplace_back();
        check.kind = MultiOp::Kind::check;
        check.path = join_path(plan.mark_directory, mark);
        check.version = 0;
        return ops;
    }
    if (!mark.empty()) {
        MultiOp& create = ops.emplace_back();
        create.kind = MultiOp::Kind::create;
        create.path = join_path(plan.mark_directory, mark);
        create.acl = core.options().acl;
        create.mode = CreateMode::ephemeral;
    }
    if (what == CommitPort::What::mark_alone) {
        // Then it is of version 1, and so can be told from the mark of an attempt that has happened.
        MultiOp& tell = ops.emplace_back();
        tell.kind = MultiOp::Kind::set;
        tell.path = join_path(plan.mark_directory, mark);
        tell.data = "nothing was written";
        tell.version = 0;
        return ops;
    }
    ops.insert(ops.end(), plan.checks.begin(), plan.checks.end());
    ops.insert(ops.end(), plan.operations.begin(), plan.operations.end());
    return ops;
}

}  // namespace

void check_size(const TransactionPlan& plan, const char* operation) {
    const std::string mark = plan.mark_directory.empty() ? "" : std::string(kIdentityChars, 'x') + kMarkName;
    const std::size_t bytes = multi_wire_bytes(request_of(*plan.core, plan, mark, CommitPort::What::all));
    if (bytes <= kMaxRequestBytes) return;
    throw Error(Errc::too_large, operation, plan.paths.empty() ? "" : plan.paths.front(),
                "the transaction would have " + std::to_string(bytes) + " bytes and the servers take " +
                    std::to_string(kMaxRequestBytes) +
                    "; nothing was sent; write less at once, or large data "
                    "elsewhere and their place here");
}

// ---- one commit on its way ----------------------------------------------------------------------------------------

namespace {

class CommitOp final : public Operation, public CommitPort {
public:
    CommitOp(const TransactionPlan& plan, const char* operation, Patience patience, CommitDone done)
        : Operation(plan.core, operation),
          plan_(plan),
          done_(std::move(done)),
          fsm_(*this, plan_.mark_directory.empty() ? CommitFsm::Mark::no : CommitFsm::Mark::yes, patience) {
        plan_.core.reset();
        // A write that may still happen must not be guarded by somebody else's hold.
        for (const auto& hold : plan_.holds) hold->bind_to_owner();
        if (!plan_.mark_directory.empty()) mark_ = make_identity(random_uuid(core_->runtime())) + kMarkName;
    }

private:
    OperationFsm& machine() noexcept override { return fsm_; }

    bool all_held() const override {
        return std::ranges::all_of(plan_.holds, [](const auto& hold) { return hold->held(); });
    }

    void send(Ticket ticket, What what) override {
        core_->multi(request_of(*core_, plan_, mark_, what),
                     answered([this, ticket, what](Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
                         on_answer(ticket, what, rc, results, sent_at);
                     }));
    }
    std::string mark_node() const { return join_path(plan_.mark_directory, mark_); }
    bool reserve_mark() override { return reserved_.reserve(*core_, mark_node().size()); }
    void delete_mark() override { core_->delete_node(mark_node(), reserved_.release_when_gone(*core_)); }
    void delete_mark_if_any() override {
        core_->delete_by_identity(plan_.mark_directory, mark_, reserved_.release_when_gone(*core_));
    }

    void answer(CommitEnd end) override {
        if (end.how != CommitEnd::How::failed || end.error != Errc::outcome_unknown) {
            for (const auto& hold : plan_.holds) {
                if (is_of_this_session(*hold)) hold->unbind();
            }
        }
        CommitAnswer answer;
        switch (end.how) {
            case CommitEnd::How::committed: answer.result = result(); break;
            case CommitEnd::How::committed_before:
                answer.result.emplace();
                answer.result->answer_lost = true;
                break;
            case CommitEnd::How::timed_out:
            case CommitEnd::How::stopped: break;
            case CommitEnd::How::refused: answer.error = refusal(end.rc); break;
            case CommitEnd::How::failed:
                answer.error.emplace(end.error, operation_, first_path(),
                                     core_->explained(end.error, std::move(end.detail)));
                break;
        }
        std::exchange(done_, nullptr)(std::move(answer));
    }
    void on_answer(Ticket ticket, What what, Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
        results_ = results;
        // The first with this answer: those after it say something else, and those before it "ok".
        refused_at_ = static_cast<std::size_t>(std::ranges::find(results, rc, &MultiResult::rc) - results.begin());
        if (rc == Rc::ok && what == What::all && checks_own_node()) core_->lease_committed(sent_at);
        fsm_.on_answer(ticket, rc, refused_at_);
    }

    bool is_of_this_session(const Hold& hold) const {
        return hold.incarnation() == core_->incarnation().number &&
               hold.session_id() == core_->incarnation().session_id;
    }
    /// As good as a heartbeat then.
    bool checks_own_node() const {
        return std::ranges::any_of(plan_.holds, [this](const auto& hold) { return is_of_this_session(*hold); });
    }

    std::size_t marks() const { return mark_.empty() ? 0 : 1; }

    TransactionResult result() const {
        TransactionResult result;
        const std::size_t first = marks() + plan_.checks.size();
        for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
            auto& out = result.operations.emplace_back();
            out.path = plan_.paths[i];
            if (first + i >= results_.size()) continue;
            const MultiResult& seen = results_[first + i];
            if (plan_.operations[i].kind == MultiOp::Kind::create) {
                out.path = core_->user_path(seen.path);
                out.version = 0;
            }
            if (plan_.operations[i].kind == MultiOp::Kind::set) out.version = seen.stat.version;
        }
        return result;
    }

    Error refusal(Rc rc) const {
        const bool all_alike = results_.size() > 1 && std::ranges::all_of(results_, [rc](const MultiResult& result) {
                                   return result.rc == rc;
                               });
        if (all_alike || refused_at_ >= results_.size()) {
            return Error(
                error_of(rc), operation_, first_path(),
                core_->explained(error_of(rc), answer_in_words("the transaction", rc) + "; nothing was written"));
        }
        if (refused_at_ < marks()) return mark_refusal(rc);
        const std::size_t index = refused_at_ - marks();
        if (index < plan_.checks.size()) return check_refusal(plan_.checks[index], rc);
        return operation_refusal(index - plan_.checks.size(), rc);
    }
    std::string explained(const std::string& what, const Refusal& refusal) const {
        return core_->explained(refusal.error, refusal.remedy.empty() ? what : what + "; " + refusal.remedy);
    }
    Error mark_refusal(Rc rc) const {
        const std::string what = "the mark of a repeatable transaction could not be made here; nothing was written";
        if (rc == Rc::no_node) {
            return Error(Errc::no_parent, operation_, plan_.mark_path, what + "; make the directory");
        }
        const auto refusal = refusal_of(request_of(*core_, plan_, mark_, What::mark_alone).front(), rc);
        return Error(rc == Rc::node_exists ? Errc::protocol : refusal.error, operation_, plan_.mark_path,
                     explained(what, refusal));
    }
    Error check_refusal(const MultiOp& check, Rc rc) const {
        if (rc == Rc::no_node) {
            return Error(Errc::lock_lost, operation_, check.path,
                         "the node of a required grant is gone, and with it the right to write; nothing was written; "
                         "stop the guarded work");
        }
        const auto refusal = refusal_of(check, rc);
        return Error(refusal.error, operation_, check.path,
                     explained("the node of a required grant cannot be checked; nothing was written", refusal));
    }
    Error operation_refusal(std::size_t index, Rc rc) const {
        const MultiOp& op = plan_.operations[index];
        const auto refusal = refusal_of(op, rc);
        return Error(refusal.error, operation_, plan_.paths[index],
                     explained("operation " + std::to_string(index) + " of " + std::to_string(plan_.operations.size()) +
                                   " (" + name_of(op.kind) + ", counted from 0) was refused; nothing was written",
                               refusal));
    }
    std::string first_path() const { return plan_.paths.empty() ? "" : plan_.paths.front(); }

    TransactionPlan plan_;  // its core is core_
    CommitDone done_;
    CommitFsm fsm_;
    std::string mark_;  // name of the node; empty: none
    std::vector<MultiResult> results_;
    std::size_t refused_at_ = 0;
};

}  // namespace

std::shared_ptr<Operation> make_commit(const TransactionPlan& plan, const char* operation, Patience patience,
                                       CommitDone done) {
    return std::make_shared<CommitOp>(plan, operation, patience, std::move(done));
}

// ---- the two ways to wait for it ----------------------------------------------------------------------------------

namespace {

auto maker(const TransactionPlan& plan, const char* operation) {
    return [&plan, operation](Patience patience, CommitDone done) {
        return make_commit(plan, operation, patience, std::move(done));
    };
}

}  // namespace

std::optional<TransactionResult> commit_blocking(const TransactionPlan& plan, const char* operation, Deadline deadline,
                                                 std::stop_token stop) {
    return run_blocking<CommitAnswer>(plan.core, maker(plan, operation), deadline, std::move(stop)).result;
}

void commit_later(const TransactionPlan& plan, const char* operation, Deadline deadline, std::stop_token stop,
                  std::function<void(CommitAnswer)> done) {
    run_later<CommitAnswer>(plan.core, maker(plan, operation), deadline, std::move(stop), std::move(done));
}

}  // namespace zkrecipes::internal
