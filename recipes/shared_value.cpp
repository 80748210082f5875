// SharedValue: a small value that many programs share; reading it costs no request.
//
// Layout (that of Curator's SharedValue):
//   <path>                             persistent; data: the value. Made with the seed by the first reader
//   <idempotent_in>/_c_<uuid>-commit   ephemeral, until one write is done; only with that option
//
// Steps (src/core/value/value_update_fsm.cpp runs the first three, src/core/node/node_watch_fsm.cpp the last):
//   1. The first read of a session: sync, get(<path>). If there is no node: create(<path>) with the seed. If another
//      client was faster: again.
//   2. set: set(<path>), any version. If there is no node: create(<path>).
//   3. try_set: set(<path>) on the condition that the version is the caller's.
//   4. Follow: read with a watch, and again when it fires. The last result is the latest
//      (src/core/value/value_follower.hpp).
//   If the answer to a write is lost, the call ends with outcome_unknown. With idempotent_in it is sent again, with
//   the same ephemeral node, so it fails if it has happened already. A read starts again.
#include <zkrecipes/session.hpp>
#include <zkrecipes/shared_value.hpp>

#include <utility>

#include "core/operation/to_result.hpp"
#include "core/value/value_follower.hpp"
#include "core/value/value_update.hpp"
#include "core/value/value_update_rules.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

std::shared_ptr<const ValuePlace> shared_place(const SessionCore& core, const std::string& path,
                                               SharedValueOptions options) {
    ValuePlaceOptions place;
    place.acl = std::move(options.acl);
    place.create_parents = options.create_parents;
    place.idempotent_in = std::move(options.idempotent_in);
    return make_value_place(core, path, std::move(place), "SharedValue");
}

bool is_known(ValueUpdateAnswer::How how) {
    return how == ValueUpdateAnswer::How::changed || how == ValueUpdateAnswer::How::unchanged;
}

Error not_sent(const char* operation, const std::string& path) {
    return {Errc::unreachable, operation, path,
            "the deadline passed or it was stopped before anything was sent; nothing was written"};
}

/// Makes a missing node, for an observer, which hears of the outcome only by observing the node.
void seed_behind(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const ValuePlace>& place,
                 const std::string& seed) {
    change_later(core, place, std::make_shared<FindOrCreate>(seed), "observe", Deadline::never(), {},
                 [core, place, seed](const ValueUpdateAnswer& answer) {
                     // Whatever has become of it: to make a node that is missing may be done again.
                     if (answer.error && answer.error->errc() == Errc::outcome_unknown) {
                         seed_behind(core, place, seed);
                     }
                 });
}

}  // namespace

/// Copied by every call that waits, so that the value object may be destroyed meanwhile.
class SharedValueImpl {
public:
    SharedValueImpl(std::shared_ptr<SessionCore> session, const std::string& path, std::string first,
                    SharedValueOptions options)
        : core(std::move(session)), place(shared_place(*core, path, std::move(options))), seed(std::move(first)) {
        check_value_size(core, *place, seed, "SharedValue");
    }
    SharedValueImpl(const SharedValueImpl&) = delete;
    SharedValueImpl& operator=(const SharedValueImpl&) = delete;
    ~SharedValueImpl() {
        core->run_locked_or_post([value = follower] { value->stop(); });
    }

    /// What is known already; begins to follow.
    std::optional<FoundValue> known(const char* operation) const {
        std::optional<FoundValue> value;
        std::optional<Error> closed;
        core->run_locked([&] {
            if ((closed = core->closed_error(operation, place->user_path))) return;
            follower->start(core, place->path);
            value = follower->known(*core);
        });
        if (closed) throw *closed;
        return value;
    }

    FoundValue get(Deadline deadline, const std::stop_token& stop) const {
        constexpr const char* operation = "get";
        for (;;) {
            if (auto value = known(operation)) return *std::move(value);
            const auto rule = std::make_shared<FindOrCreate>(seed);
            try {
                const auto ended = change_blocking(core, place, rule, operation, deadline, stop, tells_of_latest(rule));
                if (ended) return rule->value();
                break;
            } catch (const Error& error) {
                // To look, and to make a node that is missing, may be done again.
                if (error.errc() != Errc::outcome_unknown) throw;
                if (stop.stop_requested() || deadline.is_passed(core->runtime().steady_now())) break;
            }
        }
        throw not_answered(operation);
    }
    /// The same without blocking.
    static void get_later(const std::shared_ptr<const SharedValueImpl>& self, Deadline deadline,
                          const std::stop_token& stop, const std::function<void(Result<VersionedValue>)>& done) {
        constexpr const char* operation = "get_async";
        if (auto value = self->known(operation)) {
            return self->core->notify([done, result = VersionedValue{std::move(value->data), value->version}] {
                done({result, nullptr});
            });
        }
        const auto rule = std::make_shared<FindOrCreate>(self->seed);
        change_later(
            self->core, self->place, rule, operation, deadline, stop,
            [self, rule, deadline, stop, done](const ValueUpdateAnswer& answer) {
                if (is_known(answer.how)) {
                    auto found = rule->value();
                    return done({{std::move(found.data), found.version}, nullptr});
                }
                const bool again = answer.error && answer.error->errc() == Errc::outcome_unknown &&
                                   !stop.stop_requested() && !deadline.is_passed(self->core->runtime().steady_now());
                if (again) return get_again(self, deadline, stop, done);
                const bool says_why = answer.error && answer.error->errc() != Errc::outcome_unknown;
                if (says_why) return done({{}, std::make_exception_ptr(*answer.error)});
                done({{}, std::make_exception_ptr(self->not_answered(operation))});
            },
            self->tells_of_latest(rule));
    }

