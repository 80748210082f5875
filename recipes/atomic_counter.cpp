// AtomicCounter: a number that many clients change at the same time.
//
// Layout (that of Curator's DistributedAtomicLong; with four bytes, of its DistributedAtomicInteger):
//   <path>                                  persistent, made by the first change; data: 8 (4) bytes, big-endian
//   <idempotent_in>/_c_<uuid>-commit        ephemeral, until one change is done; only with that option
//   <lock_path>/_c_<uuid>-lock-<sequence>   ephemeral; a mutex; only with that option, and only after conflicts
//
// Steps (src/core/value/value_update_fsm.cpp runs them):
//   1. get(<path>). No node, or one without data: the number is 0.
//   2. Compute the new number. If it does not fit: an error.
//   3. set(<path>) on the condition that the version is that of step 1; create(<path>) if there was no node. This is
//      a transaction of its own (src/core/value/commit_fsm.hpp), with the ephemeral node of idempotent_in if it is
//      set.
//   4. If the servers refuse it, because another client has written, made or deleted the node: wait a little and go
//      back to 1. If the policy for conflicts gives up and there is a lock_path: acquire that lock and go on at 1.
//   force_set is step 3 without a condition, initialize is step 3 with a create.
//   If the answer to step 3 is lost, the call ends with outcome_unknown. With idempotent_in it is sent again, with
//   the same ephemeral node, so it fails if it has happened already.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

#include "core/operation/to_result.hpp"
#include "core/value/node_reader.hpp"
#include "core/value/value_update.hpp"
#include "core/value/value_update_rules.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

std::shared_ptr<const ValuePlace> counter_place(const SessionCore& core, const std::string& path,
                                                CounterOptions options) {
    ValuePlaceOptions place;
    place.acl = std::move(options.acl);
    place.create_parents = options.create_parents;
    place.idempotent_in = std::move(options.idempotent_in);
    place.lock_path = std::move(options.lock_path);
    place.conflicts = std::move(options.conflicts);
    return make_value_place(core, path, std::move(place), "AtomicCounter");
}

}  // namespace

/// Copied by every call that waits, so that the counter object may be destroyed meanwhile.
class AtomicCounterImpl {
public:
    AtomicCounterImpl(std::shared_ptr<SessionCore> session, const std::string& path, CounterOptions options)
        : core(std::move(session)),
          format{options.size == CounterSize::eight_bytes ? 8 : 4},
          place(counter_place(*core, path, std::move(options))) {}

    std::optional<CounterChange> change(const std::shared_ptr<NumberChange>& rule, const char* operation,
                                        Deadline deadline, std::stop_token stop) const {
        const auto changed = change_blocking(core, place, rule, operation, deadline, std::move(stop));
        if (!changed) return std::nullopt;
        return CounterChange{rule->before(), rule->after(), *changed};
    }
    void change_async(const std::shared_ptr<NumberChange>& rule, const char* operation, Deadline deadline,
                      std::stop_token stop, std::function<void(CounterResult)> done) const {
        check_callable(done, operation, path());
        core->throw_if_closed(operation, path());
        change_later(core, place, rule, operation, deadline, std::move(stop),
                     [rule, done = std::move(done)](const ValueUpdateAnswer& answer) {
                         using How = ValueUpdateAnswer::How;
                         std::optional<CounterChange> change;
                         if (answer.how == How::changed || answer.how == How::unchanged) {
                             change = {rule->before(), rule->after(), answer.how == How::changed};
                         }
                         done(to_result(change, answer.error));
                     });
    }
    std::shared_ptr<NumberChange> rule(NumberChange::Kind kind, std::int64_t operand, std::int64_t expected = 0) const {
        return std::make_shared<NumberChange>(kind, format, operand, expected);
    }

    /// What writes without a look waits for nothing but a server.
    bool write(const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
               std::stop_token stop) const {
        const auto changed = change_blocking(core, place, rule, operation, deadline, std::move(stop));
        if (changed) return *changed;
        throw not_sent(operation);
    }
    void write_async(const std::shared_ptr<ValueUpdateRule>& rule, const char* operation, Deadline deadline,
                     std::stop_token stop, std::function<void(Result<bool>)> done) const {
        check_callable(done, operation, path());
        core->throw_if_closed(operation, path());
        change_later(core, place, rule, operation, deadline, std::move(stop),
                     [unsent = not_sent(operation), done = std::move(done)](ValueUpdateAnswer answer) {
                         using How = ValueUpdateAnswer::How;
                         if (answer.how == How::nothing) answer.error = unsent;
                         done(to_result(answer.how == How::changed, answer.error));
                     });
    }
    Error not_sent(const char* operation) const {
        return {Errc::unreachable, operation, place->user_path,
                "the deadline passed or it was stopped before anything was sent; nothing was written"};
    }
    Steps<std::int64_t> read(const char* operation, Fresh fresh) const {
        return number_in(read_content(core, operation, path(), fresh, nullptr), operation, place, format);
    }
    std::string data_of(std::int64_t number, const char* operation) const {
        if (format.fits(number)) return format.write(number);
        throw Error(Errc::bad_option, operation, place->user_path,
                    std::to_string(number) + " does not fit four bytes; nothing was sent");
    }

    static constexpr const char* kName = "AtomicCounter";
    const std::string& path() const noexcept { return place->user_path; }

    const std::shared_ptr<SessionCore> core;
    const NumberFormat format;
    const std::shared_ptr<const ValuePlace> place;

private:
    static Steps<std::int64_t> number_in(Steps<std::optional<NodeContent>> read, const char* operation,
                                         std::shared_ptr<const ValuePlace> place, NumberFormat format) {
        const auto content = co_await std::move(read);
        if (!content) co_return 0;
        const auto number = format.read(content->data);
        if (!number) throw Error(Errc::bad_data, operation, place->user_path, format.problem(content->data));
        co_return *number;
    }
};

}  // namespace internal

