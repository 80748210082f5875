#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/retry_policy.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

class Session;

namespace internal {
class AtomicCounterImpl;
}

/// How a counter is kept. All who count must use the same.
enum class CounterSize {
    eight_bytes,  ///< that of Curator's DistributedAtomicLong
    four_bytes  ///< that of Curator's DistributedAtomicInteger and SharedCount, and of kazoo's Counter(support_curator)
};

struct CounterOptions {
    CounterSize size = CounterSize::eight_bytes;
    /// Makes changes happen exactly once through lost answers, while the session lives: each makes an ephemeral node
    /// below this directory for as long as it takes. Made when missing, and kept; must not be that of a lock.
    std::string idempotent_in{};
    /// Where many count at once: after a few conflicts a change goes on under the mutex at this path.
    std::string lock_path{};
    /// How often, and how long apart, a change is tried again when somebody else was faster. Empty: exponential from
    /// 1 ms; five attempts with a lock_path, otherwise without end.
    std::optional<RetryPolicy> conflicts{};
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// What a change has done.
struct CounterChange {
    std::int64_t before = 0;
    std::int64_t after = 0;
    bool changed = true;  ///< false: compare_and_set() found something else, which is both of the above
};

/// How an asynchronous change ended: with what it has done; with neither (timed out or stopped, nothing was written);
/// or with an error.
struct CounterResult {
    std::optional<CounterChange> change;
    std::exception_ptr error;  ///< an Error, or null
};

/// A number that many change at the same time: the same as Curator's DistributedAtomicLong on that path. There is no
/// node before the first change; a missing one, and one without data, is the number 0.
///
/// A change reads and writes what it makes of it, on the condition that nobody has written in between; otherwise it
/// begins again. So no change is lost. None is done twice either: one of which the answer was lost is not sent again,
/// and the call throws outcome_unknown; with CounterOptions::idempotent_in it is, and happens once.
///
/// Safe for concurrent use. Calls wait for the connection within their deadline. A change without conflicts costs two
/// requests and two round trips.
class ZKRECIPES_API AtomicCounter {
public:
    /// Throws Error bad_path and bad_option. Does not block and sends nothing.
    AtomicCounter(Session& session, std::string path, CounterOptions options = {});
    AtomicCounter(AtomicCounter&&) noexcept;
    AtomicCounter& operator=(AtomicCounter&&) noexcept;
    ~AtomicCounter();  ///< Waiting calls live on.

    /// One round trip. Throws Error: bad_data (something else stands there), unreachable (the deadline passed, or a
    /// stop was requested), connection_lost, no_permission, closed.
    std::int64_t get(Fresh fresh = Fresh::no, Deadline deadline = Deadline::never(), std::stop_token stop = {});

    // Block the fiber or thread until it has happened. Throw Error; nothing was written, unless it is outcome_unknown:
    //   bad_option       the result would not fit
    //   bad_data         something else than such a number stands there
    //   bad_version      others were faster, as often as CounterOptions::conflicts says
    //   outcome_unknown  it was sent, and the answer was lost: it has happened once, or will in a moment, or never
    //   connection_lost (retry policy gave up), closed, no_permission, unsupported (docs/recipes/atomic_counter.md) …
    CounterChange add(std::int64_t delta);
    CounterChange subtract(std::int64_t delta);
    CounterChange increment() { return add(1); }
    CounterChange decrement() { return subtract(1); }

    /// Empty: the deadline passed or a stop was requested; nothing was written. A passed deadline makes one attempt.
    /// Throws as add(), and outcome_unknown when the deadline passes or a stop is requested while a write is on its
    /// way.
    [[nodiscard]] std::optional<CounterChange> add_before(std::int64_t delta, Deadline deadline,
                                                          std::stop_token stop = {});
    /// As add_before without blocking; the result comes on the session's notifier thread, exactly once. Throws Error at
    /// once where nothing can follow: closed; bad_option for an empty callback. What the callback throws is logged.
    void add_async(std::int64_t delta, Deadline deadline, std::stop_token stop,
                   std::function<void(CounterResult)> done);
    /// Writes `next`, if the number is `expected`; otherwise `changed` is false. As add_before.
    [[nodiscard]] std::optional<CounterChange> compare_and_set(std::int64_t expected, std::int64_t next,
                                                               Deadline deadline = Deadline::never(),
                                                               std::stop_token stop = {});
    /// Writes `next`, and tells what it was. As add_before.
    std::optional<CounterChange> exchange(std::int64_t next, Deadline deadline = Deadline::never(),
                                          std::stop_token stop = {});

    /// Writes it, whatever stands there. One request. Throws as add(), and unreachable when the deadline passes or a
    /// stop is requested before anything was sent.
    void force_set(std::int64_t number, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// Makes the node; false: it is there already, whatever stands in it. One request. Throws as force_set().
    bool initialize(std::int64_t number, Deadline deadline = Deadline::never(), std::stop_token stop = {});

    const std::string& path() const noexcept;

private:
    std::shared_ptr<internal::AtomicCounterImpl> impl_;
};

}  // namespace zkrecipes