    template <class Rule>
    ValueUpdateEnded tells_follower(const std::shared_ptr<Rule>& rule) const {
        return [rule, session = core.get(), follower = follower](ValueUpdateAnswer::How how) {
            if (how != ValueUpdateAnswer::How::changed) return;
            follower->saw(*session,
                          rule->version() ? std::optional(FoundValue{rule->data(), *rule->version()}) : std::nullopt);
        };
    }
    template <class Rule>
    bool write(const std::shared_ptr<Rule>& rule, const char* operation, Deadline deadline,
               std::stop_token stop) const {
        check_value_size(core, *place, rule->data(), operation);
        const auto changed =
            change_blocking(core, place, rule, operation, deadline, std::move(stop), tells_follower(rule));
        if (changed) return *changed;
        throw not_sent(operation, place->user_path);
    }
    template <class Rule>
    void write_later(const std::shared_ptr<Rule>& rule, const char* operation, Deadline deadline, std::stop_token stop,
                     std::function<void(SetResult)> done) const {
        check_callable(done, operation, place->user_path);
        core->throw_if_closed(operation, place->user_path);
        check_value_size(core, *place, rule->data(), operation);
        change_later(
            core, place, rule, operation, deadline, std::move(stop),
            [done = std::move(done), operation, path = place->user_path](ValueUpdateAnswer answer) {
                if (!answer.error && !is_known(answer.how)) answer.error = not_sent(operation, path);
                done(to_result(answer.how == ValueUpdateAnswer::How::changed, answer.error));
            },
            tells_follower(rule));
    }

    static constexpr const char* kName = "SharedValue";
    const std::string& path() const noexcept { return place->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const ValuePlace> place;
    const std::string seed;
    const std::shared_ptr<ValueFollower> follower = std::make_shared<ValueFollower>();  // under the session lock

private:
    ValueUpdateEnded tells_of_latest(const std::shared_ptr<FindOrCreate>& rule) const {
        return [rule, session = core.get(), follower = follower](ValueUpdateAnswer::How how) {
            if (is_known(how)) follower->saw(*session, rule->latest());
        };
    }
    Error not_answered(const char* operation) const {
        return {Errc::unreachable, operation, place->user_path,
                "the deadline passed or it was stopped before a server answered"};
    }
    static void get_again(const std::shared_ptr<const SharedValueImpl>& self, Deadline deadline,
                          const std::stop_token& stop, const std::function<void(Result<VersionedValue>)>& done) {
        try {
            get_later(self, deadline, stop, done);
        } catch (...) {  // closed meanwhile
            done({{}, std::current_exception()});
        }
    }
};

}  // namespace internal

using internal::Overwrite;
using internal::OverwriteVersion;
using internal::SessionAccess;
using internal::SharedValueImpl;

SharedValue::SharedValue(Session& session, std::string path, std::string seed, SharedValueOptions options)
    : impl_(
          std::make_shared<SharedValueImpl>(SessionAccess::core(session), path, std::move(seed), std::move(options))) {}
SharedValue::SharedValue(SharedValue&&) noexcept = default;
SharedValue& SharedValue::operator=(SharedValue&&) noexcept = default;
SharedValue::~SharedValue() = default;

VersionedValue SharedValue::get(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "get");
    auto found = impl->get(deadline, stop);
    return {std::move(found.data), found.version};
}

void SharedValue::get_async(Deadline deadline, std::stop_token stop, std::function<void(Result<VersionedValue>)> done) {
    constexpr const char* operation = "get_async";
    const auto impl = internal::usable(impl_, operation);
    internal::check_callable(done, operation, path());
    SharedValueImpl::get_later(impl, deadline, stop, done);
}

void SharedValue::set(std::string value, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "set");
    impl->write(std::make_shared<Overwrite>(std::move(value)), "set", deadline, std::move(stop));
}

bool SharedValue::try_set(std::int32_t version, std::string value, Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "try_set");
    return impl->write(std::make_shared<OverwriteVersion>(std::move(value), version), "try_set", deadline,
                       std::move(stop));
}

void SharedValue::set_async(std::string value, Deadline deadline, std::stop_token stop,
                            std::function<void(SetResult)> done) {
    const auto impl = internal::usable(impl_, "set_async");
    impl->write_later(std::make_shared<Overwrite>(std::move(value)), "set_async", deadline, std::move(stop),
                      std::move(done));
}

void SharedValue::try_set_async(std::int32_t version, std::string value, Deadline deadline, std::stop_token stop,
                                std::function<void(SetResult)> done) {
    const auto impl = internal::usable(impl_, "try_set_async");
    impl->write_later(std::make_shared<OverwriteVersion>(std::move(value), version), "try_set_async", deadline,
                      std::move(stop), std::move(done));
}

Subscription SharedValue::observe(Observer observer) {
    const auto impl = internal::usable(impl_, "observe");
    constexpr const char* operation = "observe";
    internal::check_callable(observer, operation, path());
    auto subscription = internal::watch_latest(
        impl->core, operation, path(), impl->place->path,
        [observer = std::move(observer)](const internal::SeenNode& node) {
            observer(node.exists ? std::optional(VersionedValue{node.data, node.stat.version}) : std::nullopt);
        });
    internal::seed_behind(impl->core, impl->place, impl->seed);
    return subscription;
}

const std::string& SharedValue::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