using internal::AtomicCounterImpl;
using internal::NumberChange;
using internal::SessionAccess;

AtomicCounter::AtomicCounter(Session& session, std::string path, CounterOptions options)
    : impl_(std::make_shared<AtomicCounterImpl>(SessionAccess::core(session), path, std::move(options))) {}
AtomicCounter::AtomicCounter(AtomicCounter&&) noexcept = default;
AtomicCounter& AtomicCounter::operator=(AtomicCounter&&) noexcept = default;
AtomicCounter::~AtomicCounter() = default;

std::int64_t AtomicCounter::get(Fresh fresh, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "get");
    return impl->read("get", fresh).get(deadline, std::move(stop));
}

void AtomicCounter::get_async(Fresh fresh, Deadline deadline, std::stop_token stop,
                              std::function<void(Result<std::int64_t>)> done) {
    constexpr const char* operation = "get_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, path(), impl->read(operation, fresh), deadline, std::move(stop), std::move(done));
}

// Without a deadline and a stop there is always an answer.
CounterChange AtomicCounter::add(std::int64_t delta) {
    const auto impl = internal::usable(impl_, "add");
    return *impl->change(impl->rule(NumberChange::Kind::add, delta), "add", Deadline::never(), {});
}

CounterChange AtomicCounter::subtract(std::int64_t delta) {
    const auto impl = internal::usable(impl_, "subtract");
    return *impl->change(impl->rule(NumberChange::Kind::subtract, delta), "subtract", Deadline::never(), {});
}

std::optional<CounterChange> AtomicCounter::try_add_for(std::int64_t delta, Timeout timeout, std::stop_token stop) {
    return try_add_until(delta, internal::deadline_in(impl_, timeout, "add"), std::move(stop));
}

std::optional<CounterChange> AtomicCounter::try_add_until(std::int64_t delta, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "add");
    return impl->change(impl->rule(NumberChange::Kind::add, delta), "add", deadline, std::move(stop));
}

void AtomicCounter::add_async(std::int64_t delta, Deadline deadline, std::stop_token stop,
                              std::function<void(CounterResult)> done) {
    constexpr const char* operation = "add_async";
    const auto impl = internal::usable(impl_, operation);
    impl->change_async(impl->rule(NumberChange::Kind::add, delta), operation, deadline, std::move(stop),
                       std::move(done));
}

void AtomicCounter::subtract_async(std::int64_t delta, Deadline deadline, std::stop_token stop,
                                   std::function<void(CounterResult)> done) {
    constexpr const char* operation = "subtract_async";
    const auto impl = internal::usable(impl_, operation);
    impl->change_async(impl->rule(NumberChange::Kind::subtract, delta), operation, deadline, std::move(stop),
                       std::move(done));
}

std::optional<CounterChange> AtomicCounter::compare_and_set(std::int64_t expected, std::int64_t next, Deadline deadline,
                                                            std::stop_token stop) {
    const auto impl = internal::usable(impl_, "compare_and_set");
    return impl->change(impl->rule(NumberChange::Kind::compare, next, expected), "compare_and_set", deadline,
                        std::move(stop));
}

void AtomicCounter::compare_and_set_async(std::int64_t expected, std::int64_t next, Deadline deadline,
                                          std::stop_token stop, std::function<void(CounterResult)> done) {
    constexpr const char* operation = "compare_and_set_async";
    const auto impl = internal::usable(impl_, operation);
    impl->change_async(impl->rule(NumberChange::Kind::compare, next, expected), operation, deadline, std::move(stop),
                       std::move(done));
}

std::optional<CounterChange> AtomicCounter::exchange(std::int64_t next, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "exchange");
    return impl->change(impl->rule(NumberChange::Kind::exchange, next), "exchange", deadline, std::move(stop));
}

void AtomicCounter::exchange_async(std::int64_t next, Deadline deadline, std::stop_token stop,
                                   std::function<void(CounterResult)> done) {
    constexpr const char* operation = "exchange_async";
    const auto impl = internal::usable(impl_, operation);
    impl->change_async(impl->rule(NumberChange::Kind::exchange, next), operation, deadline, std::move(stop),
                       std::move(done));
}

void AtomicCounter::force_set(std::int64_t number, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "force_set");
    constexpr const char* operation = "force_set";
    impl->write(std::make_shared<internal::Overwrite>(impl->data_of(number, operation)), operation, deadline,
                std::move(stop));
}

bool AtomicCounter::initialize(std::int64_t number, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "initialize");
    constexpr const char* operation = "initialize";
    return impl->write(std::make_shared<internal::CreateOnly>(impl->data_of(number, operation)), operation, deadline,
                       std::move(stop));
}

void AtomicCounter::force_set_async(std::int64_t number, Deadline deadline, std::stop_token stop,
                                    std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "force_set_async");
    constexpr const char* operation = "force_set_async";
    impl->write_async(std::make_shared<internal::Overwrite>(impl->data_of(number, operation)), operation, deadline,
                      std::move(stop), std::move(done));
}

void AtomicCounter::initialize_async(std::int64_t number, Deadline deadline, std::stop_token stop,
                                     std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "initialize_async");
    constexpr const char* operation = "initialize_async";
    impl->write_async(std::make_shared<internal::CreateOnly>(impl->data_of(number, operation)), operation, deadline,
                      std::move(stop), std::move(done));
}

const std::string& AtomicCounter::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
