#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "core/operation/retrying_fsm.hpp"

namespace zkrecipes::internal {

/// What the downgrade asks of its surroundings.
class DowngradePort : public virtual OperationPort {
public:
    virtual bool exclusive_held() const = 0;  // whether the exclusive hold is still guaranteed

    // ---- requests ----
    /// One transaction, check of the writer's node and create (ephemeral, not sequential) of `name`, and exists of
    /// `name` right behind it: on_created, then on_own.
    virtual void create(Ticket ticket, const std::string& name) = 0;
    virtual void renew_lease(Ticket ticket, const std::string& name) = 0;  // on_lease_renewed

    // ---- budgets, lease, cleaning up ----
    virtual bool reserve_node(const std::string& name) = 0;
    virtual void lease_committed(Instant sent_at) = 0;
    virtual bool begin_hold(const std::string& name, std::int64_t czxid) = 0;  // false: the lease is not fresh
    virtual void delete_node(const std::string& name) = 0;
    virtual void delete_by_identity(const std::string& identity) = 0;

    virtual void answer(Ended how, Errc error, std::string detail) = 0;  // once
};

enum class DowngradeStep : std::uint8_t {
    idle,
    awaiting_session,
    backing_off,
    leaving,
    finished,
    creating,
    looking,  // created; the answer of exists is on its way
    renewing_lease
};

/// Takes a shared hold beside an exclusive one, so that no writer gets in between when the exclusive hold is given up.
/// It creates a reader's node with the number of the own writer's node. The position of that node is known, so the
/// downgrade does not queue and waits for nobody.
///
/// The name of the node is chosen here and used once. So after an unknown outcome the same transaction is sent again:
/// "exists already" shows that it had happened, and the check in it that the writer's node was still there. Both nodes
/// belong to one session and end with it.
class DowngradeFsm final : public RetryingFsm<DowngradePort, DowngradeStep> {
public:
    struct Spec {
        std::string base;  // of readers
        Dialect dialect = Dialect::curator;
        std::int32_t sequence = 0;  // of the own writer's node
    };
    DowngradeFsm(DowngradePort& port, Spec spec, Patience patience);

    void start() override;
    void on_session_lost() override;

    // ---- answers ----
    void on_created(Ticket ticket, Rc rc, Instant sent_at);
    void on_own(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_lease_renewed(Ticket ticket, Rc rc);

    const std::string& node() const noexcept { return node_; }  // name of the new node; "": not chosen yet

private:
    enum class Known : std::uint8_t { none, unknown, created };

    // RetryingFsm
    void resume() override;
    void answer(Ended how, Errc error, std::string detail) override { port_.answer(how, error, std::move(detail)); }
    bool outcome_open() const noexcept override { return step_ == Step::creating; }
    void forget_nodes() override { known_ = Known::none; }
    void clean_up() override;

    void send_create();
    void grant_or_renew();
    void handle_error(Rc rc, const char* what);
    void fail_lost(const char* why);

    const Spec spec_;
    Known known_ = Known::none;
    std::uint64_t incarnation_ = 0;  // whose nodes both are
    std::int64_t czxid_ = 0;
    std::string identity_;
    std::string node_;
};

}  // namespace zkrecipes::internal
