// SharedCount: a SharedValue (shared_value.cpp) with a number of four bytes, big-endian, as in Curator's SharedCount
// and kazoo's Counter(support_curator=True).
#include <zkrecipes/error.hpp>
#include <zkrecipes/shared_count.hpp>

#include <utility>

#include "core/operation/to_result.hpp"
#include "core/value/big_endian.hpp"

namespace zkrecipes {
namespace {

using internal::to_big_endian;

/// Empty: something else stands there.
std::optional<VersionedCount> count_of(const VersionedValue& value, std::int32_t seed) {
    if (value.value.empty()) return VersionedCount{seed, value.version};  // kazoo's, before its first count
    const auto count = internal::from_big_endian<std::int32_t>(value.value);
    if (!count) return std::nullopt;
    return VersionedCount{*count, value.version};
}

Error no_count(const char* operation, const std::string& path, const VersionedValue& value) {
    return {Errc::bad_data, operation, path,
            "the node holds " + std::to_string(value.value.size()) + " bytes, and a count has 4: it is no count"};
}

}  // namespace

SharedCount::SharedCount(Session& session, std::string path, std::int32_t seed, SharedValueOptions options)
    : seed_(seed), value_(session, std::move(path), to_big_endian(seed), std::move(options)) {}

VersionedCount SharedCount::get(Deadline deadline, std::stop_token stop) {
    const auto value = value_.get(deadline, std::move(stop));
    if (const auto count = count_of(value, seed_)) return *count;
    throw no_count("get", path(), value);
}

void SharedCount::get_async(Deadline deadline, std::stop_token stop, std::function<void(Result<VersionedCount>)> done) {
    internal::check_callable(done, "get_async", path());
    value_.get_async(deadline, std::move(stop),
                     [done = std::move(done), seed = seed_, path = path()](const Result<VersionedValue>& value) {
                         if (value.error) return done({{}, value.error});
                         if (const auto count = count_of(value.value, seed)) return done({*count, nullptr});
                         done({{}, std::make_exception_ptr(no_count("get_async", path, value.value))});
                     });
}

void SharedCount::set(std::int32_t count, Deadline deadline, std::stop_token stop) {
    value_.set(to_big_endian(count), deadline, std::move(stop));
}

bool SharedCount::try_set(std::int32_t version, std::int32_t count, Deadline deadline, std::stop_token stop) {
    return value_.try_set(version, to_big_endian(count), deadline, std::move(stop));
}

void SharedCount::set_async(std::int32_t count, Deadline deadline, std::stop_token stop,
                            std::function<void(SetResult)> done) {
    value_.set_async(to_big_endian(count), deadline, std::move(stop), std::move(done));
}

void SharedCount::try_set_async(std::int32_t version, std::int32_t count, Deadline deadline, std::stop_token stop,
                                std::function<void(SetResult)> done) {
    value_.try_set_async(version, to_big_endian(count), deadline, std::move(stop), std::move(done));
}

Subscription SharedCount::observe(Observer observer) {
    internal::check_callable(observer, "observe", path());
    return value_.observe([observer = std::move(observer), seed = seed_](const std::optional<VersionedValue>& value) {
        if (!value) return observer(std::nullopt);
        if (const auto count = count_of(*value, seed)) observer(count);
    });
}

}  // namespace zkrecipes
