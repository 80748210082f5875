#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>
#include <zkrecipes/session_options.hpp>

#include "core/acquire/acquire.hpp"
#include "core/value/value_update_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What all changes of one value have in common; outlives the recipe object while calls are open.
struct ValuePlace {
    std::string user_path;  // as the caller names it
    std::string path;       // as the servers do
    std::vector<Acl> acl;
    bool make_directories = true;
    std::string mark_directory;         // server path; empty: no marks
    std::string mark_path;              // the same as the caller names it
    mutable bool marks_made = false;    // under the session lock: the directory is there
    RetryPolicy conflicts;              // of tries without the lock
    std::shared_ptr<const Queue> lock;  // null: there is none
};

struct ValuePlaceOptions {
    std::optional<std::vector<Acl>> acl{};
    bool create_parents = true;
    std::string idempotent_in{};
    std::string lock_path{};
    std::optional<RetryPolicy> conflicts{};
};

/// Checks paths and options. Throws Error bad_path or bad_option.
std::shared_ptr<const ValuePlace> make_value_place(const SessionCore& core, const std::string& path,
                                                   ValuePlaceOptions options, const char* operation);
/// Throws Error too_large where no server would take data of that size.
void check_value_size(const std::shared_ptr<SessionCore>& core, const ValuePlace& place, const std::string& data,
                      const char* operation);

/// How one change ended; what it did, the rule knows.
struct ValueUpdateAnswer {
    enum class How { changed, unchanged, nothing, failed };  // as ValueUpdateEnd
    How how = How::nothing;
    std::optional<Error> error{};
};

/// Runs under the session lock when a change has ended, before anybody else knows.
using ValueUpdateEnded = std::function<void(ValueUpdateAnswer::How)>;

/// Blocks the calling fiber or thread. Throws Error. True: changed; false: it was not to be changed; empty: the
/// deadline passed or a stop was requested, and nothing was written.
std::optional<bool> change_blocking(const std::shared_ptr<SessionCore>& core,
                                    const std::shared_ptr<const ValuePlace>& place,
                                    const std::shared_ptr<ValueUpdateRule>& rule, const char* operation,
                                    Deadline deadline, std::stop_token stop, ValueUpdateEnded inside = {});
/// `done` gets the answer on the notifier lane, exactly once.
void change_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
                  const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
                  std::stop_token stop, std::function<void(ValueUpdateAnswer)> done, ValueUpdateEnded inside = {});

}  // namespace zkrecipes::internal
