#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/retry_policy.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

class Session;

namespace internal {
class AtomicCounterImpl;
}

/// How the number is stored. All clients of a counter must use the same.
enum class CounterSize {
    eight_bytes,  ///< as Curator's DistributedAtomicLong
    four_bytes    ///< as Curator's DistributedAtomicInteger and SharedCount, and kazoo's Counter(support_curator)
};

/// Options of an AtomicCounter.
struct CounterOptions {
    CounterSize size = CounterSize::eight_bytes;  ///< how the number is stored
    /// If set, each change happens exactly once even if answers are lost, as long as the session lives. For this, each
    /// change keeps an ephemeral node in this directory until it is done. The directory is made if it is missing, and
    /// stays; it must not be that of a lock.
    std::string idempotent_in{};
    /// If set, a change that has met several conflicts acquires the mutex at this path and goes on. For counters with
    /// many clients.
    std::string lock_path{};
    /// How often, and with which delays, a change is repeated after a conflict. Empty: exponential back-off from 1 ms;
    /// five attempts with a lock_path, otherwise without end.
    std::optional<RetryPolicy> conflicts{};
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing parent is Errc::no_parent
};

/// What a change has done.
struct CounterChange {
    std::int64_t before = 0;  ///< the number before the change
    std::int64_t after = 0;   ///< the number after the change
    bool changed = true;      ///< false: compare_and_set() found another number, which is in both `before` and `after`
};

/// How an asynchronous change ended. If there is no error and the value is empty, it timed out or was stopped, and
/// nothing was written.
using CounterResult = Result<std::optional<CounterChange>>;

/// A number that many clients change at the same time: the same as Curator's DistributedAtomicLong on that path. The
/// first change makes the node; a missing node, or one without data, is the number 0.
///
/// A change reads the number and writes the new one on the condition that no client has written in between. After a
/// conflict it starts again. So no change is lost, and none happens twice. If an answer is lost, the write is not
/// repeated, and the call throws outcome_unknown. With CounterOptions::idempotent_in it is repeated, and happens once.
///
/// Safe for concurrent use. Calls that need a server also wait for a connection. Algorithm: Curator's. Costs without a
/// conflict: two requests in two round trips.
class ZKRECIPES_API AtomicCounter {
public:
    /// Does not block and sends nothing. Throws Error bad_path, bad_option.
    AtomicCounter(Session& session, std::string path, CounterOptions options = {});
    AtomicCounter(AtomicCounter&&) noexcept;
    AtomicCounter& operator=(AtomicCounter&&) noexcept;
    ~AtomicCounter();  ///< Waiting calls go on.

    /// Blocks for one round trip. Throws Error: bad_data (the node holds something else), unreachable (the deadline
    /// passed or a stop was requested), connection_lost, no_permission, closed.
    std::int64_t get(Fresh fresh = Fresh::no, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking; called back as add_async.
    void get_async(Fresh fresh, Deadline deadline, std::stop_token stop,
                   std::function<void(Result<std::int64_t>)> done);

    /// Block until the number is changed. Throw Error; nothing was written, except with outcome_unknown:
    ///   bad_option       the result does not fit
    ///   bad_data         the node holds something else than such a number
    ///   bad_version      CounterOptions::conflicts gave up: other clients were faster
    ///   outcome_unknown  it was sent and the answer was lost: it has happened once, or may still happen, or never will
    ///   connection_lost (the retry policy gave up), closed, no_permission, unsupported
    ///   (docs/recipes/atomic_counter.md)…
    CounterChange add(std::int64_t delta);
    CounterChange subtract(std::int64_t delta);
    CounterChange increment() { return add(1); }
    CounterChange decrement() { return subtract(1); }

    /// Block until the number is changed. Return empty if the deadline passes or a stop is requested before; then
    /// nothing was written. Throw as add(), and outcome_unknown if the deadline passes or a stop is requested while a
    /// write is not answered yet.
    [[nodiscard]] std::optional<CounterChange> try_add_for(std::int64_t delta, Timeout timeout,
                                                           std::stop_token stop = {});
    [[nodiscard]] std::optional<CounterChange> try_add_until(std::int64_t delta, Deadline deadline,
                                                             std::stop_token stop = {});
    /// As try_add_until, without blocking: `done` is called exactly once, on the session's notifier thread. If the call
    /// cannot be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void add_async(std::int64_t delta, Deadline deadline, std::stop_token stop,
                   std::function<void(CounterResult)> done);
    void subtract_async(std::int64_t delta, Deadline deadline, std::stop_token stop,
                        std::function<void(CounterResult)> done);
    /// Writes `next` if the number is `expected`; otherwise `changed` is false. As try_add_until.
    [[nodiscard]] std::optional<CounterChange> compare_and_set(std::int64_t expected, std::int64_t next,
                                                               Deadline deadline = Deadline::never(),
                                                               std::stop_token stop = {});
    /// Writes `next` and returns the number before. As try_add_until.
    std::optional<CounterChange> exchange(std::int64_t next, Deadline deadline = Deadline::never(),
                                          std::stop_token stop = {});
    /// The same without blocking; called back as add_async.
    void compare_and_set_async(std::int64_t expected, std::int64_t next, Deadline deadline, std::stop_token stop,
                               std::function<void(CounterResult)> done);
    void exchange_async(std::int64_t next, Deadline deadline, std::stop_token stop,
                        std::function<void(CounterResult)> done);

    /// Writes the number, whatever the node holds. One request. Blocks. Throws as add(), and unreachable if the
    /// deadline passes or a stop is requested before anything was sent.
    void force_set(std::int64_t number, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// Makes the node with this number. Returns false if it exists already, with any data. One request. Blocks. Throws
    /// as force_set().
    bool initialize(std::int64_t number, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking; the value of force_set_async is true. Called back as add_async.
    void force_set_async(std::int64_t number, Deadline deadline, std::stop_token stop,
                         std::function<void(Result<bool>)> done);
    void initialize_async(std::int64_t number, Deadline deadline, std::stop_token stop,
                          std::function<void(Result<bool>)> done);

    const std::string& path() const noexcept;  ///< of the counter node

private:
    std::shared_ptr<internal::AtomicCounterImpl> impl_;
};

}  // namespace zkrecipes
