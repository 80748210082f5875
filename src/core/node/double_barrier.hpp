#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/barrier.hpp>
#include <zkrecipes/deadline.hpp>

#include "core/operation/read_op.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The location and the options of a barrier.
struct BarrierPlace {
    std::string user_path;
    std::string path;  // on the server
    std::vector<Acl> acl;
    bool create_parents = true;
};
/// Throws Error bad_path, bad_option.
std::shared_ptr<const BarrierPlace> make_barrier_place(const SessionCore& core, const char* operation,
                                                       const std::string& path, BarrierOptions options);

/// Throws Error closed; bad_option for an empty callback.
void check_barrier_callback(SessionCore& core, const char* operation, const BarrierPlace& place,
                            const std::function<void(BarrierResult)>& done);
/// Starts an operation whose outcome "done" means passed.
void run_barrier_later(const std::shared_ptr<ReadOp>& op, Deadline deadline, std::stop_token stop,
                       std::function<void(BarrierResult)> done);

/// Our membership in a double barrier. *Lock held*; shared by the object and its calls.
struct BarrierMember {
    enum class Where { outside, entering, inside, leaving };
    Where where = Where::outside;
    std::string name;                 // of our node, a UUID; "": none
    std::vector<std::string> former;  // names of earlier nodes of ours that may still be there
    std::uint64_t incarnation = 0;    // in which it was made
    std::size_t reserved = 0;         // bytes of the session's budget
    int creates = 0;                  // requests that have made it or may have
};

/// The operation of enter(). `where` must be `entering`; it is `inside` when this is done, `outside` otherwise.
std::shared_ptr<ReadOp> make_barrier_entry(const std::shared_ptr<SessionCore>& core, const char* operation,
                                           std::shared_ptr<const BarrierPlace> place,
                                           std::shared_ptr<BarrierMember> member, std::size_t members);
/// The operation of leave(). `where` must be `leaving`; it is `outside` afterwards.
std::shared_ptr<ReadOp> make_barrier_exit(const std::shared_ptr<SessionCore>& core, const char* operation,
                                          std::shared_ptr<const BarrierPlace> place,
                                          std::shared_ptr<BarrierMember> member);
/// *Lock held*: deletes our node without waiting for other members.
void abandon_barrier(SessionCore& core, const BarrierPlace& place, const std::shared_ptr<BarrierMember>& member);

}  // namespace zkrecipes::internal
