#include "core/acquire/acquire_async.hpp"

#include <utility>

#include "core/operation/to_result.hpp"
#include "core/operation/wait.hpp"

namespace zkrecipes::internal {

void acquire_async(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, const char* operation,
                   const std::string& path, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireResult)> done) {
    check_callable(done, operation, path);
    core->throw_if_closed(operation, path);
    run_later<AcquireAnswer>(core, measured(make), deadline, std::move(stop),
                             [done = std::move(done)](AcquireAnswer answer) {
                                 const auto error = std::move(answer.error);
                                 done(to_result(to_grant(std::move(answer)), error));
                             });
}

void acquire_async(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                   const char* operation, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireResult)> done) {
    acquire_async(core, queue_acquisition(core, queue, operation), operation, queue->user_path, deadline,
                  std::move(stop), std::move(done));
}

}  // namespace zkrecipes::internal
