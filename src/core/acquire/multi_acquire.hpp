#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/lock_options.hpp>

#include "core/acquire/acquire.hpp"
#include "core/acquire/multi_acquire_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What all calls of one multi-lock have in common; outlives the object while calls are open.
struct MultiQueue {
    MultiQueueSpec spec;  // the rules are those of `queues`
    std::vector<std::shared_ptr<const Queue>> queues;
    std::string name;  // of the whole set, for errors and the log
    std::vector<Acl> acl;
    LockOptions options;
    std::optional<Payload> payload;
    mutable std::atomic<bool> marker_refused{false};  // by the servers, once

    const std::string& user_path(std::size_t member) const noexcept { return queues[member]->user_path; }
};

/// `queues`: at least one, of different paths, all made with `options`. Throws Error too_large where no server would
/// take the transaction.
std::shared_ptr<const MultiQueue> make_multi_queue(const SessionCore& core,
                                                   std::vector<std::shared_ptr<const Queue>> queues,
                                                   LockOptions options, const char* operation);

/// One acquire in several queues at once.
class MultiAcquireOp final : public Acquisition, public MultiAcquirePort {
public:
    MultiAcquireOp(std::shared_ptr<SessionCore> core, std::shared_ptr<const MultiQueue> queue, const char* operation,
                   Patience patience, Done done);

private:
    OperationFsm& machine() noexcept override { return fsm_; }
    const std::shared_ptr<const LockLabel>& label() const override { return queue_->queues.front()->label; }

    void on_share(const std::shared_ptr<HoldRef>& share) override {
        share->describe({queue_, &queue_->options});
        share->limit_to(queue_->options.max_hold);
    }

    // MultiAcquirePort
    void create(Ticket ticket, const std::string& identity, bool marked) override;
    void make_directory(Ticket ticket, std::size_t member) override;
    void list(Ticket ticket, std::size_t member) override;
    void sync(Ticket ticket) override;
    void look_at_first(Ticket ticket, const std::string& name) override;
    void watch(Ticket ticket, std::size_t member, const std::string& name) override;
    void unwatch() override;
    void renew_lease(Ticket ticket, const std::vector<std::string>& names) override;
    bool reserve_nodes(const std::string& identity) override;
    bool may_watch(const std::vector<std::string>& names) override;
    void lease_committed(Instant sent_at) override;
    bool begin_hold(const std::vector<std::string>& names, std::int64_t czxid) override;
    void delete_nodes(const std::vector<std::string>& names) override;
    void delete_stray(std::size_t member, const std::string& name) override;
    void delete_by_identity(const std::string& identity) override;
    bool may_mark() override;
    void never_mark_again() override;
    void in_front(std::size_t contenders) override { show_in_front(contenders); }
    void note(const char* what) override;
    void running_out(std::size_t member) override;
    void answer(Ended how, Errc error, std::string detail, std::optional<std::size_t> member) override;

    std::size_t size() const noexcept { return queue_->queues.size(); }
    const std::string& directory(std::size_t member) const { return queue_->spec.members[member].directory; }
    std::string path_of(std::size_t member, const std::string& name) const;
    /// Of those that have a name.
    std::vector<std::string> paths_of(const std::vector<std::string>& names) const;
    std::string payload() const;

    const std::shared_ptr<const MultiQueue> queue_;
    MultiAcquireFsm fsm_;
    std::vector<SessionCore::WatchId> watches_;  // by member; empty: none
};

}  // namespace zkrecipes::internal
