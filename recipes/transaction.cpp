// Transaction: writes that happen only while grants are held.
//
// One multi, in this order:
//   1. create, ephemeral, <directory>/_c_<uuid>-commit: only with idempotent_in; the same name in every attempt
//   2. check, any version, of every node of every required grant
//   3. the operations, as they were added
// The servers execute all of it or nothing, at one point of their history. At that point the nodes of 2 exist, and a
// client whose node exists holds the lock: the write is inside the hold, whatever the clocks say.
//
// Why "any version" in 2: a check compares only the version of a node's data and cannot name its czxid. It need not,
// because the name of a lock node contains a UUID of a single acquire, so a node of that name is that hold. And it
// must not, because a revocation request (Grant::revocation) writes into the node and raises the version, while the
// hold goes on.
//
// Why any session may send it: the check concerns the node, not the client that asks. If the session of the grant is
// over, its node is deleted before the next contender can hold the lock, and the check fails. If we know that
// already, by our own clock, nothing is sent.
//
// A lost answer: src/core/value/commit_fsm.hpp.
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

#include <utility>

#include "core/operation/to_result.hpp"
#include "core/value/commit.hpp"
#include "core/value/sequencer.hpp"

namespace zkrecipes {

using internal::GrantAccess;
using internal::MultiOp;
using internal::SessionAccess;
using internal::TransactionPlan;

namespace {

constexpr const char* kCommit = "commit";

std::shared_ptr<internal::SessionCore> session_of(const Grant& grant) {
    const auto& share = GrantAccess::share(grant);
    return share ? share->core() : nullptr;
}

void check_plan(const TransactionPlan* plan, const char* operation) {
    check_usable(plan == nullptr ? nullptr : plan->core.get(), "Transaction", operation);
}

std::unique_ptr<TransactionPlan> plan_for(std::shared_ptr<internal::SessionCore> core, const Grant& grant) {
    auto plan = std::make_unique<TransactionPlan>(std::move(core));
    plan->require(grant, "Transaction");
    return plan;
}

MultiOp& add(TransactionPlan& plan, MultiOp::Kind kind, const std::string& path, std::string data,
             std::int32_t version) {
    static constexpr const char* kNames[] = {"create", "remove", "set", "check"};
    const char* const operation = kNames[static_cast<int>(kind)];
    if (version < Transaction::any_version) {
        throw Error(Errc::bad_option, operation, path,
                    "version " + std::to_string(version) + ": versions are 0 or more, and any_version is -1");
    }
    MultiOp op;
    op.kind = kind;
    op.path = plan.core->server_path(path, operation);
    op.data = std::move(data);
    op.version = version;
    plan.paths.push_back(path);
    return plan.operations.emplace_back(std::move(op));
}

}  // namespace

Transaction::Transaction(const Grant& grant) : plan_(plan_for(session_of(grant), grant)) {}
Transaction::Transaction(Session& session, const Grant& grant) : plan_(plan_for(SessionAccess::core(session), grant)) {}
Transaction::Transaction(Session& session, const Sequencer& sequencer)
    : plan_(std::make_unique<TransactionPlan>(SessionAccess::core(session))) {
    require(sequencer);
}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Transaction& Transaction::require(const Grant& grant) {
    check_plan(plan_.get(), "require");
    plan_->require(grant, "require");
    return *this;
}

Transaction& Transaction::require(const Sequencer& sequencer) {
    check_plan(plan_.get(), "require");
    internal::check_names_a_hold(sequencer, "require");
    for (const auto& node : sequencer.nodes()) plan_->require_node(node.path);
    return *this;
}

Transaction& Transaction::create(const std::string& path, std::string data, Create how,
                                 std::optional<std::vector<Acl>> acl) {
    check_plan(plan_.get(), "create");
    if (acl && acl->empty()) {
        throw Error(Errc::bad_option, "create", path, "an empty access list would shut everybody out, us included");
    }
    MultiOp& op = add(*plan_, MultiOp::Kind::create, path, std::move(data), any_version);
    op.acl = acl ? std::move(*acl) : plan_->core->options().acl;
    op.mode =
        how == Create::sequential ? internal::CreateMode::persistent_sequential : internal::CreateMode::persistent;
    return *this;
}

Transaction& Transaction::set(const std::string& path, std::string data, std::int32_t version) {
    check_plan(plan_.get(), "set");
    add(*plan_, MultiOp::Kind::set, path, std::move(data), version);
    return *this;
}

Transaction& Transaction::remove(const std::string& path, std::int32_t version) {
    check_plan(plan_.get(), "remove");
    add(*plan_, MultiOp::Kind::remove, path, {}, version);
    return *this;
}

Transaction& Transaction::check(const std::string& path, std::int32_t version) {
    check_plan(plan_.get(), "check");
    add(*plan_, MultiOp::Kind::check, path, {}, version);
    return *this;
}

Transaction& Transaction::idempotent_in(const std::string& directory) {
    check_plan(plan_.get(), "idempotent_in");
    plan_->mark_directory = plan_->core->server_path(directory, "idempotent_in");
    plan_->mark_path = directory;
    return *this;
}

std::size_t Transaction::size() const noexcept { return plan_ ? plan_->operations.size() : 0; }

TransactionResult Transaction::commit() {
    check_plan(plan_.get(), "commit");
    internal::check_size(*plan_, kCommit);
    // Without a deadline and a stop there is always an answer.
    return *internal::commit_blocking(*plan_, kCommit, Deadline::never(), {});
}

std::optional<TransactionResult> Transaction::try_commit_for(Timeout timeout, std::stop_token stop) {
    check_plan(plan_.get(), "commit");
    return try_commit_until(Deadline::after(plan_->core->runtime().steady_now(), timeout), std::move(stop));
}

std::optional<TransactionResult> Transaction::try_commit_until(Deadline deadline, std::stop_token stop) {
    check_plan(plan_.get(), "commit");
    internal::check_size(*plan_, kCommit);
    return internal::commit_blocking(*plan_, kCommit, deadline, std::move(stop));
}

void Transaction::commit_async(Deadline deadline, std::stop_token stop, std::function<void(CommitResult)> done) {
    constexpr const char* operation = "commit_async";
    check_plan(plan_.get(), operation);
    const std::string first = plan_->paths.empty() ? "" : plan_->paths.front();
    internal::check_callable(done, operation, first);
    plan_->core->throw_if_closed(operation, first);
    internal::check_size(*plan_, operation);
    internal::commit_later(*plan_, operation, deadline, std::move(stop),
                           [done = std::move(done)](internal::CommitAnswer answer) {
                               done(internal::to_result(std::move(answer.result), answer.error));
                           });
}

}  // namespace zkrecipes
