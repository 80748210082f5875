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

#include "core/acquire.hpp"
#include "core/change_fsm.hpp"
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
    mutable bool marks_made = false;    // inside the strand: the directory is there
    RetryPolicy conflicts;              // of tries without the lock
    std::shared_ptr<const Queue> lock;  // null: there is none
};

struct ValuePlaceOptions {
    std::optional<std::vector<Acl>> acl{};
    bool create_parents = true;
    std::string exactly_once_below{};
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
struct ChangeAnswer {
    enum class How { changed, unchanged, nothing, failed };  // as ChangeEnd
    How how = How::nothing;
    std::optional<Error> error{};
};

/// Runs inside the strand when a change has ended, before anybody else knows.
using ChangeEnded = std::function<void(ChangeAnswer::How)>;

/// Blocks the calling fiber or thread. Throws Error. True: changed; false: it was not to be changed; empty: the
/// deadline passed or a stop was requested, and nothing was written.
std::optional<bool> change_blocking(const std::shared_ptr<SessionCore>& core,
                                    const std::shared_ptr<const ValuePlace>& place,
                                    const std::shared_ptr<ChangeRule>& rule, const char* operation, Deadline deadline,
                                    std::stop_token stop, ChangeEnded inside = {});
/// `done` gets the answer on the notifier lane, exactly once.
void change_later(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
                  const std::shared_ptr<ChangeRule>& rule, const char* operation, Deadline deadline,
                  std::stop_token stop, std::function<void(ChangeAnswer)> done, ChangeEnded inside = {});

}  // namespace zkrecipes::internal
